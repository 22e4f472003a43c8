"""Shared by Conv and the pools: images of one row for 1-D layers, pads from auto_pad, pads and ceil_mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.graph.shapes import MAX_PAD, MAX_STEP, height, width
from n2d2py.operators.base import Op, make_operator
from n2d2py.operators.windows import Pads


def image_size(node: OnnxNode) -> tuple[int, int]:
    """(height, width) of input 0, which has one line below rank 4."""
    shape = node.require_rank(3, 4)
    return height(shape), width(shape)


def check_bias(values: int, outputs: int) -> None:
    """Raise Unsupported where a convolution has another number of biases than of outputs."""
    if values != outputs:
        raise Unsupported(f"its bias has {values} values for {outputs} outputs", "export the model again")


def windowed_layer(node: OnnxNode, builder: Builder, op: Op, params: Mapping[str, np.ndarray | None] | None = None) -> None:
    """Adds a two-dimensional layer; a tensor of rank 3 is made an image of one line and back. Weights are input 1."""
    tensor, shape, weights_at = node.tensor(), node.shape(), 1 if params else None
    weights, bias = (None if params is None else params.get(role) for role in ("weights", "bias"))
    if weights is not None and bias is not None:
        check_bias(len(bias), len(weights))
    if len(shape) == 4:
        builder.layer(node, op, [tensor], params, weights_at=weights_at)
        return
    image = builder.layer(node, make_operator("Reshape", (shape[1], 1, shape[2])), [tensor], part="line")
    result = builder.layer(node, op, [image], params, part="image", weights_at=weights_at)
    _, count, _, length = builder.graph.shape(result)
    builder.layer(node, make_operator("Reshape", (count, length)), [result])


def _spatial(node: OnnxNode) -> int:
    return len(node.shape()) - 2


def pair(node: OnnxNode, name: str) -> tuple[int, int]:
    """(vertical, horizontal) of an attribute with one value per spatial axis; 1 by default."""
    axes = _spatial(node)
    values = node.attribute(name) or [1] * axes
    if len(values) != axes:
        raise Unsupported(f"its {name} have {len(values)} values for {axes} spatial axes")
    values = [1] * (2 - axes) + list(values)
    if min(values) < 1 or max(values) > MAX_STEP:
        raise Unsupported(f"its {name} are not positive" if min(values) < 1 else f"its {name} are larger than any image")
    return int(values[0]), int(values[1])


def read_pads(node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]) -> Pads:
    """(top, left, bottom, right) for an input of `size` and a (dilated) window of `extent`."""
    mode = node.attribute("auto_pad", "NOTSET")
    if mode == "NOTSET":
        axes = _spatial(node)
        pads = [int(p) for p in node.attribute("pads") or [0] * 2 * axes]
        if len(pads) != 2 * axes:
            raise Unsupported(f"its pads have {len(pads)} values instead of {2 * axes}")
        pads = [0, pads[0], 0, pads[1]] if axes == 1 else pads
        if max(pads) > MAX_PAD:
            raise Unsupported(f"its pads exceed the limit of {MAX_PAD}")
        if min(pads) < 0:
            raise Unsupported("negative pads are not supported", "crop with a Pad or Slice before it")
        top, left, bottom, right = pads
        return top, left, bottom, right
    if mode == "VALID":
        return 0, 0, 0, 0
    begin, end = [], []
    for n, k, s in zip(size, extent, stride, strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        small, large = total // 2, total - total // 2
        begin.append(small if mode == "SAME_UPPER" else large)
        end.append(large if mode == "SAME_UPPER" else small)
    return begin[0], begin[1], end[0], end[1]


def ceil_excess(size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads) -> tuple[int, int]:
    """(bottom, right) padding that the windows of ceil_mode reach beyond `pads`; 0 where they fit.

    A window that would start in the end padding does not exist.
    """
    excess = []
    for n, k, s, first, last in zip(size, extent, stride, pads[:2], pads[2:], strict=True):
        count = -(-(n + first + last - k) // s) + 1
        if (count - 1) * s >= n + first:
            count -= 1
        excess.append(max(0, (count - 1) * s + k - (n + first + last)))
    return excess[0], excess[1]
