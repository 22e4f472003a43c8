"""Integers of a fixed type: their products and convolutions, and quantization with scales computed at run time.

Dynamically quantized networks run unchanged (DynamicQuantizeLinear, MatMulInteger, ConvInteger), as do single QuantizeLinear
and DequantizeLinear nodes with integers as network inputs and outputs. Networks with static scales use operators/quantize.py:
their integers are those of the export.
"""

import numpy as np

from n2d2py.contracts.onnx.tensors import Value, element_dtype
from n2d2py.operators.arrays.matmul import add_matmul
from n2d2py.operators.arrays.reduce import reduce_axes
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx
from n2d2py.operators.arrays.windows import add_convolution
from n2d2py.operators.quantize import import_dequantize, import_quantize

_TYPES = ("int8", "uint8", "int16", "uint16")


def _subtract_zero_point(a: Arrays, x: Value, index: int, by_row: bool) -> Value:
    """Return x minus the zero point of input `index`: a scalar, or one per row (`by_row`) or column."""
    x = x if x.kind else a.cast(x, "int32")  # 8-bit network inputs are real numbers in the graph
    if not a.node.has(index):
        return x
    zero = a.value(index)
    if zero.is_constant and not np.any(zero.constant):
        return x
    if zero.size == 1:
        zero = a.reshape(zero, ())
    elif by_row and len(x.dims) > 1 and len(zero.dims) == 1:
        zero = a.reshape(zero, (zero.size, 1))
    return a.map("Sub", a.cast(x, "int32"), a.cast(zero, "int32"))


@onnx("MatMulInteger")
def _matmul_integer(a: Arrays) -> None:
    left, right = _subtract_zero_point(a, a.value(0), 2, True), _subtract_zero_point(a, a.value(1), 3, False)
    a.bind(add_matmul(a, left, right, "int32"))


@onnx("ConvInteger")
def _conv_integer(a: Arrays) -> None:
    x, weights = _subtract_zero_point(a, a.value(0), 2, False), a.value(1)
    if a.node.has(3) and a.value(3).size > 1:
        zero = a.reshape(a.value(3), (weights.dims[0], *(1,) * (len(weights.dims) - 1)))
        weights = a.map("Sub", a.cast(weights, "int32"), a.cast(zero, "int32"))
    else:
        weights = _subtract_zero_point(a, weights, 3, False)
    a.bind(add_convolution(a, x, weights, result="int32"))


def _broadcast(a: Arrays, value: Value, x: Value) -> Value:
    """Return a scale or zero point of the node in a shape that broadcasts to x."""
    if value.size == 1:
        return a.reshape(value, ())
    axis, block = a.node.axis_of(int(a.node.attribute("axis", 1)), len(x.dims)), int(a.node.attribute("block_size", 0))
    if block:
        if len(value.dims) != len(x.dims) or value.dims[axis] != -(-x.dims[axis] // block):
            raise Unsupported(f"its scales do not match blocks of {block}", "quantize the model again")
        return a.select(value, {axis: [index // block for index in range(x.dims[axis])]})
    if value.size != x.dims[axis]:
        raise Unsupported(f"it has {value.size} scales for an axis of {x.dims[axis]}", "quantize the model again")
    return a.reshape(value, tuple(value.size if index == axis else 1 for index in range(len(x.dims))))


def _scale(a: Arrays, x: Value) -> Value:
    scale = a.value(1)
    if scale.constant is not None and not np.all(scale.constant > 0):
        raise Unsupported("its scale is not a positive number", "quantize the model again")
    return _broadcast(a, a.cast(scale, ""), x)


def _quantize_values(a: Arrays, x: Value, scale: Value, zero: Value | None, kind: str) -> Value:
    """Return clamp(round(x / scale) + zero) as integers `kind`, ties to even."""
    steps = a.map("Round", a.map("Div", a.cast(x, ""), scale))
    if zero is not None:
        steps = a.map("Add", steps, a.cast(zero, ""))
    limits = np.iinfo(kind)
    steps = a.map("Min", a.map("Max", steps, a.const(float(limits.min), steps)), a.const(float(limits.max), steps))
    return a.cast(steps, kind)


def _file_kind(a: Arrays, index: int) -> str:
    """Return the kind of input `index` in the file; 8-bit network inputs are real numbers in the graph."""
    code = next((v.type.tensor_type.elem_type for v in a.builder.model.proto.graph.input if v.name == a.node.inputs[index]), 0)
    return a.value(index).kind or (element_dtype(code).name if code else "float")


def _is_plain(a: Arrays) -> bool:
    """True if the node converts a tensor of the network and its integers keep their type in every export."""
    node, builder = a.node, a.builder
    if builder.is_batched or node.is_constant(0):
        return False
    of_fixed_type = builder.is_tensor(node.inputs[0]) and bool(builder.kind_of(node.inputs[0]))
    return builder.plain_integers or of_fixed_type or not node.is_constant(1)


@onnx("QuantizeLinear", "com.microsoft::QuantizeLinear")
def _quantize(a: Arrays) -> None:
    if not _is_plain(a):
        import_quantize(a.node, a.builder)
        return
    element = int(a.node.attribute("output_dtype", 0))
    kind = _file_kind(a, 2) if a.node.has(2) else element_dtype(element).name if element else "uint8"
    if kind not in _TYPES:
        raise Unsupported(f"integers of type {kind} are not supported", "quantize to 8 or 16 bits")
    x = a.value(0)
    a.bind(_quantize_values(a, x, _scale(a, x), _broadcast(a, a.value(2), x) if a.node.has(2) else None, kind))


@onnx("DequantizeLinear", "com.microsoft::DequantizeLinear")
def _dequantize(a: Arrays) -> None:
    if not _is_plain(a):
        import_dequantize(a.node, a.builder)
        return
    x = a.value(0)
    if x.kind not in ("", *_TYPES, "int32"):
        raise Unsupported(f"integers of type {x.kind} are not supported", "quantize to 8 or 16 bits")
    centred = a.cast(x, "int32") if x.kind else x
    if a.node.has(2):
        centred = a.map("Sub", centred, a.cast(_broadcast(a, a.value(2), x), centred.kind))
    a.bind(a.map("Mul", a.cast(centred, ""), _scale(a, x)))


@onnx("DynamicQuantizeLinear")
def _dynamic(a: Arrays) -> None:
    """Add scale = (max - min) / 255 over the values and 0, 1 if all are 0, and zero point = round(-min / scale)."""
    x = a.value(0)
    none, axes = a.const(0.0, x), list(range(len(x.dims)))
    high = a.map("Max", reduce_axes(a, "Max", x, axes, keep=False), none)
    low = a.map("Min", reduce_axes(a, "Min", x, axes, keep=False), none)
    width = a.map("Div", a.map("Sub", high, low), a.const(255.0, x))
    scale = a.map("Where", a.map("Equal", width, none, result="bool"), a.const(1.0, x), width, result="")
    zero = _quantize_values(a, a.map("Neg", low), scale, None, "uint8")
    a.bind(_quantize_values(a, x, scale, zero, "uint8"))
    a.bind(scale, 1)
    a.bind(zero, 2)
