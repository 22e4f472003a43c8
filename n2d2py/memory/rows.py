"""Operators that run line by line: in which order lines are made, and how many must be kept.

The last operator of a window of consecutive operators asks for its lines one by one; an operator that is asked
for a line first asks its producers in the window for the lines that it reads. The lines of two operators are made
in the same order whatever operators stand before them in the window.
"""

from __future__ import annotations

import numpy as np

from n2d2py.memory.access import Access, access_of, accumulates
from n2d2py.memory.overlap import line_reads
from n2d2py.memory.problem import MemoryProblem, OpSpec

__all__ = ["Rows", "streamable"]

_NONE = np.iinfo(np.int64).max


def streamable(op: OpSpec, problem: MemoryProblem) -> bool:
    """Whether the operator can make one line of its output from lines of its inputs, or take its input by lines."""
    output = problem.tensors[op.output]
    if not op.attributes.get("by_lines", True):
        return False
    if op.type in ("concat", "input") or accumulates(op, problem.tensors):
        return True
    kinds = {access_of(op, problem.tensors[name], output) for name in op.inputs}
    return kinds <= {Access.WINDOW, Access.POINTWISE}


class Rows:
    """The order of the lines of consecutive operators, all `streamable`; `ops` are numbered from 0.

    An operator that accumulates has an event for each line of its input and writes its one line at the last; the
    others have one for each line of their output.
    """

    def __init__(self, ops: list[OpSpec], problem: MemoryProblem):
        self.ops, self._tensors = ops, problem.tensors
        self.accumulating = [accumulates(op, problem.tensors) for op in ops]
        self._number = {op.output: n for n, op in enumerate(ops)}
        reads = [{name: self._lines(n, name) for name in op.inputs} for n, op in enumerate(ops)]
        self._first = [{name: _first_needed(ranges) for name, ranges in r.items()} for r in reads]
        self._count = [
            self._tensors[op.inputs[0] if by_lines else op.output].height
            for op, by_lines in zip(ops, self.accumulating, strict=True)
        ]
        self.order = self._simulate(reads)
        """The operators' numbers, one for each event."""
        events = np.asarray(self.order, dtype=np.int64)
        self._at = [np.flatnonzero(events == n) for n in range(len(ops))]
        self._readers: dict[str, list[int]] = {}
        for n, op in enumerate(ops):
            for name in dict.fromkeys(op.inputs):
                self._readers.setdefault(name, []).append(n)

    def _lines(self, n: int, name: str) -> list[range]:
        """For each event of an operator the lines of an input that it reads."""
        op, source = self.ops[n], self._tensors[name]
        output = self._tensors[op.output]
        if self.accumulating[n]:
            return [range(y, y + 1) for y in range(source.height)]
        if access_of(op, source, output) is Access.POINTWISE:
            return [range(y, y + 1) for y in range(output.height)]
        return line_reads(op, source, output.height)

    def _simulate(self, reads: list[dict[str, list[range]]]) -> list[int]:
        made, order = [0] * len(self.ops), []
        asks = []
        for of_op in reads:
            asks.append([])
            for name, ranges in of_op.items():
                producer = self._number.get(name)
                if producer is None:
                    continue
                every = self.accumulating[producer] * self._count[producer]
                asks[-1].append((producer, [(every or r.stop) if r else 0 for r in ranges]))

        def ask(n: int, lines: int) -> None:
            while made[n] < lines:
                for producer, needed in asks[n]:
                    if made[producer] < needed[made[n]]:
                        ask(producer, needed[made[n]])
                order.append(n)
                made[n] += 1

        last = len(self.ops) - 1
        for n in [last, *range(last)]:  # lines that nobody reads are made in the end
            ask(n, self._count[n])
        return order

    def _needed(self, name: str, moments: np.ndarray) -> np.ndarray:
        """int64: before each of these events, the first line of a tensor that is still read; _NONE for no line."""
        found = np.full(len(moments), _NONE)
        for n in self._readers.get(name, ()):
            first = np.append(self._first[n][name], _NONE)
            found = np.minimum(found, first[np.searchsorted(self._at[n], moments)])
        return found

    def _writes(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The events that write a line of an operator's output, and these lines."""
        if self.accumulating[n]:
            return self._at[n][-1:], np.zeros(1, dtype=np.int64)
        return self._at[n], np.arange(self._count[n])

    def ring(self, n: int) -> int:
        """The lines of an operator's output that are kept at the same time, at the most."""
        moments, lines = self._writes(n)
        needed = self._needed(self.ops[n].output, moments)
        kept = np.where(needed == _NONE, 1, lines - np.minimum(needed, lines) + 1)
        return int(kept.max(initial=1))

    def ahead(self, source: str, source_line: int, n: int, output_line: int) -> int:
        """Bytes that an operator's output may start after `source`, usually negative: no store of a line
        covers a line of the source that this or a later event reads.
        """
        moments, lines = self._writes(n)
        needed = self._needed(source, moments)
        read = needed != _NONE
        free = self._tensors[source].height * source_line
        return int((needed[read] * source_line - (lines[read] + 1) * output_line).min(initial=free))

    def runs(self, begin: int) -> list[tuple[int, int, int]]:
        """The events of the operators from `begin` on: (operator, first line, line after the last), events of
        one operator that follow each other as one.
        """
        found: list[list[int]] = []
        made = [0] * len(self.ops)
        for n in self.order:
            if n < begin:
                continue
            if found and found[-1][0] == n:
                found[-1][2] += 1
            else:
                found.append([n, made[n], made[n] + 1])
            made[n] += 1
        return [(n, first, stop) for n, first, stop in found]


def _first_needed(ranges: list[range]) -> np.ndarray:
    """For each event the first line of the source that it or a later one reads, _NONE when none does."""
    starts = np.array([r.start if r else _NONE for r in ranges], dtype=np.int64)
    return np.minimum.accumulate(starts[::-1])[::-1]
