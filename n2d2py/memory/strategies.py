"""The entrance to all planners: by strategy, by memory mode and budget, or for several memories.

A memory mode says how much speed may be traded for memory. A budget takes the fastest plan that fits.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from n2d2py.errors import N2D2Error, join_names, result_unless
from n2d2py.memory.manager import ORDERS, plan_auto, plan_n2d2
from n2d2py.memory.memories import plan_memories
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.scratch import used_at
from n2d2py.memory.search import best_order, plan_whole, solve
from n2d2py.memory.settings import MODES, Settings
from n2d2py.memory.stream import plan_pooled, plan_streamed, plan_within

Planner = Callable[[MemoryProblem, Settings], MemoryPlan]
"""Function that returns a plan, which `check_plan` accepts, for a valid problem."""

PLANNERS: dict[str, Planner] = {
    **{name: partial(plan_n2d2, name) for name in ORDERS},
    "OptimizeAuto": plan_auto,
    "OptimizeOverlap": plan_pooled,
    **{name: partial(plan_whole, strategy=name) for name in ("OptimizeOptimal", "OptimizeReorder")},
    "OptimizeStream": plan_streamed,
}
"""The planners by value of MemoryManagerStrategy."""

_UNLIMITED = sys.maxsize
_TRIES = 5  # number of cuts placed for a budget
_POINTS = 10  # number of points of a budget curve


def plan_memory(problem: MemoryProblem, settings: Settings = Settings(), **changes: Any) -> MemoryPlan:
    """Return the address of every tensor in the arena. `changes` replace fields of the settings. Raise E602 for a graph that
    cannot be planned, E606 for a strategy without its solver, E607 for a budget or memories that cannot be met, E608 for
    settings that exclude each other."""
    settings = replace(settings, **changes)
    settings.check()
    problem.validate()
    if settings.tensor_memories:
        return plan_memories(problem, settings)
    return (PLANNERS[settings.strategy] if settings.by_strategy else plan_mode)(problem, settings)


def plan_mode(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of the mode in the settings; with a budget, of the first mode up to it that fits. Its mode and budget are
    options of the plan. Raise E607 if no mode fits the budget, with the layers at the peak and the bytes reached."""
    budget, mode = settings.budget, settings.mode
    if mode == "auto":
        mode = "Small" if budget < 0 else "Minimum"
    if budget == 0:
        mode, budget = "Minimum", -1
    settings = replace(settings, mode=mode, budget=budget)
    if budget < 0:
        return _named(_plan(problem, settings, mode), mode)
    plans: list[MemoryPlan] = []
    for each in MODES[: MODES.index(mode) + 1]:
        plans.append(_plan(problem, settings, each))
        if plans[-1].arena_bytes <= budget:
            return _named(plans[-1], each, MemoryBudget=budget)
    raise _unreachable(problem, settings, plans[-1])


def _named(plan: MemoryPlan, mode: str, **options: int) -> MemoryPlan:
    return replace(plan, options={**plan.options, "MemoryMode": mode, **options})


def _plan(problem: MemoryProblem, settings: Settings, mode: str) -> MemoryPlan:
    """Return the plan of a mode; only Small fits to the budget."""
    if mode == "Small":
        return _streamed(problem, settings)
    if mode == "Minimum":
        return _smallest(problem, replace(settings, budget=0))
    settings = replace(settings, optimize_buffer=settings.optimize_buffer and mode != "Speed")
    if settings.stream_input:
        return plan_streamed(problem, replace(settings, budget=_UNLIMITED))
    return plan_pooled(problem, replace(settings, budget=0))


def _streamed(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the streamed plan with the fewest streamed layers in the budget. A placement may exceed the estimate of its cut;
    the last try is the cut with the fewest bytes."""
    budget = max(settings.budget, 0)
    aim, plans = budget, []
    for left in reversed(range(_TRIES)):
        plan = plan_streamed(problem, replace(settings, budget=aim))
        plans.append(plan)
        if plan.arena_bytes <= budget or aim == 0:
            break
        aim = max(0, aim - (plan.arena_bytes - budget)) if left > 1 else 0
    return min(plans, key=lambda plan: plan.arena_bytes)


def _smallest(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the smallest of streamed and overlapping plans, in the given and the best order, improved by the solver if it is
    installed."""
    planners = [partial(plan_streamed, search=_solved), *([] if settings.stream_input else [plan_whole])]
    orders = [problem]
    other = best_order(problem, replace(settings, clock="op"))
    if [op.name for op in other.ops] != [op.name for op in problem.ops]:
        orders.append(other)
    plans = [plan(each, settings) for each in orders for plan in planners]
    return min(plans, key=lambda plan: plan.arena_bytes)


def plan_strips(
    problem: MemoryProblem, settings: Settings, most: int | None = None, known: KnownRows | None = None
) -> MemoryPlan | None:
    """Return the plan of a problem with segments in strips (`strips.py`), in the mode Small or Minimum. `known`: row orders
    from other strips. None if every plan is known to exceed `most` bytes."""
    search = _solved if settings.mode == "Minimum" else None
    plan = plan_within(problem, replace(settings, budget=0), search, known=known, most=most)
    return None if plan is None else _named(plan, settings.mode)


def _solved(packing: Packing, placement: Placement) -> Placement:
    """Return the placement improved by CP-SAT if it is installed."""
    return result_unless("E606", solve, packing, placement) or placement


def peak_layers(problem: MemoryProblem, plan: MemoryPlan) -> list[str]:
    """Return the layers that run while the plan holds the most bytes, in order."""
    live_bytes: dict[int, int] = {}
    for clock, parts in used_at(plan, sorted({step.clock for step in plan.schedule})).items():
        end = total = 0
        for begin, stop in sorted(parts):
            total += max(0, stop - max(begin, end))
            end = max(end, stop)
        live_bytes[clock] = total
    peak = max(live_bytes, key=lambda clock: (live_bytes[clock], -clock))
    return list(dict.fromkeys(step.op for step in plan.schedule if step.clock == peak and step.op not in plan.views))


def _unreachable(problem: MemoryProblem, settings: Settings, plan: MemoryPlan) -> N2D2Error:
    mode, budget = settings.mode, settings.budget
    ways = [(settings, "")]
    if settings.include_output is not False:
        ways.append((replace(settings, include_output=False), " IncludeOutputInBuffer=0"))
    if not settings.stream_input:
        ways.append((replace(settings, stream_input=True), " StreamInput=1"))
        if settings.include_input:
            ways.append((replace(settings, include_input=False), " IncludeInputInBuffer=0"))
    reached = [(_plan(problem, each, "Minimum").arena_bytes, text) for each, text in ways]
    least, how = min(reached, key=lambda one: one[0])
    remedy = f"allow {least} bytes, or make the input or the layers at the peak smaller"
    fitting = next((way for way, (size, _) in zip(ways, reached, strict=True) if size <= budget), None)
    if fitting is not None:
        each, text = fitting
        sizes = ((other, _plan(problem, each, other).arena_bytes) for other in MODES)
        other, size = next(one for one in sizes if one[1] <= budget)
        remedy = f"use MemoryMode={max(mode, other, key=MODES.index)}{text}, which needs {size:,} bytes"
    return N2D2Error(
        "E607",
        f"MemoryBudget={budget} is too small for MemoryMode={mode}, which requires {plan.arena_bytes:,} bytes, with the peak "
        f"at {join_names(peak_layers(problem, plan), 6)}; the smallest plan has {least:,} bytes (MemoryMode=Minimum{how})",
        where="memory",
        remedy=remedy,
    )


def budget_curve(problem: MemoryProblem, settings: Settings) -> list[tuple[int, int]]:
    """Return at most ten points (bytes, streamed layers), from the plan without streaming to the smallest."""

    def point(budget: int) -> tuple[int, int]:
        plan = plan_streamed(problem, replace(settings, budget=budget))
        return plan.arena_bytes, len(plan.streamed)

    points, end = [point(_UNLIMITED)], point(0)
    for n in range(1, _POINTS - 1):
        budget = points[0][0] + (end[0] - points[0][0]) * n // (_POINTS - 1)
        if budget < points[-1][0]:
            middle = point(budget)
            if end[0] < middle[0] < points[-1][0]:
                points.append(middle)
    return points + ([end] if end[0] < points[-1][0] else [])
