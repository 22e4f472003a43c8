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


def per_axis(node: OnnxNode, name: str, axes: int) -> list[int]:
    """An attribute with one value for each of `axes` spatial axes; 1 by default."""
    values = [int(v) for v in node.attribute(name) or [1] * axes]
    if len(values) != axes:
        raise Unsupported(f"its {name} have {len(values)} values for {axes} spatial axes")
    if min(values) < 1 or max(values) > MAX_STEP:
        raise Unsupported(f"its {name} are not positive" if min(values) < 1 else f"its {name} are larger than any image")
    return values


def pair(node: OnnxNode, name: str) -> tuple[int, int]:
    """(vertical, horizontal) of such an attribute, 1 for the height of 1-D layers."""
    axes = len(node.shape()) - 2
    vertical, horizontal = [1] * (2 - axes) + per_axis(node, name, axes)
    return vertical, horizontal


def _given_pads(node: OnnxNode, axes: int) -> tuple[list[int], list[int]]:
    pads = [0] * 2 * axes if node.attribute("auto_pad", "NOTSET") == "VALID" else node.attribute("pads") or [0] * 2 * axes
    if len(pads) != 2 * axes:
        raise Unsupported(f"its pads have {len(pads)} values instead of {2 * axes}")
    return [int(p) for p in pads[:axes]], [int(p) for p in pads[axes:]]


def _halves(node: OnnxNode, total: Sequence[int]) -> tuple[list[int], list[int]]:
    """Pads before and after each axis that add up to `total`, the larger ones after it with SAME_UPPER."""
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return (small, large) if node.attribute("auto_pad", "NOTSET") == "SAME_UPPER" else (large, small)


def pads_along(
    node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Elements before and after each axis of an input of `size` for a (dilated) window of `extent`."""
    if node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        return _halves(node, [max((-(-n // s) - 1) * s + e - n, 0) for n, e, s in zip(size, extent, stride, strict=True)])
    before, after = _given_pads(node, len(size))
    if max(before + after) > MAX_PAD:
        raise Unsupported(f"its pads exceed the limit of {MAX_PAD}")
    if min(before + after) < 0:
        raise Unsupported("negative pads are not supported", "crop with a Pad or Slice before it")
    return before, after


def read_pads(node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]) -> Pads:
    """(top, left, bottom, right) for an image of `size`, of one line below rank 4."""
    line = 4 - len(node.shape())
    before, after = pads_along(node, size[line:], extent[line:], stride[line:])
    (top, left), (bottom, right) = [0] * line + before, [0] * line + after
    return top, left, bottom, right


def cut_off(
    node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """What a transposed convolution cuts off before and after each axis of its full result, and what it adds to that after it."""
    axes = len(size)
    added, target = ([int(v) for v in node.attribute(name) or ()] for name in ("output_padding", "output_shape"))
    added, target = added or [0] * axes, target[-axes:]
    if not target and node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        target = [n * s for n, s in zip(size, stride, strict=True)]
    for name, values in (("output_padding", added), ("output_shape", target)):
        if values and len(values) != axes:
            raise Unsupported(f"its {name} has {len(values)} values for {axes} spatial axes")
    if not target:
        return *_given_pads(node, axes), added
    full = [s * (n - 1) + e + a for n, s, e, a in zip(size, stride, extent, added, strict=True)]
    return *_halves(node, [whole - wanted for whole, wanted in zip(full, target, strict=True)]), added


def window_count(size: int, before: int, after: int, extent: int, stride: int, ceil_mode: bool) -> int:
    """Windows along an axis; with `ceil_mode` also one that ends beyond the padding, but none that starts there."""
    if not ceil_mode:
        return (size + before + after - extent) // stride + 1
    count = -(-(size + before + after - extent) // stride) + 1
    return count - 1 if (count - 1) * stride >= size + before else count


def ceil_excess(size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads) -> tuple[int, int]:
    """(bottom, right) padding that the windows of ceil_mode reach beyond `pads`; 0 where they fit."""
    bottom, right = (
        max(0, (window_count(n, first, last, k, s, True) - 1) * s + k - (n + first + last))
        for n, k, s, first, last in zip(size, extent, stride, pads[:2], pads[2:], strict=True)
    )
    return bottom, right
