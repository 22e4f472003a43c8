"""Small rules of graphs and maps: whole pools, taps of an axis, views that keep the order, scratch outside of the arena."""

from __future__ import annotations

import copy
from itertools import product

import numpy as np
import pytest
from support.memory_networks import Net

from n2d2py.arithmetic import NumType
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.access import View, Whole, same_order
from n2d2py.memory.case import Violation
from n2d2py.memory.checker import check_map
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.modes import MODES, plan_mode
from n2d2py.memory.planning import plan_memory
from n2d2py.memory.settings import Settings
from n2d2py.memory.taps import is_global, last_user, taps_along
from n2d2py.operators.reshape import Reshape

TENSORS = {"x": {"h": 4, "w": 6, "c": 2}, "one": {"h": 1, "w": 1, "c": 2}, "row": {"h": 1, "w": 2, "c": 2}}
WHOLE = {"type": "pool", "inputs": ["x"], "output": "one", "kh": 4, "kw": 6, "pads": [0, 0, 0, 0]}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, True),
        ({"type": "conv"}, False),
        ({"kh": 3}, False),
        ({"kw": 5}, False),
        ({"kh": 6, "kw": 4}, False),
        ({"pads": [0, 0, 0, 1]}, False),
        ({"pads": [1, 0, 0, 0]}, False),
        ({"output": "row"}, False),
    ],
)
def test_a_pool_over_its_whole_input(change, wanted):
    assert is_global({**WHOLE, **change}, TENSORS) is wanted


@pytest.mark.parametrize(("scale", "dil"), [(2, 3), ((2, 3), (1, 2)), ([2, 3], [1, 2])])
def test_numbers_of_both_axes_may_be_one_or_two(scale, dil):
    by_axis = [value if isinstance(value, (list, tuple)) else (value, value) for value in (scale, dil)]
    window = {"type": "conv", "inputs": ["x"], "kh": 2, "kw": 3, "sh": 2, "sw": 1, "pads": [1, 2, 0, 0], "dil": dil}
    for axis in (0, 1):
        upsampled = taps_along({"type": "upsample", "inputs": ["x"], "scale": scale}, "x", axis, 9)
        assert [upsampled(at).tolist() for at in range(6)] == [[at // by_axis[0][axis]] for at in range(6)]
        taps = taps_along(window, "x", axis, 9)
        kernel, stride, pad = ((2, 2, 1), (3, 1, 2))[axis]
        for at in range(4):
            places = [at * stride - pad + tap * by_axis[1][axis] for tap in range(kernel)]
            assert taps(at).tolist() == [place for place in places if 0 <= place < 9]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_last_user_of_each_position(backwards):
    taps = [[0, 1], [1, 2], [2], [5]]
    found = last_user(6, 4, lambda position: np.array(taps[position]), backwards)
    order = taps[::-1] if backwards else taps
    assert found.tolist() == [max((step for step, read in enumerate(order) if x in read), default=-1) for x in range(6)]


@pytest.mark.parametrize(
    ("before", "after"), list(product([(1, 1, 6), (1, 6, 1), (1, 2, 3), (6, 1, 1), (2, 3, 1), (2, 1, 3), (3, 2, 1)], repeat=2))
)
def test_a_reshape_is_a_view_where_memory_keeps_its_order(before, after):
    """Channels are innermost: elements numbered in the order of the layer lie in the order of memory."""
    graph = QuantGraph("g", 8, outputs=["y"])
    kind = NumType(8)
    graph.tensors = {"x": QuantTensor("x", (1, *before), kind), "y": QuantTensor("y", (1, *after), kind)}
    found = same_order(QuantNode("y", Reshape(after), ["x"], ["y"]), graph)
    numbers = np.arange(6)
    kept = np.array_equal(numbers.reshape(before).transpose(1, 2, 0).ravel(), numbers.reshape(after).transpose(1, 2, 0).ravel())
    folded = before != after and before[0] == after[0] > 1  # lines that become columns are copied
    assert isinstance(found, View) == (kept and not folded) and isinstance(found, (View, Whole))
    graph.inputs = ["x"]  # both are the caller's
    assert isinstance(same_order(QuantNode("y", Reshape(after), ["x"], ["y"]), graph), Whole)


@pytest.mark.parametrize(("begin", "size"), [(-4, 20), (-4, 10_000), (0, 10_000), (5, 10_000)])
def test_scratch_outside_of_the_arena_is_one_fault(begin, size):
    """What lies under it is not looked at: there is nothing sound to compare."""
    net = Net(4, 4, 2)
    net.conv(net.input, 2, 1)
    problem = net.done()
    graph, found = graph_json(problem), map_json(plan_memory(problem))
    assert check_map(graph, found) == []
    broken = copy.deepcopy(found)
    (step,) = broken["schedule"]
    step["scratch"] = [{"offset": begin, "size": size}]
    faults = check_map(graph, broken)
    assert [(fault.kind, fault.op) for fault in faults] == [("arena", "conv0")]
    assert f"scratch at {begin} to {begin + size} is outside the arena" in str(faults[0])


def test_a_fault_names_its_operator_where_there_is_one():
    assert str(Violation("arena", "it is too small")) == "it is too small"
    assert str(Violation("arena", "it is too small", op="c")) == "c: it is too small"


@pytest.mark.parametrize("mode", MODES)
def test_plans_say_their_mode_and_their_budget(mode):
    net = Net(8, 8, 2)
    net.conv(net.conv(net.input, 4, 3), 2, 3)
    problem = net.done()
    free = plan_mode(problem, Settings(), mode).options
    assert free["MemoryMode"] == mode and "MemoryBudget" not in free
    held = plan_mode(problem, Settings(), mode, budget=100_000).options
    assert (held["MemoryMode"], held["MemoryBudget"]) == (MODES[0], 100_000)
