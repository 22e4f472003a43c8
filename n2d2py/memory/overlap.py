"""Exact distances, in bytes, by which an output may overlap an input that dies at its operator.

With d = (address of the output) - (address of the input), the operator is safe if its loops run

    forwards   and d <= Reach.ahead, or
    backwards  and d >= Reach.backward, or
    either way and the two do not share a byte.

Windows and concatenations follow the row rule: rows are stored in order, with any order inside a row, so row y may only cover
what no row >= y (backwards: <= y) reads. Pointwise operators: element i may cover input elements up to i.
"""

from dataclasses import dataclass

import numpy as np

from n2d2py.memory.access import Overlay
from n2d2py.memory.plan import PlaneLayout
from n2d2py.memory.problem import NO_ROW, OpSpec, TensorSpec, first_needed


@dataclass(frozen=True)
class SafeDistances:
    """Safe distances of an output of `output` bytes from an input of `source` bytes."""

    ahead: int
    backward: int
    source: int
    output: int

    def span(self, backwards: bool) -> int:
        """Return the fewest bytes that hold both, forwards up to `ahead` or backwards from the other limit."""
        start = max(self.backward, 0) if backwards else min(self.ahead, 0)
        return max(self.source, start + self.output) - min(0, start)

    def gain(self, backwards: bool) -> int:
        """Return the bytes saved compared with two separate buffers."""
        return self.source + self.output - self.span(backwards)


def safe_distances(
    op: OpSpec,
    source: TensorSpec,
    source_form: PlaneLayout,
    source_part: int,
    output: TensorSpec,
    output_form: PlaneLayout,
    output_part: int,
) -> SafeDistances | None:
    """Return the safe distances of two buffers; None if `op` needs the input until the end. The forms are those of the buffers;
    the parts are offsets of the tensors within a pixel."""
    overlay = op.access.over(source, output)
    if overlay is Overlay.POINTWISE:
        ahead, backward = _elements(source, source_form, output, output_form)
    elif overlay is Overlay.WINDOW:
        reads = [range(read[0], read[-1] + 1) if read else range(0) for read in op.reads(source, output.height)]
        ahead, backward = _lines(reads, source_form.line, output_form.line)
        return _limited(ahead, backward, source_form, output_form)
    else:
        return None
    shift = source_part - output_part
    return _limited(ahead + shift, backward + shift, source_form, output_form)


def _limited(ahead: int, backward: int, source: PlaneLayout, output: PlaneLayout) -> SafeDistances:
    return SafeDistances(max(ahead, -output.bytes), min(backward, source.bytes), source.bytes, output.bytes)


def _lines(reads: list[range], source_line: int, output_line: int) -> tuple[int, int]:
    """Return (ahead, after) of the row rule, for whole rows, gaps and channel slices."""
    rows, free = np.arange(len(reads)), len(reads) * (source_line + output_line)
    first, stop = first_needed(reads), np.maximum.accumulate([rows.stop if rows else -1 for rows in reads])
    before, after = first < NO_ROW, stop >= 0
    ahead = first[before] * source_line - (rows[before] + 1) * output_line
    backward = stop[after] * source_line - rows[after] * output_line
    return int(ahead.min(initial=free)), int(backward.max(initial=-free))


def _elements(source: TensorSpec, source_form: PlaneLayout, output: TensorSpec, output_form: PlaneLayout) -> tuple[int, int]:
    """Return (ahead, after) of element order: each element and the next one. Addresses are linear in pixel and channel, so
    corners decide."""
    pixels, channels = source.height * source.width, source.channels

    def read(pixel: int, channel: int) -> int:
        return pixel * source_form.stride + channel * source.element_bytes

    def stored(pixel: int, channel: int) -> int:
        return pixel * output_form.stride + channel * output.element_bytes

    free = pixels * (source_form.stride + output_form.stride)
    ahead, backward = [free], [-free]
    for pixel in {0, max(pixels - 2, 0), pixels - 1}:
        for channel in {0, max(channels - 2, 0), channels - 1}:
            following = (pixel, channel + 1) if channel + 1 < channels else (pixel + 1, 0)
            if following[0] < pixels:
                ahead.append(read(*following) - stored(pixel, channel) - output.element_bytes)
                backward.append(read(pixel, channel) + source.element_bytes - stored(*following))
    return min(ahead), max(backward)
