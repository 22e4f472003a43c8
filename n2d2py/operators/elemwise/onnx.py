"""Element-wise ONNX operators: layers on images if their operands allow it, else ArrayMap with every form of broadcasting."""

from functools import partial, reduce
from math import prod

import numpy as np

from n2d2py.contracts.functions import ONNX_FUNCTIONS, Clip, LeakyRectifier, Sqrt
from n2d2py.contracts.onnx.tensors import constant_kind, element_dtype, element_name
from n2d2py.contracts.operator import Op
from n2d2py.graph.shapes import channels
from n2d2py.operators.arrays.map import COMPARISONS, SAME_AS_ONNX, affine_form
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx
from n2d2py.operators.elemwise.idioms import find_gated_function, merge_gain
from n2d2py.operators.elemwise.op import ElemWise, broadcasts
from n2d2py.operators.pointwise import Activation, Affine, uniform_gain
from n2d2py.operators.reshape import Dropout, Identity, Transpose, transpose_source

_REALS = ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")
_COMBINATIONS = {"Add": ElemWise("Sum"), "Sub": ElemWise("Sum", (1.0, -1.0)), "Mul": ElemWise("Prod")}
_COMBINATIONS |= {"Max": ElemWise("Max"), "Min": ElemWise("Min")}
"""Layers that combine images, by function."""


def _map(function: str, a: Arrays, result: str | None = None) -> None:
    a.bind(a.map(function, *a.values(), result=result))


# ---- several operands ------------------------------------------------------------------------------
def _combine(function: str, a: Arrays) -> None:
    if not (a.has_images() and _combine_on_images(function, a)):
        a.bind(reduce(partial(a.map, function), a.values()))


def _combine_on_images(function: str, a: Arrays) -> bool:
    indexes = range(len(a.node.inputs))
    constants = [index for index in indexes if a.node.is_constant(index)]
    if not constants:
        return function in _COMBINATIONS and _combine_tensors(_COMBINATIONS[function], a)
    if len(constants) < len(indexes) - 1:
        return False
    (tensor,) = {*indexes} - {*constants}
    if function in ("Max", "Min"):
        return _limit(function, a, tensor, constants)
    return len(indexes) == 2 and _shift_and_scale(function, a, tensor, constants[0])


def _combine_tensors(op: Op, a: Arrays) -> bool:
    """Add `op` if no operand is a constant and one has the shape of the result; the others may have axes of length 1."""
    node, indexes = a.node, range(len(a.node.inputs))
    if any(map(node.is_constant, indexes)):
        return False
    shapes = [node.shape(index) for index in indexes]
    if not all(broadcasts(shape, max(shapes, key=prod)) for shape in shapes):
        return False
    a.builder.layer(node, op if len(shapes) > 1 else Identity(), [node.tensor(index) for index in indexes])
    return True


def _limit(function: str, a: Arrays, tensor: int, constants: list[int]) -> bool:
    values = [a.node.constant(index, "limit") for index in constants]
    if any(value.size != 1 or value.ndim > len(a.node.shape(tensor)) for value in values):
        return False
    limits = [float(value.item()) for value in values]
    clip = Clip(low=max(limits)) if function == "Max" else Clip(high=min(limits))
    a.builder.layer(a.node, Activation(clip), [a.node.tensor(tensor)])
    return True


def _shift_and_scale(function: str, a: Arrays, index: int, constant: int) -> bool:
    """Add a gain and shift per channel, before a transposition if there is one; return False if the constant is another."""
    node, builder = a.node, a.builder
    values, tensor, shape = node.constant(constant, "operand").astype(np.float64), node.tensor(index), node.shape(index)
    source, permutation = transpose_source(tensor, builder.graph)
    moved = False
    vector = _per_channel(values, shape, 1)
    if vector is None and source != tensor:
        vector, moved = _per_channel(values, shape, permutation.index(1)), True
    form = None if vector is None else affine_form(function, vector, constant)
    if form is None:
        return False
    gain, shift = form
    weights_at = constant if function == "Mul" else None
    if moved:
        result = builder.layer(node, Affine(), [source], {"weights": gain, "bias": shift}, part="channels")
        builder.layer(node, Transpose(permutation), [result])
        return True
    activation = None
    if gain.any():
        tensor, activation, merged = merge_gain(builder.graph, tensor, gain)
        weights_at, gain = weights_at if merged is gain else None, merged
    if (gain == 1).all() and not shift.any():
        builder.layer(node, Activation(activation) if activation else Identity(), [tensor])
        return True
    if activation is not None:
        tensor = builder.layer(node, Activation(activation), [tensor], part="function")
    builder.layer(node, Affine(), [tensor], {"weights": gain, "bias": shift}, weights_at=weights_at)
    return True


def _per_channel(values: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
    """Return the constant as (C) along `axis`; None if it varies along others or enlarges the tensor."""
    if values.ndim > len(shape):
        return None
    try:
        full = np.broadcast_to(values, shape)
    except ValueError:
        return None
    vector = np.moveaxis(full, axis, -1).reshape(-1, shape[axis])
    return vector[0].copy() if (vector == vector[0]).all() else None


@onnx("Mul")
def _multiply(a: Arrays) -> None:
    node, builder, gated = a.node, a.builder, None
    if a.has_images() and not node.is_constant(0) and not node.is_constant(1):
        gated = find_gated_function(builder.graph, node.tensor(0), node.tensor(1))
    if gated is None:
        _combine("Mul", a)
        return
    x, function, gain = gated
    if gain == 1:
        builder.layer(node, Activation(function), [x])
        return
    inner = builder.layer(node, Activation(function), [x], part="function")
    builder.layer(node, Affine(), [inner], uniform_gain(channels(builder.graph.shape(x)), gain))


@onnx("Div", "Mod")
def _divide(a: Arrays) -> None:
    if a.node.is_constant(1) and not np.all(a.node.constant(1, "divisor")):
        raise Unsupported("it divides by zero", "train or export the model again")
    _combine("Div" if a.node.type == "Div" else "Fmod" if a.node.attribute("fmod", 0) else "Mod", a)


@onnx("Mean")
def _mean(a: Arrays) -> None:
    count = len(a.node.inputs)
    if not (a.has_images() and _combine_tensors(ElemWise("Sum", (1 / count,) * count), a)):
        total = reduce(partial(a.map, "Add"), a.values())
        a.bind(a.map("Div", total, a.const(count, total)) if count > 1 else total)


@onnx("Pow")
def _power(a: Arrays) -> None:
    node, x = a.node, a.input()
    exponent = node.constant(1, "exponent") if node.is_constant(1) and not x.kind else np.zeros(0)
    number = float(exponent.item()) if exponent.size == 1 and exponent.ndim <= len(x.dims) else None
    if number in (0.5, 1, 2, 3) and x.image is not None:
        op = Activation(Sqrt()) if number == 0.5 else Identity() if number == 1 else ElemWise("Prod")
        a.builder.layer(node, op, [x.image] * max(1, int(number)))
    elif number in (0.5, 2):
        x = a.value(0)
        a.bind(a.map("Sqrt", x) if number == 0.5 else a.map("Mul", x, x))
    else:
        _map("Pow", a)


@onnx("PRelu")
def _prelu(a: Arrays) -> None:
    """Add a LeakyRectifier for one slope, max(x, slope x) for slopes up to 1, max(x, 0) + slope min(x, 0), or a map of arrays."""
    node, builder = a.node, a.builder
    x = a.input()
    slope = node.constant(1, "slope") if node.is_constant(1) and x.image is not None else np.zeros(0)
    channel_axis = slope.ndim - len(x.dims) + 1
    params = {"weights": slope.reshape(-1), "bias": np.zeros(slope.size)}
    if x.image is not None and slope.size and (slope == slope.flat[0]).all():
        builder.layer(node, Activation(LeakyRectifier(float(slope.flat[0]))), [x.image])
    elif x.image is None or channel_axis not in (0, 1) or not slope.size == slope.shape[channel_axis] == x.dims[1]:
        _map("PRelu", a)
    elif slope.max() <= 1:
        builder.layer(node, ElemWise("Max"), [x.image, builder.layer(node, Affine(), [x.image], params, part="below")])
    else:
        above = builder.layer(node, Activation(Clip(0.0)), [x.image], part="above")
        negative = builder.layer(node, Activation(Clip(high=0.0)), [x.image], part="negative")
        below = builder.layer(node, Affine(), [negative], params, part="below")
        builder.layer(node, ElemWise("Sum"), [above, below])


@onnx("BitShift")
def _shift(a: Arrays) -> None:
    _map("ShiftLeft" if a.node.attribute("direction") == "LEFT" else "ShiftRight", a)


@onnx("Where")
def _where(a: Arrays) -> None:
    condition, x, y = a.values()
    a.bind(a.map("Where", condition, x, y, result=x.kind))


# ---- one operand ---------------------------------------------------------------------------------
@onnx("Neg")
def _negate(a: Arrays) -> None:
    x = a.input()
    if x.image is None:
        a.bind(a.map("Neg", x))
    else:
        a.builder.layer(a.node, Affine(), [x.image], uniform_gain(channels(x.dims), -1.0))


@onnx("Relu", "Abs")
def _function(a: Arrays) -> None:
    if not a.apply_function():
        x = a.value(0)
        a.bind(a.map("Abs", x) if a.node.type == "Abs" else a.map("Max", x, a.const(0, x)))


def cast_kind(target: int) -> str:
    """Return the tensor kind of an ONNX element type. Raise Unsupported for types that networks cannot compute with."""
    if element_name(target) in _REALS:
        return ""
    try:
        return constant_kind(np.empty(0, element_dtype(target)))
    except (KeyError, TypeError, Unsupported):
        reason = f"a cast to {element_name(target)} changes values"
        raise Unsupported(reason, "keep the tensors of the network in floating point") from None


@onnx("Cast")
def _cast(a: Arrays) -> None:
    a.bind(a.cast(a.input(), cast_kind(a.node.attribute("to"))))


@onnx("CastLike")
def _cast_like(a: Arrays) -> None:
    a.bind(a.cast(a.value(0), a.value(1).kind))


@onnx("IsInf")
def _is_inf(a: Arrays) -> None:
    signs = {"IsPosInf": a.node.attribute("detect_positive", 1), "IsNegInf": a.node.attribute("detect_negative", 1)}
    parts = [a.map(function, a.value(0), result="bool") for function, is_detected in signs.items() if is_detected]
    if not parts:
        raise Unsupported("detect_positive and detect_negative are both 0")
    a.bind(reduce(partial(a.map, "Or", result="bool"), parts))


@onnx("Identity")
def _identity(a: Arrays) -> None:
    a.bind(a.input())


@onnx("Dropout")
def _dropout(a: Arrays) -> None:
    node, x = a.node, a.input()
    ratio = float(node.constant(1, "ratio").item() if node.is_constant(1) else node.attribute("ratio", 0.5))
    if a.node.has(2) and bool(node.constant(2, "training mode").item()) and not (node.is_constant(1) and ratio == 0):
        raise Unsupported("it is in training mode", "export the model for inference")
    a.bind(x if x.image is None else a.layer(Dropout(ratio), x, "kept"))
    if a.is_output_used(1):
        a.bind(a.map("Right", x, a.const(np.array(True)), result="bool"), 1)


for _operator, _name in (("Add", "Add"), ("Sub", "Sub"), ("Sum", "Add"), ("Max", "Max"), ("Min", "Min")):
    onnx(_operator)(partial(_combine, _name))
for _name in SAME_AS_ONNX:
    if _name not in (*_COMBINATIONS, *ONNX_FUNCTIONS, "Neg"):
        onnx(_name)(partial(_map, _name))
for _name in (*COMPARISONS, "IsNaN"):
    onnx(_name)(partial(_map, _name, result="bool"))
for _name in ("And", "Or", "Xor", "Not"):
    onnx(f"Bitwise{_name}")(partial(_map, f"Bit{_name}"))
