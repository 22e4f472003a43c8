"""The C++ of normalisations of lines."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.operators.arrays.lowering import kernel_call

__all__: list[str] = []


@cpp("ArraySoftmax")
def _lower_softmax(layer: Layer) -> LayerCode:
    """The C++ of a softmax."""
    op = layer.op
    return kernel_call(layer, "array_norm", "arraySoftmax", (op.outer, op.size, op.inner, bool(op.log)))


@cpp("ArrayNorm")
def _lower_norm(layer: Layer) -> LayerCode:
    """The C++ of a normalisation."""
    op = layer.op
    part = ("", "mean", "inverse").index(op.part)
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", repr(op.epsilon))
    return kernel_call(layer, "array_norm", "arrayNorm", (op.outer, op.inner, bool(op.centred), part), operands)
