"""The type of a Concat and of what it joins, by the ranges of its inputs and by who reads it (`n2d2py.quant.joins`)."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node, Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.functions import FUNCTIONS
from n2d2py.operators.identity import Identity
from n2d2py.quant.joins import _joined, fill_values, type_concats, with_fills
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.ranges import interval_type
from n2d2py.quant.types import shared_tensors

TANH = FUNCTIONS["Tanh"]()


def joined(reader: str = "tanh", moved: bool = False) -> Graph:
    """a and b, convolutions of x, are joined by j, which `reader` reads, moved before or not; "none": j is the output."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 4, 4))

    def conv(name: str, source: str, op=None) -> None:
        channels = graph.shape(source)[1]
        weights = np.ones((channels, 2, 1, 1) if op else (2, channels, 1, 1), np.float32)
        graph.add(Node(name, op or Conv(), [source], [name], {"weights": weights, "bias": np.zeros(2, np.float32)}))

    conv("a", "x")
    conv("b", "x")
    graph.add(Node("j", Concat(), ["a", "b"], ["j"]))
    last = "j"
    if moved:
        graph.add(Node("m", Identity(), ["j"], ["m"]))
        last = "m"
    if reader == "conv":
        conv("y", last)
    elif reader == "tanh":
        graph.add(Node("y", Activation(TANH), [last], ["y"]))
    graph.outputs = ["y" if reader != "none" else last]
    return graph


def typed(graph: Graph, reach: float, positive: tuple[str, ...] = (), zero: tuple[str, ...] = (), parts=None, **options):
    """(types, coarse joins) where a reaches 1 and b `reach`, both signed."""
    source = {held: origin for origin, holders in shared_tensors(graph).items() for held in holders}
    types = {"x": NumType(8).with_scale(1 / 127)}
    types |= parts or {"a": NumType(8).with_scale(1 / 127), "b": NumType(8).with_scale(reach / 127)}
    found = type_concats(graph, source, types, set(positive), set(zero), QuantOptions(**{"output_bits": 0, **options}))
    return types, found


@pytest.mark.parametrize(("reach", "shared"), [(1.0, True), (0.75, True), (0.5, True), (0.49, False), (0.2, False)])
def test_inputs_that_come_near_the_widest_have_its_type(reach, shared):
    types, coarse = typed(joined(), reach)
    assert types["j"] == types["a"] and types["j"].scale == pytest.approx(1 / 127) and not coarse
    assert (types["b"] == types["j"]) == shared


@pytest.mark.parametrize(("reach", "bits"), [(0.127, 8), (0.125, 16), (0.01, 16), (0.0005, 16), (0.0004, 16)])
def test_ranges_that_differ_much_get_16_bits(reach, bits):
    """Where fewer than 16 of 127 steps are left for the smallest one; 16 of 32,767 are enough there."""
    types, coarse = typed(joined(), reach)
    assert types["j"].bits == bits and types["j"].reach == pytest.approx(1)
    assert types["a"].bits == types["b"].bits == 8
    assert bool(coarse) == (reach < 16 / 32767)
    if coarse:
        assert coarse[0].layer == "j" and not coarse[0].pads
        assert "joins in 16 bits ranges that differ by a factor of 2.5e+03" in coarse[0].what
        assert "'a' reaches 1, 'b' 0.0004, which is 13.1 steps" in coarse[0].what
        assert coarse[0].remedy == "set Quantize=0 for it, or keep the tensors apart"


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    ("reader", "options", "bits"),
    [
        ("tanh", {}, 16),
        ("conv", {}, 8),
        ("none", {}, 16),
        ("none", {"output_bits": 8}, 8),
        ("none", {"output_bits": 16}, 16),
        ("tanh", {"output_bits": 8}, 16),
        ("tanh", {"wide_joins": False}, 8),
        ("conv", {"wide": frozenset({"j"})}, 16),
        ("conv", {"bits": 16}, 16),
    ],
)
def test_who_reads_a_concat_decides_its_width(reader, options, bits, moved):
    types, coarse = typed(joined(reader, moved), 0.05, **options)
    assert types["j"].bits == bits and bool(coarse) == (bits == 8)
    if coarse:
        assert coarse[0].remedy == "set QuantBits=16 or Quantize=0 for it, or keep the tensors apart"
        assert "which is 6.35 steps" in coarse[0].what


@pytest.mark.parametrize("asked", [8, 16])
def test_the_bits_that_a_section_says_stay(asked):
    graph = joined()
    graph.precisions["j"] = Precision(bits=asked)
    types, coarse = typed(graph, 0.05)
    assert types["j"].bits == asked and bool(coarse) == (asked == 8)


def test_tensors_of_zeros_have_every_scale():
    types, coarse = typed(joined("conv"), 0.01, zero=("b",))
    assert types["j"].bits == 8 and not coarse
    types, _ = typed(joined(), 0.01, zero=("b",))
    assert types["j"].bits == 8
    types, coarse = typed(joined("conv"), 0.01, zero=("a", "b"))
    assert types["j"].bits == 8 and not coarse


@pytest.mark.parametrize(("reader", "shifted"), [("tanh", True), ("conv", True), ("none", False), ("deconv", False)])
def test_a_zero_point_makes_finer_steps(reader, shifted):
    """Of parts that are nearly unsigned; not at an output, nor before a transposed convolution."""
    graph = joined("conv" if reader == "deconv" else reader)
    if reader == "deconv":
        node = graph.node("y")
        node.op, node.params = Deconv(), {"weights": np.ones((2, 4, 1, 1), np.float32), "bias": np.zeros(2, np.float32)}
    parts = {name: NumType(8, False, scale=1.1 / 255, zero_point=23) for name in ("a", "b")}
    types, _ = typed(graph, 1.0, parts=dict(parts))
    assert (types["j"].zero_point != 0) == shifted and types["j"].signed == (not shifted)
    if shifted:
        assert types["j"].interval[0] <= parts["a"].interval[0] and types["j"].interval[1] == pytest.approx(1.0, rel=0.01)
    for options in ({"zero_points": False}, {"unsigned": False}):
        assert typed(graph, 1.0, parts=dict(parts), **options)[0]["j"].zero_point == 0


def test_a_concat_of_what_is_never_negative_is_unsigned():
    types, _ = typed(joined(), 0.5, positive=("j",))
    assert not types["j"].signed and types["j"].scale == pytest.approx(1 / 255)
    assert types["a"].signed  # of another type, which is rescaled


def test_a_concat_of_a_concat_counts_the_parts():
    graph = joined()
    graph.add(Node("k", Concat(), ["j", "x"], ["k"]))
    graph.outputs.append("k")
    types, coarse = typed(graph, 0.05)
    assert types["j"].bits == types["k"].bits == 16 and not coarse
    assert types["x"].bits == 8  # what the network is given keeps its type
    types, coarse = typed(graph, 0.05, wide_joins=False)
    assert {join.layer for join in coarse} == {"j", "k"}


@pytest.mark.parametrize("fill, reach, named", [(0.5, 1.0, False), (1.0, 1.0, False), (-3.0, 3.0, False), (7.99, 7.99, False)])
def test_constants_beside_a_tensor_widen_its_range(fill, reach, named):
    node = Node("p", ArrayIndexSelect(4, ((0, 1, -4, 3),), fill), ["x"], ["p"])
    assert with_fills(1.0, [node]) == (reach, [])


@pytest.mark.parametrize("fill", [8.0, -8.0, 1e4])
def test_constants_far_beyond_a_tensor_are_clipped(fill):
    node = Node("p", ArrayIndexSelect(4, ((0, 1, -4, 3),), fill), ["x"], ["p"])
    near = Node("q", ArrayIndexSelect(4, ((0, 1, -4, 3),), 2.0), ["x"], ["q"])
    reach, (coarse,) = with_fills(1.0, [near, node])
    assert reach == 2.0 and coarse.layer == "p" and coarse.pads
    assert coarse.what.endswith(f"pads with {fill:g} a tensor that reaches 1: in integers the value is {2 * np.sign(fill):g}")


@pytest.mark.parametrize(
    ("offsets", "fill", "pads"), [((0, 1, -4, 3), 1.0, True), ((0, 1, -4, 3), 0.0, False), ((0, 1, 2, 3), 1.0, False)]
)
def test_layers_that_pad_with_a_constant(offsets, fill, pads):
    graph = Graph("net")
    graph.add_input("x", (1, 4))
    graph.add(Node("p", ArrayIndexSelect(4, (offsets,), fill), ["x"], ["p"]))
    graph.outputs = ["p"]
    found = fill_values(graph, {"x": "x", "p": "x"})
    assert ({name: [node.name for node in nodes] for name, nodes in found.items()} == {"x": ["p"]}) == pads
    assert fill_values(graph, {"x": "x"}) == {}


@pytest.mark.parametrize(("readers", "shifted"), [("", True), ("tanh", True), ("deconv", False), ("tanh deconv", False)])
def test_joins_that_a_transposed_convolution_reads_are_symmetric(readers, shifted):
    """Its kernels take no zero point, whoever else reads them."""
    graph = Graph("g")
    graph.add_input("j", (1, 2, 3, 3))
    for name in readers.split():
        op = Activation(TANH) if name == "tanh" else Deconv()
        params = {} if name == "tanh" else {"weights": np.ones((2, 2, 1, 1), np.float32), "bias": np.zeros(2, np.float32)}
        graph.add(Node(name, op, ["j"], [name], params))
    symmetric, part = NumType(8).with_scale(1 / 127), interval_type(8, -0.1, 1.0)
    found = _joined(symmetric, [part], graph, ["j"], QuantOptions(zero_points=True))
    assert found == (part if shifted else symmetric)
