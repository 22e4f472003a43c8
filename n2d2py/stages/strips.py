"""Segments of layers in strips, where the export parameters allow work that is done twice."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.from_graph import memory_problem, with_columns
from n2d2py.memory.modes import plan_strips, runs_by_lines
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strip_search import StripPoint, StripSearch
from n2d2py.passes.integer.strips import by_columns, with_strips

_TRIED = 3
"""Of the cuts with the least memory by estimate."""
_Planned = tuple[QuantGraph, MemoryProblem, MemoryPlan]


def _planned(graph: QuantGraph, point: StripPoint, settings: Settings, mode: str, most: float, work: int) -> _Planned:
    """The network in the strips of `point`, its problem and its plan; `work`: multiply-accumulates of the network."""
    narrow = with_strips(graph, point.cuts)
    problem = memory_problem(narrow)
    plan = plan_strips(problem, settings, mode)
    extra = {"MaxExtraMacs": most, "ExtraMacs": round(100 * point.extra / work, 2)}
    return narrow, problem, with_columns(narrow, replace(plan, options={**plan.options, **extra}))


def planned_strips(graph: QuantGraph, params: Params, settings: Settings, plan: MemoryPlan | None) -> _Planned | None:
    """The network with segments of layers in strips, its problem and its plan, by MaxExtraMacs; None where `plan` needs no more memory.
    With a budget, those that do the least work twice and fit; None where `plan` fits, or none."""
    budget, most = params["MemoryBudget"], params["MaxExtraMacs"]
    if not most or not runs_by_lines(params.as_dict()) or (plan is not None and budget > 0 and plan.arena_bytes <= budget):
        return None
    settings = replace(settings, clock="op")
    mode = "Small" if params["MemoryMode"] == "Small" else "Minimum"
    search = StripSearch(memory_problem(graph), settings, by_columns(graph))
    points = [point for point in search.curve(int(search.work * most / 100)) if point.cuts]
    tried: list[tuple[StripPoint, _Planned]] = []
    for point in points if budget > 0 else points[-_TRIED:]:
        tried.append((point, _planned(graph, point, settings, mode, most, search.work)))
        if budget > 0 and tried[-1][1][2].arena_bytes <= budget:
            return tried[-1][1]
    if not tried:
        return None
    if mode == "Minimum":
        nearest, _ = min(tried, key=_arena)
        others = search.other_widths(nearest)
        tried += [(point, _planned(graph, point, settings, mode, most, search.work)) for point in others]
    best = min(tried, key=_arena)
    fits = _arena(best) <= budget if budget > 0 else plan is None or _arena(best) < plan.arena_bytes
    return best[1] if fits else None


def _arena(tried: tuple[StripPoint, _Planned]) -> int:
    return tried[1][2].arena_bytes
