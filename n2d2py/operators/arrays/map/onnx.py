"""Element-wise ONNX operators of any rank and kind, with every form of broadcasting."""

from __future__ import annotations

from functools import partial

import numpy as np

from n2d2py.frontend.onnx.tensors import element_dtype, element_name
from n2d2py.operators.arrays.map.op import COMPARISONS, SAME_AS_ONNX
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx_array
from n2d2py.operators.identity import Dropout

_REALS = ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")


def _map(function: str, a: Arrays, result: str | None = None) -> None:
    a.bind(a.map(function, *a.values(), result=result))


def _fold(function: str, a: Arrays) -> None:
    total = a.value(0)
    for value in a.values()[1:]:
        total = a.map(function, total, value)
    a.bind(total)


@onnx_array("Mean")
def _mean(a: Arrays) -> None:
    values = a.values()
    total = values[0]
    for value in values[1:]:
        total = a.map("Add", total, value)
    a.bind(a.map("Div", total, a.const(len(values), total)) if len(values) > 1 else total)


@onnx_array("Clip")
def _clip(a: Arrays) -> None:
    x = a.value(0)
    for index, name, function in ((1, "min", "Max"), (2, "max", "Min")):
        if a.has(index):
            x = a.map(function, x, a.value(index))
        elif a.node.attribute(name) is not None:
            x = a.map(function, x, a.const(a.node.attribute(name), x))
    a.bind(x)


@onnx_array("Relu")
def _relu(a: Arrays) -> None:
    a.bind(a.map("Max", a.value(0), a.const(0, a.value(0))))


@onnx_array("Div", "Mod")
def _divide(a: Arrays) -> None:
    function = "Div" if a.node.type == "Div" else "Fmod" if a.node.attribute("fmod", 0) else "Mod"
    x, divisor = a.values()
    if divisor.is_constant and not np.all(divisor.constant):
        raise Unsupported("it divides by zero", "train or export the model again")
    a.bind(a.map(function, x, divisor))


@onnx_array("BitShift")
def _shift(a: Arrays) -> None:
    a.bind(a.map("ShiftLeft" if a.node.attribute("direction") == "LEFT" else "ShiftRight", *a.values()))


@onnx_array("Pow")
def _power(a: Arrays) -> None:
    base, exponent = a.values()
    if exponent.constant is not None and base.kind == "" and exponent.size == 1 and len(exponent.dims) <= len(base.dims):
        number = float(exponent.constant.item())
        if number == 2:
            a.bind(a.map("Mul", base, base))
            return
        if number == 0.5:
            a.bind(a.map("Sqrt", base))
            return
    a.bind(a.map("Pow", base, exponent))


def cast_kind(target: int) -> str:
    """Return the tensor kind of an ONNX element type. Raise Unsupported for types that networks cannot compute with."""
    if element_name(target) in _REALS:
        return ""
    try:
        name = element_dtype(target).name
    except (KeyError, TypeError):
        name = "unknown"
    if name not in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        reason = f"a cast to {element_name(target)} changes values"
        raise Unsupported(reason, "keep the tensors of the network in floating point")
    return name


@onnx_array("Cast", images=True)
def _cast(a: Arrays) -> None:
    a.bind(a.cast(a.input(), cast_kind(a.node.attribute("to"))))


@onnx_array("CastLike")
def _cast_like(a: Arrays) -> None:
    a.bind(a.cast(a.value(0), a.value(1).kind))


@onnx_array("IsInf")
def _is_inf(a: Arrays) -> None:
    x, found = a.value(0), None
    for attribute, function in (("detect_positive", "IsPosInf"), ("detect_negative", "IsNegInf")):
        if a.node.attribute(attribute, 1):
            part = a.map(function, x, result="bool")
            found = part if found is None else a.map("Or", found, part, result="bool")
    if found is None:
        raise Unsupported("detect_positive and detect_negative are both 0")
    a.bind(found)


@onnx_array("Where")
def _where(a: Arrays) -> None:
    condition, x, y = a.values()
    a.bind(a.map("Where", condition, x, y, result=x.kind))


@onnx_array("Identity", images=True)
def _identity(a: Arrays) -> None:
    a.bind(a.input())


@onnx_array("Dropout", images=True)
def _dropout(a: Arrays) -> None:
    x = a.input()
    if (
        a.has(2)
        and bool(a.node.constant(2, "training mode").item())
        and not (a.node.is_constant(1) and float(a.node.constant(1, "ratio").item()) == 0)
    ):
        raise Unsupported("it is in training mode", "export the model for inference")
    ratio = float(a.node.constant(1, "ratio").item() if a.node.is_constant(1) else a.node.attribute("ratio", 0.5))
    a.bind(x if x.image is None else a.layer(Dropout(ratio), x, "kept"))
    if a.is_output_used(1):
        a.bind(a.map("Right", x, a.const(np.array(True)), result="bool"), 1)


@onnx_array("Gelu")
def _gelu(a: Arrays) -> None:
    x = a.value(0)
    half = a.map("Mul", x, a.const(0.5, x))
    if a.node.attribute("approximate", "none") == "tanh":
        cube = a.map("Mul", a.map("Mul", x, x), x)
        inner = a.map("Mul", a.map("Add", x, a.map("Mul", cube, a.const(0.044715, x))), a.const(np.sqrt(2 / np.pi), x))
        gate = a.map("Tanh", inner)
    else:
        gate = a.map("Erf", a.map("Mul", x, a.const(np.sqrt(0.5), x)))
    a.bind(a.map("Mul", half, a.map("Add", gate, a.const(1.0, x))))


for _name in SAME_AS_ONNX:
    onnx_array(_name)(partial(_map, _name))
for _name in COMPARISONS:
    onnx_array(_name)(partial(_map, _name, result="bool"))
for _name, _function in (("BitwiseAnd", "BitAnd"), ("BitwiseOr", "BitOr"), ("BitwiseXor", "BitXor"), ("BitwiseNot", "BitNot")):
    onnx_array(_name)(partial(_map, _function))
onnx_array("PRelu")(partial(_map, "PRelu"))
onnx_array("IsNaN")(partial(_map, "IsNaN", result="bool"))
for _name, _function in (("Sum", "Add"), ("Max", "Max"), ("Min", "Min")):
    onnx_array(_name)(partial(_fold, _function))
