"""Cut segments: vertical strips, or slices of channels, that run one after the other.

The columns of the segment's last output are cut into ranges. Backwards from there, each operator needs the columns of its
inputs that its windows cover; columns that two strips need are computed twice (the halo). Each strip runs all rows from first
to last, with line buffers only as wide as the strip. Inputs and outputs of the segment are whole in memory; the strips write
their columns in place. A problem with strips has each operator of a segment once for each strip, and a view that joins the
results.

Slices serve layers that end in a pool over the whole feature map: a convolution, element-wise functions and the pool compute
some channels from start to end, then the next ones. Nothing is computed twice, and line buffers and pool sums are as thin as a
slice. Each slice is a convolution with its part of the weights; a concatenation joins the pooled vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from n2d2py.memory.access import Access, LineTable, Pointwise, PoolWindow, TensorSpec, Window
from n2d2py.memory.problem import MemoryProblem, OpSpec

Channels = tuple[int, int]
"""Channels [first, stop) of a tensor."""
_STEP = 16
"""Slices are multiples of this many channels, except the last one: whole vectors of the kernels."""
_MOST = 16
"""Largest number of slices."""


def slice_name(name: str, number: int) -> str:
    """Return the name of an operator or tensor in slice `number`."""
    return f"{name}.slice{number}"


@dataclass(frozen=True)
class SliceCut:
    """A segment of operators cut into slices of channels.

    Attributes:
        ops: names of its consecutive operators, each the only consumer of the one before.
        slices: channels of each slice, which all tensors of the segment have.
    """

    ops: tuple[str, ...]
    slices: tuple[Channels, ...]

    @property
    def count(self) -> int:
        """The number of slices."""
        return len(self.slices)


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


Number = TypeVar("Number", int, np.ndarray)
Columns = tuple[int, int]
"""Columns [first, stop) of a tensor."""


@dataclass(frozen=True)
class StripCut:
    """A segment of operators cut into strips.

    Attributes:
        ops: names of its consecutive operators.
        strips: for each strip, the columns of each tensor that the operators write, by name.
    """

    ops: tuple[str, ...]
    strips: tuple[dict[str, Columns], ...]

    @property
    def count(self) -> int:
        """The number of strips."""
        return len(self.strips)


Cut = StripCut | SliceCut
"""The cut of a segment."""


def strip_name(name: str, number: int) -> str:
    """Return the name of an operator or tensor in strip `number`."""
    return f"{name}.strip{number}"


def window_columns(window: Window, columns: tuple[Number, Number]) -> tuple[Number, Number]:
    """Return the columns of the input, padding included, that the windows of some output columns cover."""
    first, stop = columns
    stride, left = window.stride[1], window.pads[1]
    return first * stride - left, (stop - 1) * stride - left + (window.kernel[1] - 1) * window.dilation[1] + 1


def read_columns(access: Access, columns: Columns, width: int) -> Columns:
    """Return the columns of an input of `width` that some output columns read, at least one."""
    ((first, stop),) = ranges_read(access, np.array([columns]), width).tolist()
    return first, stop


def ranges_read(access: Access, columns: np.ndarray, width: int) -> np.ndarray:
    """Apply `read_columns` to many ranges: int64[ranges, 2]."""
    if not isinstance(access, Window):
        return columns
    first, stop = window_columns(access, (columns[:, 0], columns[:, 1]))
    begin, end = np.maximum(first, 0), np.minimum(stop, width)
    begin = np.where(begin < end, begin, np.minimum(begin, width - 1))
    return np.stack((begin, np.maximum(end, begin + 1)), axis=1)


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


def beginning_at(window: Window, covered: Columns, present: Columns) -> Window:
    """Return `window` for an input that holds only the columns `present`, with windows that cover the columns `covered`."""
    top, _, bottom, _ = window.pads
    return replace(window, pads=(top, present[0] - covered[0], bottom, covered[1] - present[1]))


def reading_columns(access: Access, sources: Sequence[TensorSpec], firsts: Sequence[int], output: TensorSpec) -> Access:
    """Return `access` for an operator whose inputs are columns of sources, from `firsts` on."""
    if isinstance(access, Window):
        (first,), (source,) = firsts, sources
        begin, end = window_columns(access, (0, output.width))
        return beginning_at(access, (first + begin, first + end), (0, source.width))
    return shifted(firsts, output.height, output.width, access)


def shifted(firsts: Sequence[int], height: int, width: int, access: Access) -> LineTable:
    """Return the access of an element-wise operator whose operands are shifted by `firsts` columns."""
    lines = tuple((y, y + 1) for y in range(height))
    columns = tuple(tuple((first + x, first + x + 1) for x in range(width)) for first in firsts)
    return LineTable((lines,) * len(firsts), columns, prefers_caller=access.prefers_caller)
