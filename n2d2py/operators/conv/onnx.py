"""Conv."""

from __future__ import annotations

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.frontend.onnx.windows import image_size, pair, read_pads, windowed_layer
from n2d2py.operators.conv import Conv


@onnx("Conv", images=True)
def _conv(node: OnnxNode, builder: Builder) -> None:
    weights = node.constant(1, "weights")
    if weights.ndim != len(node.shape()) or weights.ndim not in (3, 4):
        raise Unsupported(f"it is a {weights.ndim - 2}-D convolution, only 1-D and 2-D are supported")
    kernel = node.attribute("kernel_shape")
    if kernel is not None and tuple(kernel) != weights.shape[2:]:
        raise Unsupported("its kernel_shape differs from the shape of its weights")
    bias = node.optional_constant(2, "bias")
    weights = weights.reshape(*weights.shape[:2], *(1,) * (4 - weights.ndim), *weights.shape[2:])
    stride, dilation = pair(node, "strides"), pair(node, "dilations")
    extent = [(k - 1) * d + 1 for k, d in zip(weights.shape[2:], dilation, strict=True)]
    pads = read_pads(node, image_size(node), extent, stride)
    op = Conv(stride, pads, dilation, int(node.attribute("group", 1)))
    bias = None if bias is None else bias.reshape(-1)
    windowed_layer(node, builder, op, {"weights": weights, "bias": bias})
