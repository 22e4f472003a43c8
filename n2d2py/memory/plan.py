"""Result of a memory planner: address of each tensor, execution of each operator, order of the operators.

Inputs are written at clock -1; the operators run at clocks >= 0 in the order of `schedule`. Operators of one clock are
independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from n2d2py.memory.access import TensorSpec
from n2d2py.memory.problem import MemoryProblem


@dataclass(frozen=True)
class Memory:
    """A memory of the target: relative `cost` of a byte read or written; `start`: its address in the joint space."""

    ALIGNMENT: ClassVar[int] = 64
    """Alignment of the start of a memory, in bytes."""

    name: str
    bytes: int
    cost: float
    start: int = 0
    kind: str = ""
    reserved: int = 0

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.start + self.bytes


def number_at(memories: Sequence[Memory], address: int) -> int:
    """Return the index of the memory that holds an address, the last one for larger addresses; 0 without memories."""
    return next((number for number, memory in enumerate(memories) if address < memory.end), max(len(memories) - 1, 0))


@dataclass(frozen=True)
class PlaneLayout:
    """Layout of a tensor: `count` rows of `length` pixels of `size` bytes every `stride` bytes. `element` is the alignment of
    its first byte. `whole`: it may not wrap. `pitch`: bytes from row to row if these are part of longer rows, else 0."""

    size: int
    stride: int
    length: int
    count: int
    element: int = 1
    whole: bool = False
    pitch: int = 0

    @property
    def line(self) -> int:
        """Bytes from row to row."""
        return self.pitch or self.stride * self.length

    @property
    def bytes(self) -> int:
        """Bytes of the whole plane."""
        return self.line * self.count

    @property
    def unit(self) -> int:
        """Unit of a space's size in N2D2: rows, pixels of a single row, or bytes of a vector."""
        return self.line if self.count > 1 else self.stride if self.length > 1 else 1


@dataclass(frozen=True)
class Plane:
    """The bytes of one tensor: `count` rows of `length` pixels of `size` useful bytes every `stride` bytes.

    Linear byte l is at `offset + l` if l < `limit`, else at `wrap_offset + (l - limit)`. `limit` is None for a contiguous
    plane; a wrap is always between two rows.

    Attributes:
        pitch: bytes from row to row if they are part of longer rows; None if they are adjacent.
        alloc, release: clocks of the first write and the last read.
        external: the plane is in a buffer of the caller; its offset is invalid.
        ring_rows: number of rows kept; row y is in slot y modulo ring_rows.
        memory: the memory that offsets are relative to, if not the first (`MemoryPlan.local`).
    """

    offset: int
    size: int
    stride: int
    length: int
    count: int
    alloc: int
    release: int
    limit: int | None = None
    wrap_offset: int = 0
    external: bool = False
    ring_rows: int | None = None
    pitch: int | None = None
    memory: str = field(default="", repr=False)

    @staticmethod
    def of(form: PlaneLayout, tensor: TensorSpec, offset: int, life: tuple[int, int], **fields: Any) -> Plane:
        """Return the plane of a tensor in a layout, at an offset, live at clocks [first, last]."""
        size, sizes = tensor.pixel_bytes, (form.stride, form.length, form.count)
        return Plane(offset, size, *sizes, *life, pitch=form.pitch or None, **fields)

    @property
    def line_bytes(self) -> int:
        """Bytes from one row to the next inside a contiguous part."""
        return self.pitch or self.stride * self.length

    @property
    def bytes(self) -> int:
        """Bytes of the whole plane, including gaps between pixels and rows."""
        return self.line_bytes * ((self.ring_rows or self.count) - 1) + self.stride * self.length

    @property
    def contiguous(self) -> bool:
        """True if the plane is in one piece."""
        return self.limit is None

    @property
    def lines_before_wrap(self) -> int:
        """Number of rows before the wrap; all without one."""
        return self.count if self.limit is None else self.limit // self.line_bytes

    @property
    def word_pixels(self) -> bool:
        """True if every pixel begins at a multiple of four bytes in an aligned arena; False for external planes."""
        return not self.external and not any(
            n % 4 for n in (self.offset, self.stride, self.line_bytes, self.limit or 0, self.wrap_offset)
        )

    def intervals(self) -> list[tuple[int, int]]:
        """Return the occupied byte ranges [begin, end), including gaps; empty for external planes."""
        if self.external:
            return []
        tail = self.stride - self.size
        if self.limit is None:
            return [(self.offset, self.offset + self.bytes - tail)]
        rest = self.bytes - self.limit
        return [(self.offset, self.offset + self.limit - tail), (self.wrap_offset, self.wrap_offset + rest - tail)]


@dataclass(frozen=True)
class Scratch:
    """Workspace bytes [offset, offset + size) that an operator may overwrite while it runs."""

    offset: int
    size: int


@dataclass(frozen=True)
class ConstantPlan:
    """Place of a constant of an operator.

    Attributes:
        bytes, reads: its size, and the bytes that an inference reads of it.
        home: the memory that stores it without power.
        memory: the memory from which the operator reads it: its home, one that start-up fills, or that of the copy.
        copy: address in the arena of the copy that an inference makes; None without one.
        life: the clocks [first, last] during which the copy exists.
    """

    name: str
    op: str
    bytes: int
    reads: float
    home: str
    memory: str
    copy: int | None = None
    life: tuple[int, int] = (0, 0)

    @property
    def moved(self) -> list[tuple[str, float]]:
        """The memories and the bytes that an inference reads and writes there."""
        copied = [] if self.copy is None else [(self.home, self.bytes), (self.memory, self.bytes)]
        return [*copied, (self.memory, self.reads)]


@dataclass(frozen=True)
class OpPlan:
    """Execution of an operator.

    Attributes:
        view: no code is generated; the bytes of its output are already in place.
        backwards: its rows, or elements if pointwise, run from the last to the first.
        streamed: it computes some rows at a time, in the order of the schedule.
        scratch: its workspace.
        partial: first arena byte of its partial results for rows of its input.
        aliases: the input that its output overwrites exactly.
    """

    view: bool = False
    backwards: bool = False
    streamed: bool = False
    scratch: Scratch | None = None
    partial: int | None = None
    aliases: str | None = None


@dataclass(frozen=True)
class ScheduleStep:
    """One step of an operator. `rows`: only these output rows [begin, end); others follow in other steps. `in_rows`: only these
    input rows are added to the partial results in the workspace; the step with the last row writes the output (`commit`)."""

    op: str
    clock: int
    rows: tuple[int, int] | None = None
    arrives: bool = False
    in_rows: tuple[int, int] | None = None
    commit: bool = False

    @property
    def lines(self) -> tuple[int, int] | None:
        """The lines of the output, or of the input that is accumulated; None for the operator as a whole."""
        return self.in_rows or self.rows


@dataclass(frozen=True)
class MemoryPlan:
    """A complete plan: planes by tensor name, execution by operator name (default: forwards and whole), and the schedule.

    Attributes:
        options: the planner's settings by export parameter, for reports.
        bound: lower bound for plans with the same concatenations in place, in units of the alignment; None if unknown.
        tensor_arena_bytes: arena before workspaces enlarged it, which `bound` refers to; None without workspaces.
        memories: the memories that the arena spans, if there are several.
    """

    strategy: str
    arena_bytes: int
    planes: dict[str, Plane]
    schedule: tuple[ScheduleStep, ...]
    ops: dict[str, OpPlan] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    bound: int | None = None
    tensor_arena_bytes: int | None = None
    memories: tuple[Memory, ...] = ()
    roms: tuple[Memory, ...] = ()
    constants: tuple[ConstantPlan, ...] = ()
    state_memory: Memory | None = None

    def op(self, name: str) -> OpPlan:
        """Return the execution of an operator."""
        return self.ops.get(name, _FORWARDS)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every operator once, in the order in which they begin."""
        return tuple(dict.fromkeys(step.op for step in self.schedule if not step.arrives))

    @cached_property
    def backwards(self) -> tuple[str, ...]:
        """The operators whose loops run backwards."""
        return tuple(name for name in self.order if self.op(name).backwards)

    @cached_property
    def streamed(self) -> tuple[str, ...]:
        """The operators that compute some rows at a time."""
        return tuple(name for name in self.order if self.op(name).streamed)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The operators without code: concatenations in place, reshapes."""
        return tuple(name for name in self.order if self.op(name).view)

    @cached_property
    def scratch(self) -> dict[str, Scratch]:
        """The workspaces by operator."""
        return {name: run.scratch for name, run in self.ops.items() if run.scratch is not None}

    def memory_at(self, address: int) -> int:
        """Return the index of the memory that holds an address; 0 for a single memory."""
        return number_at(self.memories, address)

    def local(self, plane: Plane) -> Plane:
        """Return a plane with offsets relative to its memory."""
        number = 0 if plane.external else self.memory_at(plane.offset)
        if not number:
            return plane
        memory = self.memories[number]
        wrap = plane.wrap_offset - memory.start if plane.limit is not None else 0
        return replace(plane, offset=plane.offset - memory.start, wrap_offset=wrap, memory=memory.name)

    @cached_property
    def copies(self) -> dict[str, ConstantPlan]:
        """The constants that are copied into the arena, by operator."""
        return {one.op: one for one in self.constants if one.copy is not None}

    @cached_property
    def used(self) -> tuple[int, ...]:
        """Bytes of each memory that tensors and workspaces use, from its start; the arena for a single memory."""
        if not self.memories:
            return (self.arena_bytes,)
        sizes = [0] * len(self.memories)
        ends = [end for plane in self.planes.values() for _, end in plane.intervals()]
        ends += [each.offset + each.size for each in self.scratch.values()]
        for end in (*ends, *(one.copy + one.bytes for one in self.constants if one.copy is not None)):
            number = self.memory_at(end - 1)
            sizes[number] = max(sizes[number], end - self.memories[number].start)
        return tuple(sizes)

    def overlaps(self, problem: MemoryProblem, op: str) -> bool:
        """True if the output shares bytes with an input, so the kernel must process the rows in order."""
        if op in self.views:
            return False
        spec = problem.op(op)
        read = [part for name in spec.operands for part in self.planes[name].intervals()]
        return any(begin < stop and first < end for begin, end in read for first, stop in self.planes[spec.output].intervals())


_FORWARDS = OpPlan()
