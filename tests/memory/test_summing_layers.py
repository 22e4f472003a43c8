"""Which sums the kernels do where a convolution stores: the conditions of layers and tensors, one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.memory_networks import Net

from n2d2py.arithmetic import (
    FLOAT32,
    FixedPointRescale,
    FloatRescale,
    FractionRescale,
    NumType,
    ShiftRescale,
    StepRescale,
    make_rescale,
)
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor, ResidualAdd
from n2d2py.graph.forms import Aligned, Dequantized, Real, Weighted
from n2d2py.memory.access import Whole
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.sums import ResidualSum, residual_sums, with_sums
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.passes.integer.residual_add import addable, fuse_residual_adds
from n2d2py.stages.memory import smaller_plan

BYTE, UBYTE = NumType(8, scale=0.1), NumType(8, signed=False, scale=0.1, zero_point=7)
SHAPE = (1, 4, 5, 5)


def typed(
    operation: str = "Sum",
    multipliers=(3, -2),
    offset: int = 5,
    types=(BYTE, UBYTE),
    conv: Conv | Fc | None = None,
    groups: int = 1,
) -> QuantGraph:
    """x - conv; sum of conv and x, all of one shape."""
    graph = QuantGraph("net", 8, inputs=["x"], outputs=["sum"])
    kinds = {"x": types[1], "conv": types[0], "sum": BYTE}
    graph.tensors = {name: QuantTensor(name, SHAPE, kind) for name, kind in kinds.items()}
    weights = Weighted(np.ones((4, 4 // groups, 3, 3), np.int8), np.zeros(4, np.int32))
    graph.nodes = [
        QuantNode(
            "conv",
            conv or Conv(pads=(1, 1, 1, 1), groups=groups),
            ["x"],
            ["conv"],
            weights,
            FloatRescale(np.ones(1)),
            (-127, 127),
        ),
        QuantNode(
            "sum",
            ElemWise(operation),
            ["conv", "x"],
            ["sum"],
            Aligned(np.array(multipliers), np.array([offset])),
            FloatRescale(np.array([0.25])),
            (-127, 127),
            bound=10_000,
        ),
    ]
    return graph


def fused(graph: QuantGraph) -> ResidualAdd:
    """The sum as the convolution does it."""
    (node,) = fuse_residual_adds(graph, [("conv", "sum")]).nodes
    assert node.residual is not None
    return node.residual


def fits(graph: QuantGraph, typed: bool = True) -> bool:
    return addable(graph, typed)("conv", "sum")


@pytest.mark.parametrize("typed_network", [True, False])
@pytest.mark.parametrize("operation", ElemWise.OPERATIONS)
def test_only_sums_are_done(operation, typed_network):
    assert fits(typed(operation), typed_network) == (operation == "Sum")


@pytest.mark.parametrize("typed_network", [True, False])
def test_only_convolutions_over_channels_do_them(typed_network):
    assert fits(typed(groups=2), typed_network)
    assert not fits(typed(groups=4), typed_network)
    assert not fits(typed(conv=Fc()), typed_network)


@pytest.mark.parametrize("typed_network", [True, False])
def test_another_kind_of_layer_is_no_sum(typed_network):
    graph = typed()
    assert not addable(graph, typed_network)("conv", "conv")
    assert not addable(graph, typed_network)("sum", "sum")


def test_floating_point_is_not_summed():
    assert not fits(typed(types=(FLOAT32, BYTE))) and not fits(typed(types=(BYTE, FLOAT32)))
    graph = typed()
    graph.nodes[1].rescale = StepRescale(np.float32(0.1))
    graph.nodes[1].form = Dequantized(np.ones(2, np.float32))
    assert not fits(graph)


def test_what_has_types_later_is_judged_by_its_operators():
    graph = typed(types=(FLOAT32, FLOAT32))
    for node in graph.nodes:
        node.rescale = None
    graph.nodes[1].form = Real()
    assert fits(graph, typed=False) and not fits(graph)


def test_a_convolution_without_rescale_does_none():
    graph = typed()
    graph.nodes[0].rescale = None
    assert not fits(graph)


@pytest.mark.parametrize(
    "mode, kind", [("Floating-point", FloatRescale), ("Fixed-point16", FixedPointRescale), ("Single-shift", ShiftRescale)]
)
def test_one_factor_of_each_mode(mode, kind):
    graph = typed()
    graph.nodes[1].rescale = make_rescale(mode, np.array([0.25]), 32)[0]
    assert isinstance(graph.nodes[1].rescale, kind) and fits(graph)
    graph.nodes[1].rescale = make_rescale(mode, np.full(4, 0.25), 32)[0]
    assert graph.nodes[1].rescale.count == 4 and not fits(graph)


@pytest.mark.parametrize("rescale", [StepRescale(np.float32(0.1)), FractionRescale(np.array([0.25]), np.array([0.5]))])
def test_other_rescales_are_not_done(rescale):
    graph = typed()
    graph.nodes[1].rescale = rescale
    assert rescale.count == 1 and not fits(graph)


@pytest.mark.parametrize(
    "multipliers, fit", [((2**23 - 2, 1), True), ((1, 2 - 2**23), True), ((2**23, 1), False), ((1, -(2**23)), False)]
)
def test_multipliers_have_24_bits(multipliers, fit):
    assert fits(typed(multipliers=multipliers)) == fit


@pytest.mark.parametrize("bound, fit", [(2**31 - 1, True), (2**31, False)])
def test_sums_stay_within_32_bits(bound, fit):
    graph = typed()
    graph.nodes[1].bound = bound
    assert fits(graph) == fit
    for sign in (1, -1):  # the offset with the zero points: 2 * 7 less the offset
        graph = typed(offset=sign * bound - 14)
        assert abs(fused(graph).stored_offset(UBYTE)) == bound and fits(graph) == fit


def test_products_of_any_bytes_stay_within_32_bits():
    """129 operands whose multipliers add up to 2^23, times 256."""
    graph = typed(multipliers=[65024] * 128 + [65535], offset=0, types=(BYTE, BYTE))
    graph.nodes[1].inputs = ["x"] * 129
    assert 256 * graph.nodes[1].form.multipliers.sum() == 2**31 - 256 and fits(graph)
    graph.nodes[1].form.multipliers[0] += 1
    assert not fits(graph)


def test_the_offset_holds_the_zero_points():
    graph = typed(multipliers=(3, -2), offset=11, types=(NumType(8, scale=0.1, zero_point=-9), UBYTE))
    q = np.array([[-4, 100], [3, 250]])
    real = 3 * (q[0] + 9) - 2 * (q[1] - 7) + 11
    np.testing.assert_array_equal(3 * q[0] - 2 * q[1] + fused(graph).stored_offset(UBYTE), real)


def chain(*operands: int, others=(), **attributes) -> MemoryProblem:
    """A pool, a convolution of it, a sum of these by number (0 the pool, 1 the convolution, 2 the input), `others` between, and a reader."""
    net = Net(6, 6, 8)
    made = [net.pool(net.input, 1, 1)]
    if "before" in others:
        net.pool(made[0], 2, 2)
    made.append(net.conv(net.pool(made[0], 1, 1), 8, 3))
    if "after" in others:
        net.pool(made[0], 2, 2)
    made.append(net.input)
    total = net.add(*(made[index] for index in operands))
    return net.done(
        net.pool(total, 2, 2), *(op.output for op in net.ops if all(op.output not in each.inputs for each in net.ops))
    )


def test_operands_in_either_order():
    for operands in ((0, 1), (1, 0)):
        assert residual_sums(chain(*operands)) == [ResidualSum("conv2", "add3", "pool0.y")]


@pytest.mark.parametrize("operands", [(0, 2), (1, 2), (2, 1), (1, 1), (0, 0), (0, 1, 1), (0, 1, 0)])
def test_two_tensors_that_are_not_the_callers(operands):
    assert residual_sums(chain(*operands)) == []


def test_other_readers_of_the_residual_come_before_the_convolution():
    (found,) = residual_sums(chain(0, 1, others=["before"]))
    assert found.residual == "pool0.y"
    assert residual_sums(chain(0, 1, others=["after"])) == []


def test_a_convolution_that_reads_the_residual_cannot_store_over_it():
    net = Net(6, 6, 8)
    first = net.conv(net.input, 8, 1)
    total = net.add(first, net.conv(first, 8, 3))
    assert residual_sums(net.done(net.pool(total, 2, 2))) == []


def test_what_is_computed_later_must_be_a_convolution():
    net = Net(6, 6, 8)
    first = net.conv(net.input, 8, 1)
    total = net.add(first, net.pool(net.pool(first, 1, 1), 1, 1))
    assert residual_sums(net.done(net.pool(total, 2, 2))) == []


@pytest.mark.parametrize("change", [{"element_bytes": 2}, {"height": 1}, {"channels": 1}])
@pytest.mark.parametrize("tensor", ["pool0.y", "conv2.y", "add3.y"])
def test_tensors_of_bytes_and_of_one_shape(tensor, change):
    problem = chain(0, 1)
    tensors = {**problem.tensors, tensor: replace(problem.tensors[tensor], **change)}
    assert residual_sums(problem) and residual_sums(replace(problem, tensors=tensors)) == []


def test_sums_of_wide_elements_are_left_alone():
    problem = chain(0, 1)
    for size in (2, 4):
        tensors = {name: replace(tensor, element_bytes=size) for name, tensor in problem.tensors.items()}
        assert residual_sums(replace(problem, tensors=tensors)) == []


def with_view(where: str) -> MemoryProblem:
    net = Net(6, 6, 8)
    residual = net.pool(net.input, 1, 1)
    if where == "residual":
        residual = net.reshape(residual, 6, 6, 8)
    if where == "reader":
        net.fc(net.reshape(residual, 1, 1, 288), 3)
    total = net.add(residual, net.conv(net.pool(residual, 1, 1), 8, 3))
    net.fc(net.flatten(total) if where == "sum" else total, 5)
    return net.done(*(op.output for op in net.ops if isinstance(op.access, Whole)))


@pytest.mark.parametrize("where", ["", "residual", "reader", "sum"])
def test_tensors_that_views_share_are_left_alone(where):
    assert len(residual_sums(with_view(where))) == (not where)


def test_a_sum_behind_a_refused_one_is_found():
    net = Net(6, 6, 8)
    first = net.pool(net.input, 1, 1)
    refused = net.add(first, first)
    total = net.add(refused, net.conv(net.pool(refused, 1, 1), 8, 3))
    assert [found.sum for found in residual_sums(net.done(net.pool(total, 2, 2)))] == [net.ops[-2].name]


def test_who_is_asked():
    asked = []
    residual_sums(chain(0, 1), lambda conv, sum: bool(asked.append((conv, sum))))
    assert asked == [("conv2", "add3")]


def test_the_sum_becomes_a_view_of_what_its_convolution_stores():
    problem = chain(0, 1)
    fused = with_sums(problem, residual_sums(problem))
    before = {op.name: op for op in problem.ops}
    for op in fused.ops:
        if op.name == "conv2":
            assert op.access == replace(before["conv2"].access, aliases=1)
            assert (op.inputs, op.output) == ((*before["conv2"].inputs, "pool0.y"), "add3.y")
            assert (op.aliased, op.operands) == ("pool0.y", before["conv2"].inputs)
        else:
            assert op == before[op.name]
    assert [op.name for op in fused.ops] == [op.name for op in problem.ops if op.name != "add3"]
    assert set(problem.tensors) - set(fused.tensors) == {"conv2.y"}
    assert with_sums(problem, []).ops == problem.ops


@pytest.mark.parametrize("plain, fused, chosen", [(10, 9, "fused"), (10, 10, "fused"), (10, 11, "plain")])
def test_sums_are_done_where_they_need_no_more_memory(plain, fused, chosen):
    class Plan:
        def __init__(self, arena_bytes):
            self.arena_bytes = arena_bytes

    plans = {"plain": Plan(plain), "fused": Plan(fused)}
    assert smaller_plan("plain", "fused", plans.__getitem__) == (chosen, plans[chosen])
