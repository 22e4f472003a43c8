"""N2D2's memory manager: its spaces and planes, with a correct wrap margin, and its placements.

A space is a contiguous block with a lifetime; only spaces are placed. Planes follow each other in its bytes: a later tensor
starts where the earlier one ends, and wraps to the start of the space between two rows. A space grows while planes are added,
so the wrap depends on its final size. Addresses are relative to the space; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.access import Concatenated, LineTable, Overlay, Window
from n2d2py.memory.buffers import Buffer, Buffers, concats_in_place, dense
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, PlaneLayout, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem, OpSpec, first_needed
from n2d2py.memory.settings import Settings


@dataclass(eq=False)
class Space:
    """A block of `size` bytes, busy at the clocks allocated..released, both included. `offset` is its address in the arena,
    decided last."""

    size: int
    allocated: int
    released: int
    planes: list[SpacePlane] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    offset: int = 0

    @property
    def lifetime(self) -> int:
        """Clocks between allocation and release."""
        return self.released - self.allocated


@dataclass(eq=False)
class SpacePlane:
    """A tensor in a space from byte `start`, live at the clocks allocated..released, both included."""

    space: Space
    form: PlaneLayout
    start: int
    allocated: int
    released: int

    @property
    def limit(self) -> int:
        """Contiguous bytes before the wrap: all, or whole rows (0: it starts at the first byte of the space)."""
        full, room = self.form.bytes, max(0, self.space.size - self.start)
        if room >= full:
            return full
        return 0 if self.form.whole or self.form.count == 1 else room // self.form.line * self.form.line

    @property
    def end(self) -> int:
        """One past the last byte: in the wrapped part when there is one."""
        limit = self.limit
        return self.start + limit if limit == self.form.bytes else self.form.bytes - limit

    @property
    def intervals(self) -> list[tuple[int, int]]:
        """The occupied byte ranges [begin, end): the contiguous part, the wrapped part."""
        limit = self.limit
        parts = [(self.start, self.start + limit), (0, self.form.bytes - limit)]
        return [part for part in parts if part[0] < part[1]]

    @property
    def sound(self) -> bool:
        """True if its elements are aligned, and it neither overlaps itself nor exceeds the space."""
        limit, full = self.limit, self.form.bytes
        if limit and self.start % self.form.element:
            return False
        return full - limit <= (self.start if limit else self.space.size)

    @property
    def lines(self) -> np.ndarray:
        """The address of each row, int64."""
        offsets = np.arange(self.form.count) * self.form.line
        return np.where(offsets < self.limit, self.start + offsets, offsets - self.limit)


@dataclass(frozen=True)
class Share:
    """An operator whose output lies in the space of an input that dies at it. `dead[y]`: number of leading input rows that are
    dead when output row y is stored (windows only)."""

    op: str
    source: SpacePlane
    output: SpacePlane
    overlay: Overlay
    dead: Sequence[int] = ()

    @property
    def safe(self) -> bool:
        """True if no store of the output hits an input byte that is still to be read."""
        source, output = self.source.form, self.output.form
        if self.overlay is Overlay.WINDOW:
            return not (self._meeting() & (np.arange(source.count) >= np.array(self.dead)[:, None])).any()
        if self.overlay is not Overlay.POINTWISE:
            return not self._meeting().any()
        # a row meets no later one; within rows, stores end before the next element is read: corners decide, as addresses are linear
        meeting, channels = self._meeting(), source.size // source.element
        ahead = (self.output.lines - self.source.lines)[meeting.diagonal()].max(initial=-output.bytes - source.bytes)
        return not np.triu(meeting, 1).any() and all(
            ahead + x * (output.stride - source.stride) + c * (output.element - source.element) <= 0
            for x in (0, source.length - 1)
            for c in (1, channels)
        )

    def _meeting(self) -> np.ndarray:
        """Return True for each output row and input row that have a byte in common."""
        stored, read = self.output.lines[:, None], self.source.lines
        return (stored < read + self.source.form.line) & (read < stored + self.output.form.line)


class Generation:
    """N2D2's spaces of a problem, in the order of their allocation, shared and wrapped where safe. `spaces` must be placed
    before `plan()`."""

    def __init__(self, problem: MemoryProblem, settings: Settings):
        self.problem, self.settings = problem, settings
        self.unit = max(t.element_bytes for t in problem.tensors.values())
        self.spaces: list[Space] = []
        self._scratch: dict[str, SpacePlane] = {}
        self._planes: dict[Buffer, SpacePlane] = {}
        self.buffers = Buffers(problem, settings, concats_in_place(problem) if settings.no_branch_concat else ())
        self._generate()

    def _generate(self) -> None:
        buffers = self.buffers
        for buffer in (buffers.of[name] for name in self.problem.inputs):
            if not buffer.external:
                self._planes[buffer] = self._allocate(buffers.form(buffer), -1, buffer.death)
        for op in buffers.order():
            clock, buffer = buffers.clock[op.name], buffers.of[op.output]
            if op.name in buffers.views:
                continue
            if buffer not in self._planes and not buffer.external:
                new = self._shared(op, buffer) or self._allocate(buffers.form(buffer), buffer.birth, buffer.death)
                self._planes[buffer] = new
            if op.scratch_bytes:
                form = PlaneLayout(op.scratch_bytes, op.scratch_bytes, 1, 1, self.unit)
                self._scratch[op.name] = self._allocate(form, clock, clock)

    def _allocate(self, form: PlaneLayout, allocated: int, released: int) -> SpacePlane:
        """Return a plane at the start of a new space."""
        space = Space(form.bytes, allocated, released)
        space.planes.append(SpacePlane(space, form, 0, allocated, released))
        self.spaces.append(space)
        return space.planes[0]

    def _shared(self, op: OpSpec, buffer: Buffer) -> SpacePlane | None:
        """Return the output's plane in the space of the largest input that dies at `op`, if that is safe. It starts where the
        input ends. N2D2's size of the space is tried first. If it would overwrite a live byte, up to three rows are added."""
        concatenates = isinstance(op.access, Concatenated) or (len(buffer.parts) > 1 and buffer.root.name != op.output)
        candidates = [name for name in op.operands if self.buffers.belongs_to(name, op)]
        if not self.settings.optimize_buffer or concatenates or not candidates:
            return None
        name = max(candidates, key=lambda n: self._planes[self.buffers.of[n]].form.bytes)
        tensor, source, form = self.problem.tensors[name], self._plane_of(name), self.buffers.form(buffer)
        overlay, dead, sizes = op.access.over(tensor, self.problem.tensors[op.output]), [], [source.space.size]
        if overlay is Overlay.WINDOW:
            dead = np.minimum(first_needed(op.reads(tensor, form.count)), tensor.height).tolist()
            sizes = _sizes(source, form, _ring_bytes(op, source.form, form, dead))
        elif overlay is Overlay.POINTWISE:
            sizes = _sizes(source, form, max(source.form.bytes, form.bytes))
        for size in sizes:
            plane = SpacePlane(source.space, form, 0, buffer.birth, buffer.death)
            if _grow(Share(op.name, source, plane, overlay, dead), size):
                return plane
        return None

    def _plane_of(self, name: str) -> SpacePlane:
        """Return the plane of a tensor in its buffer's space; reshapes have their own layout."""
        buffer = self.buffers.of[name]
        plane = self._planes[buffer]
        if name not in buffer.reshaped and name not in buffer.columns:
            return plane
        return replace(plane, form=self.buffers.geometry(name))

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


def _sizes(source: SpacePlane, form: PlaneLayout, needed: int) -> list[int]:
    """Return the sizes to try for the space of `source`, in which a plane of `form` follows it, from `needed` bytes on. Neither
    loses part of a row at the wrap."""

    def rounded(size: int) -> int:
        size = source.end - (source.end - size) // form.unit * form.unit
        return source.start - (source.start - size) // source.form.unit * source.form.unit

    first = max(source.space.size, rounded(needed))
    step = form.unit + source.form.unit
    return [first] + [rounded(first + 1 + more * step) for more in range(3)]


def _grow(share: Share, size: int) -> bool:
    """True if the output of `share` is added to the space of its input, grown to `size`; the space is unchanged if that is not
    safe."""
    space, before, plane = share.source.space, share.source.space.size, share.output
    space.size = size
    plane.start = round_up(share.source.end, plane.form.element)
    others_hold = size == before or all(each.safe for each in space.shares)  # planes stay sound in a larger space
    if plane.sound and share.safe and others_hold:
        space.planes.append(plane)
        space.shares.append(share)
        space.released = max(space.released, plane.released)
        return True
    space.size = before
    return False


def _ring_bytes(op: OpSpec, source: PlaneLayout, output: PlaneLayout, dead: Sequence[int]) -> int:
    """Return the size of a space in which the output of a window operator may follow its input and wrap. The larger of the
    exact need, max(|Y|, |X| + max over y of ((y+1) output rows - dead(y) input rows)), and N2D2's rule, max(|X|, |Y|) + (1 +
    floor(top pad / stride)) output rows, so that arenas compare with N2D2's."""
    needed = source.bytes + max(y * output.line - rows * source.line for y, rows in enumerate(dead, 1))
    lead = op.access.pads[0] // op.access.stride[0] if isinstance(op.access, Window) else 0
    return max(needed, max(source.bytes, output.bytes) + (1 + lead) * output.line)


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
    """Place the spaces in `order` (stable), each in the lowest gap over its whole lifetime. A placed space is busy only where
    it has live planes."""
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


def plan_n2d2(name: str, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of N2D2's manager with one of its four placements (`ORDERS`). An operator with a table shares a space
    with its input only if that saves memory, since other readers of the map do not support it."""
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
