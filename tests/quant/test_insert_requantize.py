"""Networks that come quantized: behind every layer is one rounding, with the types that the file gives or that cannot overflow."""

import itertools

import numpy as np
import pytest
from support.ops import Activation, Concat, ElemWise, Fc, Pool, Quantize
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip, Tanh
from n2d2py.graph import Graph, Node
from n2d2py.quant.types.insert_requantize import insert_missing_quantizes, real_range
from n2d2py.reference.executor import run_graph

BYTE, FINER, COARSER = NumType(8, scale=0.1), NumType(8, scale=0.05), NumType(8, scale=0.3)


class Net:
    """A graph whose input `x` is rounded to bytes as `q`; roundings are named after what they read."""

    def __init__(self, *shape: int):
        self.graph = Graph("net")
        self.graph.add_input("x", (1, *(shape or (2, 4, 4))))
        self.rounded("x", "q")

    def layer(self, name: str, op, *inputs: str, params=None, activation=None) -> str:
        self.graph.add(Node(name, op, list(inputs or ("q",)), [name], params or {}, activation))
        return name

    def rounded(self, tensor: str, name: str = "", kind: NumType = BYTE) -> str:
        return self.layer(name or f"{tensor}_q", Quantize(kind), tensor)

    def insert_missing_quantizes(self, *outputs: str):
        self.graph.outputs = list(outputs)
        self.graph.verify()
        made, types, errors = insert_missing_quantizes(self.graph)
        for node in made.nodes:
            if not isinstance(node.op, (Quantize, Concat)) and not node.op.moves_values:
                (reader,) = made.consumers(node.output)
                assert isinstance(reader.op, Quantize), node.name
        x = np.random.default_rng(0).normal(size=(3, *self.graph.shape("x")[1:])).astype(np.float32)
        wanted, found = (list(run_graph(each, {"x": x}).values()) for each in (self.graph, made))
        return made, types, errors, max(np.abs(a - b).max() for a, b in zip(wanted, found, strict=True))


def roundings(graph: Graph, tensor: str) -> list[NumType]:
    return [node.op.type for node in graph.consumers(tensor) if isinstance(node.op, Quantize)]


def test_an_input_that_is_not_rounded():
    net = Net()
    net.layer("a", Activation(Clip(0.0)), "x")
    net.layer("b", Activation(Clip(0.0)), "x")
    net.rounded("a"), net.rounded("b")
    net.graph.outputs = ["a_q", "b_q"]
    (error,) = insert_missing_quantizes(net.graph)[2]
    assert error.code == "E514" and "'q'" in error.line() and "'x'" in error.line()


@pytest.mark.parametrize("output", [False, True])
def test_a_cheap_layer_is_computed_for_each_rounding(output):
    """As an output its real numbers are kept as well."""
    net = Net()
    net.layer("a", ElemWise("Sum", (0.5, 0.25)), "q", "q")
    net.rounded("a", "f", FINER), net.rounded("a", "c", COARSER)
    made, types, errors, off = net.insert_missing_quantizes("f", "c", *(["a"] if output else []))
    sums = [node for node in made.nodes if isinstance(node.op, ElemWise)]
    assert not errors and len(sums) == 2 + output and all(node.inputs == ["q", "q"] for node in sums)
    kinds = sorted((kind.bits, kind.scale) for node in sums for kind in roundings(made, node.output))
    assert kinds[:2] == [(8, 0.05), (8, 0.3)] and [bits for bits, _ in kinds[2:]] == [32] * output
    assert off < 1e-6 and (not output or types["a"].bits == 32)


def test_a_layer_with_weights_is_computed_once():
    net = Net()
    rng = np.random.default_rng(1)
    params = {"weights": rng.normal(size=(3, 32)).astype(np.float32), "bias": rng.normal(size=3).astype(np.float32)}
    net.layer("a", Fc(), params=params)
    net.rounded("a", "f", FINER), net.rounded("a", "c", COARSER)
    made, types, _, off = net.insert_missing_quantizes("f", "c")
    (layer,) = [node for node in made.nodes if isinstance(node.op, Fc)]
    (kind,) = roundings(made, layer.output)
    assert kind.bits == 32 and types["a"] == kind and layer.output == "a_real" and off <= 0.3
    assert sorted(each.scale for each in roundings(made, "a")) == [0.05, 0.3]
    assert made.shape("a") == made.shape("a_real") == (1, 3)


@every(
    ("reader", "bits"),
    [(ElemWise("Sum", (1.0,)), 32), (Pool("Average", (2, 2)), 32), (Pool("Max", (2, 2)), 32), (Activation(Tanh()), 16)],
)
@every("behind", [False, True])
def test_the_width_of_what_the_file_does_not_round(reader, bits, behind):
    """32 bits where all readers compute with real numbers, those behind a layer that moves values too."""
    net = Net()
    net.layer("a", ElemWise("Sum", (0.5,)))
    source = net.layer("m", Concat(), "a", "a") if behind else "a"
    net.layer("r", reader, source)
    made, types, _, off = net.insert_missing_quantizes(net.rounded("r"))
    assert types["a"].bits == bits and roundings(made, "a_real") == [types["a"]]
    assert types["a"].scale * types["a"].qmax >= 0.5 * 12.7 and off <= 0.1 + 1e-6


@every(("reader", "bits"), [(ElemWise("Sum", (1.0,)), 32), (Activation(Tanh()), 16)])
@every("scale", [2.0**-20, 2.0**-9, 2.0**9])
def test_what_the_file_does_not_round_keeps_its_digits_whatever_its_size(reader, bits, scale):
    net = Net()
    net.layer("a", ElemWise("Sum", (0.5,)), net.rounded("x", "s", NumType(8, scale=scale)))
    net.layer("r", reader, "a")
    _, types, *_ = net.insert_missing_quantizes(net.rounded("r", kind=NumType(8, scale=scale)))
    reach = 127 * scale / 2
    assert (
        types["a"].bits == bits
        and types["a"].scale <= reach / 2**14
        and types["a"].scale * types["a"].qmax >= reach * (1 - 1e-6)
    )


@every("kinds", list(itertools.permutations((FINER, BYTE, COARSER))))
def test_the_inputs_of_a_concatenation_get_the_widest_type(kinds):
    net = Net()
    parts = [net.rounded("x", f"p{at}", kind) for at, kind in enumerate(kinds)]
    net.layer("a", Concat(), *parts)
    made, types, _, _ = net.insert_missing_quantizes("a")
    assert types["a"] == COARSER
    for name, kind in zip(made.node("a").inputs, kinds, strict=True):
        assert types[name] == COARSER and (name in parts) == (kind == COARSER)


def test_a_concatenation_of_narrow_ranges_of_few_bits():
    """Four levels of one input cannot hold the others: the joined type has all its levels over the same range."""
    few = NumType(8, scale=4.0, least=-3, most=3)
    net = Net()
    net.rounded("x", "p", few), net.rounded("x", "r", FINER)
    net.layer("a", Concat(), "p", "r")
    made, types, _, _ = net.insert_missing_quantizes("a")
    found = types["a"]
    assert found.least is None and found.qmax == 127 and found.scale == pytest.approx(few.scale * 3 / 127)
    assert [types[name] for name in made.node("a").inputs] == [found, found]


LEVELS = NumType(8, scale=0.5, zero_point=3, least=-4, most=6)
OTHER = NumType(8, scale=0.25, least=-3, most=2)


@every("op", [ElemWise("Sum", (2.0, -3.0), (0.5, 1.0)), ElemWise("Prod"), ElemWise("Max"), ElemWise("Min"), ElemWise("Sum")])
def test_the_range_of_two_inputs(op):
    """Every pair of values lies inside, and the ends of sums and products are reached."""
    values = [kind.dequantize(np.arange(kind.qmin, kind.qmax + 1)) for kind in (LEVELS, OTHER)]
    a, b = (each.reshape(-1) for each in np.meshgrid(*values))
    node = Node("y", op, ["a", "b"], ["y"])
    results = op.run([a.reshape(-1, 1), b.reshape(-1, 1)], node)[0]
    low, high = real_range(node, [LEVELS, OTHER])
    assert low <= results.min() and results.max() <= high
    if op.operation in ("Sum", "Prod"):
        assert (low, high) == pytest.approx((results.min(), results.max()))


@pytest.mark.parametrize("activation", [None, Clip(-0.5, 1.25)])
def test_the_range_of_weights(activation):
    rng = np.random.default_rng(2)
    weights, bias = rng.normal(size=(3, 4)), rng.normal(size=3)
    node = Node("y", Fc(), ["x"], ["y"], {"weights": weights.astype(np.float32), "bias": bias.astype(np.float32)}, activation)
    ends = [(LEVELS.qmin - 3) * 0.5, (LEVELS.qmax - 3) * 0.5]
    sums = np.array(list(itertools.product(ends, repeat=4))) @ weights.T + bias
    wanted = sums.min(), sums.max()
    if activation is not None:
        wanted = tuple(np.clip(wanted, -0.5, 1.25))
    assert real_range(node, [LEVELS]) == pytest.approx(wanted, rel=1e-6)
