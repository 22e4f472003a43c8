"""Rules of the planning that decide bytes: sums beyond 32 bits, pools that run whole, other orders."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.memory_graphs import random_problem
from support.memory_networks import Net

from n2d2py.arithmetic import NumType
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.access import PoolWindow
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.modes import plan_mode
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import planner
from n2d2py.memory.stream import StreamPlanner
from n2d2py.operators.pool import Pool

BYTE, WIDE, SHORT = NumType(8), NumType(16, False), NumType(16)


def pooled(kind: NumType, side: int, mode: str, bound: int = 0) -> MemoryProblem:
    """A pool over a whole image of `side` lines and columns."""
    graph = QuantGraph("net", 8, inputs=["x"], outputs=["y"])
    graph.tensors = {"x": QuantTensor("x", (1, 2, side, side), kind), "y": QuantTensor("y", (1, 2, 1, 1), kind)}
    graph.nodes = [QuantNode("y", Pool(mode, (side, side)), ["x"], ["y"], bound=bound)]
    return memory_problem(graph)


@pytest.mark.parametrize(
    ("kind", "side", "mode", "bound", "wanted"),
    [
        (BYTE, 16, "Max", 0, 1),
        (SHORT, 16, "Max", 0, 2),
        (BYTE, 16, "Average", 0, 4),
        (WIDE, 181, "Average", 0, 4),  # 181 * 181 * 65,535 is below 2^31
        (WIDE, 182, "Average", 0, 8),
        (WIDE, 255, "Average", 0, 8),  # below 2^32
        (SHORT, 255, "Average", 0, 4),
        (BYTE, 16, "Average", 2**31 - 1, 4),
        (BYTE, 16, "Average", 2**31, 8),
    ],
)
def test_the_bytes_of_a_partial_result(kind, side, mode, bound, wanted):
    access = pooled(kind, side, mode, bound).ops[0].access
    assert isinstance(access, PoolWindow) and access.partial_bytes == wanted


@pytest.mark.parametrize("by_lines", [True, False, None])
def test_a_pool_that_is_not_computed_by_lines_runs_whole(by_lines):
    net = Net(16, 16, 2)
    net.conv(net.pool(net.conv(net.input, 16, 3), (2, 2), (2, 2)), 2, 3)
    problem = net.done()
    if by_lines is not None:
        ops = [
            replace(op, access=replace(op.access, by_lines=by_lines)) if isinstance(op.access, PoolWindow) else op
            for op in problem.ops
        ]
        problem = replace(problem, ops=tuple(ops))
    streamed = StreamPlanner(False).plan(problem, Settings()).streamed
    assert ("pool1" in streamed) == (by_lines is not False)


def test_the_smallest_plan_may_have_another_order():
    problem = random_problem(0, ops=18)
    plan = plan_mode(problem, Settings(), "Minimum")
    given = min(each.plan(problem, Settings()).arena_bytes for each in (StreamPlanner(False), planner("OptimizeOverlap")))
    assert plan.arena_bytes < given and [step.op for step in plan.schedule] != [op.name for op in problem.ops]
