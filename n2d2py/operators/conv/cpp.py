"""Convolution: the dense and grouped kernel with OHWC weights, or the depthwise kernel with HWC weights."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.layer import Layer, cpp, window
from n2d2py.exports.cpp.scratch import depthwise_scratch, scratch, windows_scratch
from n2d2py.exports.cpp.selection import (
    depthwise_for_cores,
    for_cores,
    has_panels,
    pack,
    prepack,
    select_kernel,
    winograd,
    winograd_geometry,
    winograd_need,
)
from n2d2py.memory.scratch import ScratchNeed


@scratch("Conv")
def needed(layer: Layer) -> ScratchNeed | None:
    """Windows of a dense convolution, and the tiles of its Winograd form; the constants of a depthwise one."""
    op, weights = layer.op, layer.values("weights")
    if op.is_depthwise(layer.node):
        return depthwise_scratch(layer) if has_panels(layer, "depthwise", weights[:, 0], op.groups) else None
    values = weights.transpose(0, 2, 3, 1)
    if not has_panels(layer, "convolution", values, op.groups):
        return None
    direct = windows_scratch(layer, values.shape[1:3], op.groups)
    return winograd_need(layer, values, direct)


@cpp("Conv")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a convolution; weights arrive as (O, C / groups, KH, KW)."""
    op, weights, kind = layer.op, layer.values("weights"), layer.inputs[0]
    if op.is_depthwise(layer.node):
        kernel, values = "depthwise", weights[:, 0].transpose(1, 2, 0)
        selection = depthwise_for_cores(layer, select_kernel(layer, kernel, weights[:, 0], op.groups), weights[:, 0])
    else:
        kernel, values = "convolution", weights.transpose(0, 2, 3, 1)
        selection = select_kernel(layer, kernel, values, op.groups, packable=True)
        geometry = winograd_geometry(layer)
        selection = prepack(layer, winograd(layer, selection, values, geometry), values, geometry)
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
