"""A change of number type, element by element."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import converting_epilogue
from n2d2py.export.cpp.layer import Layer, cpp

__all__ = ["lower"]


@cpp("Convert")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a conversion between number types."""
    layer = layer.pointwise()
    types = {**layer.planes, "Epilogue": converting_epilogue(layer)}
    config = layer.config(f"{layer.inputs[0].name} to {layer.output.name}", types, {"Serial": layer.serial})
    return layer.code("copy", layer.call("copy", config))
