"""Shared by sliding-window operators: padding and output sizes."""

from collections.abc import Sequence

import numpy as np

from n2d2py.contracts.operator import OpNode

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
    """Return floor((size + pads - extent) / stride) + 1 for each axis, with the dilated kernel `extent`; E203 if it is larger
    than the padded input."""
    padded = (size[0] + pads[0] + pads[2], size[1] + pads[1] + pads[3])
    if padded[0] < extent[0] or padded[1] < extent[1]:
        what = f"has a window of {extent[1]}x{extent[0]}, which exceeds its padded input of {padded[1]}x{padded[0]} (width x height)"
        remedy = "use a smaller kernel, smaller strides before the layer, or a larger input"
        raise node.op.error("E203", node, what, remedy)
    height, width = ((p - e) // s + 1 for p, e, s in zip(padded, extent, stride, strict=True))
    return height, width
