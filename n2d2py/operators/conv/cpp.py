"""Convolution: the dense and grouped kernel with OHWC weights, or the depthwise kernel with HWC weights."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.layer import Layer, cpp, window
from n2d2py.exports.cpp.selection import depthwise_for_cores, for_cores, pack, select_kernel, winograd
from n2d2py.exports.cpp.winograd import WinogradFacts


@cpp("Conv")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a convolution; weights arrive as (O, C / groups, KH, KW)."""
    op, weights, kind = layer.op, layer.values("weights"), layer.inputs[0]
    lines, pixels = layer.output_shape[2:]
    if op.is_depthwise(layer.node):
        kernel, values = "depthwise", weights[:, 0].transpose(1, 2, 0)
        selection = depthwise_for_cores(layer, select_kernel(layer, kernel, weights[:, 0], op.groups), weights[:, 0])
    else:
        kernel, values = "convolution", weights.transpose(0, 2, 3, 1)
        geometry = WinogradFacts(op.stride, op.dilation, op.groups, kind.bits, (lines, pixels), layer.streamed, layer.serial)
        selection = select_kernel(layer, kernel, values, op.groups, packable=True)
        selection = winograd(layer, selection, values, geometry)
        selection = for_cores(layer, selection, values, op.groups)
    packed = pack(layer, selection, values)
    config = layer.config(
        f"{kernel} {weights.shape[2]} x {weights.shape[3]}",
        {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)},
        {
            **window(weights.shape[2:], op.stride, op.pads, op.dilation),
            "Groups": op.groups,
            "InputZero": kind.zero_point,
            **packed.facts,
            "Serial": layer.serial,
        },
        selection,
    )
    return layer.code(kernel, layer.call(kernel, config, constants=packed.arguments), selection=selection)
