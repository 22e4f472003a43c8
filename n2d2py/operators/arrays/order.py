"""Positions of the largest or smallest elements, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.base import register

__all__ = ["ArrayOrder"]


@register
@dataclass(frozen=True)
class ArrayOrder(ArrayOp):
    """Positions (outer, count, inner) of the `count` largest elements along the middle axis of (outer, size, inner).

    The largest comes first (the smallest without `largest`), of equal ones the one with the lower position. What is not
    a number counts as larger than all numbers.
    """

    outer: int
    size: int
    inner: int
    count: int
    largest: bool = True
    result: str = "int64"
    kind: ClassVar[str] = "ArrayOrder"

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.outer * self.size * self.inner,)

    def output_size(self) -> int:
        return self.outer * self.count * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.outer * self.size * self.inner * self.count

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(-1, self.outer, self.size, self.inner)
        if self.largest:  # of equal ones the later comes first, from behind
            order = self.size - 1 - np.argsort(x[:, :, ::-1], axis=2, kind="stable")[:, :, ::-1]
        else:
            order = np.argsort(x, axis=2, kind="stable")
        return self.typed(order[:, :, : self.count], inputs)
