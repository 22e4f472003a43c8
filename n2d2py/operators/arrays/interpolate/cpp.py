"""The C++ of a resampling along an axis."""

from __future__ import annotations

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.operators.arrays.lowering import kernel_call


@cpp("ArrayInterpolate")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a resampling along an axis."""
    op = layer.op
    positions = layer.array("positions", np.array(op.positions), "std::int32_t")
    weights = layer.array("weights", np.array(op.weights).astype(layer.output.dtype), layer.output.cpp)
    sizes = (op.outer, op.size, op.inner, len(op.positions), len(op.positions[0]))
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", positions, weights)
    return kernel_call(layer, "array_norm", "arrayInterpolate", sizes, operands)
