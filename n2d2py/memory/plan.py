"""Result of a memory planner: where each tensor lies in the arena, how each operator runs, and the order of the operators.

Clock: inputs are written at -1; the operators of a plan run at clocks >= 0 in the order of `schedule`. Operators of one clock are
independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from n2d2py.memory.problem import MemoryProblem


@dataclass(frozen=True)
class Memory:
    """A memory of the target: `cost` of a byte read or written, in relation to the others. `start`: its address in the space of all.
    `kind`: "" for tensors, "rom" for constants, "states" for the states. `reserved`: bytes more than those, for constants.
    """

    ALIGNMENT: ClassVar[int] = 64
    """Bytes, of where a memory begins."""

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


def number_at(memories: Sequence[Memory], at: int) -> int:
    """Number of the memory in which an address lies, the last one for those after it; 0 without memories."""
    return next((number for number, memory in enumerate(memories) if at < memory.end), max(len(memories) - 1, 0))


@dataclass(frozen=True)
class Plane:
    """The bytes of one tensor: `count` lines of `length` pixels of `size` useful bytes every
    `stride` bytes. `pitch`: bytes from line to line where these are a part of longer ones, None where they follow each other.

    Linear byte l is at `offset + l` where l < `limit`, else at `wrap_offset + (l - limit)`; `limit` is None when the plane is in one
    piece, and a wrap is always between two lines. Written first at clock `alloc`, read last at clock `release`. An external plane is
    not in the arena (its offset is 0 and means nothing). `ring_rows`: only so many lines have room, line y at slot y modulo
    ring_rows. `memory`: the one to which the offsets are relative, where that is not the first (`MemoryPlan.local`).
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

    @property
    def line_bytes(self) -> int:
        """Bytes from one line to the next inside a contiguous part."""
        return self.pitch or self.stride * self.length

    @property
    def bytes(self) -> int:
        """Bytes of the whole plane, gaps between pixels and between lines included."""
        return self.line_bytes * ((self.ring_rows or self.count) - 1) + self.stride * self.length

    @property
    def contiguous(self) -> bool:
        """True if the plane is in one piece."""
        return self.limit is None

    @property
    def lines_before_wrap(self) -> int:
        """Number of lines before the wrap; all of them when there is none."""
        return self.count if self.limit is None else self.limit // self.line_bytes

    @property
    def word_pixels(self) -> bool:
        """True if every pixel begins at a multiple of four bytes, in an arena that does. Of an external plane nothing is known."""
        return not self.external and not any(
            n % 4 for n in (self.offset, self.stride, self.line_bytes, self.limit or 0, self.wrap_offset)
        )

    def line_offset(self, y: int) -> int:
        """Byte address of line y in the arena."""
        if self.ring_rows is not None:
            return self.offset + y % self.ring_rows * self.line_bytes
        before = self.lines_before_wrap
        return self.offset + y * self.line_bytes if y < before else self.wrap_offset + (y - before) * self.line_bytes

    def intervals(self) -> list[tuple[int, int]]:
        """The occupied byte ranges [begin, end), useful bytes and the gaps between them; [] when
        external.
        """
        if self.external:
            return []
        tail = self.stride - self.size
        if self.limit is None:
            return [(self.offset, self.offset + self.bytes - tail)]
        return [
            (self.offset, self.offset + self.limit - tail),
            (self.wrap_offset, self.wrap_offset + self.bytes - self.limit - tail),
        ]


@dataclass(frozen=True)
class Scratch:
    """Bytes [offset, offset + size) that an operator may destroy while it runs."""

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
        view: it generates no code: the bytes of its output are in place already.
        backwards: its lines, or elements when it is pointwise, run from the last to the first.
        streamed: it makes some lines at a time, in the order of the schedule.
        scratch: the bytes that it may destroy.
        partial: byte of the arena from which on it keeps partial results of lines of its input.
        aliases: the input that its output lies exactly over.
    """

    view: bool = False
    backwards: bool = False
    streamed: bool = False
    scratch: Scratch | None = None
    partial: int | None = None
    aliases: str | None = None


@dataclass(frozen=True)
class ScheduleStep:
    """One operator of the schedule. `rows`: only these lines [begin, end) of the output, the others in other steps. `in_rows`: only
    these lines of the input are added to partial results in the scratch; the step with the last line writes the output (`commit`).
    `op` is the name of a network input where `arrives`: its lines come from outside at that point.
    """

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
    """A complete plan: planes by tensor name, how operators run by operator name (an absent one forwards and whole), their order.

    `options` are the planner's settings by their export-parameter names, for reports. `bound`: no
    plan with the same concatenations in place can be smaller, in units of the buffer alignment;
    None where the strategy knows no bound. `tensor_arena_bytes`: the arena before scratch made it larger, for which the bound
    is; None where no scratch was placed. `memories`: those over which the addresses of the arena go, where there are several.
    `roms`, `constants`: the memories of the constants and what lies there, where they are planned. `state_memory`: that of the
    states, where they are not in the arena.
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
        """Execution of an operator."""
        return self.ops.get(name, _FORWARDS)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every operator once, in the order in which they begin."""
        return tuple(dict.fromkeys(step.op for step in self.schedule if not step.arrives))

    @cached_property
    def backwards(self) -> tuple[str, ...]:
        """The operators whose loops run from the last line, or element, to the first."""
        return tuple(name for name in self.order if self.op(name).backwards)

    @cached_property
    def streamed(self) -> tuple[str, ...]:
        """The operators that make some lines at a time."""
        return tuple(name for name in self.order if self.op(name).streamed)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The operators that generate no code: concatenations in place, reshapes."""
        return tuple(name for name in self.order if self.op(name).view)

    @cached_property
    def scratch(self) -> dict[str, Scratch]:
        """The bytes that operators may destroy, by operator."""
        return {name: run.scratch for name, run in self.ops.items() if run.scratch is not None}

    def memory_at(self, at: int) -> int:
        """Number of the memory in which an address lies; 0 where there is one."""
        return number_at(self.memories, at)

    def local(self, plane: Plane) -> Plane:
        """A plane with offsets that are relative to its memory."""
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
        """Bytes of each memory, from its begin on, that tensors, scratch and copies take; those of the arena where there is one memory."""
        if not self.memories:
            return (self.arena_bytes,)
        found = [0] * len(self.memories)
        ends = [end for plane in self.planes.values() for _, end in plane.intervals()]
        ends += [each.offset + each.size for each in self.scratch.values()]
        for end in (*ends, *(one.copy + one.bytes for one in self.constants if one.copy is not None)):
            number = self.memory_at(end - 1)
            found[number] = max(found[number], end - self.memories[number].start)
        return tuple(found)

    def overlaps(self, problem: MemoryProblem, op: str) -> bool:
        """True if the output shares bytes with an input: the kernel must then take the lines in
        order.
        """
        if op in self.views:
            return False
        spec = problem.op(op)
        output = self.planes[spec.output].intervals()
        return any(
            begin < end_out and begin_out < end
            for name in spec.operands
            for begin, end in self.planes[name].intervals()
            for begin_out, end_out in output
        )


_FORWARDS = OpPlan()
