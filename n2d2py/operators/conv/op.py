"""Two-dimensional convolution (cross-correlation): dense, grouped, depthwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import conv_sums, exact_float
from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register, require_rank
from n2d2py.operators.windows import Pads, output_extent, pad

__all__ = ["Conv"]


@register
@dataclass(frozen=True)
class Conv(Op):
    """y[o, i, j] = bias[o] + sum over c, u, v of w[o, c, u, v] * x[g(c), i*s - p + u*d, j*s - p + v*d].

    Parameters: "weights" (O, C / groups, KH, KW), "bias" (O, always present after loading). In a typed network with `residual` a
    second input is added to y.

    Attributes:
        stride, dilation: (vertical, horizontal).
        pads: zeros added (top, left, bottom, right).
        groups: 1 dense, C depthwise.
    """

    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    kind: ClassVar[str] = "Conv"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape, weights = inputs[0], node.params["weights"]
        require_rank(shape, 4, node, "Conv")
        outputs, per_group, kh, kw = weights.shape
        if per_group * self.groups != shape[1] or outputs % self.groups:
            raise N2D2Error(
                "E202",
                f"Conv '{node.name}': weights for {outputs} outputs and {per_group} channels "
                f"in each of {self.groups} groups do not fit an input of {shape[1]} channels",
                where=node.location,
                remedy="check NbOutputs, the groups and the layer before it",
            )
        extent = [(k - 1) * d + 1 for k, d in zip((kh, kw), self.dilation, strict=True)]
        size = output_extent(shape[2:], extent, self.stride, self.pads, node)
        return [(shape[0], outputs, *size)]

    def is_depthwise(self, node) -> bool:
        """Whether each output reads one channel of its own."""
        outputs, per_group = node.params["weights"].shape[:2]
        return per_group == 1 and outputs == self.groups

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        per_output = int(np.prod(node.params["weights"].shape[1:]))
        return (per_output * output[1] + (len(inputs) > 1) * 2 * output[1]) * output[2] * output[3]

    def _sums(self, x: np.ndarray, node, fill: int, dtype: np.dtype) -> np.ndarray:
        return conv_sums(pad(x, self.pads, fill), node.params["weights"], self.stride, self.dilation, self.groups, dtype)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        sums = self._sums(x, node, 0, x.dtype)
        return [sums + node.params["bias"].astype(x.dtype).reshape(1, -1, 1, 1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        zero_point = graph.type(node.inputs[0]).zero_point
        dtype = exact_float(node.bound)
        acc = self._sums(inputs[0], node, zero_point, dtype)
        acc = acc + node.params["bias"].astype(dtype).reshape(1, -1, 1, 1)
        added = node.residual
        if added is None:
            return [node.requantize(acc, graph.type(node.output))]
        kinds = graph.type(node.inputs[1]), graph.type(node.output)
        return [added.apply(node.requantize(acc, added.type), inputs[1], *kinds)]
