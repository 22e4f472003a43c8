"""The planners by the value of `MemoryManagerStrategy`, and their common entrance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.access import Concatenated, LineTable, Overlay
from n2d2py.memory.buffers import Buffer, Buffers, concats_in_place, dense
from n2d2py.memory.manager import Manager, PlaneLayout, Space, SpacePlane
from n2d2py.memory.memories import plan_memories
from n2d2py.memory.modes import plan_mode
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.reorder import plan_reordered
from n2d2py.memory.search import plan_optimal
from n2d2py.memory.settings import STRATEGIES, Settings
from n2d2py.memory.stream import plan_pooled, plan_streamed
from n2d2py.registry import Registry


class Generation:
    """N2D2's spaces of a problem, level by level, shared and wrapped where safe. `spaces` must be placed before `plan()`."""

    def __init__(self, problem: MemoryProblem, settings: Settings):
        self.problem = problem
        self.settings = settings
        self.unit = max(t.element_bytes for t in problem.tensors.values())
        self._manager = Manager()
        self._scratch: dict[str, SpacePlane] = {}
        self._planes: dict[Buffer, SpacePlane] = {}
        self.buffers = Buffers(problem, settings, concats_in_place(problem) if settings.no_branch_concat else ())
        self._generate()

    @property
    def spaces(self) -> list[Space]:
        """The spaces in the order of their allocation."""
        return self._manager.spaces

    def _generate(self) -> None:
        buffers, allocate = self.buffers, self._manager.allocate
        for name in self.problem.inputs:
            buffer = buffers.of[name]
            if not buffer.external:
                self._planes[buffer] = allocate(buffers.form(buffer), -1, buffer.death)
        for op in buffers.order():
            clock, buffer = buffers.clock[op.name], buffers.of[op.output]
            if op.name in buffers.views:
                continue
            if buffer not in self._planes and not buffer.external:
                self._planes[buffer] = self._shared(op, buffer) or allocate(buffers.form(buffer), buffer.birth, buffer.death)
            if op.scratch_bytes:
                form = PlaneLayout(op.scratch_bytes, op.scratch_bytes, 1, 1, self.unit)
                self._scratch[op.name] = allocate(form, clock, clock)

    def _shared(self, op: OpSpec, buffer: Buffer) -> SpacePlane | None:
        """Return the output's plane in the space of the largest input that dies at `op`, if that is safe."""
        concatenates = isinstance(op.access, Concatenated) or (len(buffer.parts) > 1 and buffer.root.name != op.output)
        if not self.settings.optimize_buffer or concatenates:
            return None
        candidates = [name for name in op.operands if self.buffers.belongs_to(name, op)]
        if not candidates:
            return None
        name = max(candidates, key=lambda n: self._planes[self.buffers.of[n]].form.bytes)
        tensor, output = self.problem.tensors[name], self.problem.tensors[op.output]
        overlay = op.access.over(tensor, output)
        source, form = self._plane_of(name), self.buffers.form(buffer)
        windowed = overlay is Overlay.WINDOW
        dead = op.dead(tensor) if windowed else (lambda y: 0)
        needed = None
        if windowed:
            needed = _ring_bytes(op, source.form, form, dead)
        elif overlay is Overlay.POINTWISE:
            needed = max(source.form.bytes, form.bytes)
        return self._manager.reallocate(
            op.name, source, form, (buffer.birth, buffer.death), overlay=overlay, dead=dead, needed=needed
        )

    def _plane_of(self, name: str) -> SpacePlane:
        """Return the plane of a tensor in its buffer's space; reshapes have their own layout."""
        buffer = self.buffers.of[name]
        plane = self._planes[buffer]
        if name not in buffer.reshaped and name not in buffer.columns:
            return plane
        form = self.buffers.geometry(name)
        return SpacePlane(plane.space, form, plane.start, plane.allocated, plane.released)

    def plan(self, strategy: str) -> MemoryPlan:
        """Return the plan, once every space has its offset."""
        clock, views = self.buffers.clock, self.buffers.views
        order = self.buffers.order()
        schedule = tuple(ScheduleStep(op.name, clock[op.name]) for op in order)
        end = max([len(schedule)] + [step.clock + 1 for step in schedule])
        writers = {op.output: op.name for op in order if op.name not in views}
        planes = {
            name: self._final_plane(name, writers.get(name), end) for name in self.problem.tensors if name in self.buffers.of
        }
        used = [plane for space in self.spaces for plane in space.planes]
        arena = max((plane.space.offset + top for plane in used for _, top in plane.intervals), default=0)
        scratch = {name: Scratch(plane.space.offset, plane.form.size) for name, plane in self._scratch.items()}
        ops = {op.name: OpPlan(op.name in views, scratch=scratch.get(op.name), aliases=op.aliased) for op in order}
        return MemoryPlan(strategy, arena, planes, schedule, ops, self.settings.by_export_name())

    def _final_plane(self, name: str, writer: str | None, end: int) -> Plane:
        """Return the plane of a tensor at its arena address; network outputs are read after the last operator."""
        buffer, tensor = self.buffers.of[name], self.problem.tensors[name]
        alloc = buffer.birth if writer is None else self.buffers.clock[writer]
        release = end if buffer.is_output else buffer.death
        if buffer.external:
            return Plane.of(dense(tensor), tensor, 0, (alloc, release), external=True)
        plane = self._plane_of(name)
        begin, limit = plane.space.offset + self.buffers.offset(name), plane.limit
        wrap = {"limit": limit, "wrap_offset": begin} if 0 < limit < plane.form.bytes else {}
        return Plane.of(plane.form, tensor, begin + (plane.start if limit else 0), (alloc, release), **wrap)


def _ring_bytes(op: OpSpec, source: PlaneLayout, output: PlaneLayout, dead: Callable[[int], int]) -> int:
    """Return the size of a space in which the output of a window operator may follow its input and wrap.

    The larger of the exact need, max(|Y|, |X| + max over y of ((y+1) output rows - dead(y) input rows)), and N2D2's rule,
    max(|X|, |Y|) + (1 + floor(top pad / stride)) output rows, so that arenas compare with N2D2's.
    """
    needed = source.bytes + max((y + 1) * output.line - dead(y) * source.line for y in range(output.count))
    rule = max(source.bytes, output.bytes) + (1 + op.access.lead) * output.line
    return max(needed, rule)


def _largest_hole(space: Space) -> int:
    """Return the most bytes that planes of one birth leave unused in a space."""
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
"""N2D2's placements: its online first fit (None), and first fit over spaces sorted by a key."""


def place_online(spaces: list[Space], unit: int = 1) -> None:
    """Place each space, in the order of allocation, in the lowest gap at that clock, at a multiple of `unit`, the largest
    element size."""
    for index, space in enumerate(spaces):
        busy = [(other.offset, other.offset + other.size) for other in spaces[:index] if other.released >= space.allocated]
        space.offset = _lowest_gap(busy, space.size, unit)


def place_sorted(spaces: list[Space], order: Callable[[Space], tuple[int, ...]], unit: int = 1) -> None:
    """Place the spaces in `order` (stable), each in the lowest gap over its whole lifetime.

    A placed space is busy only where it has live planes.
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
    """Return the lowest multiple of `unit` from which `size` bytes are free."""
    offset = 0
    for begin, end in sorted(busy):
        if begin >= offset + size:
            break
        offset = max(offset, round_up(end, unit))
    return offset


Planner = Callable[[MemoryProblem, Settings], MemoryPlan]
"""Function that returns a plan, which `check_plan` accepts, for a valid problem."""


def plan_n2d2(name: str, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of N2D2's manager with one of its four placements (`ORDERS`).

    An operator with a table shares a space with its input only if that saves memory, since other readers of the map do not
    support it.
    """
    plan = _placed(name, problem, settings)
    windows = [op.name for op in problem.ops if isinstance(op.access, LineTable)]
    if any(plan.overlaps(problem, each) for each in windows):
        separate = _placed(name, problem.read_whole(windows), settings)
        plan = separate if separate.arena_bytes <= plan.arena_bytes else plan
    return plan


def _placed(name: str, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    generation, order = Generation(problem, settings), ORDERS[name]
    if order is None:
        place_online(generation.spaces, generation.unit)
    else:
        place_sorted(generation.spaces, order, generation.unit)
    return generation.plan(name)


def plan_auto(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the first of the smallest of N2D2's plans that the settings allow: four placements, with and without wrapping and
    concatenation in place, both clocks."""
    plans = (
        plan_n2d2(name, problem, replace(settings, optimize_buffer=wrap, no_branch_concat=concat, clock=clock))
        for wrap, concat, clock, name in product(
            (settings.optimize_buffer, False), (settings.no_branch_concat, False), ("level", "op"), ORDERS
        )
    )
    best = min(plans, key=lambda plan: plan.arena_bytes)
    return replace(best, strategy="OptimizeAuto", options={**best.options, "Plan": best.strategy})


PLANNERS: Registry[Planner] = Registry("the memory strategy")
"""The planners by value of MemoryManagerStrategy."""
_PLANNERS = (plan_auto, plan_pooled, plan_optimal, plan_reordered, plan_streamed)
for _name, _planner in zip(STRATEGIES, (*(partial(plan_n2d2, name) for name in ORDERS), *_PLANNERS), strict=True):
    PLANNERS.add(_name, _planner)


def plan_memory(problem: MemoryProblem, settings: Settings = Settings(), **changes: Any) -> MemoryPlan:
    """Return the address of every tensor in the arena: the entrance to all planners. `changes` replace fields of the settings.

    Raises:
        N2D2Error: E602 for a graph that cannot be planned, E606 for a strategy without its solver, E607 for a budget or
            memories that cannot be met, E608 for settings that exclude each other.
    """
    settings = replace(settings, **changes)
    settings.check()
    problem.validate()
    if settings.tensor_memories:
        return plan_memories(problem, settings)
    return (PLANNERS[settings.strategy] if settings.by_strategy else plan_mode)(problem, settings)
