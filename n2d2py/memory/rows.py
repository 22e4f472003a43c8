"""Row order of operators that run row by row, and the number of rows to keep.

The last operator of a window of consecutive operators requests its rows one by one. An operator first requests the rows it
reads from its producers in the window. The relative row order of two operators does not depend on the operators before them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

import numpy as np

from n2d2py.memory.access import Arrival, Overlay, TensorSpec
from n2d2py.memory.problem import NO_ROW, MemoryProblem, OpSpec, first_needed


def streamable(op: OpSpec, problem: MemoryProblem) -> bool:
    """True if the operator can compute one output row from input rows, or accumulate its input by rows."""
    output = problem.tensors[op.output]
    if not op.access.by_lines or op.aliased is not None:
        return False
    kinds = {op.access.over(problem.tensors[name], output) for name in op.inputs}
    return kinds <= {Overlay.WINDOW, Overlay.POINTWISE}


def lines_read(op: OpSpec, name: str, tensors: dict[str, TensorSpec]) -> list[range]:
    """Return, for each output row (or input row that is accumulated), the rows of an input that it reads."""
    source, output = tensors[name], tensors[op.output]
    if op.accumulates(tensors):
        return [range(y, y + 1) for y in range(source.height)]
    if op.access.over(source, output) is Overlay.POINTWISE:
        return [range(y, y + 1) for y in range(output.height)]
    return op.reads(source, output.height)


class KnownRows:
    """Cache of row orders for problems with the same operators and tensors by name: the strips of one network."""

    def __init__(self):
        self._reads: dict[tuple[str, str], list[range]] = {}
        self._rows: dict[tuple, Rows] = {}

    def reads(self, op: OpSpec, name: str, tensors: dict[str, TensorSpec]) -> list[range]:
        """Return the result of `lines_read`."""
        if (op.name, name) not in self._reads:
            self._reads[op.name, name] = lines_read(op, name, tensors)
        return self._reads[op.name, name]

    def rows(self, ops: list[OpSpec], problem: MemoryProblem, whole: Collection[int]) -> Rows:
        """Return the `Rows` of these operators."""
        key = *((op.name, op.inputs, op.output) for op in ops), frozenset(whole)
        if key not in self._rows:
            self._rows[key] = Rows(ops, problem, whole, self)
        return self._rows[key]


class Rows:
    """Row order of consecutive `streamable` operators; `ops` are numbered from 0. `whole`: operators whose rows are all needed
    by later operators. Others compute only the rows that are read, at least one. Rows of a network input arrive whether or not
    they are read. An accumulating operator has an event for each input row and writes its one row at the last; others have one
    for each computed row."""

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
        self.lines = self._computed_rows(reads, whole)
        """For each operator the lines that it makes, of its input where it accumulates: ascending."""
        reads = [
            {name: [r[y] for y in lines] for name, r in of_op.items()} for of_op, lines in zip(reads, self.lines, strict=True)
        ]
        self._first = [{name: first_needed(ranges) for name, ranges in r.items()} for r in reads]
        self.order = self._simulate(reads)
        """The operators' numbers, one for each event."""
        events = np.asarray(self.order, dtype=np.int64)
        self._at = [np.flatnonzero(events == n) for n in range(len(ops))]

    def _computed_rows(self, reads: list[dict[str, list[range]]], whole: Collection[int]) -> list[list[int]]:
        """Return the rows of each operator's events, from the last operator to the first."""
        rows: list[list[int]] = [[] for _ in self.ops]
        for n in reversed(range(len(self.ops))):
            op = self.ops[n]
            if self.accumulating[n] or n in whole or isinstance(op.access, Arrival):
                rows[n] = list(range(self._tensors[op.inputs[0] if self.accumulating[n] else op.output].height))
            else:
                needed = (reads[m][op.output][line] for m in self._readers.get(op.output, ()) for line in rows[m])
                rows[n] = sorted({y for lines in needed for y in lines}) or [0]
        return rows

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
                share = self.accumulating[producer] * len(lines)
                asks[-1].append((producer, [(share or bisect_left(lines, r[-1] + 1)) if r else 0 for r in ranges]))

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
        """Return the first row of a tensor that is still read before each of these events, int64; NO_ROW for no row."""
        first_rows = np.full(len(moments), NO_ROW)
        for n in self._readers.get(name, ()):
            first = np.append(self._first[n][name], NO_ROW)
            first_rows = np.minimum(first_rows, first[np.searchsorted(self._at[n], moments)])
        return first_rows

    def _writes(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        if self.accumulating[n]:
            return self._at[n][-1:], np.zeros(1, dtype=np.int64)
        return self._at[n], np.asarray(self.lines[n])

    def ring(self, n: int) -> int:
        """Return the largest number of rows of an operator's output that are kept at the same time."""
        if n not in self._rings:
            moments, lines = self._writes(n)
            needed = self._needed(self.ops[n].output, moments)
            rows = np.where(needed == NO_ROW, 1, lines - np.minimum(needed, lines) + 1)
            self._rings[n] = int(rows.max(initial=1))
        return self._rings[n]

    def ahead(self, source: str, source_line: int, n: int, output_line: int) -> int:
        """Return the bytes by which an output may start after `source`, usually negative: no store covers a row of the source
        that this or a later event reads."""
        moments, lines = self._writes(n)
        needed = self._needed(source, moments)
        read = needed != NO_ROW
        free = self._tensors[source].height * source_line
        return int((needed[read] * source_line - (lines[read] + 1) * output_line).min(initial=free))

    def runs(self, begin: int) -> list[tuple[int, int, int]]:
        """Return the events of the operators from `begin` on as (operator, first row, row after the last), consecutive ones
        merged."""
        events: list[tuple[int, int, int]] = []
        done = [0] * len(self.ops)
        for n in self.order:
            if n < begin:
                continue
            line = self.lines[n][done[n]]
            done[n] += 1
            if events and events[-1][0] == n and events[-1][2] == line:
                events[-1] = (n, events[-1][1], line + 1)
            else:
                events.append((n, line, line + 1))
        return events
