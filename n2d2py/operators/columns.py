"""Columns of a tensor, and their concatenation: input and output of the strips of a segment, in place without code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import Access, Joined, memory_access
from n2d2py.operators.base import Op, register


@register
@dataclass(frozen=True)
class Columns(Op):
    """Columns [first, stop) of the input (N, C, H, W)."""

    first: int
    stop: int
    kind: ClassVar[str] = "Columns"
    moves_values: ClassVar[bool] = True
    is_part: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(*inputs[0][:3], self.stop - self.first)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0][..., self.first : self.stop]]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)


@register
@dataclass(frozen=True)
class SideBySide(Op):
    """Concatenation of the inputs (N, C, H, W) along the columns."""

    kind: ClassVar[str] = "SideBySide"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(*inputs[0][:3], sum(shape[3] for shape in inputs))]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [np.concatenate(inputs, axis=3)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)


@memory_access("SideBySide")
def _memory(node: QuantNode, graph: QuantGraph) -> Access:
    return Joined()
