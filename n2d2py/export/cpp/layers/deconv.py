"""Transposed convolution: convolutions, one for each phase of its stride; else kernels of its own, which gather what reaches an output."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.operators.deconv import Deconv

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a transposed convolution; weights arrive as (O, C / groups, KH, KW)."""
    build = LayerBuilder(*layer)
    op, weights = build.node.op, build.node.params["weights"]
    depthwise = op.is_depthwise(build.node)
    if not depthwise and _has_phases(build, op):
        return _phases(build, op)
    name, weight_type = build.weights(weights[:, 0].transpose(1, 2, 0) if depthwise else weights.transpose(0, 2, 3, 1))
    sum_type = build.sum_type()
    bias = build.bias(sum_type)
    kernel = "deconvolutionDepthwise" if depthwise else "deconvolution"
    config = build.config(
        f"{build.node.name}: transposed convolution {weights.shape[2]} x {weights.shape[3]}",
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
            "Serial": build.serial,
            "InputZero": build.inputs[0].zero_point,
        },
    )
    return build.code("deconvolution", f"n2d2::{kernel}<{config}>(in0, out, {name}, {bias});")


def _has_phases(build: LayerBuilder, op: Deconv) -> bool:
    """Whether its phases are convolutions with one output plane each, all of which have taps and outputs."""
    kernel, size = build.node.params["weights"].shape[2:], build.output_shape[2:]
    return (
        build.integer
        and op.groups == 1
        and tuple(op.dilation) == (1, 1)
        and max(op.stride) > 1
        and min(op.pads[:2]) >= 0
        and all(k >= s and n >= s for k, s, n in zip(kernel, op.stride, size, strict=True))
        and build.inputs[0].zero_point == 0
        and not build.serial
        and not build.streamed
        and build.whole_output
    )


def _taps(kernel: int, stride: int, position: int) -> tuple[list[int], int]:
    """(the kernel's positions that reach an output `position` (pad included), in the order of the inputs, the pad of the convolution)."""
    taps = list(range(position % stride, kernel, stride))[::-1]
    return taps, len(taps) - 1 - position // stride


def _phases(build: LayerBuilder, op: Deconv) -> LayerCode:
    """A convolution for each phase (kernels/n2d2/phases.hpp)."""
    weights, (height, width) = build.node.params["weights"], op.stride
    calls, sum_type, epilogue = [], build.sum_type(), ""
    for y in range(height):
        for x in range(width):
            lines, top = _taps(weights.shape[2], height, y + op.pads[0])
            columns, left = _taps(weights.shape[3], width, x + op.pads[1])
            part, number = weights[:, :, lines][:, :, :, columns].transpose(0, 2, 3, 1), str(len(calls))
            build.choose("convolution", part)
            name, weight_type = build.weights(part, number)
            bias = build.bias(sum_type, number)
            epilogue = epilogue or build.epilogue()
            config = build.config(
                f"{build.node.name}: phase {y}, {x} of the transposed convolution {weights.shape[2]} x {weights.shape[3]}",
                {
                    "Input": build.input_plane,
                    "Output": f"n2d2::PhasePlane<{build.output_plane}, {height}, {width}, {y}, {x}>",
                    "Weight": weight_type,
                    "Sum": sum_type,
                    "Epilogue": epilogue,
                },
                {
                    "KernelHeight": len(lines),
                    "KernelWidth": len(columns),
                    "StrideHeight": 1,
                    "StrideWidth": 1,
                    "DilationHeight": 1,
                    "DilationWidth": 1,
                    "PadTop": top,
                    "PadLeft": left,
                    "Groups": 1,
                    "InputZero": 0,
                    "FullWeights": build.full_weights(),
                    "ByteSums": build.byte_sums,
                    "Serial": 0,
                },
                suffix=f"config{number}",
            )
            calls.append(f"n2d2::convolution<{config}>(in0, out, {name}, {bias});")
    return build.code("phases", "\n".join(calls))
