"""Plans with layers line by line of networks so small that places, steps and rings are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from n2d2py.memory.access import PoolWindow, TensorSpec, View, Whole, Window
from n2d2py.memory.checker import check_plan
from n2d2py.memory.plan import OpPlan, ScheduleStep
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import PooledPlanner, StreamPlanner

SETTINGS = Settings(clock="op", buffer_alignment=1)
POINT = Window((1, 1))


def wide() -> MemoryProblem:
    """x of 5 lines of 8 bytes -> a -> m of 20 a line -> b -> y of 4 a line."""
    tensors = {name: TensorSpec(name, 5, 1, size) for name, size in (("x", 8), ("m", 20), ("y", 4))}
    return MemoryProblem(tensors, ("x",), ("y",), (OpSpec("a", POINT, ("x",), "m"), OpSpec("b", POINT, ("m",), "y")))


def test_two_layers_with_a_line_between_them():
    """x and a line of m; a line of y lies where one of x was."""
    plan = StreamPlanner().plan(wide(), SETTINGS)
    assert plan.arena_bytes == plan.bound == 40 + 20 and check_plan(wide(), plan) == []
    assert [(step.op, step.clock, step.rows, step.arrives, step.in_rows) for step in plan.schedule] == [
        (name, 0, (y, y + 1), False, None) for y in range(5) for name in "ab"
    ]
    assert plan.ops == {"a": OpPlan(streamed=True), "b": OpPlan(streamed=True)} and plan.streamed == ("a", "b")
    m = plan.planes["m"]
    assert (m.ring_rows, m.alloc, m.release, m.count, m.stride) == (1, 0, 0, 5, 20)
    assert [(plan.planes[name].alloc, plan.planes[name].release) for name in "xy"] == [(-1, 0), (0, 1)]
    assert plan.planes["x"].ring_rows is None and not plan.planes["y"].external
    assert plan.options["Clock"] == "segment" and plan.options["StreamInput"] == 0


def test_as_few_layers_as_the_budget_allows():
    """The first layer alone takes 108 bytes, the line that it reads between x and m; without overlaps 140 and 120."""
    for budget, streamed, arena in ((108, (), 108), (107, ("a", "b"), 60), (10**9, (), 108)):
        plan = StreamPlanner(budget=budget).plan(wide(), SETTINGS)
        assert (plan.streamed, plan.arena_bytes) == (streamed, arena), budget
    apart = StreamPlanner(budget=140).plan(wide(), replace(SETTINGS, optimize_buffer=False))
    assert (apart.streamed, apart.arena_bytes) == ((), 140)
    lines = StreamPlanner(budget=139).plan(wide(), replace(SETTINGS, optimize_buffer=False))
    assert (lines.streamed, lines.arena_bytes) == (("a", "b"), 40 + 20 + 20)


def test_an_input_that_arrives_line_by_line():
    """A line of x, one of m, and y."""
    plan = StreamPlanner(True).plan(wide(), SETTINGS)
    assert plan.arena_bytes == 8 + 20 + 20 and check_plan(wide(), plan) == []
    assert [(step.op, step.rows, step.arrives) for step in plan.schedule] == [
        (name, (y, y + 1), name == "x") for y in range(5) for name in "xab"
    ]
    assert (plan.planes["x"].ring_rows, plan.planes["m"].ring_rows) == (1, 1) and "x" not in plan.ops
    assert plan.options["StreamInput"] == 1
    whole = StreamPlanner(True, 10**9).plan(wide(), SETTINGS)
    assert whole.schedule == (ScheduleStep("x", 0, (0, 5), arrives=True), ScheduleStep("a", 1), ScheduleStep("b", 2))
    assert (whole.planes["x"].alloc, whole.planes["x"].release) == (0, 1)


def test_a_pool_adds_lines_to_its_partial_results():
    """x, a line of m, 20 sums of 2 bytes; the result of 20 bytes lies over x, whose lines die."""
    problem = wide()
    tensors = {**problem.tensors, "y": TensorSpec("y", 1, 1, 20)}
    ops = (problem.ops[0], OpSpec("b", PoolWindow((5, 1), partial_bytes=2), ("m",), "y", scratch_bytes=0))
    problem = replace(problem, tensors=tensors, ops=ops)
    plan = StreamPlanner().plan(problem, SETTINGS)
    assert plan.arena_bytes == 40 + 20 + 40 and check_plan(problem, plan) == []
    assert [(step.op, step.rows, step.in_rows, step.commit) for step in plan.schedule] == [
        step for y in range(5) for step in (("a", (y, y + 1), None, False), ("b", None, (y, y + 1), y == 4))
    ]
    b = plan.op("b")
    assert b.scratch is not None and b.scratch.size == 40 and b.partial == b.scratch.offset and b.streamed
    assert plan.op("a").partial is None and plan.op("a").scratch is None


def test_views_run_as_soon_as_what_they_see_is_there():
    tensors = {
        name: TensorSpec(name, *shape)
        for name, shape in {
            "x": (5, 1, 8),
            "v": (1, 1, 40),
            "m": (5, 1, 20),
            "y": (5, 1, 4),
            "w": (1, 1, 20),
            "z": (1, 1, 3),
        }.items()
    }
    ops = (
        OpSpec("v", View(), ("x",), "v"),
        OpSpec("a", POINT, ("x",), "m"),
        OpSpec("b", POINT, ("m",), "y"),
        OpSpec("w", View(), ("y",), "w"),
        OpSpec("c", Whole(), ("w",), "z"),
    )
    problem = MemoryProblem(tensors, ("x",), ("z",), ops)
    plan = StreamPlanner().plan(problem, SETTINGS)
    assert check_plan(problem, plan) == []
    order = [(step.op, step.clock) for step in plan.schedule]
    assert order[0] == ("v", 0) and order[-2:] == [("w", order[-3][1]), ("c", order[-3][1] + 1)]
    assert plan.views == ("v", "w") and plan.op("c") == OpPlan()


@pytest.mark.parametrize("rows", [6, 100])
def test_a_pool_of_windows_side_by_side_runs_by_lines(rows):
    tensors = {"x": TensorSpec("x", rows, 2, 1), "m": TensorSpec("m", rows, 2, 40), "y": TensorSpec("y", rows // 2, 1, 40)}
    ops = (OpSpec("a", POINT, ("x",), "m"), OpSpec("b", PoolWindow((2, 2), (2, 2)), ("m",), "y"))
    problem = MemoryProblem(tensors, ("x",), ("y",), ops)
    plan = PooledPlanner().plan(problem, SETTINGS)
    assert plan.streamed == ("a", "b") and plan.strategy == "OptimizeOverlap" and check_plan(problem, plan) == []
    apart = PooledPlanner().plan(problem, replace(SETTINGS, optimize_buffer=False))
    assert not apart.streamed and apart.arena_bytes == rows * 80 + max(rows * 2, rows // 2 * 40)
