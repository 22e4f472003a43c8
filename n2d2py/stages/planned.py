"""A planned network: its typed graph, the planner's problem, the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from n2d2py.graph import QuantGraph
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem


@dataclass(frozen=True)
class PlannedNetwork:
    """The planned network, the planner's problem and its plan."""

    graph: QuantGraph
    problem: MemoryProblem
    plan: MemoryPlan


ScratchPlanner = Callable[[PlannedNetwork], tuple[PlannedNetwork, bool]]
"""The network with scratch for its kernels placed in the budget, and whether every layer that needs some has some."""
