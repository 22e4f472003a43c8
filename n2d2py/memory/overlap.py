"""Exact distances, in bytes, by which an output may overlap an input that dies at its operator.

With d = (address of the output) - (address of the input), the operator is safe if its loops run

    forwards   and d <= Reach.ahead, or
    backwards  and d >= Reach.backward, or
    either way and the two do not share a byte.

Windows and concatenations follow the row rule: rows are stored in order, with any order inside a row, so row y may only cover
what no row >= y (backwards: <= y) reads. Pointwise operators: element i may cover input elements up to i.
"""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.memory.access import Overlay
from n2d2py.memory.manager import PlaneLayout
from n2d2py.memory.problem import OpSpec, TensorSpec


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
    """Return the safe distances of two buffers; None if `op` needs the input until the end.

    The forms are those of the buffers; the parts are offsets of the tensors within a pixel.
    """
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
    """Return distances limited to those of disjoint buffers."""
    return SafeDistances(max(ahead, -output.bytes), min(backward, source.bytes), source.bytes, output.bytes)


def _lines(reads: list[range], source_line: int, output_line: int) -> tuple[int, int]:
    """Return (ahead, after) of the row rule, for whole rows, gaps and channel slices."""
    free = len(reads) * (source_line + output_line)
    ahead, needed = free, None
    for y in reversed(range(len(reads))):
        if reads[y]:
            needed = reads[y].start if needed is None else min(needed, reads[y].start)
        if needed is not None:
            ahead = min(ahead, needed * source_line - (y + 1) * output_line)
    backward, needed = -free, None
    for y, rows in enumerate(reads):
        if rows:
            needed = rows.stop if needed is None else max(needed, rows.stop)
        if needed is not None:
            backward = max(backward, needed * source_line - y * output_line)
    return ahead, backward


def _elements(source: TensorSpec, source_form: PlaneLayout, output: TensorSpec, output_form: PlaneLayout) -> tuple[int, int]:
    """Return (ahead, after) of element order. Addresses are linear in pixel and channel, so corners decide."""
    pixels, channels = source.height * source.width, source.channels
    size, width = source.element_bytes, output.element_bytes
    # forwards: element i is stored before the elements after it are read
    free = pixels * (source_form.stride + output_form.stride)
    ahead = [free]
    if channels > 1:
        ahead += [
            p * source_form.stride + (c + 1) * size - p * output_form.stride - (c + 1) * width
            for p in {0, pixels - 1}
            for c in {0, channels - 2}
        ]
    if pixels > 1:
        ahead += [(p + 1) * source_form.stride - p * output_form.stride - channels * width for p in {0, pixels - 2}]
    # backwards: element i is stored before the elements in front of it are read
    backward = [-free]
    if channels > 1:
        backward += [
            p * source_form.stride + c * size - p * output_form.stride - c * width
            for p in {0, pixels - 1}
            for c in {1, channels - 1}
        ]
    if pixels > 1:
        backward += [(p - 1) * source_form.stride + channels * size - p * output_form.stride for p in {1, pixels - 1}]
    return min(ahead), max(backward)
