"""What layers and functions say of themselves is so: shapes, multiply-accumulates, ranges and monotony."""

import numpy as np
import pytest
from support import ops
from support.tables import every

from n2d2py.contracts.functions import FUNCTIONS, ChannelClip, Clip, Elu, HardSigmoid, HardSwish, LeakyRectifier, Step
from n2d2py.contracts.operator import Op, operator_kinds
from n2d2py.graph import Graph, Node
from n2d2py.operators.normalize.op import lp_normalize
from n2d2py.reference.executor import run_graph

NORM = dict.fromkeys(("scale", "bias", "mean", "variance"), (12,))
# operator, shapes of the inputs, shapes of the parameters, shape of the output, multiply-accumulates
LAYERS = {
    "Conv": (ops.Conv(), [(12, 7, 10)], {"weights": (5, 12, 3, 2), "bias": (5,)}, (5, 5, 9), 5 * 5 * 9 * 12 * 6),
    "Conv, all attributes": (
        ops.Conv((2, 3), (1, 0, 2, 3), (2, 1), 3),
        [(12, 7, 10)],
        {"weights": (6, 4, 3, 2), "bias": (6,)},
        (6, 3, 4),
        6 * 3 * 4 * 4 * 6,
    ),
    "Deconv": (ops.Deconv(), [(12, 7, 10)], {"weights": (5, 12, 3, 2), "bias": (5,)}, (5, 9, 11), 5 * 12 * 6 * 70),
    "Deconv, all attributes": (
        ops.Deconv((2, 3), (1, 0, 2, 3), (2, 1), 3),
        [(12, 7, 10)],
        {"weights": (6, 4, 3, 2), "bias": (6,)},
        (6, 14, 26),
        6 * 4 * 6 * 70,
    ),
    "Fc": (ops.Fc(), [(12, 7, 10)], {"weights": (5, 840), "bias": (5,)}, (5,), 4200),
    "Max pool": (ops.Pool("Max", (3, 2), (2, 3), (1, 0, 0, 1)), [(12, 7, 10)], {}, (12, 3, 4), 0),
    "Average pool": (ops.Pool("Average", (3, 2), (2, 3), (1, 0, 0, 1)), [(12, 7, 10)], {}, (12, 3, 4), 12 * 12 * 6),
    "PoolSum": (ops.PoolSum((3, 2), (2, 3), (1, 0, 0, 1)), [(12, 7, 10), (12, 3, 4)], {}, (12, 3, 4), 144),
    "Unpool": (ops.Unpool((2, 3), (2, 3)), [(12, 3, 3), (12, 7, 10)], {}, (12, 6, 9), 0),
    "Affine": (ops.Affine(), [(12, 7, 10)], {"weights": (12,), "bias": (12,)}, (12, 7, 10), 840),
    "BatchNorm": (ops.BatchNorm(), [(12, 7, 10)], NORM, (12, 7, 10), 840),
    "ElemWise": (ops.ElemWise("Sum"), [(12, 7, 10), (12, 1, 1), (1, 7, 10)], {}, (12, 7, 10), 3 * 840),
    "Concat": (ops.Concat(), [(12, 7, 10), (3, 7, 10), (1, 7, 10)], {}, (16, 7, 10), 0),
    "DepthToSpace": (ops.DepthToSpace(2), [(12, 7, 10)], {}, (3, 14, 20), 0),
    "DepthToSpace, channels first": (ops.DepthToSpace(3, True), [(18, 7, 5)], {}, (2, 21, 15), 0),
    "SpaceToDepth": (ops.SpaceToDepth(2), [(12, 6, 10)], {}, (48, 3, 5), 0),
    "SpaceToDepth, channels first": (ops.SpaceToDepth(3, True), [(2, 6, 9)], {}, (18, 2, 3), 0),
    "Padding": (ops.Padding((1, 2, -3, 4)), [(12, 7, 10)], {}, (12, 5, 16), 0),
    "IndexSelect": (ops.IndexSelect(((1, 1, 0), None, (9, 3))), [(12, 7, 10)], {}, (3, 7, 2), 0),
    "Nearest": (ops.Resize((3, 25)), [(12, 7, 10)], {}, (12, 3, 25), 0),
    "Bilinear": (ops.Resize((3, 25), "Bilinear", "HalfPixel"), [(12, 7, 10)], {}, (12, 3, 25), 4 * 900),
    "LRN": (ops.LRN(5), [(12, 7, 10)], {}, (12, 7, 10), 5 * 840),
    "LRN over few channels": (ops.LRN(5), [(3, 7, 10)], {}, (3, 7, 10), 3 * 210),
    "Normalize": (lp_normalize(12), [(12, 7, 10)], {}, (12, 7, 10), 2 * 840),
    "Softmax": (ops.Softmax(), [(12, 7, 10)], {}, (12, 7, 10), 840),
    "Softmax along lines": (ops.Softmax(7, inner=120), [(12, 7, 10)], {}, (12, 7, 10), 840),
    "Transpose": (ops.Transpose((0, 3, 1, 2)), [(12, 7, 10)], {}, (10, 12, 7), 0),
    "Reshape": (ops.Reshape((4, 210)), [(12, 7, 10)], {}, (4, 210), 0),
    "Identity": (ops.Identity(), [(12, 7, 10)], {}, (12, 7, 10), 0),
}


def layer(op: Op, inputs: list[tuple], params: dict[str, tuple]) -> Graph:
    graph, rng = Graph("net"), np.random.default_rng(0)
    for index, shape in enumerate(inputs):
        graph.add_input(f"x{index}", (1, *shape))
    arrays = {name: rng.uniform(0.5, 1, shape).astype(np.float32) for name, shape in params.items()}
    graph.add(Node("y", op, list(graph.inputs), ["y"], arrays))
    graph.outputs = ["y"]
    graph.verify()
    return graph


@every("op, inputs, params, output, macs", LAYERS.values(), ids=LAYERS)
def test_shapes_and_work(op, inputs, params, output, macs):
    graph = layer(op, inputs, params)
    assert graph.shape("y") == (1, *output)
    rng = np.random.default_rng(1)
    feeds = {f"x{index}": rng.normal(size=(3, *shape)) for index, shape in enumerate(inputs)}
    assert run_graph(graph, feeds)["y"].shape == (3, *output)
    if macs is not None:
        assert op.macs([(1, *shape) for shape in inputs], (1, *output), graph.node("y")) == macs


# operator, sizes of the inputs, multiply-accumulates
ARRAYS = {
    "Normalize of arrays": (ops.Normalize(8, 1e-5), (24,), 24, 48),
    "Normalize, means": (ops.Normalize(8, 1e-5, True, "mean"), (24,), 3, 48),
    "ArrayTopK": (ops.ArrayTopK(2, 4, 3, 2), (24,), 12, 48),
    "ArrayNonMaxSuppression": (ops.ArrayNonMaxSuppression(1, 2, 5, 3, 0.5), (20, 10), 18, 30),
    "ArrayMatMul": (ops.ArrayMatMul((3, 2, 4), (1, 4, 5)), (24, 20), 30, 120),
    "ArrayReduce": (ops.ArrayReduce("Sum", (2, 4, 3), (1,)), (24,), 6, 24),
    "ArrayInterpolate": (ops.ArrayInterpolate(2, 4, 3, ((0, 1), (1, 2), (2, 3)), ((0.5, 0.5),) * 3), (24,), 18, 36),
    "IndexSelect": (ops.IndexSelect(((0, 12, -1), (5,))), (24,), 3, 0),
    "IndexSelect of one": (ops.IndexSelect(()), (1,), 1, 0),
    "Concat of rows": (ops.Concat(1, 2, (0, 1)), (6, 8), 14, 0),
    "Conv3D": (
        ops.Conv3D((2, 4, 1, 5, 5), (1, 4, 3), (1, 2, 3), (1, 1, 1), (0, 0, 0), (1, 1, 1), 6, 2),
        (200, 72),
        144,
        144 * 12,
    ),
    "Pool3D": (ops.Pool3D((2, 4, 1, 5, 5), (1, 2, 2), (1, 2, 2), (1, 2, 2), (0, 0, 0), (1, 1, 1), "Max"), (200,), 32, 128),
}


@every(("op", "sizes", "output", "macs"), ARRAYS.values(), ids=ARRAYS)
def test_operators_on_arrays(op, sizes, output, macs):
    graph = layer(op, [(size,) for size in sizes], {})
    assert graph.shape("y") == (1, output)
    feeds = {f"x{index}": np.random.default_rng(1).normal(size=(3, size)) for index, size in enumerate(sizes)}
    assert run_graph(graph, feeds)["y"].shape == (3, output)
    assert op.macs([(1, size) for size in sizes], (1, output), graph.node("y")) == macs


FURTHER = {
    "ArrayRecurrent": (ops.ArrayRecurrent("GRU", 5, 7, 11), [(1, 35)], (1, 55), 5 * 3 * 11 * (7 + 11)),
    "ArrayRecurrent, LSTM": (ops.ArrayRecurrent("LSTM", 5, 7, 11), [(1, 35)], (1, 55), 5 * 4 * 11 * (7 + 11)),
    "ArrayMap": (ops.ArrayMap("Add", (2, 3, 4), ((2, 3, 4), (4,)), (0, 1)), [(1, 24), (1, 4)], (1, 24), 24),
    "MaskedSoftmax": (ops.MaskedSoftmax(4), [(1, 8)], (1, 8), 8),
    "AddConstants": (ops.AddConstants(), [(1, 12)], (1, 12), 12),
}
"""Operators that have parameters or several forms: (operator, shapes of the inputs and of the output, work)."""


@every(("op", "inputs", "output", "macs"), FURTHER.values(), ids=FURTHER)
def test_the_work_of_further_operators(op, inputs, output, macs):
    assert op.macs(inputs, output, None) == macs


def test_the_work_of_every_operator_is_tested():
    tested = {type(case[0]) for cases in (LAYERS, ARRAYS, FURTHER) for case in cases.values()}
    assert {kind.__name__ for kind in operator_kinds().values() if kind.macs is not Op.macs} <= {
        kind.__name__ for kind in tested
    }


GRID = np.concatenate([np.linspace(-60, 60, 4801), [-1e4, 1e4, -1e-6, 1e-6]])
WITH_ATTRIBUTES = [
    Clip(),
    Clip(0.0),
    Clip(-1.0, 1.0),
    Clip(0.5, 2.0),
    Clip(-2.0, -1.0),
    Clip(-np.inf, 3.0),
    ChannelClip(0.0, (1.0, 2.0)),
    ChannelClip(-0.5, (1.0, 2.0)),
    LeakyRectifier(0.1),
    LeakyRectifier(0.25, 3.0),
    LeakyRectifier(-0.5),
    Step(0.0),
    Step(0.5, 0.0, None),
    Step(-0.5, 0.0, None),
    Step(0.5, None, 1.0),
    Step(0.0, 0.25, 0.5),
    Step(0.0, -0.25, 0.5),
    Step(0.0, 0.25, -0.5),
    Elu(1.0),
    HardSigmoid(0.2, 0.5),
    HardSwish(),
]
PLAIN = [made() for made in (FUNCTIONS[name] for name in FUNCTIONS) if made not in {type(each) for each in WITH_ATTRIBUTES}]


def values(function) -> np.ndarray:
    """f over the grid, of both channels where it tells them apart; what is not defined left out."""
    x = GRID.reshape(1, 1, -1, 1).repeat(2, 1)
    found = function(x)
    assert found.shape == x.shape and found.dtype == x.dtype
    return found[~np.isnan(found)]


@every("function", [*WITH_ATTRIBUTES, *PLAIN], ids=str)
def test_never_negative(function):
    """A function that says so is; one that could is said to be, but for slopes that nobody has."""
    lowest = values(function).min()
    assert not function.nonnegative or lowest >= 0
    if lowest >= 0 and not isinstance(function, LeakyRectifier):
        assert function.nonnegative, lowest


@every("function", [*WITH_ATTRIBUTES, *PLAIN], ids=str)
def test_clamps(function):
    """A clamp gives values of its range as they are, and what is beyond the nearest limit."""
    x = GRID.reshape(1, 1, -1, 1).repeat(2, 1)
    found = function(x)
    if function.is_clamp:
        low, highs = function.low, np.array(getattr(function, "highs", [getattr(function, "high", 0)] * 2)).reshape(1, 2, 1, 1)
        np.testing.assert_array_equal(found, np.minimum(np.maximum(x, low), highs))
    else:
        inside = found[(found > found[~np.isnan(found)].min()) & (found < found[~np.isnan(found)].max())]
        assert isinstance(function, Step) or not np.isin(inside, GRID).all()


@pytest.mark.parametrize("function", [each for each in [*WITH_ATTRIBUTES, *PLAIN] if each.gate], ids=str)
def test_gates(function):
    """f(x) = x g(x), g being the functions of the gate one after the other."""
    x = GRID[np.abs(GRID) < 50]
    inner = x
    for each in function.gate:
        inner = each(inner)
    np.testing.assert_allclose(function(x), x * inner, rtol=1e-9, atol=1e-12)
