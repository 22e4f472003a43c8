"""Declared chains of layers, the report of rewrites, layers that are dropped, and the helpers that rewrites share."""

from __future__ import annotations

import numpy as np
import pytest
from support.pass_layers import TANH, constant, conv, dense

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.graph.chains import Chain
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip, Tanh
from n2d2py.operators.identity import Identity
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape
from n2d2py.passes import FuseReport
from n2d2py.passes.array_elemwise import axis_groups, images
from n2d2py.passes.base import Entry, drop, recompute_shapes
from n2d2py.passes.chain import ChainPass
from n2d2py.passes.gains import gains_of_channels, gains_of_rows
from n2d2py.passes.linear import gain_and_shift
from n2d2py.passes.masked_softmax import mask_of
from n2d2py.passes.product_views import steps_of_order


def pass_of(kinds=("Pool", "Tanh", "ElemWise"), becomes=None) -> ChainPass:
    """A chain that becomes a sum with another weight."""
    return ChainPass(Chain("fuse-test", "chains of a test", kinds, becomes or (lambda *nodes: ElemWise("Sum", (2.0, 3.0)))))


def chained(b, activations=(None, None, None), last=None) -> list[str]:
    b.layer("a", TANH)
    b.layer("p", Pool("Max", (1, 1)), "x", None, activations[0])
    b.layer("t", TANH, "p", None, activations[1])
    return [b.layer("e", last or ElemWise("Sum"), ["a", "t"], None, activations[2])]


def test_a_chain_becomes_one_layer_in_the_place_of_the_last(build):
    """It has the last name and activation, and what comes from outside as inputs; the names between are known."""
    b = build(2, 3, 4)
    graph = b.done(*chained(b, (None, None, Clip(0.0))))
    report = FuseReport()
    assert pass_of().run(graph, report)
    (first, made) = graph.nodes
    assert (first.name, made.name, made.inputs, made.outputs) == ("a", "e", ["x", "a"], ["e"])
    assert made.op == ElemWise("Sum", (2.0, 3.0)) and made.activation == Clip(0.0) and made.source == ["p", "t", "e"]
    assert graph.aliases == {"p": "e", "t": "e"} and set(graph.tensors) == {"x", "a", "e"}
    assert [entry.text for entry in report.done] == ["Pool - Tanh - ElemWise became ElemWise"]
    assert report.summaries == {"fuse-test": "chains of a test"}


def test_a_chain_with_constants_and_one_without(build):
    """What is declared gives the operator alone, which has the constants of the first layer, or both."""
    for becomes, wanted in (
        (lambda first, second: Affine(), [0.5, 2.0]),
        (lambda first, second: (Affine(), {"weights": np.float32([3, 4]), "bias": np.float32([0, 0])}), [3.0, 4.0]),
    ):
        b = build(2, 3, 4)
        params = {"weights": np.float32([0.5, 2]), "bias": np.float32([0, 0])}
        b.layer("t", TANH, b.layer("n", Affine(), "x", params))
        graph = b.done("t")
        assert pass_of(("Affine", "Tanh"), becomes).run(graph, FuseReport())
        assert graph.nodes[0].params["weights"].tolist() == wanted and graph.nodes[0].name == "t"


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"more": True}, "the result of p is read by t (Tanh), o (Tanh), not by a Tanh alone"),
        ({"output": "p"}, "the result of p is read by t (Tanh), not by a Tanh alone"),
        ({"output": "t"}, "the result of t is read by e (ElemWise), not by a ElemWise alone"),
        ({"activations": (Clip(0.0), None, None)}, "p carries the activation Clip"),
        ({"activations": (None, Tanh(), None)}, "t carries the activation Tanh"),
        ({"last": ElemWise("Prod")}, None),
        ({"becomes": "it has no form"}, "it has no form"),
        ({"kinds": ("Pool", "Sqrt")}, "the result of p is read by t (Tanh), not by a Sqrt alone"),
        ({"kinds": ("Pool", "Tanh", "ElemWise", "Fc")}, "the result of e is read by nothing, not by a Fc alone"),
    ],
)
def test_why_a_chain_stays(build, change, reason):
    b = build(2, 3, 4)
    ends = chained(b, change.get("activations", (None, None, None)), change.get("last"))
    ends += [b.layer("o", TANH, "p")] if change.get("more") else []
    ends += [change["output"]] if "output" in change else []
    graph = b.done(*ends)
    becomes = (lambda *nodes: change["becomes"]) if "becomes" in change else None
    rewrite = pass_of(change.get("kinds", ("Pool", "Tanh", "ElemWise")), becomes)
    match = rewrite.match(graph, graph.node("p"))
    assert match is not None and match.reason == reason
    assert rewrite.match(graph, graph.node("a")) is None


def test_the_report_counts_replaces_and_writes():
    report = FuseReport()
    for rewrite, layer in (("b", "x"), ("a", "y"), ("b", "z")):
        report.done.append(Entry(rewrite, layer, f"did {layer}"))
        report.summaries[rewrite] = f"summary {rewrite}"
    assert list(report.counts.items()) == [("b", 2), ("a", 1)]
    assert report.lines() == ["summary b: 2", "summary a: 1"]
    report.refuse("a", [Entry("a", "x", "old")])
    report.refuse("b", [Entry("b", "x", "kept")])
    report.refuse("a", [Entry("a", "y", "new")])
    assert [entry.text for entry in report.refused] == ["kept", "new"]
    assert report.dump() == {
        "counts": {"b": 2, "a": 1},
        "done": [["b", "x", "did x"], ["a", "y", "did y"], ["b", "z", "did z"]],
        "refused": [["b", "x", "kept"], ["a", "y", "new"]],
    }


def test_a_view_that_is_dropped_at_an_output_leaves_the_shape_of_its_input():
    graph = Graph("g")
    graph.add_input("x", (1, 2, 3, 4))
    graph.add(Node("c", TANH, ["x"], ["c"]))
    graph.add(Node("v", Reshape((24,)), ["c"], ["v"]))
    graph.outputs = ["v"]
    drop(graph, graph.node("v"))
    assert [node.name for node in graph.nodes] == ["c"] and graph.outputs == ["v"]
    assert graph.shape("v") == (1, 2, 3, 4) and graph.aliases["c"] == "v"


def test_a_layer_that_joins_two_ends_is_not_dropped(build):
    b = build(2, 3, 4)
    b.layer("n", Identity(), conv(b, "c"))
    graph = b.done("n", "c")
    with pytest.raises(InternalError, match="n joins two ends of the network and cannot be dropped"):
        drop(graph, graph.node("n"))


def test_shapes_are_computed_again_or_refused(build):
    b = build(2, 3, 4)
    b.layer("t", TANH)
    dense(b, "d", "t")
    graph = b.done("d")
    graph.tensors["t"] = type(graph.tensors["t"])("t", (1, 9))
    recompute_shapes(graph)
    assert graph.shape("t") == (1, 2, 3, 4)
    graph.tensors["x"] = type(graph.tensors["x"])("x", (1, 5))
    with pytest.raises(N2D2Error):
        recompute_shapes(graph)


@pytest.mark.parametrize(
    "dims, shapes, groups, wanted",
    [
        ((4, 6), [(4, 6), (4, 6)], [(24, (False, False))], ()),
        ((4, 6), [(1, 6), (4, 6)], [(4, (True, False)), (6, (False, False))], ((1, 1, 6), (1, 4, 6))),
        ((2, 3, 4), [(2, 3, 4), (2, 3, 1)], [(6, (False, False)), (4, (False, True))], ((1, 6, 4), (1, 6, 1))),
        ((2, 3, 4), [(2, 3, 4), (1, 1, 4)], [(6, (False, True)), (4, (False, False))], ((1, 6, 4), (1, 1, 4))),
        (
            (2, 3, 4),
            [(2, 1, 4), (2, 3, 4)],
            [(2, (False, False)), (3, (True, False)), (4, (False, False))],
            ((2, 1, 4), (2, 3, 4)),
        ),
        ((2, 1, 4), [(2, 1, 4), (1, 1, 4)], [(2, (False, True)), (4, (False, False))], ((1, 2, 4), (1, 1, 4))),
        ((4, 6), [(1, 6), (4, 1)], [(4, (True, False)), (6, (False, True))], None),
        (
            (2, 3, 4, 5),
            [(2, 1, 4, 1), (2, 3, 4, 5)],
            [(2, (False, False)), (3, (True, False)), (4, (False, False)), (5, (True, False))],
            None,
        ),
        ((6,), [(6,), (1,)], [(6, (False, True))], ((1, 1, 6), (1, 1, 1))),
    ],
)
def test_operands_as_images(dims, shapes, groups, wanted):
    assert axis_groups(dims, tuple(shapes)) == groups
    assert images(dims, tuple(shapes)) == wanted


@pytest.mark.parametrize(
    "places, size, view",
    [
        (np.arange(6).reshape(2, 3), 6, (6, 0, 3, 1)),
        (np.arange(6).reshape(2, 3).T, 6, (6, 0, 1, 3)),
        (np.arange(2, 6).reshape(2, 2), 9, (9, 2, 2, 1)),
        (np.array([[4], [6]]), 9, (9, 4, 2, 0)),
        (np.array([[3, 3], [3, 3]]), 9, (9, 3, 0, 0)),
        (np.array([2, 1, 0]), 3, None),
        (np.array([0, 1, 3]), 9, None),
        (np.array([[0, 1], [2, 4]]), 9, None),
    ],
)
def test_orders_that_are_steps(places, size, view):
    assert steps_of_order(places, size) == view


def combined(build, function: str, dims, shape, values=None, at: int = 1):
    b = build(int(np.prod(dims)))
    array = np.arange(1, 1 + np.prod(shape), dtype=np.float32) if values is None else np.float32(values)
    constant(b, "n", function, dims, shape, "x", at, array)
    return b.done("n").node("n")


@pytest.mark.parametrize(
    "function, dims, shape, wanted",
    [
        ("Mul", (4, 6), (1, 6), (1, 2, 3, 4, 5, 6)),
        ("Mul", (4, 6), (1, 1), (1,) * 6),
        ("Mul", (2, 3, 2), (1, 3, 2), (1, 2, 3, 4, 5, 6)),
        ("Mul", (2, 3, 2), (1, 3, 1), (1, 1, 2, 2, 3, 3)),
        ("Mul", (1, 6), (1, 6), (1, 2, 3, 4, 5, 6)),
        ("Mul", (4, 6), (4, 1), None),
        ("Mul", (4, 6), (4, 6), None),
        ("Mul", (2, 3, 2), (2, 1, 1), None),
        ("Mul", (2, 2, 2), (2, 1, 2), (1, 2, 1, 2, 3, 4, 3, 4)),
        ("Mul", (2, 2, 2048), (1, 2, 2048), 4096),
        ("Mul", (2, 2, 2049), (1, 2, 2049), None),
    ],
)
def test_gains_of_a_row(build, function, dims, shape, wanted):
    """The last axis, or several last ones that no other layer has a form for, of at most 4096 elements."""
    found = gains_of_rows(combined(build, function, dims, shape))
    if wanted is None:
        assert found is None
    elif isinstance(wanted, int):
        assert found is not None and len(found.gain) == wanted
    else:
        assert found is not None and tuple(found.gain.tolist()) == wanted and not found.shift.any() and found.pixels == ()


@pytest.mark.parametrize(
    "dims, shape, channels, pixels",
    [
        ((3, 4, 5), (3, 1, 1), 3, (4, 5)),
        ((3, 4, 5), (3, 4, 1), 12, (5,)),
        ((1, 3, 4), (1, 3, 1), 3, (4,)),
        ((3, 4), (3, 4), 12, ()),
        ((3, 1), (3, 1), 3, ()),
        ((3, 2), (3, 1), 3, (2,)),
        ((2, 3, 4), (1, 3, 1), None, None),
        ((2, 3, 4), (2, 1, 4), None, None),
        ((2, 3, 4), (1, 1, 4), None, None),
        ((2, 3, 4), (1, 1, 1), None, None),
    ],
)
def test_gains_of_the_parts_in_front_of_pixels(build, dims, shape, channels, pixels):
    found = gains_of_channels(combined(build, "Mul", dims, shape))
    assert (found is None) if channels is None else found is not None and (len(found.gain), found.pixels) == (channels, pixels)


INF = float("inf")
LOW = [0, -100, 0]


@pytest.mark.parametrize(
    "values, counts, rest",
    [
        ([LOW, LOW], [[1, 0, 1]], None),
        ([LOW, [0, 0, -100]], [[1, 0, 1], [1, 1, 0]], None),
        ([[-INF, 0, 0], LOW], [[0, 1, 1], [1, 0, 1]], None),
        # less than 64 below the largest of a line counts, 64 does not
        ([[0, -64, -63.5], LOW], [[1, 0, 1]], [0, 0, -63.5, 0, 0, 0]),
        ([[1, -100, 2], LOW], [[1, 0, 1]], [1, 0, 2, 0, 0, 0]),
        ([[10, -64, 0], LOW], [[1, 0, 1]], [10, 0, 0, 0, 0, 0]),
        ([[10, -63, 0], LOW], None, None),
        ([[0, -63.5, 0], [0, 0, 0]], None, None),
        ([[0, -100, INF], LOW], None, None),
        ([[0, -100, float("nan")], LOW], None, None),
        ([[-INF] * 3, LOW], None, None),
    ],
)
def test_what_a_mask_counts_and_leaves(build, values, counts, rest):
    found = mask_of(combined(build, "Add", (2, 3), (2, 3), np.ravel(values)), 2, 3)
    if counts is None:
        assert found is None
        return
    assert found is not None and found.rows.tolist() == [[bool(one) for one in line] for line in counts]
    assert (found.rest is None) if rest is None else (found.rest is not None and found.rest.tolist() == rest)


@pytest.mark.parametrize("lines", [1, 2, 3, 4])
def test_lines_of_a_mask_that_come_again(build, lines):
    """Of twelve lines as few as repeat."""
    block = [[0, -100, 0] if at == 0 else [0, 0, -100] if at % 2 else [-100, 0, 0] for at in range(lines)]
    found = mask_of(combined(build, "Add", (12, 3), (12, 3), np.ravel(block * (12 // lines))), 12, 3)
    assert found is not None and found.rows.tolist() == (np.array(block) == 0).tolist()


def masks(build, function="Where", slots=(-1, 0, -1), condition=(1, 0, 0), value=-100.0, **changes):
    b = build(6)
    shapes = {0: (2, 3), -1: (1, 3)}
    made = tuple(shapes[slot] for slot in slots)
    params = {
        f"operand{at}": np.float32([value]).repeat(3) if at else np.array(condition, bool)
        for at, slot in enumerate(slots)
        if slot < 0
    }
    b.layer("n", ArrayMap(function, (2, 3), made, slots), "x", params, changes.get("activation"))
    return b.done("n").node("n")


def test_masks_that_are_put_into_places(build):
    """Where the condition holds or does not hold, on the side of the constant."""
    kept = mask_of(masks(build, condition=(1, 0, 1)), 2, 3)
    put = mask_of(masks(build, slots=(-1, -1, 0), condition=(0, 1, 0)), 2, 3)
    assert kept is not None and put is not None
    assert kept.rows.tolist() == put.rows.tolist() == [[True, False, True]]
    assert kept.rest is None and put.rest is None
    assert mask_of(masks(build, slots=(-1, -1, 0), condition=(0, 1, 0), value=-10), 2, 3) is None
    assert mask_of(masks(build, slots=(0, -1, -1)), 2, 3) is None
    assert mask_of(masks(build, condition=(1, 0, 1), activation=Clip(0.0)), 2, 3) is None
    assert mask_of(masks(build, condition=(1, 0, 1)), 3, 3) is None
    assert mask_of(masks(build, condition=(0, 0, 0)), 2, 3) is None


def test_tiny_variances_take_the_mean_of_the_others():
    """Those below 1e-12 with epsilon, which counts for all."""
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    params = {"scale": ones, "bias": zeros, "mean": ones, "variance": np.float32([4, 16, 0, 1e-13])}
    gain, shift = gain_and_shift(Node("n", BatchNorm(0.0), ["x"], ["n"], params))
    np.testing.assert_allclose(gain, [0.5, 0.25, 10**-0.5, 10**-0.5])
    np.testing.assert_allclose(shift, -gain)
    gain, _ = gain_and_shift(Node("n", BatchNorm(0.25), ["x"], ["n"], params))
    np.testing.assert_allclose(gain, [4.25**-0.5, 16.25**-0.5, 2, 2])
    gain, _ = gain_and_shift(Node("n", BatchNorm(0.0), ["x"], ["n"], {**params, "variance": zeros}))
    np.testing.assert_allclose(gain, [1, 1, 1, 1])
