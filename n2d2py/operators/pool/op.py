"""Max and average pooling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.exact import sliding_windows
from n2d2py.graph.forms import Dequantized
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register, require_rank
from n2d2py.operators.windows import Pads, output_extent, pad


@register
@dataclass(frozen=True)
class Pool(Op):
    """Maximum or mean over a window, channel by channel.

    Attributes:
        mode: "Max" or "Average".
        kernel, stride: (vertical, horizontal).
        pads: (top, left, bottom, right); never win a maximum.
        count_pad: the mean divides by the whole window (INI pools); else by the part of the window
            inside the input (ONNX default).
    """

    mode: str
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    count_pad: bool = True
    kind: ClassVar[str] = "Pool"

    @property
    def moves_values(self) -> bool:  # type: ignore[override]
        return self.mode == "Max"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        require_rank(shape, 4, node, "Pool")
        return [(*shape[:2], *output_extent(shape[2:], self.kernel, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        window = self.kernel[0] * self.kernel[1]
        return window * output[1] * output[2] * output[3] if self.mode == "Average" else 0

    def window_counts(self, size: Sequence[int]) -> np.ndarray:
        """Divisors of the mean at each output position, (OH, OW) int64, for an input of (H, W)."""
        ones = np.ones((1, 1, *size), np.int64)
        if self.count_pad:
            ones = np.ones_like(pad(ones, self.pads))
        else:
            ones = pad(ones, self.pads)
        return sliding_windows(ones, self.kernel, self.stride, (1, 1)).sum(axis=(4, 5))[0, 0]

    def _windows(self, x: np.ndarray, fill: float) -> np.ndarray:
        return sliding_windows(pad(x, self.pads, fill), self.kernel, self.stride, (1, 1))

    def _max(self, x: np.ndarray) -> np.ndarray:
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return self._windows(x, lowest).max(axis=(4, 5))

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        if self.mode == "Max":
            return [self._max(x)]
        windows = self._windows(x, 0)  # summed in the order of the kernel, whose bits the sums have
        sums = _added(np.moveaxis(windows.reshape(*windows.shape[:4], -1), 4, 0)).astype(x.dtype)
        return [sums / self.window_counts(x.shape[2:]).astype(x.dtype)]

    def order(self, size: tuple[int, int]) -> str:
        """How real numbers of an input of (H, W) are summed up in float32, as ONNX Runtime's operators do it.

        "lanes": a window that is the whole input, with strides of 1, in four sums, positions 0, 4, ..., positions 1, 5, ... and so on,
        which are added (0 + 2) + (1 + 3), then the positions that are left, one by one. "columns": each column from
        the top, then these sums from the left. "rows": one position after the other.
        """
        if self.kernel == tuple(size) and self.stride == (1, 1) and not any(self.pads):
            return "lanes"
        return "columns" if self.stride[1] <= 2 else "rows"

    def _real_sums(self, x: np.ndarray) -> np.ndarray:
        """Sums (N, C, OH, OW) of float32 numbers in the order of `order`."""
        windows = self._windows(x, 0)
        order = self.order(x.shape[2:])
        if order == "lanes":
            flat = windows.reshape(*windows.shape[:4], -1)
            whole = flat.shape[-1] // 4 * 4
            none = np.zeros((*flat.shape[:4], 4), np.float32)  # windows of less than four have these alone
            lanes = _added([none, *np.moveaxis(flat[..., :whole].reshape(*flat.shape[:4], -1, 4), 4, 0)])
            total = (lanes[..., 0] + lanes[..., 2]) + (lanes[..., 1] + lanes[..., 3])
            return _added([total, *np.moveaxis(flat[..., whole:], 4, 0)])
        if order == "columns":
            return _added(np.moveaxis(_added(np.moveaxis(windows, 4, 0)), 4, 0))
        return _added(np.moveaxis(windows.reshape(*windows.shape[:4], -1), 4, 0))

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Average: sums rescaled by the factor of the window's count, factor k-1 for a count of k.

        Dequantized: the mean of the real numbers, in float32.
        """
        x = inputs[0]
        kind = graph.type(node.output)
        if self.mode == "Max":
            return [np.clip(self._max(x), *node.limits).astype(kind.dtype)]
        if isinstance(node.form, Dequantized):
            real = (x.astype(np.float32) - np.float32(graph.type(node.inputs[0]).zero_point)) * node.form.scales[0]
            counts = self.window_counts(x.shape[2:]).astype(np.float32)
            return [node.requantize(self._real_sums(real) / counts, kind)]
        zero_point = graph.type(node.inputs[0]).zero_point
        sums = self._windows(x.astype(np.int64) - zero_point, 0).sum(axis=(4, 5))
        if node.rescaling.count == 1:
            return [node.requantize(sums, kind)]
        result = np.zeros(sums.shape, kind.dtype)
        counts = self.window_counts(x.shape[2:])
        for count in np.unique(counts):
            where = counts == count
            picked = np.zeros((*sums.shape[:2], node.rescaling.count, int(where.sum())), np.int64)
            picked[:, :, count - 1] = sums[:, :, where]
            result[:, :, where] = node.requantize(picked, kind, axis=2)[:, :, count - 1]
        return [result]


def _added(terms: Iterable[np.ndarray]) -> np.ndarray:
    """The terms, at least one, added up one after the other."""
    return np.asarray(reduce(np.add, terms, np.float32(0)))
