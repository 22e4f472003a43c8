"""Two-dimensional convolution (cross-correlation): dense, grouped, depthwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import conv_sums, exact_float
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import register
from n2d2py.operators.grouped import GroupedKernel
from n2d2py.operators.windows import output_extent, pad


@register
@dataclass(frozen=True)
class Conv(GroupedKernel):
    """y[o, i, j] = bias[o] + sum over c, u, v of w[o, c, u, v] * x[g(c), i*s - p + u*d, j*s - p + v*d].

    Parameters: "weights" (O, C / groups, KH, KW), "bias" (O, always present after loading). In a typed network with `residual` a
    second input is added to y.

    Attributes:
        stride, dilation: (vertical, horizontal).
        pads: zeros added (top, left, bottom, right).
        groups: 1 dense, C depthwise.
    """

    kind: ClassVar[str] = "Conv"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, extent = self.outputs_and_extent(inputs[0], node)
        return [(inputs[0][0], outputs, *output_extent(inputs[0][2:], extent, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        per_output = int(np.prod(node.params["weights"].shape[1:]))
        return (per_output * output[1] + (len(inputs) > 1) * 2 * output[1]) * output[2] * output[3]

    def _sums(self, x: np.ndarray, node, fill: int, dtype: np.dtype) -> np.ndarray:
        return conv_sums(pad(x, self.pads, fill), node.params["weights"], self.stride, self.dilation, self.groups, dtype)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        sums = self._sums(x, node, 0, x.dtype)
        sums += node.params["bias"].astype(x.dtype).reshape(1, -1, 1, 1)
        return [sums]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        zero_point = graph.type(node.inputs[0]).zero_point
        dtype = exact_float(node.bound)
        acc = self._sums(inputs[0], node, zero_point, dtype)
        acc += node.params["bias"].astype(dtype).reshape(1, -1, 1, 1)
        added = node.residual
        if added is None:
            return [node.requantize(acc, graph.type(node.output))]
        kinds = graph.type(node.inputs[1]), graph.type(node.output)
        return [added.apply(node.requantize(acc, added.type), inputs[1], *kinds)]
