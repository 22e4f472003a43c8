"""Batch normalisation with stored statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["BatchNorm"]


@register
@dataclass(frozen=True)
class BatchNorm(Op):
    """y = scale * (x - mean) / sqrt(variance + epsilon) + bias, per channel.

    Parameters: "scale", "bias", "mean", "variance", each (C).
    """

    epsilon: float = 1e-5
    kind: ClassVar[str] = "BatchNorm"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(output))

    def factors(self, node) -> tuple[np.ndarray, np.ndarray]:
        """(gain, shift) with y = gain * x + shift, float64 (C)."""
        p = {role: np.asarray(array, np.float64) for role, array in node.params.items()}
        gain = p["scale"] / np.sqrt(p["variance"] + self.epsilon)
        return gain, p["bias"] - p["mean"] * gain

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        gain, shift = self.factors(node)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return [x * gain.astype(x.dtype).reshape(shape) + shift.astype(x.dtype).reshape(shape)]
