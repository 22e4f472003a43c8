"""Operators that are only translated in floating point: comparisons, arithmetic, stacking and repetition of arrays."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.lowering import Emitter, broadcast, fused_limits, input_shapes, layer, slice_axis, slices
from n2d2py.frontend.tflite.schema import pairs
from n2d2py.frontend.tflite.translation import Translation, file_axis, graph_axis, lowers, onnx_type

_MIN_LENGTH = 1e-6
"""Smallest divisor of L2_NORMALIZATION."""
_COMPARISONS = ("Equal", "Not", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def _element_wise(kind: str, count: int, t: Translation, operator: TfliteOperator) -> None:
    """Translate an element-wise function of `count` operands, with broadcasting and a fused activation of arithmetic."""
    shapes = input_shapes(t, operator, count)
    if operator.code == "SELECT" and len(set(shapes)) > 1 and prod(shapes[0]) > 1:
        raise RefusedOperator("its condition and its inputs must have the same shape")
    t.expect_shape(operator.output, broadcast(shapes))
    limits = fused_limits(operator, 0) if operator.code in ("ADD", "SUB", "MUL", "DIV") else None
    rank, logical = max(map(len, shapes)), operator.code.startswith("LOGICAL")
    operands = [
        t.real(index, rank, logical or (kind == "Where" and position == 0))
        for position, index in enumerate(operator.inputs[:count])
    ]
    name = t.tensor(operator.output).name
    if kind.startswith("Floor") and count == 2:
        kind, operands = _floor_parts(kind, Emitter(t, name), operands, t.tensor(operator.output).dtype.kind != "f")
    if operator.code == "SQUARED_DIFFERENCE":
        operands = [t.emit("Sub", operands, t.fresh(f"{name}_difference"))]
    if operator.code in ("SQUARE", "SQUARED_DIFFERENCE"):
        operands *= 2
    if operator.code == "NOT_EQUAL":
        operands = [t.emit("Equal", operands, t.fresh(f"{name}_equal"))]
    t.result(operator.output, lambda output: t.emit(kind, operands, output), limits, logical or kind in _COMPARISONS)


def _floor_parts(kind: str, emit: Emitter, operands: list[str], integers: bool) -> tuple[str, list[str]]:
    """Return the last node of a division that rounds down, or of its remainder, which has the sign of the divisor."""
    x, y = operands
    if integers:
        return ("Mod", operands) if kind == "FloorMod" else ("Div", [emit("Sub", x, emit("Mod", x, y)), y])
    quotient = emit("Div", x, y)
    return ("Floor", [quotient]) if kind == "FloorDiv" else ("Sub", [x, emit("Mul", emit("Floor", quotient), y)])


@lowers("CAST")
def _cast(t: Translation, operator: TfliteOperator) -> None:
    (shape,) = input_shapes(t, operator, 1)
    source, target = (t.tensor(index) for index in (operator.input, operator.output))
    t.expect_shape(operator.output, shape)
    if not source.is_plain or not target.is_plain:
        raise RefusedOperator(f"a cast from {source.dtype.name} to {target.dtype.name} of quantized values is not supported")
    x, to = t.real(operator.input, truth=source.dtype.kind == "b"), onnx_type(target)
    t.result(operator.output, lambda name: t.emit("Cast", [x], name, to=to), truth=target.dtype.kind == "b")


@lowers("PACK")
def _pack(t: Translation, operator: TfliteOperator) -> None:
    """Stack arrays along a new axis."""
    (shape,) = input_shapes(t, operator, 1)
    if any(t.tensor(index).shape != shape for index in operator.inputs):
        raise RefusedOperator("its inputs must have the same shape")
    rank = len(shape) + 1
    axis = file_axis(operator.option(1), rank)
    one = (*shape[:axis], 1, *shape[axis:])
    result = (*shape[:axis], len(operator.inputs), *shape[axis:])
    name = t.tensor(operator.output).name
    parts = [t.reshape(t.real(index), shape, one, t.fresh(f"{name}_{number}")) for number, index in enumerate(operator.inputs)]
    layer(t, operator, "Concat", parts, result, axis=graph_axis(axis, rank))


@lowers("UNPACK")
def _unpack(t: Translation, operator: TfliteOperator) -> None:
    (shape,) = input_shapes(t, operator, 1)
    axis = file_axis(operator.option(1), len(shape))
    if len(operator.outputs) != shape[axis]:
        raise RefusedOperator(f"it has {len(operator.outputs)} outputs for {shape[axis]} parts")
    for index, output in enumerate(operator.outputs):
        slice_axis(t, replace(operator, outputs=(output,)), axis, index, index + 1, drop=True)


@lowers("REVERSE_V2")
def _reverse(t: Translation, operator: TfliteOperator) -> None:
    (shape, _) = input_shapes(t, operator, 2)
    axes = {file_axis(axis, len(shape)) for axis in t.numbers(operator.inputs[1], "axes")}
    is_reversed = [axis in axes for axis in range(len(shape))]
    begins = [-1 if back else 0 for back in is_reversed]
    ends = [-size - 1 if back else size for size, back in zip(shape, is_reversed, strict=True)]
    slices(t, operator, begins, ends, [-1 if back else 1 for back in is_reversed], set())


@lowers("TILE", "BROADCAST_TO")
def _repeat(t: Translation, operator: TfliteOperator) -> None:
    """Translate TILE (repetitions of each axis) and BROADCAST_TO (shape)."""
    (shape, _) = input_shapes(t, operator, 2)
    counts = t.numbers(operator.inputs[1], "sizes")
    if operator.code == "BROADCAST_TO":
        if len(counts) < len(shape) or any(
            size not in (1, wanted) for size, wanted in zip(shape[::-1], counts[::-1], strict=False)
        ):
            raise RefusedOperator(f"its input {shape} cannot be broadcast to {counts[:8]}")
        result, name = counts, t.real(operator.inputs[0], len(counts))
        shape = (1,) * (len(counts) - len(shape)) + shape
        counts = [wanted // size if size else 1 for size, wanted in zip(shape, counts, strict=True)]
    else:
        if len(counts) != len(shape):
            raise RefusedOperator(f"its multiples are for {len(counts)} axes, but its input has {len(shape)}")
        result, name = [size * count for size, count in zip(shape, counts, strict=True)], t.real(operator.inputs[0])
    if len(counts) == 4:
        counts = [counts[axis] for axis in (0, 3, 1, 2)]
    layer(t, operator, "Tile", [name, t.constant("repeats", np.array(counts, np.int64))], result)


@lowers("GATHER")
def _gather(t: Translation, operator: TfliteOperator) -> None:
    """Gather parts of an axis, at constant or computed indices."""
    (shape, places) = input_shapes(t, operator, 2)
    axis = file_axis(operator.option(0), len(shape))
    if operator.option(1):
        raise RefusedOperator("indices that differ between samples (batch_dims) are not supported")
    if t.tensor(operator.inputs[1]).values is None or len(places) > 1:
        t.expect_shape(operator.output, (*shape[:axis], *places, *shape[axis + 1 :]))
        inputs = [t.ordered(operator.inputs[0]), t.positions(operator.inputs[1])]
        return t.ordered_result(operator.output, lambda name: t.emit("Gather", inputs, name, axis=axis))
    indexes = t.numbers(operator.inputs[1], "indices")
    if any(not 0 <= index < shape[axis] for index in indexes):
        raise RefusedOperator(f"its indices are out of range for an axis of {shape[axis]}")
    if not places:
        return slice_axis(t, operator, axis, indexes[0], indexes[0] + 1, drop=True)
    inputs = [t.real(operator.inputs[0]), t.constant("positions", np.array(indexes, np.int64))]
    result = (*shape[:axis], len(indexes), *shape[axis + 1 :])
    return layer(t, operator, "Gather", inputs, result, axis=graph_axis(axis, len(shape)))


@lowers("BATCH_MATMUL")
def _batch_matmul(t: Translation, operator: TfliteOperator) -> None:
    """Translate BATCH_MATMUL, whose last two axes of the file are rows and columns."""
    shapes = input_shapes(t, operator, 2)
    rank = len(shapes[0])
    if not 2 <= rank == len(shapes[1]):
        raise RefusedOperator(f"a product of ranks {rank} and {len(shapes[1])} is not supported")
    name, operands, forms = t.tensor(operator.output).name, [], []
    for position, (index, shape) in enumerate(zip(operator.inputs, shapes, strict=False)):
        order = [*range(rank - 2), rank - 1, rank - 2] if operator.flag(position) else [*range(rank)]
        forms.append([shape[axis] for axis in order])
        perm = [graph_axis(axis, rank) for axis in order]
        operand = t.real(index)
        if perm != [*range(rank)]:
            operand = t.emit("Transpose", [operand], t.fresh(f"{name}_{('left', 'right')[position]}"), perm=perm)
        operands.append(operand)
    above = broadcast([tuple(form[:-2]) for form in forms])
    if forms[0][-1] != forms[1][-2]:
        raise RefusedOperator(f"its inputs {shapes[0]} and {shapes[1]} cannot be broadcast")
    result = (*above, forms[0][-2], forms[1][-1])
    if rank != 4:
        return layer(t, operator, "MatMul", operands, result)
    product = t.emit("MatMul", operands, t.fresh(f"{name}_product"))
    return layer(t, operator, "Transpose", [product], result, perm=(0, 3, 1, 2))


def _axis(t: Translation, operator: TfliteOperator) -> int:
    axes = t.numbers(operator.inputs[1], "axis")
    if len(axes) != 1:
        raise RefusedOperator(f"its axis has {len(axes)} values")
    return axes[0]


def _arg(kind: str, t: Translation, operator: TfliteOperator) -> None:
    """Translate ARG_MAX and ARG_MIN, with the index type of the file."""
    (shape, _) = input_shapes(t, operator, 2)
    axis, result = file_axis(_axis(t, operator), len(shape)), t.tensor(operator.output)
    wanted, name = (*shape[:axis], *shape[axis + 1 :]), f"{result.name}_found"
    t.expect_shape(operator.output, wanted)
    found = t.emit(kind, [t.real(operator.inputs[0])], t.fresh(name), axis=graph_axis(axis, len(shape)), keepdims=1)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    cast = partial(t.emit_shaped, "Cast", [found], shape=kept, wanted=wanted, inner="kept", to=onnx_type(result))
    t.result(operator.output, cast)


@lowers("CUMSUM")
def _running_sum(t: Translation, operator: TfliteOperator) -> None:
    (shape, _) = input_shapes(t, operator, 2)
    axis = t.constant("axis", np.array(graph_axis(_axis(t, operator), len(shape))))
    inputs = [t.real(operator.inputs[0]), axis]
    layer(t, operator, "CumSum", inputs, shape, exclusive=int(operator.flag(0)), reverse=int(operator.flag(1)))


@lowers("L2_NORMALIZATION")
def _l2_normalize(t: Translation, operator: TfliteOperator) -> None:
    (shape,) = input_shapes(t, operator, 1)
    if operator.option(0, "<b"):
        raise RefusedOperator("a fused activation is not supported")
    name, output = t.real(operator.input), t.tensor(operator.output).name
    axes = t.constant("axes", np.array([graph_axis(-1, len(shape))], np.int64))
    length = t.emit("ReduceL2", [name, axes], t.fresh(f"{output}_length"), keepdims=1)
    least = t.constant("least", np.float32(_MIN_LENGTH))
    layer(t, operator, "Div", [name, t.emit("Max", [length, least], t.fresh(f"{output}_divisor"))], shape)


_ELEMENT_WISE = {
    1: "NEG=Neg SIN=Sin COS=Cos FLOOR=Floor CEIL=Ceil ROUND=Round SIGN=Sign ELU=Elu SQUARE=Mul LOGICAL_NOT=Not",
    2: """
    ADD=Add SUB=Sub MUL=Mul DIV=Div MAXIMUM=Max MINIMUM=Min POW=Pow FLOOR_DIV=FloorDiv FLOOR_MOD=FloorMod SQUARED_DIFFERENCE=Mul
    EQUAL=Equal NOT_EQUAL=Not LESS=Less LESS_EQUAL=LessOrEqual GREATER=Greater GREATER_EQUAL=GreaterOrEqual LOGICAL_AND=And
    LOGICAL_OR=Or
    """,
    3: "SELECT=Where SELECT_V2=Where",
}
"""ONNX operators of element-wise operators, by number of operands."""
for _operands, _table in _ELEMENT_WISE.items():
    for _code, _kind in pairs(_table).items():
        lowers(_code)(partial(_element_wise, _kind, _operands))
lowers("ADD_N")(lambda t, operator: _element_wise("Sum", len(operator.inputs), t, operator))
lowers("ARG_MAX")(partial(_arg, "ArgMax"))
lowers("ARG_MIN")(partial(_arg, "ArgMin"))
