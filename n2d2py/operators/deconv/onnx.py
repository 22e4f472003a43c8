"""ConvTranspose."""

from __future__ import annotations

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.frontend.onnx.windows import image_size, pair, windowed_layer
from n2d2py.operators.deconv import Deconv


@onnx("ConvTranspose", images=True)
def _deconv(node: OnnxNode, builder: Builder) -> None:
    weights = node.constant(1, "weights")
    if weights.ndim != len(node.shape()) or weights.ndim not in (3, 4):
        raise Unsupported(f"it is a {weights.ndim - 2}-D transposed convolution, only 1-D and 2-D are supported")
    if tuple(node.attribute("kernel_shape") or weights.shape[2:]) != weights.shape[2:]:
        raise Unsupported("its kernel_shape differs from the shape of its weights")
    groups, channels = int(node.attribute("group", 1)), node.shape()[1]
    if groups < 1 or weights.shape[0] != channels or channels % groups:
        raise Unsupported(
            f"its weights for {weights.shape[0]} channels in {groups} groups do not fit its input of {channels} channels"
        )
    # (C, O / groups, ...) in ONNX
    per_group, kernel = weights.shape[1], (*(1,) * (4 - weights.ndim), *weights.shape[2:])
    parts = weights.reshape(groups, channels // groups, per_group, *kernel)
    weights = parts.transpose(0, 2, 1, 3, 4).reshape(groups * per_group, channels // groups, *kernel)
    bias = node.optional_constant(2, "bias")
    bias = None if bias is None else bias.reshape(-1)
    stride, dilation = pair(node, "strides"), pair(node, "dilations")
    pads = _pads(node, [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)], stride)
    windowed_layer(node, builder, Deconv(stride, pads, dilation, groups), {"weights": weights, "bias": bias})


def _values(node: OnnxNode, name: str, missing: int) -> list[int] | None:
    """One value for each of height and width; `missing` for the height of 1-D layers."""
    values, axes = node.attribute(name), len(node.shape()) - 2
    if not values:
        return None
    if name == "output_shape":
        values = values[-axes:]
    if len(values) != axes:
        raise Unsupported(f"its {name} is for {len(values)} axes, not for {axes}")
    return [missing] * (2 - axes) + [int(v) for v in values]


def _pads(node: OnnxNode, extent: list[int], stride: tuple[int, int]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) cut off the full result."""
    size, axes = image_size(node), len(node.shape()) - 2
    added = _values(node, "output_padding", 0) or [0, 0]
    target, mode = _values(node, "output_shape", 1), node.attribute("auto_pad", "NOTSET")
    if target is None and mode.startswith("SAME"):
        target = [n * s for n, s in zip(size, stride, strict=True)]
    if target is None:
        given = [int(p) for p in node.attribute("pads") or [0] * 2 * axes]
        if mode == "VALID":
            given = [0] * 2 * axes
        if len(given) != 2 * axes or min(given) < 0:
            raise Unsupported("its pads are negative, or not two for each axis")
        begin, end = [0] * (2 - axes) + given[:axes], [0] * (2 - axes) + given[axes:]
    else:
        begin, end = [], []
        for n, s, e, a, wanted in zip(size, stride, extent, added, target, strict=True):
            total = s * (n - 1) + a + e - wanted
            if total < 0:
                raise Unsupported("its output_shape is larger than its full result")
            first = total // 2 if mode == "SAME_UPPER" else total - total // 2
            begin.append(first)
            end.append(total - first)
    return begin[0], begin[1], end[0] - added[0], end[1] - added[1]
