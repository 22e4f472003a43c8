"""Layers strip by strip and slice by slice: which can, their order, columns, pads, channels, constants and integers."""

from typing import Any

import numpy as np
import pytest
from support.export_networks import chain, random_inputs, residual
from support.ops import Activation, Affine, Conv, ElemWise, Fc, Pool
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Abs
from n2d2py.graph import (
    Aligned,
    Dequantized,
    Form,
    Interpolated,
    Moved,
    QuantGraph,
    QuantNode,
    QuantTensor,
    Real,
    StripPiece,
    Table,
    Weighted,
)
from n2d2py.memory.strips import SegmentCut
from n2d2py.passes.integer.strips import by_channels, by_columns, with_strips
from n2d2py.quant.simulator import simulate


def strips(*columns: dict[str, tuple[int, int]]) -> SegmentCut:
    return SegmentCut(tuple(columns[0]), columns)


def same(before: QuantGraph, after: QuantGraph) -> None:
    """Both give the same outputs, real numbers up to their rounding; every piece holds its part of what the network had."""
    after.verify()
    inputs = random_inputs(before, 3)
    want, found = (simulate(graph, inputs, keep=True) for graph in (before, after))
    tolerance = 0.0 if before.bits > 0 else 1e-5
    for name in before.outputs:
        np.testing.assert_allclose(found[name], want[name], rtol=tolerance, atol=tolerance, err_msg=name)
    for name, piece in after.pieces.items():
        part = np.take(want[piece.tensor], range(piece.first, piece.stop), axis=piece.axis)
        np.testing.assert_allclose(found[name], part, rtol=tolerance, atol=tolerance, err_msg=name)


def lines(graph: QuantGraph) -> list[str]:
    return [f"{node.name}: {node.op.kind} {' '.join(node.inputs)} -> {' '.join(node.outputs)}" for node in graph.nodes]


CUT = strips({"deep": (0, 4), "flat": (0, 4), "add": (0, 4)}, {"deep": (4, 9), "flat": (4, 9), "add": (4, 9)})


@pytest.mark.parametrize("integer", [True, False])
def test_two_strips_of_a_window_a_point_and_a_sum(integer):
    graph = residual(integer)
    cut = with_strips(graph, [CUT])
    assert lines(cut) == [
        "stem: Conv env -> stem",
        "stem.columns0to5: Columns stem -> stem.columns0to5",
        "deep.strip0: Conv stem.columns0to5 -> deep.strip0",
        "flat.strip0: Conv deep.strip0 -> flat.strip0",
        "stem.columns0to4: Columns stem -> stem.columns0to4",
        "add.strip0: ElemWise stem.columns0to4 flat.strip0 -> add.strip0",
        "stem.columns3to9: Columns stem -> stem.columns3to9",
        "deep.strip1: Conv stem.columns3to9 -> deep.strip1",
        "flat.strip1: Conv deep.strip1 -> flat.strip1",
        "stem.columns4to9: Columns stem -> stem.columns4to9",
        "add.strip1: ElemWise stem.columns4to9 flat.strip1 -> add.strip1",
        "add: SideBySide add.strip0 add.strip1 -> add",
        "mean: Pool add -> mean",
        "fc: Fc mean -> fc",
    ]
    nodes = {node.name: node for node in cut.nodes}
    assert [nodes[f"deep.strip{number}"].op.pads for number in range(2)] == [(1, 1, 1, 0), (1, 0, 1, 1)]
    assert nodes["flat.strip1"].op.pads == (0, 0, 0, 0)
    assert [nodes[name].source for name in ("deep.strip0", "add.strip1")] == [["deep"], ["add"]]
    assert cut.shape("deep.strip1") == (1, 6, 7, 5) and cut.shape("stem.columns0to5") == (1, 6, 7, 5)
    assert cut.pieces["stem.columns3to9"] == StripPiece("stem", 3, 9) and cut.pieces["add.strip0"] == StripPiece("add", 0, 4)
    assert set(graph.tensors) - set(cut.tensors) == {"deep", "flat"}
    same(graph, cut)


def test_a_strip_that_holds_more_than_is_read():
    """What is read of it is a view of it, at a place of its own."""
    graph = residual(True)
    cut = with_strips(graph, [strips({"deep": (0, 6), "flat": (0, 4)}, {"deep": (2, 9), "flat": (4, 9)})])
    assert lines(cut)[1:9] == [
        "stem.columns0to7: Columns stem -> stem.columns0to7",
        "deep.strip0: Conv stem.columns0to7 -> deep.strip0",
        "deep.strip0.columns0to4: Columns deep.strip0 -> deep.strip0.columns0to4",
        "flat.strip0: Conv deep.strip0.columns0to4 -> flat.strip0",
        "stem.columns1to9: Columns stem -> stem.columns1to9",
        "deep.strip1: Conv stem.columns1to9 -> deep.strip1",
        "deep.strip1.columns2to7: Columns deep.strip1 -> deep.strip1.columns2to7",
        "flat.strip1: Conv deep.strip1.columns2to7 -> flat.strip1",
    ]
    assert cut.pieces["deep.strip1.columns2to7"] == StripPiece("deep", 4, 9)
    same(graph, cut)


def test_columns_that_two_layers_read_are_there_once():
    """Strips of two segments read the same columns of the same tensor; a strip that reads all of it reads the tensor itself."""
    graph = residual(True)
    halves = [strips({"add": (0, 4)}, {"add": (4, 9)}), strips({"flat": (0, 4)}, {"flat": (4, 9)})]
    found = lines(with_strips(graph, halves))
    assert [line for line in found if "Columns" in line] == [
        *(f"deep.columns{at}: Columns deep -> deep.columns{at}" for at in ("0to4", "4to9")),
        *(f"{name}.columns{at}: Columns {name} -> {name}.columns{at}" for at in ("0to4", "4to9") for name in ("stem", "flat")),
    ]
    same(graph, with_strips(graph, halves))
    whole = with_strips(graph, [strips({"deep": (0, 8)}, {"deep": (8, 9)})])
    assert lines(whole)[1:4] == [
        "deep.strip0: Conv stem -> deep.strip0",
        "stem.columns7to9: Columns stem -> stem.columns7to9",
        "deep.strip1: Conv stem.columns7to9 -> deep.strip1",
    ]
    same(graph, whole)


@pytest.mark.parametrize("integer", [True, False])
def test_slices_of_channels(integer):
    graph = chain(integer)
    cut = with_strips(graph, [SegmentCut(("conv/1", "forward"), slices=((0, 3), (3, 8)))])
    assert lines(cut) == [
        "conv/1.slice0: Conv env -> conv/1.slice0",
        "forward.slice0: Pool conv/1.slice0 -> forward.slice0",
        "conv/1.slice1: Conv env -> conv/1.slice1",
        "forward.slice1: Pool conv/1.slice1 -> forward.slice1",
        "forward: Concat forward.slice0 forward.slice1 -> forward",
        "fc: Fc forward -> fc",
    ]
    nodes = {node.name: node for node in cut.nodes}
    whole = graph.nodes[0].params
    for number, (first, stop) in enumerate(((0, 3), (3, 8))):
        for role in ("weights", "bias"):
            np.testing.assert_array_equal(nodes[f"conv/1.slice{number}"].params[role], whole[role][first:stop])
        assert cut.pieces[f"conv/1.slice{number}"] == StripPiece("conv/1", first, stop, axis=1)
        assert cut.pieces[f"forward.slice{number}"] == StripPiece("forward", first, stop, axis=1)
        assert nodes[f"forward.slice{number}"].source == ["forward"]
    assert cut.shape("forward.slice1") == (1, 5, 3, 2)
    kind = graph.type("forward")
    form, clamp = nodes["forward"].form, nodes["forward"].clamp
    assert (
        (isinstance(form, Moved) and clamp == (kind.qmin, kind.qmax)) if integer else (isinstance(form, Real) and clamp is None)
    )
    assert "conv/1" not in cut.tensors and "forward" in cut.tensors
    same(graph, cut)


def test_slices_beside_strips():
    """Two segments of one network, one cut each way."""
    graph = residual(True)
    cut = with_strips(graph, [SegmentCut(("flat",), slices=((0, 2), (2, 6))), strips({"add": (0, 5)}, {"add": (5, 9)})])
    assert [line.split(":")[0] for line in lines(cut)] == [
        *("stem", "deep", "flat.slice0", "flat.slice1", "flat"),
        *("stem.columns0to5", "flat.columns0to5", "add.strip0", "stem.columns5to9", "flat.columns5to9", "add.strip1", "add"),
        *("mean", "fc"),
    ]
    same(graph, cut)


def test_without_a_cut_it_is_the_network_itself():
    graph = chain(True)
    assert with_strips(graph, []) is graph


ONE, MANY = np.ones(1, np.int32), np.ones(7, np.int32)
IMAGE, VECTOR = (1, 6, 4, 4), (1, 6)
CASES: dict[str, tuple[Any, Form, tuple[int, ...], bool, bool]] = {
    "convolution": (Conv(), Weighted(ONE, ONE), IMAGE, True, True),
    "convolution of a vector": (Conv(), Weighted(ONE, ONE), VECTOR, False, True),
    "real convolution": (Conv(), Real({"weights": ONE, "bias": ONE}), IMAGE, True, True),
    "real convolution with more": (Conv(), Real({"weights": ONE, "bias": ONE, "scales": ONE}), IMAGE, True, False),
    "real convolution with less": (Conv(), Real({"weights": ONE}), IMAGE, True, False),
    "other convolution": (Conv(), Moved(), IMAGE, True, False),
    "pool": (Pool("Max", (2, 2)), Moved(), IMAGE, True, True),
    "dequantized pool": (Pool("Average", (2, 2)), Dequantized(np.ones(1, np.float32)), IMAGE, False, True),
    "function by table": (Activation(Abs()), Table(MANY), IMAGE, True, True),
    "function between knots": (Activation(Abs()), Interpolated(MANY), IMAGE, True, True),
    "function of vectors": (Activation(Abs()), Moved(), VECTOR, False, False),
    "function without table": (Activation(Abs()), Moved(), IMAGE, True, False),
    "sum": (ElemWise("Sum"), Aligned(np.ones(2, np.int32), ONE), IMAGE, True, False),
    "gains of channels": (Affine(), Aligned(np.ones(6, np.int32), ONE), IMAGE, True, False),
    "gains of elements": (Affine(), Aligned(MANY, ONE), IMAGE, False, False),
    "dense": (Fc(), Weighted(ONE, ONE), IMAGE, False, False),
}


def _graph(op: Any, form: Form, shape: tuple[int, ...], outputs: int = 1) -> tuple[QuantGraph, QuantNode]:
    names = [f"y{number}" for number in range(outputs)]
    node = QuantNode("y", op, ["x"], names, form)
    graph = QuantGraph("net", 8)
    graph.tensors = {name: QuantTensor(name, shape, NumType(8)) for name in ("x", *names)}
    graph.nodes = [node]
    return graph, node


@every("name", CASES)
def test_layers_that_divide(name):
    op, form, shape, columns, channels = CASES[name]
    graph, node = _graph(op, form, shape)
    assert (by_columns(graph)("y"), by_channels(graph)("y")) == (columns, channels)
    node.residual = object()  # type: ignore[assignment]
    assert (by_columns(graph)("y"), by_channels(graph)("y")) == (False, False)
    two, _ = _graph(op, form, shape, 2)
    assert (by_columns(two)("y"), by_channels(two)("y")) == (False, False)
