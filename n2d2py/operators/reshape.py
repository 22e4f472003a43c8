"""The same elements in another shape."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["Reshape"]


@register
@dataclass(frozen=True)
class Reshape(Op):
    """The elements in row-major (C, H, W) order as `dims`, the shape without the batch axis."""

    dims: tuple[int, ...]
    kind: ClassVar[str] = "Reshape"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if prod(self.dims) != prod(inputs[0][1:]):
            raise N2D2Error(
                "E208",
                f"Reshape '{node.name}': {'x'.join(map(str, inputs[0][1:]))} cannot become {'x'.join(map(str, self.dims))}",
                where=node.location,
                remedy="the number of elements must stay the same",
            )
        return [(inputs[0][0], *self.dims)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0].reshape(len(inputs[0]), *self.dims)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)
