"""Per-channel gain and shift: what remains of a BatchNorm or of constant Mul and Add that could not be fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import exact_float
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["Affine"]


@register
@dataclass(frozen=True)
class Affine(Op):
    """y[c] = weights[c] * x[c] + bias[c], broadcast over the positions. Parameters: "weights", "bias" (C)."""

    kind: ClassVar[str] = "Affine"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(output))

    @staticmethod
    def _apply(x: np.ndarray, node, dtype: np.dtype) -> np.ndarray:
        shape = (1, -1) + (1,) * (x.ndim - 2)
        weights, bias = (node.params[role].astype(dtype).reshape(shape) for role in ("weights", "bias"))
        return x.astype(dtype) * weights + bias

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._apply(inputs[0], node, inputs[0].dtype)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        acc = self._apply(inputs[0], node, exact_float(node.bound))
        return [node.requantize(acc, graph.type(node.output))]
