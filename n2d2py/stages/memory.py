"""Stage memory: every tensor gets its place, and an independent check proves the plan."""
from __future__ import annotations

from dataclasses import dataclass

from n2d2py import log
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory import MemoryPlan, MemoryProblem, Settings, check_plan, plan_memory, refuse_violations
from n2d2py.memory.from_graph import memory_problem

__all__ = ["Memory", "plan_stage", "plan_by_params", "settings_by_params"]


@dataclass(frozen=True)
class Memory:
    """The planner's problem and its proved plan."""

    problem: MemoryProblem
    plan: MemoryPlan


def plan_stage(graph: QuantGraph, params: Params) -> Memory:
    """Plans the arena of a typed network by the export parameters.

    Raises:
        N2D2Error: E60x; a plan that would overwrite a live byte is refused by the checker.
    """
    problem = memory_problem(graph)
    plan = plan_by_params(problem, params["MemoryManagerStrategy"], params)
    refuse_violations(check_plan(problem, plan))
    tensors = sum(t.bytes for t in problem.tensors.values())
    log.notice("memory: %s bytes for %s bytes of tensors (%s%s), checked", f"{plan.arena_bytes:,}", f"{tensors:,}",
               plan.strategy, _bound_text(plan))
    return Memory(problem, plan)


def plan_by_params(problem: MemoryProblem, strategy: str, params: Params) -> MemoryPlan:
    """A plan by one strategy under the other export parameters of the memory."""
    return plan_memory(problem, strategy=strategy, include_input=params["IncludeInputInBuffer"],
                       optimize_buffer=params["OptimizeBufferMemory"],
                       no_branch_concat=params["OptimizeNoBranchConcat"], alignment=params["MemoryAlignment"],
                       buffer_alignment=params["BufferAlignment"])


def settings_by_params(params: Params) -> Settings:
    """The settings of a planner that no export can ask for by name."""
    return Settings(params["IncludeInputInBuffer"], params["OptimizeBufferMemory"], params["OptimizeNoBranchConcat"],
                    params["MemoryAlignment"], buffer_alignment=params["BufferAlignment"])


def _bound_text(plan: MemoryPlan) -> str:
    """What is known about smaller plans of the same kind."""
    if plan.bound is None:
        return ""
    gap = plan.arena_bytes - plan.bound
    return ", the smallest of its kind" if gap <= 0 else f", at least {plan.bound:,}, gap {gap / plan.bound:.1%}"
