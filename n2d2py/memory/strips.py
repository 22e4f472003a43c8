"""SegmentCut segments: vertical strips, or slices of channels, that run one after the other.

The columns of the segment's last output are cut into ranges. Backwards from there, each operator needs the columns of its
inputs that its windows cover; columns that two strips need are computed twice (the halo). Each strip runs all rows from first
to last, with line buffers only as wide as the strip. Inputs and outputs of the segment are whole in memory; the strips write
their columns in place. A problem with strips has each operator of a segment once for each strip, and a view that joins the
results.

Slices serve layers that end in a pool over the whole feature map: a convolution, element-wise functions and the pool compute
some channels from start to end, then the next ones. Nothing is computed twice, and line buffers and pool sums are as thin as a
slice. Each slice is a convolution with its part of the weights; a concatenation joins the pooled vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from n2d2py.memory.access import Access, LineTable, TensorSpec, Window

Channels = tuple[int, int]
"""Channels [first, stop) of a tensor."""


def slice_name(name: str, number: int) -> str:
    """Return the name of an operator or tensor in slice `number`."""
    return f"{name}.slice{number}"


Number = TypeVar("Number", int, np.ndarray)
Columns = tuple[int, int]
"""Columns [first, stop) of a tensor."""


@dataclass(frozen=True)
class SegmentCut:
    """A segment of consecutive operators, by name, cut into strips or into slices of channels.

    Attributes:
        strips: for each strip the columns of each tensor that the operators write, by name.
        slices: the channels of each slice, which all tensors have; each operator is the only consumer of the one before.
    """

    ops: tuple[str, ...]
    strips: tuple[dict[str, Columns], ...] = ()
    slices: tuple[Channels, ...] = ()

    @property
    def count(self) -> int:
        """The number of strips or slices."""
        return len(self.strips or self.slices)


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
