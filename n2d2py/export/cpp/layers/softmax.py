"""Softmax, in floating point only."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import epilogue
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.graph.shapes import channels

__all__ = ["lower"]


@cpp("Softmax")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a softmax.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    if layer.integer:
        raise layer.no_integers("remove it, its argument has the same largest element, or export with -nbbits -32")
    group = layer.apart().op.group_size or channels(layer.input_shape)
    types = {**layer.planes, "Epilogue": epilogue(layer)}
    config = layer.config(f"softmax over {group} channels", types, {"Group": group, "Log": layer.op.log})
    return layer.code("softmax", layer.call("softmax", config))
