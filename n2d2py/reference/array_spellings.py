"""How operators on arrays are written in ONNX: the vectors get their dimensions, and lose them again."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from n2d2py.graph import Node
from n2d2py.operators.arrays.base import kind_dtype
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter

__all__: list[str] = []

_SAME = {
    name: name
    for name in (
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Pow",
        "Max",
        "Min",
        "Equal",
        "Less",
        "Greater",
        "LessOrEqual",
        "GreaterOrEqual",
        "And",
        "Or",
        "Xor",
        "Not",
        "Where",
        "Neg",
        "Abs",
        "Sign",
        "Floor",
        "Ceil",
        "Round",
        "Sqrt",
        "Reciprocal",
        "Exp",
        "Log",
        "Erf",
        "Sigmoid",
        "Tanh",
        "Softplus",
        "IsNaN",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
    )
}
_ON_TRUTH = ("And", "Or", "Xor", "Not")


def _typed(writer: OnnxWriter, values: np.ndarray, kind: str) -> str:
    """An initializer of a tensor kind."""
    return writer.exact(np.ascontiguousarray(values.astype(kind_dtype(kind))))


def _shaped(writer: OnnxWriter, tensor: str, dims: tuple[int, ...]) -> str:
    return writer.emit("Reshape", [tensor, writer.constant([0, *dims])])


def _flat(writer: OnnxWriter, tensor: str, output: str) -> None:
    writer.emit("Reshape", [tensor, writer.constant([0, -1])], output)


def _operands(writer: OnnxWriter, node: Node, shapes: tuple[tuple[int, ...], ...]) -> list[str]:
    """Each operand in its dimensions behind the batch axis, of length 1 for constants."""
    found = []
    for index, (slot, dims) in enumerate(zip(node.op.slots, shapes, strict=True)):
        if slot >= 0:
            found.append(_shaped(writer, node.inputs[slot], dims))
        else:
            values = node.params[f"operand{index}"].reshape(1, *dims)
            found.append(_typed(writer, values, "" if values.dtype.kind == "f" else values.dtype.name))
    return found


def _element(kind: str) -> int:
    return TensorProto.FLOAT if not kind else helper.np_dtype_to_tensor_dtype(kind_dtype(kind))


def _map(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    kinds = [writer.graph.kind(name) for name in node.inputs]
    if op.function in _ON_TRUTH and any(kind != "bool" for kind in kinds):
        raise NoOnnxForm(f"{op.function} of numbers has no ONNX form")
    if op.function == "Cast":
        _flat(writer, writer.emit("Cast", _operands(writer, node, op.shapes), to=_element(op.result)), output)
        return
    if op.function in ("Div", "Mod") and op.result and not np.all(node.params.get("operand1", 0)):
        raise NoOnnxForm("ONNX Runtime stops at a whole number divided by 0")
    if op.function == "Mod" and all(kinds) and op.result != "bool":
        _flat(writer, writer.emit("Mod", _operands(writer, node, op.shapes)), output)
        return
    if op.function not in _SAME:
        raise NoOnnxForm(f"the function {op.function} of arrays has no ONNX form")
    _flat(writer, writer.emit(_SAME[op.function], _operands(writer, node, op.shapes)), output)


def _take(writer: OnnxWriter, node: Node, output: str) -> None:
    op, x = node.op, node.inputs[0]
    positions, filled = op.positions()
    if filled.any():
        kind = writer.graph.kind(x)
        x = writer.emit("Pad", [x, writer.constant([0, 0, 0, 1]), _typed(writer, np.array(op.fill), kind)])
        positions = np.where(filled, op.size, positions)
    writer.emit("Gather", [x, writer.constant(positions.tolist())], output, axis=1)


def _join(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    shapes = tuple((op.outer, length) for length in op.lengths)
    parts = _operands(writer, node, shapes)
    count = writer.emit("Shape", [node.inputs[0]], start=0, end=1)
    for index, (slot, dims) in enumerate(zip(op.slots, shapes, strict=True)):
        if slot < 0:
            wanted = writer.emit("Concat", [count, writer.constant(list(dims))], axis=0)
            parts[index] = writer.emit("Expand", [parts[index], wanted])
    _flat(writer, writer.emit("Concat", parts, axis=2), output)


def _reduce(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x, axes = _shaped(writer, node.inputs[0], op.dims), [axis + 1 for axis in op.axes]
    if op.function.startswith("Arg"):
        made = writer.emit(op.function[:6], [x], axis=axes[0], keepdims=1, select_last_index=int(op.function.endswith("Last")))
    elif op.function == "Sum":
        made = writer.emit("ReduceSum", [x, writer.constant(axes)], keepdims=1)
    else:
        made = writer.emit(f"Reduce{op.function}", [x], axes=axes, keepdims=1)
    _flat(writer, made, output)


def _order(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x = _shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    _, made = writer.emit_all("TopK", [x, writer.constant([op.count])], 2, axis=2, largest=int(op.largest), sorted=1)
    _flat(writer, made, output)


def _gather(writer: OnnxWriter, node: Node, output: str) -> None:
    """Element by element; a line that all of its elements are taken from is named once for each of them."""
    op = node.op
    if min(op.slots) < 0:
        raise NoOnnxForm("a constant whose elements are chosen has no ONNX form")
    chosen = (op.outer, op.count, op.inner)
    x, lines = _operands(writer, node, ((op.outer, op.size, op.inner), chosen if op.each else (1, op.count, 1)))
    lines = writer.emit("Cast", [lines], to=TensorProto.INT64)
    if not op.each:
        lines = writer.emit("Expand", [lines, writer.constant([1, *chosen])])
    _flat(writer, writer.emit("GatherElements", [x, lines], axis=2), output)


def _softmax(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x = _shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    _flat(writer, writer.emit("LogSoftmax" if op.log else "Softmax", [x], axis=2), output)


def _norm(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.part or not op.centred:
        raise NoOnnxForm("a normalisation without mean has no ONNX form")
    x = _shaped(writer, node.inputs[0], (op.outer, op.inner))
    ones = _typed(writer, np.ones(op.inner), "")
    _flat(writer, writer.emit("LayerNormalization", [x, ones], axis=-1, epsilon=op.epsilon), output)


def _product(writer: OnnxWriter, node: Node, output: str) -> None:
    _flat(writer, writer.emit("MatMul", _operands(writer, node, (node.op.left, node.op.right))), output)


def _interpolate(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    matrix = np.zeros((1, 1, len(op.positions), op.size))
    for line, (positions, weights) in enumerate(zip(op.positions, op.weights, strict=True)):
        np.add.at(matrix[0, 0, line], list(positions), weights)
    x = _shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    _flat(writer, writer.emit("MatMul", [_typed(writer, matrix, ""), x]), output)


for _kind, _spelling in {
    "ArrayMap": _map,
    "ArrayTake": _take,
    "ArrayJoin": _join,
    "ArrayReduce": _reduce,
    "ArrayOrder": _order,
    "ArrayGather": _gather,
    "ArraySoftmax": _softmax,
    "ArrayNorm": _norm,
    "ArrayProduct": _product,
    "ArrayInterpolate": _interpolate,
}.items():
    onnx_emitter(_kind)(_spelling)
