"""Matrix products of two arrays."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.base import register

__all__ = ["ArrayMatMul"]


@register
@dataclass(frozen=True)
class ArrayMatMul(ArrayOp):
    """left @ right: (..., M, K) times (..., K, N) with broadcast leading axes of one rank.

    Sums are made in float64 (integers: int64) in the order of K.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    slots: tuple[int, ...] = (0, 1)
    result: str = ""
    kind: ClassVar[str] = "ArrayMatMul"

    def operand_sizes(self) -> tuple[int, ...]:
        return prod(self.left), prod(self.right)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the result."""
        return tuple(max(a, b) for a, b in zip(self.left[:-2], self.right[:-2], strict=True))

    def output_size(self) -> int:
        return prod(self.batch) * self.left[-2] * self.right[-1]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * self.left[-1]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        a, b = (x.reshape(-1, *dims) for x, dims in zip(self.operands(inputs, node), (self.left, self.right), strict=True))
        wide = np.float64 if a.dtype.kind == "f" else np.int64
        a, b = a.astype(wide), b.astype(wide)
        count = max(len(a), len(b))
        total = np.zeros((count, *self.batch, self.left[-2], self.right[-1]), wide)
        for k in range(self.left[-1]):
            total += a[..., :, k, None] * b[..., k, None, :]
        return self.typed(total, inputs)


memory_access("ArrayMatMul")(whole)
