"""Helpers of Conv and pooling: 1-D layers as images of one row, and pads from auto_pad, pads and ceil_mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.graph.shapes import MAX_PAD, MAX_STEP, height, width
from n2d2py.operators.base import Op, make_operator
from n2d2py.operators.windows import Pads


def image_size(node: OnnxNode) -> tuple[int, int]:
    """Return (height, width) of input 0; the height is 1 below rank 4."""
    shape = node.require_rank(3, 4)
    return height(shape), width(shape)


def check_bias(values: int, outputs: int) -> None:
    """Raise Unsupported if the bias length of a convolution differs from its outputs."""
    if values != outputs:
        raise Unsupported(f"its bias has {values} values for {outputs} outputs", "export the model again")


def read_kernel(node: OnnxNode, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the weights, with four axes, and the bias of a 1-D or 2-D convolution; `kind` names it in messages."""
    weights, bias = node.constant(1, "weights"), node.optional_constant(2, "bias")
    if weights.ndim != len(node.shape()) or weights.ndim not in (3, 4):
        raise Unsupported(f"it is a {weights.ndim - 2}-D {kind}, only 1-D and 2-D are supported")
    if tuple(node.attribute("kernel_shape") or weights.shape[2:]) != weights.shape[2:]:
        raise Unsupported("its kernel_shape differs from the shape of its weights")
    weights = weights.reshape(*weights.shape[:2], *(1,) * (4 - weights.ndim), *weights.shape[2:])
    return weights, None if bias is None else bias.reshape(-1)


def windowed_layer(node: OnnxNode, builder: Builder, op: Op, params: Mapping[str, np.ndarray | None] | None = None) -> None:
    """Add a 2-D layer; a rank-3 tensor is reshaped to an image of one row and back. Input 1 has the weights."""
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
    """Return an attribute with one value for each of `axes` spatial axes; 1 by default."""
    values = [int(v) for v in node.attribute(name) or [1] * axes]
    if len(values) != axes:
        raise Unsupported(f"its {name} have {len(values)} values for {axes} spatial axes")
    if min(values) < 1 or max(values) > MAX_STEP:
        raise Unsupported(f"its {name} are not positive" if min(values) < 1 else f"its {name} are larger than any image")
    return values


def pair(node: OnnxNode, name: str) -> tuple[int, int]:
    """Return (vertical, horizontal) values of an attribute; the vertical one of 1-D layers is 1."""
    axes = len(node.shape()) - 2
    vertical, horizontal = [1] * (2 - axes) + per_axis(node, name, axes)
    return vertical, horizontal


def _given_pads(node: OnnxNode, axes: int) -> tuple[list[int], list[int]]:
    pads = [0] * 2 * axes if node.attribute("auto_pad", "NOTSET") == "VALID" else node.attribute("pads") or [0] * 2 * axes
    if len(pads) != 2 * axes:
        raise Unsupported(f"its pads have {len(pads)} values instead of {2 * axes}")
    return [int(p) for p in pads[:axes]], [int(p) for p in pads[axes:]]


def _halves(node: OnnxNode, total: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split total pads into pads before and after each axis; SAME_UPPER puts the larger half after it."""
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return (small, large) if node.attribute("auto_pad", "NOTSET") == "SAME_UPPER" else (large, small)


def pads_along(
    node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the pads before and after each axis for an input of `size` and a (dilated) window of `extent`."""
    if node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        return _halves(node, [max((-(-n // s) - 1) * s + e - n, 0) for n, e, s in zip(size, extent, stride, strict=True)])
    before, after = _given_pads(node, len(size))
    if max(before + after) > MAX_PAD:
        raise Unsupported(f"its pads exceed the limit of {MAX_PAD}")
    if min(before + after) < 0:
        raise Unsupported("negative pads are not supported", "crop with a Pad or Slice before it")
    return before, after


def read_pads(node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]) -> Pads:
    """Return (top, left, bottom, right) for an image of `size`, which has one row below rank 4."""
    line = 4 - len(node.shape())
    before, after = pads_along(node, size[line:], extent[line:], stride[line:])
    (top, left), (bottom, right) = [0] * line + before, [0] * line + after
    return top, left, bottom, right


def cut_off(
    node: OnnxNode, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return the elements that a transposed convolution crops before and after each axis, and its output padding."""
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
    """Return the number of windows along an axis; `ceil_mode` adds one that ends, but does not start, beyond the padding."""
    if not ceil_mode:
        return (size + before + after - extent) // stride + 1
    count = -(-(size + before + after - extent) // stride) + 1
    return count - 1 if (count - 1) * stride >= size + before else count


def ceil_excess(size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads) -> tuple[int, int]:
    """Return the (bottom, right) padding that ceil_mode windows need beyond `pads`; 0 if they fit."""
    bottom, right = (
        max(0, (window_count(n, first, last, k, s, True) - 1) * s + k - (n + first + last))
        for n, k, s, first, last in zip(size, extent, stride, pads[:2], pads[2:], strict=True)
    )
    return bottom, right
