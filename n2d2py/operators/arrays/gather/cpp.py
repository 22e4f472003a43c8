"""The C++ of elements chosen by computed indices."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.operators.arrays.lowering import kernel_call, pointers


@cpp("ArrayGather")
def _lower_gather(layer: Layer) -> LayerCode:
    """The C++ of elements at computed positions."""
    op = layer.op
    sizes = (op.outer, op.size, op.inner, op.count, bool(op.each))
    return kernel_call(layer, "array_move", "arrayGather", sizes, pointers(layer))


@cpp("ArrayScatter")
def _lower_scatter(layer: Layer) -> LayerCode:
    """The C++ of updates at computed positions."""
    op = layer.op
    combine = f"n2d2::Scatter{op.combine.capitalize()}"
    return kernel_call(layer, "array_move", "arrayScatter", (op.size, op.inner, op.count, combine), pointers(layer))
