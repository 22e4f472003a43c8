"""The C++ of reductions and running sums."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.operators.arrays.lowering import kernel_call, loops, steps_of


@cpp("ArrayReduce")
def _lower_reduce(layer: Layer) -> LayerCode:
    """The C++ of a reduction."""
    op = layer.op
    steps = steps_of(op.dims)
    kept = [axis for axis in range(len(op.dims)) if axis not in op.axes]
    types = {
        **layer.planes,
        "Kept": loops([op.dims[a] for a in kept], [[steps[a] for a in kept]]),
        "Reduced": loops([op.dims[a] for a in op.axes], [[steps[a] for a in op.axes]]),
    }
    kernel = "arrayLogSumExp" if op.function == "LogSumExp" else "arrayReduce"
    if kernel == "arrayReduce":
        types["Function"] = f"n2d2::reductions::{op.function}<{layer.inputs[0].cpp}>"
    return layer.code("array_reduce", layer.call(kernel, layer.config(op.function, types, {})))


@cpp("ArrayCumSum")
def _lower_scan(layer: Layer) -> LayerCode:
    """The C++ of running sums."""
    op = layer.op
    flags = map(bool, (op.exclusive, op.reverse, op.product))
    return kernel_call(layer, "array_reduce", "arrayCumSum", (op.outer, op.size, op.inner, *flags))
