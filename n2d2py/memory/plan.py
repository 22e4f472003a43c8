"""What a memory planner decides: where each tensor lies in the arena, and the order of the
operators.

The JSON form is the MAP of `statistics/memory/memory_map.json`. Linear byte l of a plane is at
`offset + l` where l < limit, else at `wrap_offset + (l - limit)`; a wrap is always between two
lines.

Clock: inputs are written at -1; the operators of a plan run at clocks >= 0 in the order of
`schedule`. Operators of one clock are independent of each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from n2d2py.memory.problem import MemoryProblem

__all__ = ["MemoryPlan", "Plane", "Scratch", "Step"]


@dataclass(frozen=True)
class Plane:
    """The bytes of one tensor: `count` lines of `length` pixels of `size` useful bytes every
    `stride` bytes.

    `limit`: contiguous bytes before the wrap to `wrap_offset`, None when the plane is in one piece.
    Written first at clock `alloc`, read last at clock `release`. An external plane is not in the
    arena (its offset is 0 and means nothing). `backwards`: whatever writes it does so from the last
    line, or element, to the first. `ring_rows`: only so many lines have room, line y at slot y modulo
    ring_rows. `streamed`: whatever writes it makes some lines at a time, in the order of the schedule.
    `kept`: byte of the arena from which on whatever writes it keeps partial results of lines of its input.
    `sum`: the operator whose addition whatever writes it does too, to the bytes that lie there.
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
    backwards: bool = False
    ring_rows: int | None = None
    streamed: bool = False
    kept: int | None = None
    sum: str | None = None

    @property
    def line_bytes(self) -> int:
        """Bytes from one line to the next inside a contiguous part."""
        return self.stride * self.length

    @property
    def bytes(self) -> int:
        """Bytes of the whole plane, gaps between the pixels included."""
        return self.line_bytes * (self.ring_rows or self.count)

    @property
    def contiguous(self) -> bool:
        """Whether the plane is in one piece."""
        return self.limit is None

    @property
    def lines_before_wrap(self) -> int:
        """How many lines come before the wrap; all of them when there is none."""
        return self.count if self.limit is None else self.limit // self.line_bytes

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

    def to_json(self) -> dict[str, Any]:
        """One entry of the MAP's tensors."""
        entry: dict[str, Any] = {key: getattr(self, key) for key in ("offset", "size", "stride", "length", "count")}
        if self.limit is not None:
            entry.update(limit=self.limit, wrap_offset=self.wrap_offset)
        if self.ring_rows is not None:
            entry["ring_rows"] = self.ring_rows
        entry.update(alloc=self.alloc, release=self.release)
        if self.external:
            entry["external"] = True
        return entry


@dataclass(frozen=True)
class Step:
    """One operator of the schedule; a view generates no code: its output's bytes are in place
    already. `backwards`: its lines, or elements when it is pointwise, run from the last to the first.
    `rows`: only these lines [begin, end) of the output, the others in other steps. `in_rows`: only these lines
    of the input are added to partial results in the scratch; the step with the last line writes the output. `op` is
    the name of a network input where `arrives`: its lines come from outside at that point.
    """

    op: str
    clock: int
    view: bool = False
    backwards: bool = False
    rows: tuple[int, int] | None = None
    arrives: bool = False
    in_rows: tuple[int, int] | None = None
    commit: bool = False

    @property
    def lines(self) -> tuple[int, int] | None:
        """The lines of the output, or of the input that is accumulated; None for the operator as a whole."""
        return self.in_rows or self.rows


@dataclass(frozen=True)
class Scratch:
    """Bytes [offset, offset + size) that an operator may destroy while it runs."""

    offset: int
    size: int


@dataclass(frozen=True)
class MemoryPlan:
    """A complete plan: planes by tensor name, operators in order, scratch by operator name.

    `options` are the planner's settings by their export-parameter names, for reports. `bound`: no
    plan with the same concatenations in place can be smaller, in units of the buffer alignment;
    None where the strategy knows no bound.
    """

    strategy: str
    arena_bytes: int
    planes: dict[str, Plane]
    schedule: tuple[Step, ...]
    scratch: dict[str, Scratch] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    bound: int | None = None

    @cached_property
    def backwards(self) -> tuple[str, ...]:
        """The operators whose loops run from the last line, or element, to the first."""
        return tuple(step.op for step in self.schedule if step.backwards)

    @cached_property
    def streamed(self) -> tuple[str, ...]:
        """The operators that make some lines at a time."""
        return tuple(dict.fromkeys(step.op for step in self.schedule if step.lines and not step.arrives))

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The operators that generate no code: concatenations in place, reshapes."""
        return tuple(step.op for step in self.schedule if step.view)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every operator once, in the order in which they begin."""
        return tuple(dict.fromkeys(step.op for step in self.schedule if not step.arrives))

    def overlaps(self, problem: MemoryProblem, op: str) -> bool:
        """Whether the output shares bytes with an input: the kernel must then take the lines in
        order.
        """
        if op in self.views:
            return False
        spec = problem.op(op)
        output = self.planes[spec.output].intervals()
        return any(
            begin < end_out and begin_out < end
            for name in spec.inputs
            for begin, end in self.planes[name].intervals()
            for begin_out, end_out in output
        )

    def to_json(self) -> dict[str, Any]:
        """The MAP as plain JSON data."""
        schedule = []
        for step in self.schedule:
            if step.arrives:
                schedule.append({"input": step.op, "rows": list(step.rows), "clock": step.clock})
                continue
            entry: dict[str, Any] = {"op": step.op}
            if step.rows is not None:
                entry["rows"] = list(step.rows)
            if step.in_rows is not None:
                entry.update(in_rows=list(step.in_rows), commit=step.commit)
            if step.op in self.scratch:
                scratch = self.scratch[step.op]
                entry["scratch"] = [{"offset": scratch.offset, "size": scratch.size}]
            if step.view:
                entry["view"] = True
            else:
                entry.update(loop="-h-w-c" if step.backwards else "hwc", unit="elem")
            entry["clock"] = step.clock
            schedule.append(entry)
        planes = {name: plane.to_json() for name, plane in self.planes.items()}
        last = max((step.clock for step in self.schedule), default=-1)
        end = max(len(schedule), last + 1)
        for plane in planes.values():
            if plane["release"] > last:
                plane["release"] = end  # whether a reader's last clock counts steps or stamps
        return {
            "arena_size": self.arena_bytes,
            "strategy": self.strategy,
            "options": dict(self.options),
            "tensors": planes,
            "schedule": schedule,
        }
