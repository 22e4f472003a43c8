"""The C++ of matrix products."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.operators.arrays.lowering import broadcast_steps, kernel_call, loops, pointers

__all__: list[str] = []


@cpp("ArrayMatMul")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a matrix product."""
    op = layer.op
    axes = loops(op.batch, [broadcast_steps(op.left)[:-2], broadcast_steps(op.right)[:-2]])
    return kernel_call(layer, "array_matmul", "arrayMatMul", (axes, op.left[-2], op.left[-1], op.right[-1]), pointers(layer))
