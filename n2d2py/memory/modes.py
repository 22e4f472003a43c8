"""The knob: how much speed may be given for memory, and the fastest plan that fits a budget."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from n2d2py.errors import N2D2Error, listed
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.reorder import best_order
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.search import OverlapPlanner, solve
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import PooledPlanner, StreamPlanner

MODES = ("Speed", "Balanced", "Small", "Minimum")
"""From the fastest to the smallest: no output over an input; exact overlap; row streaming; the smallest plan known."""

_UNLIMITED = sys.maxsize
_TRIES = 5
"""Cuts that are placed for a budget."""
_POINTS = 10
"""Of a budget curve."""


def runs_by_lines(parameters: Mapping[str, Any]) -> bool:
    """True if the export parameters let layers run row by row through line buffers, the inputs whole."""
    if parameters["StreamInput"]:
        return False
    if parameters["MemoryMode"] == "auto":
        return (
            bool(parameters["Memories"])
            or parameters["MemoryManagerStrategy"] == "OptimizeStream"
            or parameters["MemoryBudget"] >= 0
        )
    return parameters["MemoryMode"] not in MODES[:2]


def plan_mode(
    problem: MemoryProblem, settings: Settings, mode: str, *, budget: int | None = None, stream_input: bool = False
) -> MemoryPlan:
    """The plan of a mode; with a `budget` in bytes the first of the modes up to it that fits.

    Raises E607, with the layers at the peak and what would be reached, where none fits.
    """
    allowed = MODES[: MODES.index(mode) + 1]
    if budget is None:
        plan = _plan(problem, settings, mode, 0, stream_input)
        return _named(plan, mode, budget)
    tried = []
    for each in allowed:
        tried.append(_plan(problem, settings, each, budget, stream_input))
        if tried[-1].arena_bytes <= budget:
            return _named(tried[-1], each, budget)
    raise _unreachable(problem, settings, mode, budget, stream_input, tried[-1])


def _named(plan: MemoryPlan, mode: str, budget: int | None) -> MemoryPlan:
    options = {**plan.options, "MemoryMode": mode}
    if budget is not None:
        options["MemoryBudget"] = budget
    return replace(plan, options=options)


def _plan(problem: MemoryProblem, settings: Settings, mode: str, budget: int, stream_input: bool) -> MemoryPlan:
    if mode == "Speed":
        settings = replace(settings, optimize_buffer=False)
    if mode in ("Speed", "Balanced"):
        if stream_input:
            return StreamPlanner(True, _UNLIMITED).plan(problem, settings)
        return PooledPlanner().plan(problem, settings)
    if mode == "Small":
        return _streamed(problem, settings, budget, stream_input)
    return _smallest(problem, settings, stream_input)


def _streamed(problem: MemoryProblem, settings: Settings, budget: int, stream_input: bool) -> MemoryPlan:
    """The streamed plan with the fewest streamed layers in the budget; a placement may miss what its cut promised, so that the last try is
    that of the fewest bytes."""
    aim, plans = budget, []
    for left in reversed(range(_TRIES)):
        plan = StreamPlanner(stream_input, aim).plan(problem, settings)
        plans.append(plan)
        if plan.arena_bytes <= budget or aim == 0:
            break
        aim = max(0, aim - (plan.arena_bytes - budget)) if left > 1 else 0
    return min(plans, key=lambda plan: plan.arena_bytes)


def _smallest(problem: MemoryProblem, settings: Settings, stream_input: bool) -> MemoryPlan:
    """The smallest of streamed and overlapping plans, in the given and the best order, improved by the solver if it is
    there.
    """
    planners: list[StreamPlanner | OverlapPlanner] = [StreamPlanner(stream_input, search=_solved)]
    if not stream_input:
        planners.append(OverlapPlanner())
    orders = [problem]
    other = best_order(problem, replace(settings, clock="op"))
    if [op.name for op in other.ops] != [op.name for op in problem.ops]:
        orders.append(other)
    plans = [planner.plan(each, settings) for each in orders for planner in planners]
    return min(plans, key=lambda plan: plan.arena_bytes)


def plan_strips(
    problem: MemoryProblem, settings: Settings, mode: str, most: int | None = None, known: KnownRows | None = None
) -> MemoryPlan | None:
    """The plan of a problem whose segments are in strips (`strips.py`); `mode`: Small or Minimum. `known`: rows of the network in
    other strips. None where every plan is known to exceed `most` bytes."""
    planner = StreamPlanner(search=_solved if mode == "Minimum" else None, known=known)
    plan = planner.plan_within(problem, settings, most)
    return None if plan is None else _named(plan, mode, None)


def _solved(packing: Packing, placement: Placement) -> Placement:
    """By CP-SAT where it is installed."""
    try:
        return solve(packing, placement)
    except N2D2Error as error:
        if error.code != "E606":
            raise
        return placement


def peak_layers(problem: MemoryProblem, plan: MemoryPlan) -> list[str]:
    """The layers that run while the plan holds the most bytes, in order."""
    held: dict[int, int] = {}
    for clock in sorted({step.clock for step in plan.schedule}):
        parts = [part for plane in plan.planes.values() if plane.alloc <= clock <= plane.release for part in plane.intervals()]
        parts += [
            (plan.scratch[step.op].offset, plan.scratch[step.op].offset + plan.scratch[step.op].size)
            for step in plan.schedule
            if step.clock == clock and step.op in plan.scratch
        ]
        end = total = 0
        for begin, stop in sorted(parts):
            total += max(0, stop - max(begin, end))
            end = max(end, stop)
        held[clock] = total
    peak = max(held, key=lambda clock: (held[clock], -clock))
    return list(dict.fromkeys(step.op for step in plan.schedule if step.clock == peak and step.op not in plan.views))


def _unreachable(
    problem: MemoryProblem, settings: Settings, mode: str, budget: int, stream_input: bool, plan: MemoryPlan
) -> N2D2Error:
    shown = listed(peak_layers(problem, plan), 6)
    ways = [(stream_input, settings, "")]
    if settings.include_output is not False:
        ways.append((stream_input, replace(settings, include_output=False), " IncludeOutputInBuffer=0"))
    if not stream_input:
        ways.append((True, settings, " StreamInput=1"))
    if settings.include_input and not stream_input:
        ways.append((False, replace(settings, include_input=False), " IncludeInputInBuffer=0"))
    reached = [_plan(problem, each, "Minimum", 0, by_rows).arena_bytes for by_rows, each, _ in ways]
    smallest = min(range(len(ways)), key=lambda n: reached[n])
    fitting = next((way for way, size in zip(ways, reached, strict=True) if size <= budget), None)
    remedy = f"allow {reached[smallest]} bytes, or make the input or the layers at the peak smaller"
    if fitting is not None:
        by_rows, each, text = fitting
        for number, other in enumerate(MODES):
            size = _plan(problem, each, other, budget, by_rows).arena_bytes
            if size <= budget:
                remedy = f"use MemoryMode={MODES[max(number, MODES.index(mode))]}{text}, which needs {size:,} bytes"
                break
    return N2D2Error(
        "E607",
        f"MemoryBudget={budget} is too small for MemoryMode={mode}, which requires {plan.arena_bytes:,} bytes, with the peak "
        f"at {shown}; the smallest plan has {reached[smallest]:,} bytes (MemoryMode=Minimum{ways[smallest][2]})",
        where="memory",
        remedy=remedy,
    )


def budget_curve(problem: MemoryProblem, settings: Settings, stream_input: bool = False) -> list[tuple[int, int]]:
    """Points (bytes, streamed layers) from the plan that streams nothing to the smallest, at most ten."""
    plan = StreamPlanner(stream_input, _UNLIMITED).plan(problem, settings)
    points = [(plan.arena_bytes, len(plan.streamed))]
    least = StreamPlanner(stream_input).plan(problem, settings)
    end = (least.arena_bytes, len(least.streamed))
    for n in range(1, _POINTS - 1):
        budget = points[0][0] + (end[0] - points[0][0]) * n // (_POINTS - 1)
        if budget >= points[-1][0]:
            continue
        plan = StreamPlanner(stream_input, budget).plan(problem, settings)
        point = (plan.arena_bytes, len(plan.streamed))
        if end[0] < point[0] < points[-1][0]:
            points.append(point)
    return points + ([end] if end[0] < points[-1][0] else [])
