"""A constant matrix for each group of rows becomes a convolution in groups, which has integers; so does one of a single row."""

from __future__ import annotations

from math import prod

from support.tables import every

from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.functions import Clip
from n2d2py.passes.constant_products import GroupedMatMul, MatMulToConv
from n2d2py.quant.types.float_fallback import float_layers


def network(b, left, right):
    b.layer("p", ArrayMatMul(left, right, (0, -1)), params={"operand1": b.array(*right)})
    b.layer("last", Activation(Clip(0.125)), "p")
    return b.done("last")


@every(
    "left, right, groups",
    [
        ((3, 5, 7), (3, 7, 4), 3),
        ((1, 3, 5, 7), (1, 3, 7, 4), 3),
        ((2, 3, 5, 7), (2, 3, 7, 4), 6),
        ((3, 2, 5, 7), (3, 1, 7, 4), 3),
        ((3, 1, 7), (3, 7, 4), 3),
        ((3, 5, 1), (3, 1, 1), 3),
        ((5, 5, 5), (5, 5, 5), 5),
    ],
)
def test_groups_are_a_convolution(build, run, run_all, left, right, groups):
    graph = network(build(prod(left)), left, right)
    after, report = run(graph, GroupedMatMul())
    assert not report.refused
    conv = after.node("p")
    assert conv.op.kind == "Conv" and conv.op.groups == groups
    fused, _ = run_all(graph, integer=True)
    assert fused.node("p").op.kind == "Conv" and float_layers(fused) == set()


@every(
    "left, right",
    [((2, 3, 5, 7), (1, 3, 7, 4)), ((1, 3, 5, 7), (2, 3, 7, 4)), ((1, 5, 7), (3, 7, 4)), ((2, 1, 5, 7), (2, 3, 7, 4))],
    ids=["inner groups", "rows repeated outside", "one matrix of rows", "rows repeated inside"],
)
def test_other_groups_stay(build, run, reason, left, right):
    graph = network(build(prod(left)), left, right)
    assert reason(run(graph, GroupedMatMul())[1]) == "p: its matrices do not belong to the outermost groups of its rows"


def test_a_single_row_is_fully_connected(build, run, kinds, run_all):
    graph = network(build(7), (1, 1, 7), (1, 7, 4))
    after, _ = run(graph, MatMulToConv())
    assert kinds(after) == [("p", "Fc"), ("last", "Activation")]
    fused, _ = run_all(graph, integer=True)
    assert float_layers(fused) == set()
