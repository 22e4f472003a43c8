"""Segments that run row by row: the order of operators is cut into segments.

A segment is one operator, or several consecutive ones that compute their rows alternately through line buffers. The best cut
has the fewest bytes in its largest segment, or fits a budget, with the fewest streamed operators.
"""

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, pairwise

from n2d2py.memory.access import Overlay, PoolWindow, Repacked
from n2d2py.memory.buffers import Buffer, Buffers
from n2d2py.memory.overlap import SafeDistances, safe_distances
from n2d2py.memory.problem import OpSpec
from n2d2py.memory.rows import KnownRows, Rows, streamable

LONGEST = 60
"""Most operators in a segment."""
_LONGEST_POOLED = 12  # the same for segments that compute and read every row once
_NEVER = sys.maxsize


@dataclass(frozen=True)
class Segment:
    """Operators [begin, end) of the order.

    Attributes:
        rows, first: row order, and index of its first operator, for a segment that runs row by row.
        bytes: live bytes while it runs, overlaps counted.
        rings: rows to keep of each tensor inside the segment.
        partial: bytes of partial results by operator.
        pairs: (input, output) -> safe distances.
    """

    begin: int
    end: int
    bytes: int
    pairs: dict[tuple[str, str], SafeDistances]
    rows: Rows | None = None
    first: int = 0
    rings: dict[str, int] = field(default_factory=dict)
    partial: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """Return (operator index from `begin`, first row, row after the last), in order."""
        if self.rows is None:
            return []
        skipped = self.begin - self.first
        return [(n - skipped, first, stop) for n, first, stop in self.rows.runs(skipped)]


@dataclass(frozen=True)
class _Window:
    """All operators [first, end) that may share a segment ending at `end`; `inner[k]`: bytes of the results and the partial
    results of its last k operators."""

    rows: Rows
    first: int
    rings: dict[str, int]
    inner: list[int]


class Cutter:
    """Cuts the operators with code, in their order; `up` rounds sizes to the alignment. `pooled`: segments of several operators
    are limited to a window operator, element-wise operators and a pool without overlaps, with unpacking before and packing
    after; every row is computed and read once. `undivided`: indices of operators at which no segment begins. `known`: row
    orders of the same network."""

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
        self.crossing = self._make_crossing()
        """Bytes written before each operator, and before the end, and read by it or later."""
        self._needed = [self._needed_until(op) for op in ops]
        self._covered = [self._may_be_covered(op) for op in ops]
        self._windows: dict[int, _Window] = {}
        self._ahead: dict[tuple[str, str, int], int] = {}
        self._streamable = [streamable(op, buffers.problem) for op in ops]
        self._ends: dict[int, range] = {}
        self._weighed: dict[tuple[int, int], Segment] = {}

    def cut(self, budget: int = 0) -> list[Segment]:
        """Return the best segments: at most `budget` bytes each if possible, else the fewest bytes; then the fewest streamed
        operators. Dynamic programming backwards over the operators."""
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
        segments, position = [], 0
        while position < count:
            segments.append(firsts[position])
            position = segments[-1].end
        return segments

    def _peak(self, budget: int) -> int:
        """Return the fewest bytes, at least `budget`, of the largest segment of any cut. Best-first search from the first
        operator; a segment is weighed only when no other candidate can be smaller."""
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
        """Return the ends of segments that begin at this operator, in ascending order, with a lower bound of their bytes."""
        if begin in self.undivided:
            return []
        return [
            (end, least)
            for end, least in zip(self.ends(begin), self.at_least(begin), strict=True)
            if end not in self.undivided and (end == begin + 1 or not self.pooled or self._is_pooled(begin, end))
        ]

    def at_least(self, begin: int) -> list[int]:
        """Return a lower bound of the bytes of a segment for each of its ends: the larger of the data before and after it,
        since overlaps save at most the smaller one; 0 for the operator alone."""
        return [max(self.crossing[begin], self.crossing[end]) if end > begin + 1 else 0 for end in self.ends(begin)]

    def ends(self, begin: int) -> range:
        """Return where a segment that begins at this operator may end, in ascending order."""
        if begin not in self._ends:
            end = begin + 1
            while end < min(len(self.ops), begin + self.longest) and self._may_share(begin, end + 1):
                end += 1
            self._ends[begin] = range(begin + 1, end + 1)
        return self._ends[begin]

    def rings(self, end: int) -> dict[str, int]:
        """Return the rows to keep of each tensor inside a segment that ends there."""
        return self._window(end).rings

    def _make_crossing(self) -> list[int]:
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
        """Return the inputs of an operator that an output may overwrite, and the last operators that write and read them."""
        return {
            name: (self.written[source], self.read[source])
            for name, source in ((name, self.buffers.of[name]) for name in op.inputs)
            if not source.external and name not in source.reshaped
        }

    def _needed_until(self, op: OpSpec) -> int:
        """Return the last consumer of an operator's result; the end if it has none or is read in another way."""
        buffer = self.buffers.of[op.output]
        read = self.read[buffer]
        return _NEVER if read < 0 or buffer.whole or len(buffer.parts) > 1 else read

    def _may_share(self, begin: int, end: int) -> bool:
        """True if [begin, end) may be one segment, given that [begin, end - 1) may."""
        if not (self._streamable[begin] and self._streamable[end - 1]):
            return False
        return all(self._barrier(name) < begin for name in self.ops[end - 1].inputs)

    def _is_pooled(self, begin: int, end: int) -> bool:
        """True for one window operator with element-wise operators and a pool without overlaps, possibly with unpacking and
        packing, whose intermediate results nothing else reads. Without packing, the last operator is a pool."""
        if any(self.leaves(position, end) for position in range(begin, end - 1)):
            return False
        ops = self.ops[begin:end]
        unpacked = {op.output for op in ops if isinstance(op.access, Repacked) and op.access.unpacks}
        chain = [op for op in ops if op.output not in unpacked]
        packs = len(chain) > 1 and isinstance(chain[-1].access, Repacked)
        computing = chain[:-1] if packs else chain
        if not computing or any(isinstance(op.access, Repacked) for op in computing):
            return False
        chained = all(set(op.inputs) - unpacked == {before.output} for before, op in pairwise(computing))
        if packs and chain[-1].inputs != (computing[-1].output,):
            return False
        pool = computing[-1].access
        pools = len(computing) > 1 and isinstance(pool, PoolWindow) and pool.stride == pool.kernel and not any(pool.pads)
        between = computing[1:-1] if pools else computing[1:]
        return chained and (pools or packs or bool(unpacked)) and all(op.access.overlay is Overlay.POINTWISE for op in between)

    def _barrier(self, name: str) -> int:
        """Return the producer of a tensor that is viewed in another shape, and must therefore be complete; else -1."""
        buffer = self.buffers.of[name]
        return self.written[buffer] if buffer.root.name != name else -1

    def leaves(self, position: int, end: int) -> bool:
        """True if the result of an operator is needed after `end`, as a whole, or never."""
        return self._needed[position] >= end

    def _window(self, end: int) -> _Window:
        if end not in self._windows:
            first = end - 1
            while first > max(0, end - self.longest) and self._streamable[first - 1]:
                first -= 1
            barrier = max((self._barrier(name) for op in self.ops[first:end] for name in op.inputs), default=-1)
            if barrier >= first:
                first = min(barrier + 1, end - 1)
            self._windows[end] = self._measured(first, end)
        return self._windows[end]

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
        """Return the bytes of an operator's output in the arena if it is the first to write there."""
        buffer = self.buffers.of[self.ops[position].output]
        return self._bytes(buffer) if self.born[buffer] == position else 0

    def _bytes(self, buffer: Buffer) -> int:
        return 0 if buffer.external else self.up(self.buffers.form(buffer).bytes)

    def weigh(self, begin: int, end: int) -> Segment:
        """Return the segment [begin, end) with its live bytes."""
        if (begin, end) not in self._weighed:
            single = end == begin + 1
            self._weighed[begin, end] = self._whole(begin) if single else self._by_rows(begin, end)
        return self._weighed[begin, end]

    def _whole(self, begin: int) -> Segment:
        """Return the segment of one operator, which runs forwards or backwards."""
        live = self.crossing[begin] + self._new_bytes(begin) + self.up(self.ops[begin].scratch_bytes)
        pairs = self._pairs(begin, begin + 1, None)
        return Segment(begin, begin + 1, live - max(_gain(pairs, False), _gain(pairs, True)), pairs)

    def _by_rows(self, begin: int, end: int) -> Segment:
        window, ops = self._window(end), self.ops[begin:end]
        pairs = self._pairs(begin, end, window)
        accumulating = window.rows.accumulating[begin - window.first :]
        partial = {op.name: op.partial_bytes(self.tensors) for op, sums in zip(ops, accumulating, strict=True) if sums}
        rings = {op.output: window.rings[op.output] for op in ops if op.output in window.rings}
        live = self.crossing[begin] + window.inner[end - begin] - _gain(pairs, False)
        return Segment(begin, end, live, pairs, window.rows, window.first, rings, partial)

    def _pairs(self, begin: int, end: int, window: _Window | None) -> dict[tuple[str, str], SafeDistances]:
        """Return outputs that leave a segment, with the inputs that die in it."""
        buffers, pairs = self.buffers, {}
        if not buffers.settings.optimize_buffer:
            return pairs
        leaving = [position for position in range(begin, end) if self._needed[position] >= end]
        covered = (each for position in range(begin, end) for each in self._covered[position].items())
        for x in dict.fromkeys(name for name, (born, read) in covered if born < begin and read < end):
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
                        near = safe_distances(op, self.tensors[x], form, 0, self.tensors[op.output], out, 0)
                        if near is not None:
                            pairs[x, op.output] = near
                elif len(source.parts) == 1 + len(source.columns):  # no reader under another name
                    key = (x, op.output, end)
                    if key not in self._ahead:
                        self._ahead[key] = window.rows.ahead(x, form.line, position - window.first, out.line)
                    pairs[x, op.output] = SafeDistances(max(self._ahead[key], -out.bytes), form.bytes, form.bytes, out.bytes)
        return pairs


def _gain(pairs: dict[tuple[str, str], SafeDistances], backwards: bool) -> int:
    """Return the bytes saved by overlaps: each input, after its last use, with the output that gains most."""
    partner: dict[str, str] = {}
    for (x, y), distances in pairs.items():
        if x not in partner or distances.gain(backwards) > pairs[x, partner[x]].gain(backwards):
            partner[x] = y
    saved = 0
    for y in dict.fromkeys(partner.values()):
        over = [pairs[x, y] for x in partner if partner[x] == y]
        room = over[0].output
        shifts = [max(0, r.backward + room - r.source if backwards else -r.ahead) for r in over]
        end = 0
        for shift, distances in sorted(zip(shifts, over, strict=True), key=lambda each: each[0]):
            end = max(end, shift) + distances.source
        saved += max(0, room + sum(r.source for r in over) - max(room, end))
    return saved
