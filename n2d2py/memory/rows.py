"""Segments of operators that run line by line: in which order lines are made, and how many must be kept.

A segment is a run of consecutive operators. Its last operator asks for its lines one by one; an operator
that is asked for a line first asks its producers in the segment for the lines that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.memory.access import Access, access_of
from n2d2py.memory.overlap import line_reads
from n2d2py.memory.problem import MemoryProblem, OpSpec

__all__ = ["Rows", "streamable"]


def streamable(op: OpSpec, problem: MemoryProblem) -> bool:
    """Whether the operator can make one line of its output from lines of its inputs."""
    output = problem.tensors[op.output]
    if op.type == "concat" or op.type == "input":
        return True
    kinds = {access_of(op, problem.tensors[name], output) for name in op.inputs}
    return kinds <= {Access.WINDOW, Access.POINTWISE}


@dataclass(frozen=True)
class _Reader:
    """An operator of the segment that reads a tensor: line -> the first line needed from then on."""

    op: int
    first: tuple[int, ...]


class Rows:
    """The lines of a segment: `events` are (number of the operator, line) in order.

    `rings`: lines to keep of each tensor that does not leave the segment. `ahead(x, y)`: how far the
    segment's output y may start after its input x.
    """

    def __init__(self, ops: list[OpSpec], problem: MemoryProblem, leaving: set[str]):
        self.ops, self.problem = ops, problem
        self._number = {op.output: n for n, op in enumerate(ops)}
        self._reads: list[dict[str, list[range]]] = []
        for op in ops:
            lines = problem.tensors[op.output].height
            self._reads.append({name: self._lines(op, name, lines) for name in op.inputs})
        self._readers: dict[str, list[_Reader]] = {}
        for n, reads in enumerate(self._reads):
            for name, ranges in reads.items():
                self._readers.setdefault(name, []).append(_Reader(n, _first_needed(ranges)))
        self.events = self._simulate()
        self.rings = {
            op.output: self._ring(op.output) for op in ops if op.output not in leaving
        }

    def _lines(self, op: OpSpec, name: str, lines: int) -> list[range]:
        source = self.problem.tensors[name]
        if access_of(op, source, self.problem.tensors[op.output]) is Access.POINTWISE:
            return [range(y, y + 1) for y in range(lines)]
        return line_reads(op, source, lines)

    def _simulate(self) -> list[tuple[int, int]]:
        made = [0] * len(self.ops)
        events: list[tuple[int, int]] = []

        def ask(n: int, lines: int) -> None:
            while made[n] < lines:
                for name, reads in self._reads[n].items():
                    if name in self._number and reads[made[n]]:
                        ask(self._number[name], reads[made[n]].stop)
                events.append((n, made[n]))
                made[n] += 1

        last = len(self.ops) - 1
        for n in [last, *range(last)]:  # lines that nobody reads are made in the end
            ask(n, self.problem.tensors[self.ops[n].output].height)
        return events

    def _needed(self, name: str, progress: list[int]) -> int | None:
        """The first line of a tensor that is still read when so many lines are made; None: no line."""
        still = [
            reader.first[progress[reader.op]]
            for reader in self._readers.get(name, ())
            if progress[reader.op] < len(reader.first) and reader.first[progress[reader.op]] >= 0
        ]
        return min(still) if still else None

    def _ring(self, name: str) -> int:
        """The lines of a tensor that are kept at the same time, at the most."""
        writer, rows = self._number[name], 1
        progress = [0] * len(self.ops)
        for n, line in self.events:
            if n == writer:
                needed = self._needed(name, progress)
                if needed is not None:
                    rows = max(rows, line - needed + 1)
            progress[n] += 1
        return rows

    def ahead(self, source: str, source_line: int, output: str, output_line: int) -> int:
        """Bytes that the output may start after the input, usually negative: no store of a line
        covers a line of the input that this or a later event reads.
        """
        writer = self._number[output]
        progress = [0] * len(self.ops)
        best = self.problem.tensors[source].height * source_line
        for n, line in self.events:
            if n == writer:
                needed = self._needed(source, progress)
                if needed is not None:
                    best = min(best, needed * source_line - (line + 1) * output_line)
            progress[n] += 1
        return best


def _first_needed(ranges: list[range]) -> tuple[int, ...]:
    """For each line the first line of the source that it or a later one reads, -1 when none does."""
    needed, result = -1, []
    for rows in reversed(ranges):
        if rows:
            needed = rows.start if needed < 0 else min(needed, rows.start)
        result.append(needed)
    return tuple(reversed(result))
