"""Columns of a tensor, and their concatenation: input and output of the strips of a segment, in place without code."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.operator import Op, register
from n2d2py.graph import Shape
from n2d2py.memory.access import Joined, memory_access


@register
class Columns(Op):
    """Columns [first, stop) of the input (N, C, H, W)."""

    first: int
    stop: int
    moves_values = True
    is_part = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(*inputs[0][:3], self.stop - self.first)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0][..., self.first : self.stop]]


@register
class SideBySide(Op):
    """Concatenation of the inputs (N, C, H, W) along the columns."""

    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(*inputs[0][:3], sum(shape[3] for shape in inputs))]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [np.concatenate(inputs, axis=3)]


memory_access("SideBySide")(lambda node, graph: Joined())
