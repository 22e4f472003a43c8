"""Which operators run row by row: the order of the operators cut into segments.

A segment is one operator, or several consecutive ones that make their lines in turn through line buffers. Of all cuts
the one is taken whose largest segment holds the fewest bytes, or fits a budget, with the fewest streamed operators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, pairwise

from n2d2py.memory.access import Overlay, PoolWindow, Repacked
from n2d2py.memory.buffers import Buffer, Buffers
from n2d2py.memory.overlap import Reach, reach
from n2d2py.memory.problem import OpSpec
from n2d2py.memory.rows import KnownRows, Rows, streamable

LONGEST = 60
"""Operators of a segment at the most."""
_LONGEST_POOLED = 12
"""Of one in which every line is made once and read at once."""
_NEVER = sys.maxsize


@dataclass(frozen=True)
class Segment:
    """Operators [begin, end) of the order; `rows` and `first`, the number of its first operator, when they run by lines.

    `bytes`: what is live while it runs, overlaps counted. `rings`: lines to keep of each tensor that does not leave the
    segment. `partial`: bytes of partial results by operator. `pairs`: (input, output) -> safe distances.
    """

    begin: int
    end: int
    bytes: int
    pairs: dict[tuple[str, str], Reach]
    rows: Rows | None = None
    first: int = 0
    rings: dict[str, int] = field(default_factory=dict)
    partial: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """(operator counted from `begin`, first line, line after the last), in order."""
        if self.rows is None:
            return []
        skipped = self.begin - self.first
        return [(n - skipped, first, stop) for n, first, stop in self.rows.runs(skipped)]


@dataclass(frozen=True)
class _Window:
    """All operators [first, end) that may share a segment that ends at `end`; `inner[k]`: bytes of the results of
    its last k operators, `partial[k]` of their partial results.
    """

    rows: Rows
    first: int
    rings: dict[str, int]
    inner: list[int]


class Cutter:
    """Cuts operators with code, in their order; `up` rounds sizes to the alignment.

    `pooled`: the only segments of several operators are one with windows, what follows element by element, and a pool of windows that lie
    side by side, with what unpacks their inputs and packs their output: every line is made once and read at once. `undivided`: numbers
    of operators at which no segment begins. `known`: rows of the same network.
    """

    def __init__(
        self,
        buffers: Buffers,
        ops: list[OpSpec],
        up: Callable[[int], int],
        pooled: bool = False,
        undivided: Collection[int] = (),
        known: KnownRows | None = None,
    ):
        self.buffers, self.ops, self.up, self.pooled = buffers, ops, up, pooled
        self.longest = _LONGEST_POOLED if pooled else LONGEST
        self.undivided = set(undivided)
        self._known = known or KnownRows()
        self.tensors = buffers.problem.tensors
        self.written: dict[Buffer, int] = dict.fromkeys(buffers.distinct(), -1)
        self.read, self.born = dict.fromkeys(self.written, -1), dict.fromkeys(self.written, -1)
        for position, op in enumerate(ops):
            output = buffers.of[op.output]
            if self.written[output] < 0:
                self.born[output] = position
            self.written[output] = position
            for name in op.inputs:
                self.read[buffers.of[name]] = position
        for buffer in self.written:
            if buffer.is_output:
                self.read[buffer] = len(ops)
        self._crossing = self._make_crossing()
        self._needed = [self._needed_until(op) for op in ops]
        self._covered = [self._may_be_covered(op) for op in ops]
        self._windows: dict[int, _Window | None] = {}
        self._ahead: dict[tuple[str, str, int], int] = {}
        self._streamable = [streamable(op, buffers.problem) for op in ops]
        self._dying = self._fewest_lines()
        self._ends: dict[int, range] = {}
        self._weighed: dict[tuple[int, int], Segment] = {}

    def cut(self, budget: int = 0) -> list[Segment]:
        """The best segments: at most `budget` bytes in each where that is possible, else the fewest bytes; of these the fewest
        streamed operators.

        Backwards over the operators: the best first segment from each, and the rest after it.
        """
        limit, count = self._peak(budget), len(self.ops)
        fused: list[int] = [_NEVER] * count + [0]
        firsts: dict[int, Segment] = {}
        for begin in reversed(range(count)):
            for end, least in self._cuts_from(begin):
                streamed = fused[end] + (end - begin if end > begin + 1 else 0)
                if streamed < fused[begin] and least <= limit:
                    segment = self.weigh(begin, end)
                    if segment.bytes <= limit:
                        fused[begin], firsts[begin] = streamed, segment
        segments, at = [], 0
        while at < count:
            segments.append(firsts[at])
            at = segments[-1].end
        return segments

    def _peak(self, budget: int) -> int:
        """The fewest bytes, `budget` at the least, in which the largest segment of a cut can live.

        Best first from the first operator on. A segment is weighed when no other one is left that may be smaller.
        """
        known: set[int] = set()
        waiting = [(budget, False, 0, 0)]  # bytes, whether the segment is yet to be weighed, its end, minus its begin
        while True:
            size, unknown, end, begin = heappop(waiting)
            if end in known:
                continue
            if unknown:
                heappush(waiting, (max(size, self.weigh(-begin, end).bytes), False, end, begin))
                continue
            if end == len(self.ops):
                return size
            known.add(end)
            for stop, least in self._cuts_from(end):
                heappush(waiting, (max(size, least), True, stop, -end))

    def _cuts_from(self, begin: int) -> list[tuple[int, int]]:
        """Where a segment that begins with this operator ends in a cut, in ascending order, and the bytes that it has at least; nowhere if
        none begins there."""
        if begin in self.undivided:
            return []
        return [
            (end, least)
            for end, least in zip(self.ends(begin), self.at_least(begin), strict=True)
            if end not in self.undivided and (end == begin + 1 or not self.pooled or self._is_pooled(begin, end))
        ]

    def at_least(self, begin: int) -> list[int]:
        """For each end of a segment that begins with this operator the bytes that it has at least, 0 for the operator alone: what is there
        before it or is left after it, whichever is more, as overlaps save no more than the other; and the lines between its operators that
        one line needs.
        """
        lines, found = 0, []
        for end in self.ends(begin):
            lines += sum(size for position, size in self._dying[end - 1] if position >= begin)
            found.append(lines + max(self._crossing[begin], self._crossing[end]) if end > begin + 1 else 0)
        return found

    def _fewest_lines(self) -> list[list[tuple[int, int]]]:
        """For each operator the others whose results are read by it last, each with the bytes of the lines that a line buffer has at least:
        those of which some line that is made reads the first and the last one.
        """
        every = [True] * len(self.ops)  # whether all lines of the result are made in each segment
        spans: list[int] = [1] * len(self.ops)
        writers = {op.output: position for position, op in enumerate(self.ops)}
        seen: set[int] = set()
        for position in reversed(range(len(self.ops))):
            op = self.ops[position]
            for name in dict.fromkeys(op.inputs) if self._streamable[position] else ():
                source = writers.get(name)
                if source is None:
                    continue
                reads = self._known.reads(op, name, self.tensors)
                sizes = [r[-1] - r[0] + 1 if r else 1 for r in reads]
                spans[source] = max(spans[source], (max if every[position] else min)(sizes))
                covers = every[position] and len({y for r in reads for y in r}) == self.tensors[name].height
                every[source] = covers or (every[source] and source in seen)
                seen.add(source)
        found: list[list[tuple[int, int]]] = [[] for _ in self.ops]
        for position, op in enumerate(self.ops):
            if self._needed[position] < len(self.ops) and not self.buffers.of[op.output].external:
                size = self.up(spans[position] * self.buffers.geometry(op.output).line)
                found[self._needed[position]].append((position, size))
        return found

    def ends(self, begin: int) -> range:
        """Where a segment that begins with this operator may end, in ascending order."""
        if begin not in self._ends:
            end = begin + 1
            while end < min(len(self.ops), begin + self.longest) and self._may_share(begin, end + 1):
                end += 1
            self._ends[begin] = range(begin + 1, end + 1)
        return self._ends[begin]

    def rings(self, end: int) -> dict[str, int]:
        """The lines to keep of each tensor that does not leave a segment that ends there."""
        return self._window(end).rings

    def crossing(self, begin: int) -> int:
        """Bytes of what was written before an operator and is read by it or later."""
        return self._crossing[begin]

    def _make_crossing(self) -> list[int]:
        """For each operator, and after the last one, what was written before and is read by it or later."""
        count = len(self.ops)
        change = [0] * (count + 2)
        for buffer, born in self.born.items():
            read = self.read[buffer]
            if not buffer.external and read > born:
                size = self._bytes(buffer)
                change[born + 1] += size
                change[read + 1] -= size
        return list(accumulate(change))[: count + 1]

    def _may_be_covered(self, op: OpSpec) -> dict[str, tuple[int, int]]:
        """The inputs of an operator whose bytes an output may take, and the last operators that write and read these bytes."""
        sources = {name: self.buffers.of[name] for name in op.inputs}
        return {
            name: (self.written[source], self.read[source])
            for name, source in sources.items()
            if not source.external and name not in source.reshaped
        }

    def _needed_until(self, op: OpSpec) -> int:
        """The last operator that reads the result of one, none before the end where nobody or somebody in another way does."""
        buffer = self.buffers.of[op.output]
        read = self.read[buffer]
        return _NEVER if read < 0 or buffer.whole or len(buffer.parts) > 1 else read

    def _may_share(self, begin: int, end: int) -> bool:
        """True if the operators [begin, end) may be one segment when [begin, end - 1) may."""
        if not (self._streamable[begin] and self._streamable[end - 1]):
            return False
        return all(self._barrier(name) < begin for name in self.ops[end - 1].inputs)

    def _is_pooled(self, begin: int, end: int) -> bool:
        """True if the operators [begin, end) are one, some element by element and a pool without overlaps, each but that with what unpacks
        its inputs, the last perhaps with what packs its output; nothing else reads what is made between. Without packing, the last is a pool.
        """
        if any(self.leaves(position, end) for position in range(begin, end - 1)):
            return False
        ops = self.ops[begin:end]
        unpacked = {op.output for op in ops if isinstance(op.access, Repacked) and op.access.unpacks}
        chain = [op for op in ops if op.output not in unpacked]
        packs = len(chain) > 1 and isinstance(chain[-1].access, Repacked)
        made = chain[:-1] if packs else chain
        if not made or any(isinstance(op.access, Repacked) for op in made):
            return False
        chained = all(set(op.inputs) - unpacked == {before.output} for before, op in pairwise(made))
        if packs and chain[-1].inputs != (made[-1].output,):
            return False
        pool = made[-1].access
        pools = len(made) > 1 and isinstance(pool, PoolWindow) and pool.stride == pool.kernel and not any(pool.pads)
        between = made[1:-1] if pools else made[1:]
        return chained and (pools or packs or bool(unpacked)) and all(op.access.overlay is Overlay.POINTWISE for op in between)

    def _barrier(self, name: str) -> int:
        """A tensor that is seen in another shape must be complete: the operator that writes it, else -1."""
        buffer = self.buffers.of[name]
        return self.written[buffer] if buffer.root.name != name else -1

    def leaves(self, position: int, end: int) -> bool:
        """True if the result of an operator is needed after `end`, as a whole, or by nobody."""
        return self._needed[position] >= end

    def _window(self, end: int) -> _Window:
        """The longest window that ends at `end`."""
        found = self._windows.get(end)
        if found is None:
            first = end - 1
            while first > max(0, end - self.longest) and self._streamable[first - 1]:
                first -= 1
            barrier = max((self._barrier(name) for op in self.ops[first:end] for name in op.inputs), default=-1)
            if barrier >= first:
                first = min(barrier + 1, end - 1)
            found = self._windows[end] = self._measured(first, end)
        return found

    def _measured(self, first: int, end: int) -> _Window:
        whole = {position - first for position in range(first, end) if self.leaves(position, end)}
        rows = self._known.rows(self.ops[first:end], self.buffers.problem, whole)
        rings, inner = {}, [0]
        for position in reversed(range(first, end)):
            op, n = self.ops[position], position - first
            size = self._new_bytes(position)
            if n not in whole:
                rings[op.output] = rows.ring(n)
                size = self.up(rings[op.output] * self.buffers.geometry(op.output).line)
            partial = self.up(op.partial_bytes(self.tensors)) if rows.accumulating[n] else 0
            inner.append(inner[-1] + size + self.up(op.scratch_bytes) + partial)
        return _Window(rows, first, rings, inner)

    def _new_bytes(self, position: int) -> int:
        """Bytes of the output of an operator in the arena, if it is the first to write there."""
        buffer = self.buffers.of[self.ops[position].output]
        return self._bytes(buffer) if self.born[buffer] == position else 0

    def _bytes(self, buffer: Buffer) -> int:
        """Bytes of a buffer in the arena."""
        return 0 if buffer.external else self.up(self.buffers.form(buffer).bytes)

    def weigh(self, begin: int, end: int) -> Segment:
        """Live buffers while the operators [begin, end) run."""
        if (begin, end) not in self._weighed:
            self._weighed[begin, end] = self._weigh(begin, end)
        return self._weighed[begin, end]

    def _weigh(self, begin: int, end: int) -> Segment:
        crossing = self.crossing(begin)
        if end == begin + 1:
            op = self.ops[begin]
            live = crossing + self._new_bytes(begin) + self.up(op.scratch_bytes)
            pairs = self._pairs(begin, end, None)
            return Segment(begin, end, live - self._saved(pairs, True), pairs)
        window = self._window(end)
        ops = self.ops[begin:end]
        pairs = self._pairs(begin, end, window)
        partial = {
            op.name: op.partial_bytes(self.tensors)
            for n, op in enumerate(ops)
            if window.rows.accumulating[begin - window.first + n]
        }
        rings = {op.output: window.rings[op.output] for op in ops if op.output in window.rings}
        live = crossing + window.inner[end - begin] - self._saved(pairs, False)
        return Segment(begin, end, live, pairs, window.rows, window.first, rings, partial)

    def _saved(self, pairs: dict[tuple[str, str], Reach], both_ways: bool) -> int:
        """Bytes that overlaps save: every input after its last use with the output that gains most from it."""
        if not pairs:
            return 0
        return max(_gain(pairs, way) for way in ((False, True) if both_ways else (False,)))

    def _pairs(self, begin: int, end: int, window: _Window | None) -> dict[tuple[str, str], Reach]:
        """Outputs that leave a segment over inputs that die in it."""
        buffers, found = self.buffers, {}
        if not buffers.settings.optimize_buffer:
            return found
        leaving = [position for position in range(begin, end) if self._needed[position] >= end]
        names = dict.fromkeys(
            x
            for position in range(begin, end)
            for x, (born, read) in self._covered[position].items()
            if born < begin and read < end
        )
        for x in names:
            source = buffers.of[x]
            form = buffers.form(source)
            for position in leaving:
                op = self.ops[position]
                output = buffers.of[op.output]
                if output.external or output.columns or self.born[output] != position:
                    continue
                out = buffers.form(output)
                if window is None:
                    if sum(buffers.of[name] is source for name in op.inputs) == 1:
                        near = reach(op, self.tensors[x], form, 0, self.tensors[op.output], out, 0)
                        if near is not None:
                            found[x, op.output] = near
                elif len(source.parts) == 1 + len(source.columns):  # no reader under another name
                    key = (x, op.output, end)
                    if key not in self._ahead:
                        self._ahead[key] = window.rows.ahead(x, form.line, position - window.first, out.line)
                    found[x, op.output] = Reach(max(self._ahead[key], -out.bytes), form.bytes, form.bytes, out.bytes)
        return found


def _gain(pairs: dict[tuple[str, str], Reach], backwards: bool) -> int:
    """The bytes that outputs save by lying over their inputs, which lie one after the other."""
    partner: dict[str, str] = {}
    for (x, y), found in pairs.items():
        if x not in partner or found.gain(backwards) > pairs[x, partner[x]].gain(backwards):
            partner[x] = y
    saved = 0
    for y in dict.fromkeys(partner.values()):
        over = [pairs[x, y] for x in partner if partner[x] == y]
        room = over[0].output
        shifts = [max(0, r.backward + room - r.source if backwards else -r.ahead) for r in over]
        end = 0
        for shift, found in sorted(zip(shifts, over, strict=True), key=lambda each: each[0]):
            end = max(end, shift) + found.source
        saved += max(0, room + sum(r.source for r in over) - max(room, end))
    return saved
