"""Blocks of pixels from groups of channels, and back."""

from __future__ import annotations

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a DepthToSpace or a SpaceToDepth."""
    build = LayerBuilder(*layer)
    op = build.node.op
    if build.serial:
        raise InternalError(f"{build.node.name}: the output of a {op.kind} lies over its input")
    config = build.config(
        f"{build.node.name}: {op.kind} with blocks of {op.block}",
        {"Input": build.input_plane, "Output": build.output_plane, "Epilogue": build.moving_epilogue()},
        {"Block": op.block, "ChannelsFirst": op.channels_first, "Serial": 0},
    )
    function = op.kind[0].lower() + op.kind[1:]
    return build.code("depth_to_space", f"n2d2::{function}<{config}>(in0, out);")
