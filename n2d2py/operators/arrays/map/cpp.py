"""The C++ of element-wise functions."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.operators.arrays.lowering import broadcast_steps, loops, pointers


@cpp("ArrayMap")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of an element-wise function."""
    op = layer.op
    function = "CastBool" if op.function == "Cast" and op.result == "bool" else op.function
    axes = loops(op.dims, [broadcast_steps(shape) for shape in op.shapes])
    types = {"Output": layer.output_plane, "Function": f"n2d2::maps::{function}", "Axes": axes}
    config = layer.config(f"{op.function} of arrays", types, {})
    return layer.code("array_map", layer.call("arrayMap", config, inputs=tuple(pointers(layer))))
