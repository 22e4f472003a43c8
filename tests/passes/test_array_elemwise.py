"""Products of two arrays, and sums with operands that repeat, get integers where the layers beside them have some."""

from __future__ import annotations

from math import prod

import pytest
from support.tables import every

from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip
from n2d2py.passes.array_elemwise import ArrayElemWise, images
from n2d2py.quant.types.float_fallback import float_layers


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


def network(b, function, dims, shapes, slots=(0, 1), reduced=()):
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
    graph = network(build(6), function, (3, 4, 5), shapes, slots)
    after, report = run(graph, ArrayElemWise())
    assert not report.refused and after.node("y").op.kind == "ElemWise"
    fused, _ = run_all(graph, integer=True)
    assert fused.node("y").op.kind == "ElemWise" and float_layers(fused) == set()


def test_a_product_of_equals(build, run, kinds):
    after, _ = run(network(build(6), "Mul", (3, 4), ((3, 4), (3, 4))), ArrayElemWise())
    assert ("y", "ElemWise") in kinds(after) and after.node("y").op.operation == "Prod" and len(kinds(after)) == 4


def test_a_sum_of_weighted_rows_has_integers(build, run_all, kinds):
    """The product waits for the reduction, and this for the product."""
    fused, _ = run_all(network(build(6), "Mul", (7, 5), ((7, 5), (7, 1)), reduced=(0,)), integer=True)
    assert {"ElemWise", "Pool"} <= {kind for _, kind in kinds(fused)} and float_layers(fused) == set()


@pytest.mark.parametrize("operands", [["f", "x"], ["x", "f"]])
def test_beside_a_layer_without_integers_it_stays(build, run, reason, operands):
    b = build(12)
    b.layer("f", ArrayMap("Sin", (3, 4), ((3, 4),), (0,)))
    b.layer("y", ArrayMap("Mul", (3, 4), ((3, 4), (3, 4)), (0, 1)), operands)
    after, report = run(b.done("y"), ArrayElemWise())
    assert reason(report) == "y: it follows f, which has no integers" and after.node("y").op.kind == "ArrayMap"


def test_outer_products_stay(build, run, kinds):
    after, _ = run(network(build(6), "Mul", (3, 4), ((3, 1), (1, 4))), ArrayElemWise())
    assert ("y", "ArrayMap") in kinds(after)
