"""Operators that run row by row: in which order lines are made, and how many must be kept.

The last operator of a window of consecutive operators asks for its lines one by one; an operator that is asked
for a line first asks its producers in the window for the lines that it reads. The lines of two operators are made
in the same order whatever operators stand before them in the window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

import numpy as np

from n2d2py.memory.access import Arrival, Overlay, TensorSpec
from n2d2py.memory.problem import MemoryProblem, OpSpec

_NONE = np.iinfo(np.int64).max


def streamable(op: OpSpec, problem: MemoryProblem) -> bool:
    """True if the operator can make one line of its output from lines of its inputs, or take its input by lines."""
    output = problem.tensors[op.output]
    if not op.access.by_lines or op.aliased is not None:
        return False
    kinds = {op.access.over(problem.tensors[name], output) for name in op.inputs}
    return kinds <= {Overlay.WINDOW, Overlay.POINTWISE}


def lines_read(op: OpSpec, name: str, tensors: dict[str, TensorSpec]) -> list[range]:
    """For each line of an operator's output, or of the input that it accumulates, the lines of an input that it reads."""
    source, output = tensors[name], tensors[op.output]
    if op.accumulates(tensors):
        return [range(y, y + 1) for y in range(source.height)]
    if op.access.over(source, output) is Overlay.POINTWISE:
        return [range(y, y + 1) for y in range(output.height)]
    return op.reads(source, output.height)


class KnownRows:
    """Rows that were made before, for problems in which operators of one name, with inputs and outputs of the same names, go through the
    same lines: those of a network in all its strips.
    """

    def __init__(self):
        self._reads: dict[tuple[str, str], list[range]] = {}
        self._rows: dict[tuple, Rows] = {}

    def reads(self, op: OpSpec, name: str, tensors: dict[str, TensorSpec]) -> list[range]:
        """As `lines_read`."""
        if (op.name, name) not in self._reads:
            self._reads[op.name, name] = lines_read(op, name, tensors)
        return self._reads[op.name, name]

    def rows(self, ops: list[OpSpec], problem: MemoryProblem, whole: Collection[int]) -> Rows:
        """The `Rows` of these operators."""
        key = *((op.name, op.inputs, op.output) for op in ops), frozenset(whole)
        if key not in self._rows:
            self._rows[key] = Rows(ops, problem, whole, self)
        return self._rows[key]


class Rows:
    """The order of the lines of consecutive operators, all `streamable`; `ops` are numbered from 0.

    `whole`: the numbers of the operators all of whose lines are needed, because something after these operators reads
    them. Of the others only the lines are made that an operator reads for a line that is made; one line at least, so that
    every operator runs. Lines of a network input arrive whether they are read or not.

    An operator that accumulates has an event for each line of its input and writes its one line at the last; the
    others have one for each line of their output that is made.
    """

    def __init__(self, ops: list[OpSpec], problem: MemoryProblem, whole: Collection[int], known: KnownRows | None = None):
        self.ops, self._tensors = ops, problem.tensors
        known = known or KnownRows()
        self._rings: dict[int, int] = {}
        self.accumulating = [op.accumulates(problem.tensors) for op in ops]
        self._number = {op.output: n for n, op in enumerate(ops)}
        self._readers: dict[str, list[int]] = {}
        for n, op in enumerate(ops):
            for name in dict.fromkeys(op.inputs):
                self._readers.setdefault(name, []).append(n)
        reads = [{name: known.reads(op, name, problem.tensors) for name in op.inputs} for op in ops]
        self.lines = self._made(reads, whole)
        """For each operator the lines that it makes, of its input where it accumulates: ascending."""
        reads = [
            {name: [r[y] for y in lines] for name, r in of_op.items()} for of_op, lines in zip(reads, self.lines, strict=True)
        ]
        self._first = [{name: _first_needed(ranges) for name, ranges in r.items()} for r in reads]
        self.order = self._simulate(reads)
        """The operators' numbers, one for each event."""
        events = np.asarray(self.order, dtype=np.int64)
        self._at = [np.flatnonzero(events == n) for n in range(len(ops))]

    def _made(self, reads: list[dict[str, list[range]]], whole: Collection[int]) -> list[list[int]]:
        """For each operator the lines of its events, from the last operator to the first."""
        made: list[list[int]] = [[] for _ in self.ops]
        for n in reversed(range(len(self.ops))):
            op = self.ops[n]
            every = range(self._tensors[op.inputs[0] if self.accumulating[n] else op.output].height)
            if self.accumulating[n] or n in whole or isinstance(op.access, Arrival):
                made[n] = list(every)
                continue
            needed = [reads[m][op.output] for m in self._readers.get(op.output, ())]
            lines = [made[m] for m in self._readers.get(op.output, ())]
            made[n] = sorted({y for of_op, at in zip(needed, lines, strict=True) for line in at for y in of_op[line]}) or [0]
        return made

    def _simulate(self, reads: list[dict[str, list[range]]]) -> list[int]:
        done, order = [0] * len(self.ops), []
        asks = []
        for of_op in reads:
            asks.append([])
            for name, ranges in of_op.items():
                producer = self._number.get(name)
                if producer is None:
                    continue
                lines = self.lines[producer]
                every = self.accumulating[producer] * len(lines)
                asks[-1].append((producer, [(every or bisect_left(lines, r[-1] + 1)) if r else 0 for r in ranges]))

        def ask(n: int, events: int) -> None:
            while done[n] < events:
                for producer, needed in asks[n]:
                    if done[producer] < needed[done[n]]:
                        ask(producer, needed[done[n]])
                order.append(n)
                done[n] += 1

        last = len(self.ops) - 1
        for n in [last, *range(last)]:  # lines that no operator here reads are made in the end
            ask(n, len(self.lines[n]))
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
        return self._at[n], np.asarray(self.lines[n])

    def ring(self, n: int) -> int:
        """The lines of an operator's output that are kept at the same time, at the most."""
        if n not in self._rings:
            self._rings[n] = self._longest_ring(n)
        return self._rings[n]

    def _longest_ring(self, n: int) -> int:
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
        one operator that follow each other, line after line, as one.
        """
        found: list[tuple[int, int, int]] = []
        done = [0] * len(self.ops)
        for n in self.order:
            if n < begin:
                continue
            line = self.lines[n][done[n]]
            done[n] += 1
            if found and found[-1][0] == n and found[-1][2] == line:
                found[-1] = (n, found[-1][1], line + 1)
            else:
                found.append((n, line, line + 1))
        return found


def _first_needed(ranges: list[range]) -> np.ndarray:
    """For each event the first line of the source that it or a later one reads, _NONE when none does."""
    starts = np.array([r.start if r else _NONE for r in ranges], dtype=np.int64)
    return np.minimum.accumulate(starts[::-1])[::-1]
