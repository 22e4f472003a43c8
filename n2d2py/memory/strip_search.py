"""Search of the segments to cut into strips, or slices of channels: the least memory for a given share of repeated work."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.access import Pointwise, PoolWindow, TensorSpec, Window
from n2d2py.memory.buffers import Buffers
from n2d2py.memory.cut import Cutter
from n2d2py.memory.packing import address_step
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.rows import streamable
from n2d2py.memory.settings import Settings
from n2d2py.memory.strips import Channels, Columns, SegmentCut, ranges_read

MOST_STRIPS = 12
_STEP = 16  # slices are multiples of this many channels, except the last one: whole vectors of the kernels
_MOST = 16  # largest number of slices
_WIDER = (*product(range(3), repeat=2), (3, 3))
"""Additional columns that the first and last strip, which have only one halo, may have."""
_OTHERS = (*_WIDER, *((first, first + more) for first in range(3, 7) for more in (0, 1, -1) if (first, more) != (3, 0)))
"""The same for strips that are tried after the estimated best ones."""


@dataclass(frozen=True)
class _Choice:
    """Choices from an operator on: the operators up to `end`, in strips of these columns of the last output (() for none) or in
    slices of these channels, with live bytes and repeated multiply-accumulates. A slice after the first counts as one, to
    avoid needless slices."""

    end: int
    bytes: int
    extra: int
    columns: tuple[Columns, ...] = ()
    channels: tuple[Channels, ...] = ()


@dataclass(frozen=True)
class StripPoint:
    """A point of the curve: estimated peak bytes, repeated work (`_Choice`), and the segments in strips."""

    bytes: int
    extra: int
    cuts: tuple[SegmentCut, ...]

    @property
    def repeated_work(self) -> int:
        """Multiply-accumulates that are computed repeatedly."""
        return self.extra - sum(cut.count - 1 for cut in self.cuts if cut.slices)


def divisions(channels: int) -> list[tuple[Channels, ...]]:
    """Return the ways to cut so many channels, from few slices to many."""
    sizes = dict.fromkeys(-(-channels // (count * _STEP)) * _STEP for count in range(2, _MOST + 1))
    ways = [tuple((first, min(first + size, channels)) for first in range(0, channels, size)) for size in sizes]
    return [way for way in ways if len(way) > 1]


def sliced_from(ops: Sequence[OpSpec], tensors: dict[str, TensorSpec]) -> int | None:
    """Return the index of the convolution from which operators that end in a pool over the whole input can be sliced; else
    None."""
    if len(ops) < 2 or not ops[-1].accumulates(tensors):
        return None
    for number in reversed(range(len(ops) - 1)):
        op = ops[number]
        if op.output != ops[number + 1].inputs[0] or op.scratch_bytes or op.aliased is not None:
            return None
        if isinstance(op.access, Window) and not isinstance(op.access, PoolWindow):
            return number if op.access.groups == 1 else None
        if not isinstance(op.access, Pointwise) or len(op.inputs) > 1:
            return None
    return None


def needed_columns(ops: Sequence[OpSpec], tensors: dict[str, TensorSpec], columns: np.ndarray) -> dict[str, np.ndarray]:
    """Return, for each tensor that the operators write, the columns needed for ranges of columns of the last output:
    int64[ranges, 2]."""
    inner = {op.output for op in ops}
    needed = {ops[-1].output: columns}
    for op in reversed(ops):
        for name in op.inputs:
            if name in inner:
                read = ranges_read(op.access, needed[op.output], tensors[name].width)
                known = needed.get(name, read)
                firsts, stops = np.minimum(read[:, 0], known[:, 0]), np.maximum(read[:, 1], known[:, 1])
                needed[name] = np.stack((firsts, stops), axis=1)
    return needed


def segment_columns(ops: Sequence[OpSpec], tensors: dict[str, TensorSpec], columns: Columns) -> dict[str, Columns]:
    """Apply `needed_columns` to one range."""
    by_tensor = needed_columns(ops, tensors, np.array([columns], dtype=np.int64))
    return {name: (int(first), int(stop)) for name, ((first, stop),) in by_tensor.items()}


def cuts_of(width: int, count: int, before: int = 0, after: int = 0) -> list[Columns]:
    """Return `width` columns in `count` even ranges, with `before` more columns in the first and `after` more in the last."""
    share = (width - before - after) // count
    sizes = [share] * count
    sizes[0] += before
    sizes[-1] += after
    for number in range(width - sum(sizes)):
        sizes[-1 - number // 2 if number % 2 == 0 else number // 2] += 1
    columns, first = [], 0
    for size in sizes:
        columns.append((first, first + size))
        first += size
    return columns


def extra_work(ops: Sequence[OpSpec], tensors: dict[str, TensorSpec], strips: Iterable[dict[str, Columns]]) -> int:
    """Return the multiply-accumulates that strips repeat."""
    total, strips = 0, list(strips)
    for op in ops:
        output = tensors[op.output]
        twice = sum(stop - first for first, stop in (strip[op.output] for strip in strips)) - output.width
        work = op.access.computed(tensors[op.inputs[0]], output)
        total += work * twice // output.width
    return total


def multiply_accumulates(problem: MemoryProblem) -> int:
    """Return the multiply-accumulates of all operators; strips count each time they run."""
    return sum(op.access.computed(problem.tensors[op.inputs[0]], problem.tensors[op.output]) for op in problem.ops if op.inputs)


def strippable(op: OpSpec, problem: MemoryProblem) -> bool:
    """True if the operator can compute some columns of its output alone: windows, and element-wise operators on operands of one
    shape."""
    tensors = problem.tensors
    if not streamable(op, problem) or op.accumulates(tensors) or op.scratch_bytes:
        return False
    if isinstance(op.access, Window):
        return True
    return isinstance(op.access, Pointwise) and all(tensors[name].shape == tensors[op.output].shape for name in op.inputs)


class StripSearch:
    """The cuts of a problem into segments with strips. `fits`: an operator can compute some columns of its output alone;
    `slices`: some channels. `work`: multiply-accumulates of the network, if known."""

    def __init__(
        self,
        problem: MemoryProblem,
        settings: Settings,
        fits: Callable[[str], bool] = lambda name: True,
        slices: Callable[[str], bool] = lambda name: True,
        work: int | None = None,
    ):
        self.problem = problem
        self._buffers = Buffers(problem, settings, ())
        self._ops = [op for op in self._buffers.order() if op.name not in self._buffers.views]
        self._step = address_step(problem, settings)
        self._cutter = Cutter(self._buffers, self._ops, self._up)
        self._fits = [strippable(op, problem) and fits(op.name) for op in self._ops]
        self._sliced = [slices(op.name) for op in self._ops]
        self._choices: list[list[_Choice]] = [[] for _ in self._ops]
        self.work = multiply_accumulates(problem) if work is None else work
        for begin in range(len(self._ops)):
            for end in self._cutter.ends(begin):
                self._choices[begin].append(_Choice(end, self._cutter.weigh(begin, end).bytes, 0))
        for end in range(2, len(self._ops) + 1):
            self._add_strips(end)
            self._add_slices(end)
        self._choices = [_undominated(each) for each in self._choices]

    def curve(self, most_extra: int) -> list[StripPoint]:
        """Return points from the cut without strips to the smallest with at most `most_extra` repeated multiply-accumulates;
        each point needs less memory and more work than the one before."""
        points: list[StripPoint] = []
        sizes = sorted({choice.bytes for choices in self._choices for choice in choices})

        def is_free(limit: int) -> bool:
            point = self._within(limit)
            return point is not None and point.extra <= 0

        point = self._within(sizes[bisect_left(sizes, True, key=is_free)]) if sizes else None
        while point is not None and point.extra <= most_extra:
            if points and points[-1].extra == point.extra:
                points.pop()
            points.append(point)
            smaller = bisect_left(sizes, point.bytes)
            point = self._within(sizes[smaller - 1]) if smaller else None
        return points

    def other_widths(self, point: StripPoint) -> list[StripPoint]:
        """Return the same segments in as many strips, with other widths of the first and last one, whose work is at most that
        of `point`."""
        known, tensors, points = {op.name: op for op in self.problem.ops}, self.problem.tensors, []
        for wider in _OTHERS:
            cuts, extra = [], 0
            for cut in point.cuts:
                if cut.slices:
                    cuts.append(cut)
                    extra += cut.count - 1
                    continue
                ops = [known[name] for name in cut.ops]
                columns = cuts_of(tensors[ops[-1].output].width, len(cut.strips), *wider)
                if any(first >= stop for first, stop in columns):
                    break
                strips = tuple(segment_columns(ops, tensors, each) for each in columns)
                cuts.append(SegmentCut(cut.ops, strips))
                extra += extra_work(ops, tensors, strips)
            else:
                other = StripPoint(point.bytes, extra, tuple(cuts))
                if extra <= point.extra and tuple(cuts) != point.cuts and other not in points:
                    points.append(other)
        return points

    def _within(self, limit: int) -> StripPoint | None:
        """Return the point of least repeated work in which no segment exceeds `limit` bytes; None if none fits."""
        count = len(self._ops)
        rest: list[int | None] = [None] * count + [0]
        firsts: list[_Choice | None] = [None] * count
        for begin in reversed(range(count)):
            for choice in self._choices[begin]:
                after = rest[choice.end]
                if choice.bytes > limit or after is None:
                    continue
                best = rest[begin]
                if best is None or choice.extra + after < best:
                    rest[begin], firsts[begin] = choice.extra + after, choice
        if rest[0] is None:
            return None
        chosen, position = [], 0
        while position < count:
            choice = firsts[position]
            assert choice is not None
            chosen.append((position, choice))
            position = choice.end
        cuts = tuple(self._cut(begin, choice) for begin, choice in chosen if choice.columns or choice.channels)
        return StripPoint(max(choice.bytes for _, choice in chosen), rest[0], cuts)

    def _cut(self, begin: int, choice: _Choice) -> SegmentCut:
        ops = self._ops[begin : choice.end]
        strips = tuple(segment_columns(ops, self.problem.tensors, columns) for columns in choice.columns)
        return SegmentCut(tuple(op.name for op in ops), strips, choice.channels)

    def _up(self, size: int) -> int:
        return round_up(size, self._step)

    def _add_strips(self, end: int) -> None:
        cutter, tensors = self._cutter, self.problem.tensors
        first = end - 1
        while first >= 0 and self._fits[first] and (first == end - 1 or not cutter.leaves(first, end)):
            first -= 1
        first += 1
        width = tensors[self._ops[end - 1].output].width
        if first >= end - 1 or width < 2:
            return
        rings, divisions = cutter.rings(end), self._divisions(width)
        begins = np.cumsum([0, *(len(columns) for columns in divisions)])[:-1]
        needed = needed_columns(self._ops[first:end], tensors, np.array([each for columns in divisions for each in columns]))
        live = np.full(len(divisions), self._up(self._buffers.form(self._buffers.of[self._ops[end - 1].output]).bytes))
        extra = np.zeros(len(divisions), dtype=np.int64)
        for position in reversed(range(first, end - 1)):
            op = self._ops[position]
            if op.output not in rings:
                break
            output = tensors[op.output]
            widths = needed[op.output][:, 1] - needed[op.output][:, 0]
            size = np.maximum.reduceat(widths, begins) * (rings[op.output] * output.pixel_bytes)
            live += -(-size // self._step) * self._step
            repeated_work = np.add.reduceat(widths, begins) - output.width
            extra += op.access.computed(tensors[op.inputs[0]], output) * repeated_work // output.width
            if end in cutter.ends(position):
                self._choices[position] += [
                    _Choice(end, cutter.crossing[position] + int(live[n]), int(extra[n]), divisions[n])
                    for n in _undominated_numbers(live, extra)
                ]

    def _add_slices(self, end: int) -> None:
        cutter, tensors, pool = self._cutter, self.problem.tensors, self._ops[end - 1]
        first = sliced_from(self._ops[:end], tensors)
        if first is None or not all(self._sliced[first:end]) or end not in cutter.ends(first):
            return
        if any(cutter.leaves(position, end) for position in range(first, end - 1)):
            return
        rings, result = cutter.rings(end), self._up(self._buffers.form(self._buffers.of[pool.output]).bytes)
        for channels in divisions(tensors[pool.output].channels):
            thick = max(stop - begin for begin, stop in channels)
            live = result + self._up(pool.partial_bytes(tensors) // tensors[pool.output].channels * thick)
            for op in self._ops[first : end - 1]:
                output = tensors[op.output]
                live += self._up(rings[op.output] * output.width * thick * output.element_bytes)
            live = max(cutter.crossing[first] + live, cutter.crossing[end] + result)
            self._choices[first].append(_Choice(end, live, len(channels) - 1, channels=channels))

    @staticmethod
    def _divisions(width: int) -> list[tuple[Columns, ...]]:
        divisions = [
            tuple(cuts_of(width, count, *wider)) for count in range(2, min(MOST_STRIPS, width) + 1) for wider in _WIDER
        ]
        return [columns for columns in dict.fromkeys(divisions) if all(first < stop for first, stop in columns)]


def _undominated_numbers(sizes: np.ndarray, works: np.ndarray) -> list[int]:
    """Return the indices of choices that no other beats, from few bytes to many; the first of equal ones."""
    order = np.lexsort((works, sizes))
    least = np.minimum.accumulate(works[order])
    undominated = np.append(True, least[1:] < least[:-1])
    return order[undominated].tolist()


def _undominated(choices: Sequence[_Choice]) -> list[_Choice]:
    """Return the choices that no other with the same end beats in bytes and work."""
    undominated: list[_Choice] = []
    for choice in sorted(choices, key=lambda each: (each.end, each.bytes, each.extra)):
        if not undominated or undominated[-1].end != choice.end or choice.extra < undominated[-1].extra:
            undominated.append(choice)
    return undominated
