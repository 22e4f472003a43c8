"""Shared by sliding-window operators: padding, output sizes, and grouped kernels of Conv and Deconv."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from n2d2py.contracts.operator import Op, OpNode
from n2d2py.graph.shapes import Shape

Pads = tuple[int, int, int, int]
"""(top, left, bottom, right); negative values crop."""


def pad(x: np.ndarray, pads: Pads, fill: float = 0) -> np.ndarray:
    """Return x (N, C, H, W) with `fill` around it, or with rows and columns removed for negative pads."""
    if not any(pads):
        return x
    top, left, bottom, right = pads
    h, w = x.shape[2:]
    x = x[:, :, max(0, -top) : h - max(0, -bottom), max(0, -left) : w - max(0, -right)]
    around = [(0, 0), (0, 0), (max(0, top), max(0, bottom)), (max(0, left), max(0, right))]
    return np.pad(x, around, constant_values=x.dtype.type(fill))


def output_extent(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads, node: OpNode
) -> tuple[int, int]:
    """Return floor((size + pads - extent) / stride) + 1 for each axis; `extent` is the dilated kernel.

    Raises:
        N2D2Error: E203 if the window does not fit into the padded input.
    """
    padded = (size[0] + pads[0] + pads[2], size[1] + pads[1] + pads[3])
    if padded[0] < extent[0] or padded[1] < extent[1]:
        what = f"has a window of {extent[1]}x{extent[0]}, which exceeds its padded input of {padded[1]}x{padded[0]} (width x height)"
        remedy = "use a smaller kernel, smaller strides before the layer, or a larger input"
        raise node.op.error("E203", node, what, remedy)
    height, width = ((p - e) // s + 1 for p, e, s in zip(padded, extent, stride, strict=True))
    return height, width


@dataclass(frozen=True)
class GroupedKernel(Op):
    """An operator with "weights" (O, C / groups, KH, KW); subclasses define the attributes."""

    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def outputs_and_extent(self, shape: Shape, node: OpNode) -> tuple[int, tuple[int, int]]:
        """Return the number of outputs, and height and width of the dilated kernel, for an input of `shape`.

        Raises:
            N2D2Error: E201 for another rank, E202 if the weights have another number of channels.
        """
        self.require_rank(shape, 4, node)
        outputs, per_group, *size = node.params["weights"].shape
        if per_group * self.groups != shape[1] or outputs % self.groups:
            weights = f"weights for {outputs} outputs and {per_group} channels in each of {self.groups} groups"
            what = f"has {weights}, but its input has {shape[1]} channels"
            raise self.error("E202", node, what, "correct NbOutputs, the groups or the layer before it")
        height, width = ((k - 1) * d + 1 for k, d in zip(size, self.dilation, strict=True))
        return outputs, (height, width)

    def is_depthwise(self, node: OpNode) -> bool:
        """True if each output reads only its own channel."""
        outputs, per_group = node.params["weights"].shape[:2]
        return per_group == 1 and outputs == self.groups
