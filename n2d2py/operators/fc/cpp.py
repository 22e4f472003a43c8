"""Fully connected: weights reordered from the flattened C, H, W to the H, W, C of the memory."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.scratch import input_scratch, scratch
from n2d2py.exports.cpp.selection import for_cores, has_panels, pack, prepack, select_kernel
from n2d2py.graph.shapes import channels, height, width
from n2d2py.memory.scratch import ScratchNeed


@scratch("Fc")
def needed(layer: Layer) -> ScratchNeed | None:
    """The input as a window."""
    return input_scratch(layer) if has_panels(layer, "fullyConnected", layer.values("weights")) else None


@cpp("Fc")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a fully connected layer; weights arrive as (O, C * H * W)."""
    shape, weights = layer.apart().input_shape, layer.values("weights")
    cube = weights.reshape(len(weights), channels(shape), height(shape), width(shape)).transpose(0, 2, 3, 1)
    rows = cube.reshape(len(weights), -1)
    selection = for_cores(layer, select_kernel(layer, "fullyConnected", rows, packable=True), rows, single=True)
    selection = prepack(layer, selection, rows)
    packed = pack(layer, selection, cube)
    config = layer.config(
        f"fully connected, {weights.shape[1]} to {weights.shape[0]}",
        {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)},
        {**packed.facts, "Serial": 0},
        selection,
    )
    return layer.code("fullyconnected", layer.call("fullyConnected", config, constants=packed.arguments), selection=selection)
