"""Gain and shift per channel."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import epilogue
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.export.cpp.selection import pack, vectors

__all__ = ["lower"]


@cpp("Affine")
def lower(layer: Layer) -> LayerCode:
    """The C++ of an affine layer."""
    layer, selection = layer.pointwise(), vectors(layer)
    packed = pack(layer, selection, layer.values("weights"))
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    config = layer.config("gain and shift per channel", types, {"Serial": layer.serial}, selection)
    return layer.code("affine", layer.call("affine", config, constants=packed.arguments), selection=selection)
