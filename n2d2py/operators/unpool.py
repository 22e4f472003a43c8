"""Max unpooling: each value goes back to where a max pool found its maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.exact import sliding_windows
from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register, require_rank
from n2d2py.operators.deconv import spread_extent
from n2d2py.operators.windows import Pads, pad

__all__ = ["Unpool"]


@register
@dataclass(frozen=True)
class Unpool(Op):
    """y[c, argmax of window (i, j) of z[c]] = x[c, i, j], 0 elsewhere; inputs x and z.

    z is what the pool read: the positions are found again rather than stored. The first of equal
    values counts, in line order. Where windows overlap, values that meet are added. Positions outside
    the output are dropped.

    Attributes:
        kernel, stride, pads: those of the pool, as in Pool.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    kind: ClassVar[str] = "Unpool"
    moves_values: ClassVar[bool] = True

    @property
    def overlaps(self) -> bool:
        """Whether a position may lie in several windows."""
        return any(s < k for s, k in zip(self.stride, self.kernel, strict=True))

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        x, z = inputs
        require_rank(x, 4, node, "Unpool")
        require_rank(z, 4, node, "Unpool")
        pooled = tuple(
            (n + p + q - k) // s + 1
            for n, k, s, p, q in zip(z[2:], self.kernel, self.stride, self.pads[:2], self.pads[2:], strict=True)
        )
        if x[1] != z[1] or pooled != x[2:]:
            raise N2D2Error(
                "E210",
                f"Unpool '{node.name}': the pool of its ArgMax gives "
                f"{pooled[1]}x{pooled[0]}x{z[1]} (width x height x channels), but its input has {x[3]}x{x[2]}x{x[1]}",
                where=node.location,
                remedy="unpool what has the shape of that pool's output",
            )
        return [(*x[:2], *spread_extent(x[2:], self.kernel, self.stride, self.pads, node))]

    def _positions(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(line, column) of the largest element of each window of z, (N, C, OH, OW) each, in the image."""
        lowest = -np.inf if z.dtype.kind == "f" else int(z.min()) - 1
        wide = z if z.dtype.kind == "f" else z.astype(np.int64)
        windows = sliding_windows(pad(wide, self.pads, lowest), self.kernel, self.stride, (1, 1))
        best = windows.reshape(*windows.shape[:4], -1).argmax(axis=4)
        i, j = np.indices(best.shape)[2:]
        return (
            i * self.stride[0] - self.pads[0] + best // self.kernel[1],
            j * self.stride[1] - self.pads[1] + best % self.kernel[1],
        )

    def _spread(self, x: np.ndarray, z: np.ndarray, node) -> np.ndarray:
        size = spread_extent(x.shape[2:], self.kernel, self.stride, self.pads, node)
        lines, columns = self._positions(z)
        inside = (lines >= 0) & (lines < size[0]) & (columns >= 0) & (columns < size[1])
        n, c = np.indices(x.shape)[:2]
        result = np.zeros((*x.shape[:2], *size), x.dtype)
        np.add.at(result, (n[inside], c[inside], lines[inside], columns[inside]), x[inside])
        return result

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._spread(inputs[0], inputs[1], node)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """The same with stored integers; the other positions hold the zero point. Windows do not overlap."""
        zero_point, kind = graph.type(node.inputs[0]).zero_point, graph.type(node.output)
        moved = self._spread(inputs[0].astype(np.int64) - zero_point, inputs[1], node) + zero_point
        return [np.clip(moved, *node.limits).astype(kind.dtype)]
