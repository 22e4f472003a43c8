"""Local response normalisation over channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.functions import power
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["LRN"]


SMALLEST_K = 1e-12
"""With less the sum of squares alone divides, which may be 0."""


def window_within(size: int, channels: int) -> int:
    """The smallest window that holds what one of `size` does among so many channels."""
    return min(size, 2 * channels - 1)


@register
@dataclass(frozen=True)
class LRN(Op):
    """y[c] = x[c] / (k + alpha * sum of x[i]^2)^beta, i from c - (size-1)/2 to c + size/2, within the channels.

    `alpha` is not divided by `size` (ONNX divides it).
    """

    size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 2.0
    kind: ClassVar[str] = "LRN"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(output)) * min(self.size, output[1])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].astype(np.float64)
        channels, before = x.shape[1], (self.size - 1) // 2
        squares, sums = x * x, np.zeros_like(x)
        for step in range(max(-before, 1 - channels), min(self.size - before, channels)):
            first, last = max(0, -step), min(channels, channels - step)
            if first < last:
                sums[:, first:last] += squares[:, first + step : last + step]
        base = self.k + self.alpha * sums
        return [(x / power(base, np.float64(self.beta))).astype(inputs[0].dtype)]
