"""Softmax over channels."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Op):
    """exp(x - max) / sum over the channels of each position, in groups of `group_size` (0: all); `log`: its logarithm."""

    group_size: int = 0
    log: bool = False
    kind: ClassVar[str] = "Softmax"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        size = self.group_size or x.shape[1]
        grouped = x.reshape(x.shape[0], x.shape[1] // size, size, *x.shape[2:])
        shifted = grouped - grouped.max(axis=2, keepdims=True)
        powers = np.exp(shifted)
        if self.log:
            return [(shifted - np.log(powers.sum(axis=2, keepdims=True))).reshape(x.shape)]
        return [(powers / powers.sum(axis=2, keepdims=True)).reshape(x.shape)]
