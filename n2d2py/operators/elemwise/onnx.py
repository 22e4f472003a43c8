"""Add, Sub, Mul, Div, Pow, Sum, Mean, Max, Min of several tensors, or of a tensor and constants."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph.shapes import channels
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine, uniform_gain
from n2d2py.operators.arrays.map import affine_form
from n2d2py.operators.base import Op
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.elemwise.idioms import find_gated_function, merge_gain
from n2d2py.operators.functions import Clip, Sqrt
from n2d2py.operators.identity import Identity
from n2d2py.operators.transpose import Transpose, transpose_source


def _binary(op: Op | None, function: str, node: OnnxNode, builder: Builder) -> None:
    """Add a function of two operands; `op` combines two tensors, None if that is unsupported."""
    constant = next((index for index in (0, 1) if node.is_constant(index)), None)
    if constant is None:
        if op is None:
            raise Unsupported("a division of two tensors is not supported", "only a constant divisor is supported")
        builder.layer(node, op, _operands(node, [0, 1]))
    else:
        _affine(node, builder, 1 - constant, constant, function)


def _operands(node: OnnxNode, indexes: list[int]) -> list[str]:
    """Return the tensors; one has the shape of the result, the others may have axes of length 1."""
    shapes = [node.shape(index) for index in indexes]
    full = max(shapes, key=prod)
    if any(
        len(shape) != len(full) or any(size not in (1, whole) for size, whole in zip(shape, full, strict=True))
        for shape in shapes
    ):
        text = " and ".join("x".join(map(str, shape[1:])) for shape in shapes)
        reason = f"its operands have the shapes {text}, and none of them has the shape of the result"
        raise Unsupported(reason, "give the operands one rank, and one of them the shape of the result")
    return [node.tensor(index) for index in indexes]


def _affine(node: OnnxNode, builder: Builder, index: int, constant: int, operation: str) -> None:
    """Add a per-channel gain and shift, before a transposition if there is one."""
    values = node.constant(constant, "operand").astype(np.float64)
    if values.ndim > len(node.shape(index)):
        raise Unsupported("its constant has more axes than the tensor")
    tensor = node.tensor(index)
    source, permutation = transpose_source(tensor, builder.graph)
    moved = False
    vector = _per_channel(values, node.shape(index), 1)
    if vector is None and source != tensor:
        vector, moved = _per_channel(values, node.shape(index), permutation.index(1)), True
    if vector is None:
        raise Unsupported(
            f"its constant of shape {list(values.shape)} is neither one value nor one per channel of a "
            f"tensor of shape {'x'.join(map(str, node.shape(index)[1:]))}",
            "use one value for each channel",
        )
    found = affine_form(operation, vector, constant)
    if found is None:
        reason = "a constant divided by a tensor, or a division by zero, is not supported"
        raise Unsupported(reason, "divide by other constants")
    gain, shift = found
    if not moved:
        function = None
        if gain.any():
            tensor, function, gain = merge_gain(builder.graph, tensor, gain)
        if (gain == 1).all() and not shift.any():
            builder.layer(node, Activation(function) if function else Identity(), [tensor])
            return
        if function is not None:
            tensor = builder.layer(node, Activation(function), [tensor], part="function")
        builder.layer(node, Affine(), [tensor], {"weights": gain, "bias": shift})
        return
    params = {"weights": gain, "bias": shift}
    result = builder.layer(node, Affine(), [source], params, part="channels")
    builder.layer(node, Transpose(permutation), [result])


def _per_channel(values: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
    """Return the constant as (C) along `axis`; None if it varies along others or enlarges the tensor."""
    try:
        full = np.broadcast_to(values, shape)
    except ValueError:
        return None
    vector = np.moveaxis(full, axis, -1).reshape(-1, shape[axis])
    return vector[0].copy() if (vector == vector[0]).all() else None


def _product(node: OnnxNode, builder: Builder) -> None:
    """Add a Mul; of two tensors, it may be the end of a decomposed function."""
    found = None
    if not node.is_constant(0) and not node.is_constant(1):
        found = find_gated_function(builder.graph, node.tensor(0), node.tensor(1))
    if found is None:
        _binary(ElemWise("Prod"), "Mul", node, builder)
        return
    x, function, gain = found
    if gain == 1:
        builder.layer(node, Activation(function), [x])
        return
    inner = builder.layer(node, Activation(function), [x], part="function")
    builder.layer(node, Affine(), [inner], uniform_gain(channels(builder.graph.shape(x)), gain))


def _pow(node: OnnxNode, builder: Builder) -> None:
    exponent = node.constant(1, "exponent")
    if exponent.size != 1 or exponent.ndim > len(node.shape()):
        raise Unsupported("an exponent with several values is not supported")
    value, x = float(exponent.item()), node.tensor()
    if value == 0.5:
        builder.layer(node, Activation(Sqrt()), [x])
    elif value in (1, 2, 3):
        builder.layer(node, ElemWise("Prod") if value > 1 else Identity(), [x] * int(value))
    else:
        raise Unsupported(f"its exponent is {value:g}, only 0.5, 1, 2 and 3 are supported")


def _mean(node: OnnxNode, builder: Builder) -> None:
    count = len(node.inputs)
    _variadic(ElemWise("Sum", (1 / count,) * count), node, builder)


def _sum(node: OnnxNode, builder: Builder) -> None:
    if any(node.is_constant(index) for index in range(len(node.inputs))):
        if len(node.inputs) != 2:
            raise Unsupported("it adds constants and several tensors", "use Add for the constants")
        _binary(None, "Add", node, builder)
        return
    _variadic(ElemWise("Sum"), node, builder)


def _variadic(op: Op, node: OnnxNode, builder: Builder) -> None:
    tensors = _operands(node, list(range(len(node.inputs))))
    builder.layer(node, op if len(tensors) > 1 else Identity(), tensors)


def _limit(op: Op, is_low: bool, node: OnnxNode, builder: Builder) -> None:
    """Add a Max or Min; scalar constants limit a single tensor."""
    constants = [index for index in range(len(node.inputs)) if node.is_constant(index)]
    if not constants:
        _variadic(op, node, builder)
        return
    if len(constants) != len(node.inputs) - 1:
        raise Unsupported("a comparison of several tensors and constants is not supported")
    (tensor,) = {*range(len(node.inputs))} - {*constants}
    values = [node.constant(index, "limit") for index in constants]
    if any(value.size != 1 or value.ndim > len(node.shape(tensor)) for value in values):
        raise Unsupported("a limit with several values is not supported")
    limits = [float(value.item()) for value in values]
    function = Clip(low=max(limits)) if is_low else Clip(high=min(limits))
    builder.layer(node, Activation(function), [node.tensor(tensor)])


onnx("Add")(partial(_binary, ElemWise("Sum"), "Add"))
onnx("Sub")(partial(_binary, ElemWise("Sum", (1.0, -1.0)), "Sub"))
onnx("Mul")(_product)
onnx("Div")(partial(_binary, None, "Div"))
onnx("Sum")(_sum)
onnx("Mean")(_mean)
onnx("Pow")(_pow)
onnx("Max")(partial(_limit, ElemWise("Max"), True))
onnx("Min")(partial(_limit, ElemWise("Min"), False))
