"""The entrance to the planners, and the planners by name: what `MemoryManagerStrategy` may say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, Protocol

from n2d2py.memory.access import LineTable
from n2d2py.memory.generate import Generation
from n2d2py.memory.manager import Space
from n2d2py.memory.memories import MemoriesPlanner
from n2d2py.memory.modes import ModePlanner
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.reorder import ReorderPlanner
from n2d2py.memory.search import OptimalPlanner
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import PooledPlanner, StreamPlanner
from n2d2py.registry import Registry


def _largest_hole(space: Space) -> int:
    """Over the births in the space: the most bytes that the planes born together leave unused."""
    born: dict[int, int] = {}
    for plane in space.planes:
        born[plane.allocated] = born.get(plane.allocated, 0) + plane.form.bytes
    return max(max(0, space.size - used) for used in born.values())


ORDERS: dict[str, Callable[[Space], tuple[int, ...]] | None] = {
    "None": None,
    "OptimizeMaxLifetimeMinSizeFirst": lambda space: (-space.lifetime, space.size),
    "OptimizeMaxLifetimeMaxSizeFirst": lambda space: (-space.lifetime, -space.size),
    "OptimizeMaxHoleMaxLifetimeFirst": lambda space: (-_largest_hole(space), -space.lifetime),
}
"""N2D2's placements: its online first fit (None), and its first fit over spaces sorted by a key."""


def place_online(spaces: list[Space], unit: int = 1) -> None:
    """Places each space, in the order of allocation, in the lowest gap among the spaces live at
    that clock, at a multiple of `unit`: the largest element size, so that every access is aligned.
    """
    for index, space in enumerate(spaces):
        busy = [(other.offset, other.offset + other.size) for other in spaces[:index] if other.released >= space.allocated]
        space.offset = _lowest_gap(busy, space.size, unit)


def place_sorted(spaces: list[Space], order: Callable[[Space], tuple[int, ...]], unit: int = 1) -> None:
    """Places the spaces in `order` (stable), each in the lowest gap over its whole lifetime.

    A placed space is busy where it has live planes: the parts that its planes do not use are free.
    """
    placed: list[Space] = []
    for space in sorted(spaces, key=order):
        busy = [
            (other.offset + begin, other.offset + end)
            for other in placed
            if other.allocated <= space.released and space.allocated <= other.released
            for plane in other.planes
            if plane.allocated <= space.released and space.allocated <= plane.released
            for begin, end in plane.intervals
        ]
        space.offset = _lowest_gap(busy, space.size, unit)
        placed.append(space)


def _lowest_gap(busy: list[tuple[int, int]], size: int, unit: int) -> int:
    """The lowest multiple of `unit` from which `size` bytes are free."""
    at = 0
    for begin, end in sorted(busy):
        if begin >= at + size:
            break
        at = max(at, -(-end // unit) * unit)
    return at


class Planner(Protocol):
    """Makes a plan from a valid problem; `name` is the spelling in `MemoryManagerStrategy`."""

    name: str

    def plan(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        """A plan that `check_plan` accepts."""
        ...


class N2D2Planner:
    """N2D2's manager with one of its four placements (`ORDERS`)."""

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


PLANNERS: Registry[Planner] = Registry("the memory strategy")
"""The planners by what MemoryManagerStrategy may say."""
for _planner in (
    *map(N2D2Planner, ORDERS),
    AutoPlanner(),
    PooledPlanner(),
    OptimalPlanner(),
    ReorderPlanner(),
    StreamPlanner(),
):
    PLANNERS.add(_planner.name, _planner)


def plan_memory(problem: MemoryProblem, settings: Settings = Settings(), **changes: Any) -> MemoryPlan:
    """The place of every tensor in the arena: the entrance to all planners. `changes`: fields that replace those of the settings.

    Raises:
        N2D2Error: E601 for an unknown strategy, E602 for a graph that cannot be planned, E603 for a setting out of range, E606 for a
            strategy without its solver, E607 for a budget or memories that cannot be met, E608 for settings that exclude each other.
    """
    settings = replace(settings, **changes)
    settings.check()
    problem.validate()
    return planner_of(settings).plan(problem, settings)


def planner_of(settings: Settings) -> Planner:
    """The planner by the memories, by the strategy, or by mode and budget."""
    if settings.memories:
        return MemoriesPlanner()
    return PLANNERS[settings.strategy] if settings.by_strategy else ModePlanner()
