"""Arrays that are combined with constants, or with each other, become layers that have integers, wherever the channels are; others stay."""

from math import prod

import numpy as np
import pytest
from support.ops import Activation, Affine, ArrayMap, ArrayReduce, ElemWise, Fc, Normalize, Reshape, Softmax
from support.tables import every

from n2d2py.contracts.functions import Clip, Swish
from n2d2py.passes import fuse
from n2d2py.passes.array_layers import added_constants, array_elemwise, images
from n2d2py.passes.gains import gains_of_arrays, gains_of_channels, gains_of_rows
from n2d2py.quant.types.float_fallback import float_layers


def mapped(
    b, function: str, dims: tuple[int, ...], shape: tuple[int, ...], *, first: bool = False, low: float = 0.5, source="x"
):
    """A layer that combines an array with a constant of `shape`, which is the left operand with `first`."""
    op = ArrayMap(function, dims, (shape, dims) if first else (dims, shape), (-1, 0) if first else (0, -1))
    return b.layer(
        f"{function}_{len(b.graph.nodes)}", op, source, {f"operand{0 if first else 1}": b.array(prod(shape), low=low)}
    )


@every("function, first", [("Add", True), ("Sub", True), ("Sub", False), ("Mul", True), ("Div", False)])
@every(
    "dims, shape, expected",
    [
        ((1, 4, 3, 2), (4, 1, 1), ["Reshape", "Affine", "Reshape"]),
        ((4, 6), (1, 4, 1)[1:], ["Reshape", "Affine", "Reshape"]),
        ((2, 3, 4), (4,), ["MemoryView", "Affine", "MemoryView"]),
        ((24,), (24,), ["Affine"]),
        ((1, 2, 12), (2, 12), ["Affine"]),
    ],
)
def test_a_constant_for_each_channel(build, run, kinds, function, first, dims, shape, expected):
    b = build(24)
    after, _ = run(b.done(mapped(b, function, dims, shape, first=first)), gains_of_arrays)
    assert [kind for _, kind in kinds(after)] == expected


@every(
    "function, dims, shape, first",
    [
        ("Mul", (2, 3, 4), (3, 1), False),
        ("Mul", (2, 3, 4), (2, 1, 4), False),
        ("Div", (4, 6), (4, 1), True),
        ("Max", (4, 6), (4, 1), False),
        ("Mul", (4, 6), (1,), False),
    ],
)
def test_other_constants_are_none_for_each_channel(build, function, dims, shape, first):
    b = build(24)
    mapped(b, function, dims, shape, first=first)
    assert gains_of_channels(b.graph.nodes[0]) is None


def test_a_divisor_of_zero_stays(build):
    b = build(24)
    b.layer("d", ArrayMap("Div", (4, 6), ((4, 6), (4, 1)), (0, -1)), "x", {"operand1": np.array([1, 0, 2, 3], np.float32)})
    assert gains_of_channels(b.graph.node("d")) is None


def test_what_changes_nothing_disappears(build):
    b = build(24)
    for name, function, constant in (
        ("a", "Mul", np.ones(1)),
        ("b", "Add", np.zeros(4)),
        ("c", "Div", np.ones(4)),
        ("d", "Sub", np.zeros(1)),
    ):
        shape = (constant.size, *(1,) * (constant.size > 1))
        op = ArrayMap(function, (4, 6), ((4, 6), shape), (0, -1))
        b.layer(name, op, b.graph.nodes[-1].output if b.graph.nodes else "x", {"operand1": constant.astype(np.float32)})
    b.layer("last", Activation(Clip(0)), "d")
    after, _ = fuse(b.done("last"), integer=True)
    assert [node.op.kind for node in after.nodes] == ["Activation"]


def test_a_group_normalisation_keeps_the_layout_of_images(build, kinds):
    """Its gains, the function behind it and the sum of the branch are layers of images; one Reshape in front and one behind."""
    b = build(4, 3, 2)
    b.layer("flat", Reshape((24,)))
    b.layer("norm", Normalize(12, 1e-5), "flat")
    b.layer("gain", ArrayMap("Mul", (1, 4, 3, 2), ((1, 4, 3, 2), (4, 1, 1)), (0, -1)), "norm", {"operand1": b.array(4)})
    b.layer("shift", ArrayMap("Add", (1, 4, 3, 2), ((1, 4, 3, 2), (4, 1, 1)), (0, -1)), "gain", {"operand1": b.array(4)})
    b.layer("swish", Activation(Swish()), "shift")
    b.layer("sum", ElemWise("Sum"), ["swish", "flat"])
    b.layer("image", Reshape((4, 3, 2)), "sum")
    b.layer("last", Activation(Clip(0)), "image")
    before = b.done("last")
    after, _ = fuse(before, integer=True)
    assert [kind for _, kind in kinds(after)] == ["Reshape", "Normalize", "Reshape", "Affine", "Activation", "ElemWise"]
    affine = next(node for node in after.nodes if isinstance(node.op, Affine))
    assert after.shape(affine.output) == (1, 4, 3, 2)


@every("function, first", [("Add", True), ("Sub", True), ("Sub", False), ("Mul", True), ("Div", False)])
@every("wrong", [np.inf, -np.inf, np.nan])
@every("every", [False, True])
def test_constants_that_are_not_finite_stay(build, function, first, wrong, every):
    """One of them as all of them: no integers stand for them. What is divided by infinity is 0."""
    b = build(24)
    mapped(b, function, (4, 6), (6,), first=first)
    (node,) = b.graph.nodes
    assert gains_of_rows(node) is not None
    for role, values in node.params.items():
        node.params[role] = np.where(every | (np.arange(6) == 2), np.float32(wrong), values)
    assert (gains_of_rows(node) is None) == (function != "Div" or np.isnan(wrong))


def with_constant(b, function, dims, shape, slots=(0, -1), values=None):
    shapes = tuple(shape if slot < 0 else dims for slot in slots)
    constant = b.array(*(size for size in shape if size > 1)) if values is None else values
    b.layer("f", Activation(Clip(-4.0)))
    b.layer("y", ArrayMap(function, dims, shapes, slots), "f", {f"operand{slots.index(-1)}": constant})
    b.layer("last", Activation(Clip(0.125)), "y")
    return b.done("last")


@every("function, slots", [("Add", (0, -1)), ("Add", (-1, 0)), ("Sub", (0, -1))])
@every("shape", [(1, 3, 4, 5), (1, 1, 4, 5), (2, 3, 4, 5), (1, 1, 1, 5)])
def test_constants_of_the_last_axes(build, run, run_all, kinds, function, slots, shape):
    graph = with_constant(build(120), function, (2, 3, 4, 5), shape, slots)
    after, _ = run(graph, added_constants)
    assert ("y", "AddConstants") in kinds(after) and len(after.node("y").params["constants"]) == prod(shape)
    fused, _ = run_all(graph, integer=True)
    assert float_layers(fused) == set()


@pytest.mark.parametrize(
    "function, slots, shape", [("Sub", (-1, 0), (1, 3, 4, 5)), ("Mul", (0, -1), (1, 3, 4, 5)), ("Add", (0, -1), (1, 3, 1, 5))]
)
def test_others_stay(build, run, kinds, function, slots, shape):
    after, report = run(with_constant(build(120), function, (2, 3, 4, 5), shape, slots), added_constants)
    assert ("y", "ArrayMap") in kinds(after) and not report.refused


@every("function", ["Mul", "Sub", "Div"])
@every("shape", [(1, 3, 1, 1), (1, 3, 4, 1), (1, 3, 1, 5), (1, 1, 4, 1)])
def test_gains_along_an_axis_before_the_last(build, run, run_all, kinds, function, shape):
    graph = with_constant(build(120), function, (2, 3, 4, 5), shape)
    after, _ = run(graph, gains_of_arrays)
    row = (3, 4, 5) if shape[1] > 1 else (4, 5)
    assert ("y", "Affine") in kinds(after) and len(after.node("y").params["weights"]) == prod(row)
    assert float_layers(run_all(graph, integer=True)[0]) == set()


def test_a_sign_that_is_turned(build, run, run_all, kinds):
    b = build(120)
    b.layer("f", Activation(Clip(-4.0)))
    b.layer("y", ArrayMap("Neg", (2, 3, 4, 5), ((2, 3, 4, 5),)), "f")
    b.layer("last", Activation(Clip(-2.0)), "y")
    graph = b.done("last")
    after, _ = run(graph, gains_of_arrays)
    assert ("y", "Affine") in kinds(after) and (after.node("y").params["weights"] == -1).all()
    assert float_layers(run_all(graph, integer=True)[0]) == set()


def test_very_long_rows_stay(build, run, kinds):
    after, _ = run(with_constant(build(2 * 3 * 5000), "Mul", (2, 3, 5000), (1, 3, 1)), gains_of_arrays)
    assert ("y", "ArrayMap") in kinds(after)


@pytest.mark.parametrize("largest, sum_of", [(16.0, "AddConstants"), (1e4, "ArrayMap")])
def test_a_mask_of_scores_stays(build, run, kinds, largest, sum_of):
    b = build(24)
    constant = np.linspace(-largest, 0, 12, dtype=np.float32).reshape(3, 4)
    b.layer("y", ArrayMap("Add", (2, 3, 4), ((2, 3, 4), (1, 3, 4)), (0, -1)), "x", {"operand1": constant})
    b.layer("s", Softmax(4), "y")
    after, report = run(b.done("s"), added_constants)
    assert ("y", sum_of) in kinds(after) and len(report.refused) == (sum_of == "ArrayMap")


DIMS, SHAPE = (2, 3, 4, 5), (1, 3, 4, 5)
NEARLY = {
    "the sum": ({}, {}, True),
    "an activation": ({"activation": Clip(0.0)}, {}, False),
    "another type": ({}, {"result": "int32"}, False),
    "two tensors": ({"inputs": ["f", "f"]}, {"shapes": (DIMS, DIMS), "slots": (0, 1)}, False),
    "a tensor that is repeated": ({}, {"shapes": ((2, 3, 4, 5), (3, 1, 3, 4, 5)), "dims": (3, 2, 3, 4, 5)}, False),
    "one constant": ({"params": np.ones(1, np.float32)}, {"shapes": (DIMS, (1, 1, 1, 1))}, False),
    "integers": ({"params": np.ones(60, np.int64)}, {}, False),
    "a constant for all": ({"params": np.ones(1, np.float32)}, {}, False),
    "no number": ({"params": np.full(60, np.nan, np.float32)}, {}, False),
}


@every("name", NEARLY)
def test_what_is_nearly_a_sum_with_constants(build, name):
    node, op, taken = NEARLY[name]
    b = build(120)
    b.layer("f", Activation(Clip(-4.0)))
    made = ArrayMap(**{"function": "Add", "dims": DIMS, "shapes": (DIMS, SHAPE), "slots": (0, -1), **op})
    params = {"operand1": node.get("params", b.array(prod(made.shapes[1])))}
    b.layer("y", made, node.get("inputs", "f"), params, node.get("activation"))
    found = added_constants.rule(b.graph, b.graph.node("y"))
    assert (found is not None) == taken


@every(
    "dims, shapes, expected",
    [
        ((2, 5), ((2, 5), (2, 5)), ()),
        ((2, 5), ((2, 5), (2, 1)), ((1, 2, 5), (1, 2, 1))),
        ((2, 5), ((1, 5), (2, 5)), ((1, 1, 5), (1, 2, 5))),
        ((2, 5), ((2, 1), (1, 5)), None),
        ((1, 3, 4, 5), ((1, 3, 4, 5), (1, 3, 1, 1)), ((1, 3, 20), (1, 3, 1))),
        ((2, 3, 4), ((2, 3, 4), (2, 1, 4)), ((2, 3, 4), (2, 1, 4))),
        ((2, 3, 4), ((2, 3, 4), (1, 3, 1)), ((2, 3, 4), (1, 3, 1))),
        ((2, 3, 4, 5), ((2, 3, 4, 5), (2, 1, 4, 1)), None),
        ((2, 3, 4, 1), ((2, 3, 4, 1), (1, 1, 1, 1)), ((1, 1, 24), (1, 1, 1))),
    ],
)
def test_axes_that_repeat_alike_are_one(dims, shapes, expected):
    assert images(dims, shapes) == expected


def of_two(b, function, dims, shapes, slots=(0, 1), reduced=()):
    sizes = [prod(shape) for shape in shapes]
    for number, size in enumerate(sizes):
        b.layer(f"f{number}", Fc(), params={"weights": b.array(size, 6), "bias": b.array(size)})
    b.layer("y", ArrayMap(function, dims, shapes, slots), [f"f{slots.index(0)}", f"f{slots.index(1)}"])
    last = b.layer("r", ArrayReduce("Sum", dims, reduced), "y") if reduced else "y"
    b.layer("last", Activation(Clip(0.125)), last)
    return b.done("last")


@every("function", ["Mul", "Add", "Sub"])
@every("slots", [(0, 1), (1, 0)])
@every("shapes", [((3, 4, 5), (3, 1, 5)), ((3, 4, 5), (1, 4, 1)), ((1, 1, 5), (3, 4, 5)), ((3, 4, 5), (1, 1, 1))])
def test_operands_that_repeat(build, run, run_all, function, slots, shapes):
    graph = of_two(build(6), function, (3, 4, 5), shapes, slots)
    after, report = run(graph, array_elemwise)
    assert not report.refused and after.node("y").op.kind == "ElemWise"
    fused, _ = run_all(graph, integer=True)
    assert fused.node("y").op.kind == "ElemWise" and float_layers(fused) == set()


def test_a_product_of_equals(build, run, kinds):
    after, _ = run(of_two(build(6), "Mul", (3, 4), ((3, 4), (3, 4))), array_elemwise)
    assert ("y", "ElemWise") in kinds(after) and after.node("y").op.operation == "Prod" and len(kinds(after)) == 4


def test_a_sum_of_weighted_rows_has_integers(build, run_all, kinds):
    """The product waits for the reduction, and this for the product."""
    fused, _ = run_all(of_two(build(6), "Mul", (7, 5), ((7, 5), (7, 1)), reduced=(0,)), integer=True)
    assert {"ElemWise", "Pool"} <= {kind for _, kind in kinds(fused)} and float_layers(fused) == set()


@pytest.mark.parametrize("operands", [["f", "x"], ["x", "f"]])
def test_beside_a_layer_without_integers_it_stays(build, run, operands):
    b = build(12)
    b.layer("f", ArrayMap("Sin", (3, 4), ((3, 4),), (0,)))
    b.layer("y", ArrayMap("Mul", (3, 4), ((3, 4), (3, 4)), (0, 1)), operands)
    after, report = run(b.done("y"), array_elemwise)
    assert report.refused and after.node("y").op.kind == "ArrayMap"


def test_outer_products_stay(build, run, kinds):
    after, _ = run(of_two(build(6), "Mul", (3, 4), ((3, 1), (1, 4))), array_elemwise)
    assert ("y", "ArrayMap") in kinds(after)
