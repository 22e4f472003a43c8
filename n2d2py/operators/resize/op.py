"""Resampling of images: nearest neighbour and bilinear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register, require_rank

WEIGHT_BITS = 11
"""Fraction bits of an interpolation weight in integer networks, as in OpenCV."""


@register
@dataclass(frozen=True)
class Resize(Op):
    """The image at `size`, channel by channel.

    An output position i of an axis with `n` inputs and `m` outputs lies at the input coordinate

        HalfPixel      (i + 1/2) n / m - 1/2
        AlignCorners   i (n - 1) / (m - 1), 0 where m = 1
        Asymmetric     i n / m

    kept within [0, n - 1]. Nearest takes floor(i n / m), whatever the coordinates; Bilinear weighs the
    two nearest positions of each axis by their distances.

    Attributes:
        size: (height, width) of the output.
        mode: "Nearest" or "Bilinear".
        coordinates: "HalfPixel", "AlignCorners" or "Asymmetric".
    """

    size: tuple[int, int]
    mode: str = "Nearest"
    coordinates: str = "Asymmetric"
    kind: ClassVar[str] = "Resize"
    moves_values: ClassVar[bool] = True  # values, or means of values: within the input's range

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        require_rank(inputs[0], 4, node, "Resize")
        return [(*inputs[0][:2], *self.size)]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 4 * int(np.prod(output)) if self.mode == "Bilinear" else 0

    def taps(self, inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(first, second, fraction) of each output position of an axis: the input positions between which it
        lies, int64, and the weight of the second, float64. Computed from exact ratios."""
        i = np.arange(outputs, dtype=np.int64)
        if self.mode == "Nearest":
            first = i * inputs // outputs
            return first, first, np.zeros(outputs)
        if self.coordinates == "HalfPixel":
            numerator, divisor = (2 * i + 1) * inputs - outputs, 2 * outputs
        elif self.coordinates == "AlignCorners":
            numerator, divisor = i * (inputs - 1), max(1, outputs - 1)
        else:
            numerator, divisor = i * inputs, outputs
        numerator = np.clip(numerator, 0, (inputs - 1) * divisor)
        first = numerator // divisor
        return first, np.minimum(first + 1, inputs - 1), (numerator - first * divisor) / divisor

    def integer_weights(self, inputs: int, outputs: int) -> np.ndarray:
        """(2, outputs) int64: the weights of first and second in units of 2^-WEIGHT_BITS; they add up to 1."""
        second = np.rint(self.taps(inputs, outputs)[2] * 2**WEIGHT_BITS).astype(np.int64)
        return np.stack([2**WEIGHT_BITS - second, second])

    def _blend(self, x: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """x weighted along the columns, then along the lines, by weights (2, outputs) of the type of x."""
        (y0, y1, _), (x0, x1, _) = (self.taps(n, m) for n, m in zip(x.shape[2:], self.size, strict=True))
        wide = x[..., x0] * columns[0] + x[..., x1] * columns[1]
        return wide[:, :, y0] * rows[0][:, None] + wide[:, :, y1] * rows[1][:, None]

    def _pick(self, x: np.ndarray) -> np.ndarray:
        (rows, _, _), (columns, _, _) = (self.taps(n, m) for n, m in zip(x.shape[2:], self.size, strict=True))
        return np.ascontiguousarray(x[:, :, rows][..., columns])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        if self.mode == "Nearest":
            return [self._pick(x)]
        fractions = [self.taps(n, m)[2] for n, m in zip(x.shape[2:], self.size, strict=True)]
        rows, columns = (np.stack([1 - f, f]).astype(x.dtype) for f in fractions)
        return [self._blend(x, rows, columns)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Nearest: q unchanged. Bilinear: acc = sum of the four q times both weights of `integer_weights`; the
        rescale divides by 2^22. A zero point stays what it is, as the weights add up to 1."""
        x, kind = inputs[0], graph.type(node.output)
        if self.mode == "Nearest":
            return [np.clip(self._pick(x), *node.limits).astype(kind.dtype)]
        rows, columns = (self.integer_weights(n, m) for n, m in zip(x.shape[2:], self.size, strict=True))
        acc = self._blend(x.astype(np.int64), rows, columns)
        return [node.rescaling.apply(acc, *node.limits).astype(kind.dtype)]
