"""Convolution: the dense and grouped kernel with OHWC weights, or the depthwise kernel with HWC weights."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.export.cpp.winograd import Geometry

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a convolution; weights arrive as (O, C / groups, KH, KW)."""
    build = LayerBuilder(*layer)
    op, weights = build.node.op, build.node.params["weights"]
    depthwise = op.is_depthwise(build.node)
    kernel = "depthwise" if depthwise else "convolution"
    build.choose(kernel, weights[:, 0] if depthwise else weights.transpose(0, 2, 3, 1), op.groups)
    if not depthwise:
        size = build.output_shape[2:]
        build.consider_winograd(
            weights.transpose(0, 2, 3, 1),
            Geometry(op.stride, op.dilation, op.groups, build.inputs[0].bits, (size[0], size[1]), build.streamed, build.serial),
        )
    name, weight_type = build.weights(weights[:, 0].transpose(1, 2, 0) if depthwise else weights.transpose(0, 2, 3, 1))
    sum_type = build.sum_type()
    bias = build.bias(sum_type)
    config = build.config(
        f"{build.node.name}: {kernel} {weights.shape[2]} x {weights.shape[3]}",
        {
            "Input": build.input_plane,
            "Output": build.output_plane,
            "Weight": weight_type,
            "Sum": sum_type,
            "Epilogue": build.epilogue(),
        },
        {
            "KernelHeight": weights.shape[2],
            "KernelWidth": weights.shape[3],
            "StrideHeight": op.stride[0],
            "StrideWidth": op.stride[1],
            "DilationHeight": op.dilation[0],
            "DilationWidth": op.dilation[1],
            "PadTop": op.pads[0],
            "PadLeft": op.pads[1],
            "Groups": op.groups,
            "InputZero": build.inputs[0].zero_point,
            "FullWeights": build.full_weights(),
            "ByteSums": build.byte_sums,
            "Serial": build.serial,
        },
    )
    return build.code(kernel, f"n2d2::{kernel}<{config}>(in0, out, {name}, {bias});")
