"""Blocks of pixels from groups of channels, and back."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import moving_epilogue
from n2d2py.export.cpp.layer import Layer, cpp

__all__ = ["lower"]


@cpp("DepthToSpace", "SpaceToDepth")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a DepthToSpace or a SpaceToDepth."""
    op = layer.apart().op
    config = layer.config(
        f"{op.kind} with blocks of {op.block}",
        {**layer.planes, "Epilogue": moving_epilogue(layer)},
        {"Block": op.block, "ChannelsFirst": op.channels_first, "Serial": 0},
    )
    return layer.code("depth_to_space", layer.call(op.kind[0].lower() + op.kind[1:], config))
