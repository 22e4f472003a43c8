"""Layers that do nothing at inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["Dropout", "Identity"]


@register
@dataclass(frozen=True)
class Identity(Op):
    """y = x."""

    kind: ClassVar[str] = "Identity"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0]]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return [inputs[0]]


@register
@dataclass(frozen=True)
class Dropout(Identity):
    """y = x at inference; `ratio` is the share of values dropped in training."""

    ratio: float = 0.5
    kind: ClassVar[str] = "Dropout"
