"""Resampling of images: nearest neighbour and bilinear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register, require_rank

MOST_STEPS = 2**14
"""The finest unit of an axis' integer weights is 1 / MOST_STEPS, which 16 bits hold."""


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
        if self.mode == "Nearest":
            first = np.arange(outputs, dtype=np.int64) * inputs // outputs
            return first, first, np.zeros(outputs)
        first, rest, divisor = self._positions(inputs, outputs)
        return first, np.minimum(first + 1, inputs - 1), rest / divisor

    def _positions(self, inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray, int]:
        """(first, rest, divisor), int64: each position of an axis is first + rest / divisor."""
        i = np.arange(outputs, dtype=np.int64)
        if self.coordinates == "HalfPixel":
            numerator, divisor = (2 * i + 1) * inputs - outputs, 2 * outputs
        elif self.coordinates == "AlignCorners":
            numerator, divisor = i * (inputs - 1), max(1, outputs - 1)
        else:
            numerator, divisor = i * inputs, outputs
        numerator = np.clip(numerator, 0, (inputs - 1) * divisor)
        first, rest = np.divmod(numerator, divisor)
        common = np.gcd.reduce([*rest, divisor])
        return first, rest // common, divisor // common

    def integer_weights(self, size: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The weights of lines and of columns of an input of `size`, (2, outputs) int64 each: those of first and second in units that
        both axes hold exactly (of 2^-11 where these would be finer than 1 / MOST_STEPS). Those of a position add up to one divisor.

        Columns are in such a fraction of their unit that float32 holds one over the product of both divisors to 2^-25 of itself: then the
        middle of two integers, times that factor, is rounded to where it lies.
        """
        axes = [self._exact_weights(n, m) for n, m in zip(size, self.size, strict=True)]
        product = int(axes[0][:, 0].sum() * axes[1][:, 0].sum())
        most = MOST_STEPS // int(axes[1][:, 0].sum())
        fine = (
            times
            for times in range(1, most + 1)
            if abs(float(np.float32(1 / (product * times))) * product * times - 1) < 2**-25
        )
        return axes[0], axes[1] * next(fine, 1)

    def _exact_weights(self, inputs: int, outputs: int) -> np.ndarray:
        _, rest, divisor = self._positions(inputs, outputs)
        if divisor > MOST_STEPS:
            rest, divisor = np.rint(rest * (2**11 / divisor)).astype(np.int64), 2**11
        return np.stack([divisor - rest, rest])

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
        """Nearest: q unchanged. Bilinear: acc = sum of the four (q - zero point) times both weights of `integer_weights`; the
        rescale divides by the sum of the weights."""
        x, kind = inputs[0], graph.type(node.output)
        if self.mode == "Nearest":
            return [np.clip(self._pick(x), *node.limits).astype(kind.dtype)]
        acc = self._blend(x.astype(np.int64) - graph.type(node.inputs[0]).zero_point, *self.integer_weights(x.shape[2:]))
        return [node.requantize(acc, kind)]
