"""Transposed two-dimensional convolution: dense, grouped, depthwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import exact_float
from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import OpNode, register
from n2d2py.operators.grouped import GroupedKernel
from n2d2py.operators.windows import Pads


def spread_extent(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads, node: OpNode
) -> tuple[int, int]:
    """(size - 1) * stride + extent - pads per axis; `extent` is the dilated kernel.

    Raises:
        N2D2Error: E203 when the pads leave nothing.
    """
    height, width = ((n - 1) * s + e - p - q for n, s, e, p, q in zip(size, stride, extent, pads[:2], pads[2:], strict=True))
    if min(height, width) < 1:
        raise N2D2Error(
            "E203",
            f"{node.op.kind} '{node.name}' has a padding that removes the whole output of "
            f"{width + pads[1] + pads[3]}x{height + pads[0] + pads[2]} (width x height)",
            where=node.location,
            remedy="reduce the padding",
        )
    return height, width


@register
@dataclass(frozen=True)
class Deconv(GroupedKernel):
    """y[o, i*s - p + u*d, j*s - p + v*d] = bias[o] + sum of w[o, c, u, v] * x[g(c), i, j].

    The sum runs over all i, j, u, v that lead to the position, and over the input channels c of the
    group of o. Each axis of the output has (size - 1) * stride + extent - pads elements.

    Parameters: "weights" (O, C / groups, KH, KW), outputs first as in Conv; "bias" (O, always present
    after loading).

    Attributes:
        stride, dilation: (vertical, horizontal).
        pads: what is cut off the full result (top, left, bottom, right); negative values at the end add
            positions that only the bias reaches.
        groups: 1 dense, C depthwise.
    """

    kind: ClassVar[str] = "Deconv"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, extent = self.outputs_and_extent(inputs[0], node)
        return [(inputs[0][0], outputs, *spread_extent(inputs[0][2:], extent, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(node.params["weights"].shape)) * inputs[0][2] * inputs[0][3]

    def _sums(self, x: np.ndarray, node, dtype: np.dtype) -> np.ndarray:
        """The result without bias, accumulated in `dtype`: each kernel position adds a strided image."""
        n, _channels, h, w = x.shape
        weights = node.params["weights"].astype(dtype)
        outputs, per_group, kh, kw = weights.shape
        (sy, sx), (dy, dx) = self.stride, self.dilation
        columns = x.astype(dtype).reshape(n, self.groups, per_group, h * w)
        full = np.zeros(
            (
                n,
                outputs,
                (h - 1) * sy + (kh - 1) * dy + 1 + max(0, -self.pads[2]),
                (w - 1) * sx + (kw - 1) * dx + 1 + max(0, -self.pads[3]),
            ),
            dtype,
        )
        for u in range(kh):
            for v in range(kw):
                matrix = weights[:, :, u, v].reshape(self.groups, outputs // self.groups, per_group)
                part = np.matmul(matrix, columns).reshape(n, outputs, h, w)
                full[:, :, u * dy : u * dy + (h - 1) * sy + 1 : sy, v * dx : v * dx + (w - 1) * sx + 1 : sx] += part
        top, left, bottom, right = (max(0, p) for p in self.pads)
        return full[:, :, top : full.shape[2] - bottom, left : full.shape[3] - right]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        return [self._sums(x, node, x.dtype) + node.params["bias"].astype(x.dtype).reshape(1, -1, 1, 1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """acc = bias + sum of w (x - zero point): the zero point is not part of the bias, because positions
        differ in the number of weights that reach them."""
        dtype = exact_float(node.bound)
        centred = inputs[0].astype(np.int64) - graph.type(node.inputs[0]).zero_point
        acc = self._sums(centred, node, dtype) + node.params["bias"].astype(dtype).reshape(1, -1, 1, 1)
        return [node.requantize(acc, graph.type(node.output))]
