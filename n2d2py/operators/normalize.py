"""Normalisation of each position to length 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["SMALLEST_NORM", "Normalize"]

SMALLEST_NORM = 1e-12
"""What is divided by at least, so that a position of zeros stays zero."""


@register
@dataclass(frozen=True)
class Normalize(Op):
    """y = x / max(norm, 1e-12), norm over the channels of each position: "L1" sum |x|, "L2" sqrt(sum x^2)."""

    norm: str
    kind: ClassVar[str] = "Normalize"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 2 * int(np.prod(output))

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].astype(np.float64)
        terms = np.abs(x) if self.norm == "L1" else x * x
        size = np.add.accumulate(terms, axis=1)[:, -1:]
        size = size if self.norm == "L1" else np.sqrt(size)
        return [(x / np.maximum(size, SMALLEST_NORM)).astype(inputs[0].dtype)]
