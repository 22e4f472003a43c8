"""Softmax over channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.functions import exp, log
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["Softmax"]


@register
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
        wide = grouped.astype(np.float64)
        shifted = wide - wide.max(axis=2, keepdims=True)
        powers = exp(shifted)
        total = np.add.accumulate(powers, axis=2)[:, :, -1:]
        values = shifted - log(total) if self.log else powers / total
        return [values.astype(x.dtype).reshape(x.shape)]
