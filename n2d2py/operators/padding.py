"""Zeros around an image, or a crop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register, require_rank
from n2d2py.operators.windows import Pads, pad

__all__ = ["Padding"]


@register
@dataclass(frozen=True)
class Padding(Op):
    """Adds zeros (top, left, bottom, right); negative values crop."""

    pads: Pads
    kind: ClassVar[str] = "Padding"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        require_rank(shape, 4, node, "Padding")
        top, left, bottom, right = self.pads
        size = (shape[2] + top + bottom, shape[3] + left + right)
        if min(size) < 1:
            raise N2D2Error(
                "E207",
                f"Padding '{node.name}' leaves nothing of an input of {shape[3]}x{shape[2]} (width x height)",
                where=node.location,
                remedy="crop less",
            )
        return [(*shape[:2], *size)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [pad(inputs[0], self.pads)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return [pad(inputs[0], self.pads, graph.type(node.inputs[0]).zero_point)]
