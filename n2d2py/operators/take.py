"""Chosen positions of each axis: slices, splits, reversals, repetitions, borders that mirror or repeat the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["Take"]


@register
@dataclass(frozen=True)
class Take(Op):
    """y[i, j, ...] = x[indices[0][i], indices[1][j], ...].

    Attributes:
        indices: for each axis after the batch the positions to take, in order, repetitions allowed; None for
            all of them.
    """

    indices: tuple[tuple[int, ...] | None, ...]
    kind: ClassVar[str] = "Take"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        fits = len(self.indices) == len(shape) - 1 and all(
            taken is None or (taken and min(taken) >= 0 and max(taken) < size)
            for taken, size in zip(self.indices, shape[1:], strict=True)
        )
        if not fits:
            raise N2D2Error(
                "E243",
                f"Take '{node.name}' takes positions that an input of {'x'.join(map(str, shape[1:]))} does not have",
                where=node.location,
                remedy="check the layer before it",
            )
        return [
            (shape[0], *(size if taken is None else len(taken) for taken, size in zip(self.indices, shape[1:], strict=True)))
        ]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        for axis, taken in enumerate(self.indices, 1):
            if taken is not None:
                x = np.take(x, taken, axis)
        return [np.ascontiguousarray(x)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """The same integers."""
        return self.run(inputs, node)
