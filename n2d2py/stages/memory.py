"""Stage memory: every tensor gets its place, and an independent check proves the plan."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory import (DEFAULT_STRATEGY, MODES, MemoryPlan, MemoryProblem, Settings, StreamPlanner, check_plan, plan_memory,
                           plan_mode, refuse_violations)
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.sums import residual_sums, with_sums

__all__ = ["Memory", "plan_stage", "plan_by_params", "plan_with_sums", "settings_by_params"]

_WITH_SUMS = ("OptimizeOverlap", "OptimizeReorder", "OptimizeOptimal")
"""Strategies that can lay a sum over its operand without a layer of its own."""
_WHOLE = MODES[:2]
"""The modes in which no layer runs line by line."""


@dataclass(frozen=True)
class Memory:
    """The planner's problem and its proved plan."""

    problem: MemoryProblem
    plan: MemoryPlan


def plan_stage(graph: QuantGraph, params: Params, adds_residuals: bool = False) -> Memory:
    """Plans the arena of a typed network by the export parameters; `adds_residuals`: the export's convolutions can do sums.

    Raises:
        N2D2Error: E60x; a plan that would overwrite a live byte is refused by the checker.
    """
    problem = memory_problem(graph)
    sums = residual_sums(graph, problem) if adds_residuals and params["FuseResidualAdd"] else []
    if sums:
        problem, plan = _plan_by(problem, with_sums(problem, sums), params)
    else:
        plan = _plan(problem, params)
    refuse_violations(check_plan(problem, plan))
    tensors = sum(t.bytes for t in problem.tensors.values())
    log.notice("memory: %s bytes for %s bytes of tensors (%s%s), checked", f"{plan.arena_bytes:,}", f"{tensors:,}",
               plan.options.get("MemoryMode", plan.strategy), _bound_text(plan))
    return Memory(problem, plan)


def _plan_by(problem: MemoryProblem, fused: MemoryProblem, params: Params) -> tuple[MemoryProblem, MemoryPlan]:
    """The problem and the plan with the sums of `fused` where these do not need more memory, else those without.

    Raises:
        N2D2Error: as `_plan`.
    """
    strategy, mode, budget = params["MemoryManagerStrategy"], params["MemoryMode"], params["MemoryBudget"]
    if not params["OptimizeBufferMemory"] or params["StreamInput"] or strategy not in _WITH_SUMS:
        return problem, _plan(problem, params)
    if mode == "auto" and budget < 0:
        return plan_with_sums(problem, fused, lambda each: plan_by_params(each, strategy, params))
    if budget <= 0:
        return plan_with_sums(problem, fused, lambda each: _plan(each, params, whole=each is fused))
    try:
        other = _plan(fused, params, whole=True)
    except N2D2Error as error:
        if error.code != "E607":
            raise
        return problem, _plan(problem, params)
    try:
        plan = _plan(problem, params)
    except N2D2Error as error:
        if error.code != "E607":
            raise
        return fused, other
    slower = [MODES.index(each.options["MemoryMode"]) for each in (plan, other)]
    return (problem, plan) if slower[0] < slower[1] else (fused, other)


def plan_with_sums(problem: MemoryProblem, fused: MemoryProblem,
                   plan: Callable[[MemoryProblem], MemoryPlan]) -> tuple[MemoryProblem, MemoryPlan]:
    """The problem with sums in convolutions, and its plan, where that needs no more memory than the one without."""
    found, other = plan(problem), plan(fused)
    return (fused, other) if other.arena_bytes <= found.arena_bytes else (problem, found)


def _plan(problem: MemoryProblem, params: Params, whole: bool = False) -> MemoryPlan:
    """By MemoryMode and MemoryBudget where they are given, else by the strategy; `whole`: no layer runs line by line.

    Raises:
        N2D2Error: E608 where a strategy and a mode are given, E607 for a budget that cannot be met.
    """
    strategy, mode = params["MemoryManagerStrategy"], params["MemoryMode"]
    budget = params["MemoryBudget"] if params["MemoryBudget"] >= 0 else None
    by_rows = params["StreamInput"]
    if mode == "auto" and budget is None and (strategy != DEFAULT_STRATEGY or not by_rows):
        if by_rows and strategy != "OptimizeStream":
            raise N2D2Error("E608", f"StreamInput=1 does not go with MemoryManagerStrategy={strategy}",
                            where="export parameters", remedy="use OptimizeStream, or leave the strategy to MemoryMode")
        return StreamPlanner(True).plan(problem, settings_by_params(params)) if by_rows else plan_by_params(
            problem, strategy, params)
    if strategy != DEFAULT_STRATEGY:
        what = f"MemoryMode={mode}" if mode != "auto" else f"MemoryBudget={budget}"
        raise N2D2Error("E608", f"{what} chooses the strategy, but MemoryManagerStrategy={strategy} is given too",
                        where="export parameters", remedy="remove one of them")
    if mode == "auto":
        mode = "Small" if budget is None else "Minimum"
    if budget == 0:
        mode, budget = "Minimum", None
    settings = settings_by_params(params)
    if whole and mode not in _WHOLE:
        plan = plan_mode(problem, settings, _WHOLE[-1], budget=budget)
        return plan if budget is not None else replace(plan, options={**plan.options, "MemoryMode": mode})
    return plan_mode(problem, settings, mode, budget=budget, stream_input=by_rows)


def plan_by_params(problem: MemoryProblem, strategy: str, params: Params) -> MemoryPlan:
    """A plan by one strategy under the other export parameters of the memory."""
    return plan_memory(problem, strategy=strategy, include_input=params["IncludeInputInBuffer"],
                       optimize_buffer=params["OptimizeBufferMemory"],
                       no_branch_concat=params["OptimizeNoBranchConcat"], alignment=params["MemoryAlignment"],
                       buffer_alignment=params["BufferAlignment"], include_output=_include_output(params))


def settings_by_params(params: Params) -> Settings:
    """The settings of a planner that no export can ask for by name."""
    return Settings(params["IncludeInputInBuffer"], params["OptimizeBufferMemory"], params["OptimizeNoBranchConcat"],
                    params["MemoryAlignment"], buffer_alignment=params["BufferAlignment"],
                    include_output=_include_output(params))


def _include_output(params: Params) -> bool | None:
    return {"auto": None, "0": False, "1": True}[params["IncludeOutputInBuffer"]]


def _bound_text(plan: MemoryPlan) -> str:
    """What is known about smaller plans of the same kind."""
    if plan.bound is None:
        return ""
    gap = plan.arena_bytes - plan.bound
    return ", the smallest of its kind" if gap <= 0 else f", at least {plan.bound:,}, gap {gap / plan.bound:.1%}"
