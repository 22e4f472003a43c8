"""A change of number type, element by element."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a conversion between number types."""
    build = LayerBuilder(*layer)
    build.pointwise()
    config = build.config(
        f"{build.node.name}: {build.inputs[0].name} to {build.output.name}",
        {"Input": build.input_plane, "Output": build.output_plane, "Epilogue": build.converting_epilogue()},
        {"Serial": build.serial},
    )
    return build.code("copy", f"n2d2::copy<{config}>(in0, out);")
