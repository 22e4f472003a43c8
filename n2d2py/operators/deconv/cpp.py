"""Transposed convolution: convolutions, one for each phase of its stride; else kernels of its own, which gather what reaches an output."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.layer import Layer, cpp, window
from n2d2py.exports.cpp.parts import Call
from n2d2py.exports.cpp.scratch import scratch, windows_scratch
from n2d2py.exports.cpp.selection import has_panels, pack, select_kernel
from n2d2py.memory.scratch import ScratchNeed


@scratch("Deconv")
def needed(layer: Layer) -> ScratchNeed | None:
    """The windows of the phase with the most taps."""
    op, weights = layer.op, layer.values("weights")
    if op.is_depthwise(layer.node) or not _has_phases(layer):
        return None
    if not has_panels(layer, "convolution", weights.transpose(0, 2, 3, 1)):
        return None
    return windows_scratch(layer, (-(-weights.shape[2] // op.stride[0]), -(-weights.shape[3] // op.stride[1])))


@cpp("Deconv")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a transposed convolution; weights arrive as (O, C / groups, KH, KW)."""
    op, weights = layer.op, layer.values("weights")
    depthwise = op.is_depthwise(layer.node)
    if not depthwise and _has_phases(layer):
        return _phases(layer)
    packed = pack(layer, layer.portable, weights[:, 0].transpose(1, 2, 0) if depthwise else weights.transpose(0, 2, 3, 1))
    config = layer.config(
        f"transposed convolution {weights.shape[2]} x {weights.shape[3]}",
        {**layer.planes, **packed.types, "Epilogue": epilogue(layer)},
        {
            **window(weights.shape[2:], op.stride, op.pads, op.dilation),
            "Groups": op.groups,
            "Serial": layer.serial,
            "InputZero": layer.inputs[0].zero_point,
        },
    )
    kernel = "deconvolutionDepthwise" if depthwise else "deconvolution"
    return layer.code("deconvolution", layer.call(kernel, config, constants=packed.arguments))


def _has_phases(layer: Layer) -> bool:
    """Whether its phases are convolutions with one output plane each, all of which have taps and outputs."""
    op, kernel, size = layer.op, layer.values("weights").shape[2:], layer.output_shape[2:]
    return (
        layer.integer
        and op.groups == 1
        and tuple(op.dilation) == (1, 1)
        and max(op.stride) > 1
        and min(op.pads[:2]) >= 0
        and all(k >= s and n >= s for k, s, n in zip(kernel, op.stride, size, strict=True))
        and layer.inputs[0].zero_point == 0
        and not layer.serial
        and not layer.streamed
        and layer.whole_output
    )


def _taps(kernel: int, stride: int, position: int) -> tuple[list[int], int]:
    """(the kernel's positions that reach an output `position` (pad included), in the order of the inputs, the pad of the convolution)."""
    taps = list(range(position % stride, kernel, stride))[::-1]
    return taps, len(taps) - 1 - position // stride


def _phases(layer: Layer) -> LayerCode:
    """A convolution for each phase (kernels/n2d2/phases.hpp)."""
    op, weights = layer.op, layer.values("weights")
    (lines, columns), calls, selections = op.stride, list[Call](), []
    for y, x in ((y, x) for y in range(lines) for x in range(columns)):
        rows, top = _taps(weights.shape[2], lines, y + op.pads[0])
        pixels, left = _taps(weights.shape[3], columns, x + op.pads[1])
        part, number = weights[:, :, rows][:, :, :, pixels].transpose(0, 2, 3, 1), str(len(calls))
        selection = select_kernel(layer, "convolution", part)
        packed = pack(layer, selection, part, number)
        config = layer.config(
            f"phase {y}, {x} of the transposed convolution {weights.shape[2]} x {weights.shape[3]}",
            {
                **layer.planes,
                "Output": f"n2d2::PhasePlane<{layer.output_plane}, {lines}, {columns}, {y}, {x}>",
                **packed.types,
                "Epilogue": epilogue(layer, selection),
            },
            {
                **window((len(rows), len(pixels)), (1, 1), (top, left), (1, 1)),
                "Groups": 1,
                "InputZero": 0,
                **packed.facts,
                "Serial": 0,
            },
            selection,
            f"config{number}",
        )
        calls.append(layer.call("convolution", config, constants=packed.arguments))
        selections.append(selection)
    best = [one for one in selections if one.kernel] or selections
    return layer.code("phases", *calls, selection=replace(best[-1], reason=selections[-1].reason))
