"""Element-wise functions with NumPy's broadcasting."""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from n2d2py.arithmetic import cut
from n2d2py.arithmetic import functions as exact
from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, onnx_emitter, register
from n2d2py.graph import Node, Shape
from n2d2py.operators.arrays.base import ArrayOp, broadcast_strides, kind_dtype, loop_type, operand_pointers
from n2d2py.operators.pointwise import Activation


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return quotients; those of integers are rounded towards zero, and 0 if the divisor is 0."""
    if a.dtype.kind == "f":
        return a / b
    quotient = np.floor_divide(a, b)
    short = (np.multiply(quotient, b) != a) & ((a < 0) != (b < 0)) & (b != 0)
    return np.where(short, quotient + 1, quotient).astype(a.dtype)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = exact.power(a, b)
    return result.astype(a.dtype) if a.dtype.kind == "f" else cut(result, a.dtype)


def _in_float64(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return the function computed in float64, with the result in the type of the first operand."""
    return lambda *x: function(*(v.astype(np.float64) for v in x)).astype(x[0].dtype)


def _shift(left: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def shifted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        bits = a.dtype.itemsize * 8
        safe = np.clip(b, 0, bits - 1).astype(a.dtype)
        beyond = np.where(a < 0, -1, 0) if not left and a.dtype.kind == "i" else 0
        return np.where((b >= bits) | (b < 0), beyond, a << safe if left else a >> safe).astype(a.dtype)

    return shifted


_NUMPY = """
Add=add Sub=subtract Mul=multiply Max=maximum Min=minimum Mod=mod Fmod=fmod Equal=equal Less=less Greater=greater
LessOrEqual=less_equal GreaterOrEqual=greater_equal And=logical_and Or=logical_or Xor=logical_xor Not=logical_not
BitAnd=bitwise_and BitOr=bitwise_or BitXor=bitwise_xor BitNot=invert Neg=negative Abs=abs Sign=sign Floor=floor
Ceil=ceil Round=rint Sqrt=sqrt IsNaN=isnan IsPosInf=isposinf IsNegInf=isneginf
"""
_EXACT = "Exp Log Erf Sigmoid Tanh Softplus Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh".split()
MAP_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    **{name: getattr(np, function) for name, function in (pair.split("=") for pair in _NUMPY.split())},
    **{name: _in_float64(getattr(exact, name.lower())) for name in (*_EXACT, "Expm1")},
    "Div": _divide,
    "Pow": _power,
    "Where": lambda condition, a, b: np.where(condition != 0, a, b),
    "Right": lambda a, b: np.broadcast_to(b, np.broadcast(a, b).shape),
    "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "ShiftLeft": _shift(True),
    "ShiftRight": _shift(False),
    "Cast": lambda x: x,
    "Reciprocal": lambda x: (1 / x).astype(x.dtype),
}
"""Function -> its implementation on operands."""
SAME_AS_ONNX = (*"Add Sub Mul Neg Abs Sign Floor Ceil Round Sqrt Reciprocal".split(), *_EXACT)
"""Functions with the same name in ONNX; the result has the kind of the operands."""
COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor", "Not")
"""Functions of that sort with boolean results."""


@register
class ArrayMap(ArrayOp):
    """function(operands), element-wise; operands of the dimensions `shapes` are broadcast to `dims`.

    Cast converts to the kind `result`: real numbers are truncated to integers; booleans are x != 0.
    """

    function: str
    dims: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    slots: tuple[int, ...] = (0,)
    result: str = ""
    macs_per_output = 1

    def operand_dims(self) -> tuple[Shape, ...]:
        return self.shapes

    def output_dims(self) -> Shape:
        return self.dims

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        operands = [
            x.reshape(len(x), *(1,) * (len(self.dims) - len(shape)), *shape)
            for x, shape in zip(self.operands(inputs, node), self.shapes, strict=True)
        ]
        with np.errstate(all="ignore"):
            values = np.asarray(MAP_FUNCTIONS[self.function](*operands))
            if self.function == "Cast" and self.result and values.dtype.kind == "f":
                values = self._cut(values)
        values = np.broadcast_to(values, (values.shape[0], *self.dims))
        return self.as_output(values, inputs)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute as in floating point; a Cast to real numbers has the width of the output's type."""
        if self.function == "Cast" and not self.result and inputs[0].dtype.kind != "f":
            return [inputs[0].astype(graph.type(node.output).dtype)]
        return super().run_integer(inputs, node, graph)

    def _cut(self, values: np.ndarray) -> np.ndarray:
        return values != 0 if self.result == "bool" else cut(values, kind_dtype(self.result))


class ConstantOperand(NamedTuple):
    """The constant operand `position` of an ArrayMap, of its `shape` before broadcasting."""

    position: int
    shape: tuple[int, ...]
    values: np.ndarray


def constant_operand(node: Node, *functions: str) -> ConstantOperand | None:
    """Return the real constant of an ArrayMap of one of `functions` whose only input has the shape of the result; else None."""
    op = node.op
    if not isinstance(op, ArrayMap) or op.function not in functions or op.result or node.activation is not None:
        return None
    if sorted(op.slots) != [-1, 0] or op.shapes[op.slots.index(0)] != op.dims:
        return None
    index = op.slots.index(-1)
    values = node.params[f"operand{index}"]
    return ConstantOperand(index, op.shapes[index], values) if values.dtype.kind == "f" else None


def row_constant(node: Node, function: str, size: int) -> np.ndarray | None:
    """Return the constant of `size` elements that a layer combines with every row of its input; None for other layers."""
    constant = constant_operand(node, function)
    if constant is None:
        return None
    shape, dims = constant.shape, node.op.dims
    last = next((axis for axis in range(len(shape) + 1) if prod(dims[axis:]) == size), None)
    if last is None or prod(shape[:last]) != 1:
        return None
    return np.broadcast_to(constant.values.reshape(shape[last:]), dims[last:]).reshape(-1)


def gains_and_shifts(node: Node) -> tuple[tuple[int, ...], np.ndarray, np.ndarray] | None:
    """Return (shape of the constant, gains, shifts) of an ArrayMap g * x + s of its only input and a real constant; -1 for Neg.

    Gains and shifts (float64) have the size of the constant. None for any other layer, and for a divisor of 0.
    """
    op = node.op
    if isinstance(op, ArrayMap) and op.function == "Neg" and node.activation is None and not op.result:
        return (1,) * len(op.dims), -np.ones(1), np.zeros(1)
    constant = constant_operand(node, "Mul", "Div", "Add", "Sub")
    if constant is None:
        return None
    result = affine_form(op.function, constant.values.reshape(-1).astype(np.float64), constant.position)
    return None if result is None else (constant.shape, *result)


def affine_form(function: str, values: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (gain, shift) if a function of a tensor and a constant operand `index` is gain * x + shift; else None."""
    ones, zeros = np.ones_like(values), np.zeros_like(values)
    if function == "Mul":
        return values, zeros
    if function == "Div" and index == 1 and values.all():
        return 1 / values, zeros
    if function == "Add":
        return ones, values
    if function == "Sub":
        return (ones, -values) if index == 1 else (-ones, values)
    return None


def scale_and_shift(node: Node) -> tuple[float, float] | None:
    """Return (g, s) of an ArrayMap g * x + s of its only input and a scalar constant; None for any other layer."""
    result = gains_and_shifts(node)
    if result is None or result[1].size != 1:
        return None
    return float(result[1].item()), float(result[2].item())


def scalar_factor(node: Node) -> float | None:
    """Return g of an ArrayMap g * x of its only input and a scalar constant; None for any other layer."""
    scaled = scale_and_shift(node)
    return scaled[0] if scaled is not None and scaled[1] == 0 else None


@cpp("ArrayMap")
def _lower(layer: Layer) -> LayerCode:
    op = layer.op
    function = "CastBool" if op.function == "Cast" and op.result == "bool" else op.function
    axes = loop_type(op.dims, [broadcast_strides(shape) for shape in op.shapes])
    types = {"Output": layer.output_plane, "Function": f"n2d2::maps::{function}", "Axes": axes}
    config = layer.config(f"{op.function} of arrays", types, {})
    return layer.code("array_map", layer.call("arrayMap", config, inputs=tuple(operand_pointers(layer))))


_SAME_NAMES = (*SAME_AS_ONNX, *COMPARISONS, "Div", "Pow", "Max", "Min", "Where", "IsNaN")
"""Functions with the same name in ONNX."""
_ON_TRUTH = ("And", "Or", "Xor", "Not")


@onnx_emitter("ArrayMap")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    kinds = [writer.graph.kind(name) for name in node.inputs]
    if op.function in _ON_TRUTH and any(kind != "bool" for kind in kinds):
        raise NoOnnxForm(f"{op.function} of numbers has no ONNX form")
    if op.function in ("Div", "Mod") and op.result and not np.all(node.params.get("operand1", 0)):
        raise NoOnnxForm("ONNX Runtime stops at a whole number divided by 0")
    if op.function not in ("Cast", *_SAME_NAMES) and (op.function != "Mod" or op.result in ("", "bool")):
        raise NoOnnxForm(f"the function {op.function} of arrays has no ONNX form")
    attributes = {"to": writer.element(kind_dtype(op.result))} if op.function == "Cast" else {}
    writer.flat(writer.emit(op.function, writer.operands(node), None, **attributes), output)


# ---- Layers with infinite results for a zero, or a number rounded to it -------------------------
def function_name(node: Node) -> str:
    """Return the element-wise function that a layer computes, as its operator names it; "" for any other layer."""
    if isinstance(node.op, Activation):
        return node.op.function.kind
    if node.op.kind == "ElemWise":
        return node.op.operation
    return node.op.function if isinstance(node.op, ArrayMap) else ""


def divisor_tensor(node: Node) -> str | None:
    """Return the tensor that a layer divides by or takes the logarithm of; None for any other layer."""
    function, op = function_name(node), node.op
    if function in ("Log", "Reciprocal"):
        return node.inputs[0]
    if function == "Div" and op.slots[1] >= 0:
        return node.inputs[op.slots[1]]
    if function == "Pow" and op.slots == (0, -1) and (node.params["operand1"] < 0).any():
        return node.inputs[0]
    return None
