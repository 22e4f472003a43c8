"""The C++ of windows over up to three axes."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Call
from n2d2py.operators.arrays.lowering import output_pointer, pointers


@cpp("ArrayConvPool")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a convolution or a pool of up to three axes."""
    op = layer.op
    constants = {
        "Batch": op.dims[0],
        "Outputs": op.outputs,
        "Groups": op.groups,
        "ColumnMajor": op.column_major,
        "Depth": op.dims[1] // op.groups if op.function == "Conv" else 1,
    }
    for index, axis in enumerate("DHW"):
        counted = op.counted is not None
        constants.update(
            {
                f"Input{axis}": op.dims[2 + index],
                f"Output{axis}": op.size[index],
                f"Kernel{axis}": op.kernel[index],
                f"Stride{axis}": op.stride[index],
                f"Pad{axis}": op.pads[index],
                f"Dilation{axis}": op.dilation[index],
                f"First{axis}": -op.pads[index] if counted else 0,
                f"Last{axis}": op.dims[2 + index] + (op.counted[index] if counted else 0),
            }
        )
    config, operands = layer.config(f"{op.function} over windows", {}, constants), pointers(layer)
    if op.function == "Conv":
        call = Call("n2d2::arrayConvolution", (config,), (*operands[:2], output_pointer(layer)))
    else:
        pools = {"Max": "WindowMax", "MaxIndex": "WindowMaxIndex", "Average": "WindowAverage", "Lp": f"WindowNorm<{op.order}>"}
        call = Call("n2d2::arrayPool", (config, f"n2d2::{pools[op.function]} "), (operands[0], output_pointer(layer)))
    return layer.code("array_matmul", call)
