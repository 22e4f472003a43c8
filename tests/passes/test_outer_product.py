"""Products of arrays that repeat each other become products of matrices, which have integers."""

from __future__ import annotations

from math import prod

from support.tables import every

from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip
from n2d2py.passes.array_elemwise import OuterProduct
from n2d2py.quant.types.float_fallback import float_layers


def network(b, dims, shapes, slots=(0, 1), function="Mul"):
    for number, shape in enumerate(shapes):
        b.layer(f"f{number}", Fc(), params={"weights": b.array(prod(shape), 6), "bias": b.array(prod(shape))})
    b.layer("y", ArrayMap(function, dims, shapes, slots), [f"f{slots.index(0)}", f"f{slots.index(1)}"])
    b.layer("last", Activation(Clip(0.125)), "y")
    return b.done("last")


@every("slots", [(0, 1), (1, 0)])
@every(
    "dims, shapes",
    [
        ((3, 4), ((3, 1), (1, 4))),
        ((3, 4), ((1, 4), (3, 1))),
        ((1, 5, 2, 3), ((1, 5, 1, 1), (1, 1, 2, 3))),
        ((2, 3, 4), ((2, 3, 1), (2, 1, 4))),
        ((2, 1, 3, 4), ((2, 1, 1, 4), (2, 1, 3, 1))),
    ],
)
def test_operands_that_repeat_each_other(build, run, run_all, dims, shapes, slots):
    graph = network(build(6), dims, shapes, slots)
    after, report = run(graph, OuterProduct())
    assert not report.refused and after.node("y").op.kind == "ArrayMatMul"
    fused, _ = run_all(graph, integer=True)
    assert fused.node("y").op.kind == "ArrayMatMul" and float_layers(fused) == set()


@every(
    "dims, shapes, function",
    [
        ((3, 4), ((3, 1), (1, 4)), "Add"),
        ((3, 4), ((3, 4), (1, 4)), "Mul"),
        ((3, 4), ((3, 4), (3, 4)), "Mul"),
        ((3, 4, 2), ((3, 1, 2), (1, 4, 2)), "Mul"),
        ((2, 3, 4), ((1, 3, 1), (2, 1, 4)), "Mul"),
        ((2, 3, 4), ((2, 1, 4), (1, 3, 1)), "Mul"),
    ],
    ids=["sum", "a line", "equals", "shared behind", "other before", "turned"],
)
def test_others_stay(build, run, dims, shapes, function):
    after, report = run(network(build(6), dims, shapes, function=function), OuterProduct())
    assert after.node("y").op.kind == "ArrayMap" and not report.done


def test_beside_a_layer_without_integers_it_stays(build, run, reason):
    b = build(3)
    b.layer("f", ArrayMap("Sin", (3,), ((3,),), (0,)))
    b.layer("y", ArrayMap("Mul", (3, 3), ((3, 1), (1, 3)), (0, 1)), ["f", "x"])
    after, report = run(b.done("y"), OuterProduct())
    assert reason(report) == "y: it follows f, which has no integers" and after.node("y").op.kind == "ArrayMap"
