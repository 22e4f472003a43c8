"""Interpolated lines of arrays and their weights by hand; elements at sums of offsets, as ONNX Runtime takes them."""

from functools import reduce

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.onnx_models import runtime_outputs, text_model
from support.ops import ArrayInterpolate
from support.tables import every

from n2d2py.contracts.reference import OnnxWriter
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Tensor
from n2d2py.reference.executor import run_graph


def interpolation(attributes: str, size: int, lines: int) -> ArrayInterpolate:
    """The layer that resizes the columns of two rows."""
    body = f"r = Reshape (x, dims)\n y = Resize <{attributes}> (r, , , sizes)"
    constants = {"dims": np.array([2, size]), "sizes": np.array([2, lines])}
    graph = import_onnx(text_model(f"float[1,{2 * size}] x => float y", body, constants, opset=19, has_shapes=False))
    (op,) = [each.op for each in graph.nodes if isinstance(each.op, ArrayInterpolate)]
    return op


HALF = (0.125, 0.375, 0.375, 0.125)
LINES: dict[str, tuple] = {
    "linear": ('mode = "linear"', 4, 2, ((0, 1), (2, 3)), ((0.5, 0.5), (0.5, 0.5))),
    "linear, beyond the ends": (
        'mode = "linear"',
        2,
        4,
        ((0, 0), (0, 1), (0, 1), (1, 1)),
        ((0.25, 0.75), (0.75, 0.25), (0.25, 0.75), (0.75, 0.25)),
    ),
    "linear, filtered": (
        'mode = "linear", antialias = 1',
        8,
        4,
        ((0, 0, 1, 2), (1, 2, 3, 4), (3, 4, 5, 6), (5, 6, 7, 7)),
        (HALF,) * 4,
    ),
    "cubic at whole positions": (
        'mode = "cubic", coordinate_transformation_mode = "align_corners"',
        3,
        5,
        ((0, 0, 1, 2), (0, 0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 2), (1, 2, 2, 2)),
        (
            (0, 1, 0, 0),
            (-0.09375, 0.59375, 0.59375, -0.09375),
            (0, 1, 0, 0),
            (-0.09375, 0.59375, 0.59375, -0.09375),
            (0, 1, 0, 0),
        ),
    ),
}


@every("name", LINES)
def test_lines_and_their_weights(name):
    """As few lines as have weights; no weight is minus 0."""
    attributes, size, wanted, positions, weights_of = LINES[name]
    op = interpolation(attributes, size, wanted)
    assert (op.outer, op.size, op.inner, op.positions) == (2, size, 1, positions)
    np.testing.assert_allclose(op.weights, weights_of, atol=1e-12)
    assert all(np.copysign(1, weight) == 1 for line in op.weights for weight in line if weight == 0)


@pytest.mark.parametrize(
    ("mode", "positions"),
    [
        ("linear", ((0, 0, 1, 1), (1, 2, 3, 3), (2, 3, 4, 5), (4, 5, 6, 6), (6, 7, 7, 7))),
        (
            "cubic",
            ((0, 0, 0, 1, 2, 3, 3), (0, 0, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6, 6), (2, 3, 4, 5, 6, 7, 7), (4, 5, 6, 7, 7, 7, 7)),
        ),
    ],
)
def test_lines_of_a_filter_are_filled_up_with_the_last(mode, positions):
    """Eight lines become five: they are at 0.3, 1.9, 3.5, 5.1 and 6.7, and each takes those up to 1.6 or 3.2 away."""
    op = interpolation(f'mode = "{mode}", antialias = 1', 8, 5)
    assert op.positions == positions
    np.testing.assert_allclose(np.sum(op.weights, 1), 1)


def test_an_upsample_that_makes_smaller_takes_the_line_before():
    """Other than the first Resize; ONNX Runtime refuses it."""
    constants = {"dims": np.array([2, 3, 8]), "scales": np.array([1, 1, 0.4], np.float32)}
    body = 'r = Reshape (x, dims)\n y = Upsample <mode = "nearest"> (r, scales)'
    model = text_model("float[1,48] x => float y", body, constants, opset=9, has_shapes=False)
    x = np.random.default_rng(7).normal(size=(2, 48)).astype(np.float32)
    (found,) = run_graph(import_onnx(model), {"x": x}).values()
    np.testing.assert_array_equal(found.reshape(2, 2, 3, 3), x.reshape(2, 2, 3, 8)[..., [0, 2, 5]])


@every("seed", range(40))
def test_places_at_sums_of_offsets_as_onnx_runtime_takes_them(seed):
    """Axes in any order, with gaps, repetitions and reversals; each third case has steps that are not nested."""
    rng = np.random.default_rng(seed)
    dims = rng.integers(1, 5, 3)
    steps, size = [int(dims[1] * dims[2]), int(dims[2]), 1 + (seed % 3 == 0)], int(dims.prod()) + 3
    axes = [rng.integers(0, max(1, n - 1), rng.integers(1, 6)) * step for n, step in zip(dims, steps, strict=True)]
    axes += [np.arange(dims[0]) * steps[0], np.zeros(2, np.int64), np.array([seed % 2])]
    axes = [axes[index] for index in rng.permutation(6) if index != seed % 2 * 3]
    while sum(int(axis.max()) for axis in axes) >= size:
        size *= 2
    graph = Graph("moved")
    graph.tensors["x"] = Tensor("x", (1, size))
    writer = OnnxWriter(graph)
    writer.take("x", size, axes, "y")
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", None])] for name in "xy"]
    model = helper.make_model(
        helper.make_graph(writer.nodes, "moved", *ends, writer.initializers),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    x = rng.normal(size=(2, size)).astype(np.float32)
    (found,) = runtime_outputs(model, x)
    np.testing.assert_array_equal(found, x[:, reduce(np.add.outer, axes).reshape(-1)])
