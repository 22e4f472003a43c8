"""The planners by name: what `MemoryManagerStrategy` may say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Protocol

from n2d2py.errors import InternalError, N2D2Error, nearest
from n2d2py.memory.access import LineTable
from n2d2py.memory.generate import Generation
from n2d2py.memory.optimal import OptimalPlanner
from n2d2py.memory.placement import ORDERS, place_online, place_sorted
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.reorder import ReorderPlanner
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import PooledPlanner, StreamPlanner

DEFAULT_STRATEGY = "OptimizeOverlap"


class Planner(Protocol):
    """Makes a plan from a valid problem; `name` is the spelling in `MemoryManagerStrategy`."""

    name: str

    def plan(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        """A plan that `check_plan` accepts."""
        ...


class N2D2Planner:
    """N2D2's manager with one of its four placements (`placement.ORDERS`)."""

    def __init__(self, name: str):
        self.name = name

    def plan(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        """Generates the spaces, places them in the order of the strategy.

        An operator with a table shares a space with its input only where that saves memory: other readers of the map do not know it.
        """
        plan = self._placed(problem, settings)
        windows = [op.name for op in problem.ops if isinstance(op.access, LineTable)]
        if any(plan.overlaps(problem, name) for name in windows):
            apart = self._placed(problem.read_whole(windows), settings)
            plan = apart if apart.arena_bytes <= plan.arena_bytes else plan
        return plan

    def _placed(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        generation = Generation(problem, settings)
        order = ORDERS[self.name]
        if order is None:
            place_online(generation.spaces, generation.unit)
        else:
            place_sorted(generation.spaces, order, generation.unit)
        return generation.plan(self.name)


class AutoPlanner:
    """The smallest of N2D2's plans: four placements, with and without wrapping and concatenation in
    place, both clocks.
    """

    name = "OptimizeAuto"

    def plan(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        """The first of the smallest; what the settings forbid is not tried."""
        plans = (
            N2D2Planner(name).plan(problem, replace(settings, optimize_buffer=wrap, no_branch_concat=concat, clock=clock))
            for wrap, concat, clock, name in product(
                (settings.optimize_buffer, False), (settings.no_branch_concat, False), ("level", "op"), ORDERS
            )
        )
        best = min(plans, key=lambda plan: plan.arena_bytes)
        return replace(best, strategy=self.name, options={**best.options, "Plan": best.strategy})


_planners: dict[str, Planner] = {}


def register(new: Planner) -> None:
    """Makes a planner known under its name; raises InternalError when the name is taken."""
    if new.name in _planners:
        raise InternalError(f"the memory strategy {new.name} is registered twice")
    _planners[new.name] = new


def strategies() -> tuple[str, ...]:
    """The names of all planners, in the order of registration."""
    return tuple(_planners)


def planner(name: str) -> Planner:
    """The planner of that name; raises E601 with the list of the known ones."""
    if name not in _planners:
        close = nearest(name, _planners)
        raise N2D2Error(
            "E601",
            f"MemoryManagerStrategy={name} is unknown",
            where="MemoryManagerStrategy",
            remedy=(f"did you mean {close}? " if close else "") + f"known: {', '.join(_planners)}",
        )
    return _planners[name]


for _planner in (
    *map(N2D2Planner, ORDERS),
    AutoPlanner(),
    PooledPlanner(),
    OptimalPlanner(),
    ReorderPlanner(),
    StreamPlanner(),
):
    register(_planner)
