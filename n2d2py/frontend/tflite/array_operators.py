"""TFLite operators on arrays: those that are only translated in floating point, and those on the axes of the file."""

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.lowering import Emitter, find_windows, layer, slice_axis, slices
from n2d2py.frontend.tflite.schema import pairs
from n2d2py.frontend.tflite.translation import Translation, file_axis, graph_axis, lowers, onnx_type
from n2d2py.graph.shapes import Shape

_MIN_LENGTH = 1e-6
"""Smallest divisor of L2_NORMALIZATION."""
_COMPARISONS = ("Equal", "Not", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def _element_wise(kind: str, count: int, t: Translation, op: TfliteOperator) -> None:
    """Translate an element-wise function of `count` operands, with broadcasting and a fused activation of arithmetic."""
    shapes = t.input_shapes(op, count)
    if op.code == "SELECT" and len(set(shapes)) > 1 and prod(shapes[0]) > 1:
        raise RefusedOperator("its condition and its inputs must have the same shape")
    t.expect_shape(op.output, np.broadcast_shapes(*shapes))
    limits = op.fused_limits(0) if op.code in ("ADD", "SUB", "MUL", "DIV") else None
    rank, logical = max(map(len, shapes)), op.code.startswith("LOGICAL")
    truths = [logical or (kind == "Where" and position == 0) for position in range(count)]
    operands = [t.real(index, rank, truth) for index, truth in zip(op.inputs, truths, strict=False)]
    name = t.tensor(op.output).name
    if kind.startswith("Floor") and count == 2:
        kind, operands = _floor_parts(kind, Emitter(t, name), operands, t.tensor(op.output).dtype.kind != "f")
    if op.code == "SQUARED_DIFFERENCE":
        operands = [t.emit("Sub", operands, t.fresh(f"{name}_difference"))]
    if op.code in ("SQUARE", "SQUARED_DIFFERENCE"):
        operands *= 2
    if op.code == "NOT_EQUAL":
        operands = [t.emit("Equal", operands, t.fresh(f"{name}_equal"))]
    t.result(op.output, lambda output: t.emit(kind, operands, output), limits, logical or kind in _COMPARISONS)


def _floor_parts(kind: str, emit: Emitter, operands: list[str], integers: bool) -> tuple[str, list[str]]:
    """Return the last node of a division that rounds down, or of its remainder, which has the sign of the divisor."""
    x, y = operands
    if integers:
        return ("Mod", operands) if kind == "FloorMod" else ("Div", [emit("Sub", x, emit("Mod", x, y)), y])
    quotient = emit("Div", x, y)
    return ("Floor", [quotient]) if kind == "FloorDiv" else ("Sub", [x, emit("Mul", emit("Floor", quotient), y)])


@lowers("CAST")
def _cast(t: Translation, op: TfliteOperator) -> None:
    (shape,) = t.input_shapes(op, 1)
    source, target = (t.tensor(index) for index in (op.input, op.output))
    t.expect_shape(op.output, shape)
    if source.is_quantized or target.is_quantized:
        raise RefusedOperator(f"a cast from {source.dtype.name} to {target.dtype.name} of quantized values is not supported")
    x, to = t.real(op.input, truth=source.dtype.kind == "b"), onnx_type(target)
    t.result(op.output, lambda name: t.emit("Cast", [x], name, to=to), truth=target.dtype.kind == "b")


@lowers("PACK")
def _pack(t: Translation, op: TfliteOperator) -> None:
    (shape,) = t.input_shapes(op, 1)
    rank = len(shape) + 1
    axis = file_axis(op.options.integer(1), rank)
    one = (*shape[:axis], 1, *shape[axis:])
    result = (*shape[:axis], len(op.inputs), *shape[axis:])
    name = t.tensor(op.output).name
    parts = [t.reshape(t.real(index), shape, one, t.fresh(f"{name}_{number}")) for number, index in enumerate(op.inputs)]
    layer(t, op, "Concat", parts, result, axis=graph_axis(axis, rank))


@lowers("UNPACK")
def _unpack(t: Translation, op: TfliteOperator) -> None:
    (shape,) = t.input_shapes(op, 1)
    axis = file_axis(op.options.integer(1), len(shape))
    for index, output in enumerate(op.outputs):
        slice_axis(t, replace(op, outputs=(output,)), axis, index)


@lowers("REVERSE_V2")
def _reverse(t: Translation, op: TfliteOperator) -> None:
    (shape, _) = t.input_shapes(op, 2)
    axes = {file_axis(axis, len(shape)) for axis in t.numbers(op.inputs[1], "axes")}
    slices(t, op, [slice(None, None, -1 if axis in axes else 1) for axis in range(len(shape))])


@lowers("TILE", "BROADCAST_TO")
def _repeat(t: Translation, op: TfliteOperator) -> None:
    (shape, _) = t.input_shapes(op, 2)
    counts = t.numbers(op.inputs[1], "sizes")
    if op.code == "BROADCAST_TO":
        pairs_of_sizes = zip(shape[::-1], counts[::-1], strict=False)
        if len(counts) < len(shape) or any(size not in (1, wanted) for size, wanted in pairs_of_sizes):
            raise RefusedOperator(f"its input {shape} cannot be broadcast to {counts[:8]}")
        result, name = counts, t.real(op.inputs[0], len(counts))
        shape = (1,) * (len(counts) - len(shape)) + shape
        counts = [wanted // size if size else 1 for size, wanted in zip(shape, counts, strict=True)]
    else:
        result, name = [size * count for size, count in zip(shape, counts, strict=True)], t.real(op.inputs[0])
    if len(counts) == 4:
        counts = [counts[axis] for axis in (0, 3, 1, 2)]
    layer(t, op, "Tile", [name, t.constant("repeats", np.array(counts, np.int64))], result)


@lowers("GATHER")
def _gather(t: Translation, op: TfliteOperator) -> None:
    (shape, places) = t.input_shapes(op, 2)
    axis = file_axis(op.options.integer(0), len(shape))
    if op.options.integer(1):
        raise RefusedOperator("indices that differ between samples (batch_dims) are not supported")
    if t.tensor(op.inputs[1]).values is None or len(places) > 1:
        t.expect_shape(op.output, (*shape[:axis], *places, *shape[axis + 1 :]))
        inputs = [t.ordered(op.inputs[0]), t.positions(op.inputs[1])]
        return t.ordered_result(op.output, lambda name: t.emit("Gather", inputs, name, axis=axis))
    indexes = t.numbers(op.inputs[1], "indices")
    if any(not 0 <= index < shape[axis] for index in indexes):
        raise RefusedOperator(f"its indices are out of range for an axis of {shape[axis]}")
    if not places:
        return slice_axis(t, op, axis, indexes[0])
    inputs = [t.real(op.inputs[0]), t.constant("positions", np.array(indexes, np.int64))]
    result = (*shape[:axis], len(indexes), *shape[axis + 1 :])
    return layer(t, op, "Gather", inputs, result, axis=graph_axis(axis, len(shape)))


@lowers("BATCH_MATMUL")
def _batch_matmul(t: Translation, op: TfliteOperator) -> None:
    """Translate BATCH_MATMUL, whose last two axes of the file are rows and columns."""
    shapes = t.input_shapes(op, 2)
    rank = len(shapes[0])
    name, operands, forms = t.tensor(op.output).name, [], []
    for position, (index, shape) in enumerate(zip(op.inputs, shapes, strict=False)):
        order = [*range(rank - 2), rank - 1, rank - 2] if op.options.flag(position) else [*range(rank)]
        forms.append([shape[axis] for axis in order])
        perm = [graph_axis(axis, rank) for axis in order]
        operand = t.real(index)
        if perm != [*range(rank)]:
            operand = t.emit("Transpose", [operand], t.fresh(f"{name}_{('left', 'right')[position]}"), perm=perm)
        operands.append(operand)
    result = (*np.broadcast_shapes(*(tuple(form[:-2]) for form in forms)), forms[0][-2], forms[1][-1])
    if rank != 4:
        return layer(t, op, "MatMul", operands, result)
    product = t.emit("MatMul", operands, t.fresh(f"{name}_product"))
    return layer(t, op, "Transpose", [product], result, perm=(0, 3, 1, 2))


def _arg(kind: str, t: Translation, op: TfliteOperator) -> None:
    (shape, _) = t.input_shapes(op, 2)
    axis, result = file_axis(t.number(op.inputs[1], "axis"), len(shape)), t.tensor(op.output)
    wanted, name = (*shape[:axis], *shape[axis + 1 :]), f"{result.name}_found"
    found = t.emit(kind, [t.real(op.inputs[0])], t.fresh(name), axis=graph_axis(axis, len(shape)), keepdims=1)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    layer(t, op, "Cast", [found], wanted, made=kept, to=onnx_type(result))


@lowers("CUMSUM")
def _running_sum(t: Translation, op: TfliteOperator) -> None:
    (shape, _) = t.input_shapes(op, 2)
    axis = t.constant("axis", np.array(graph_axis(t.number(op.inputs[1], "axis"), len(shape))))
    inputs = [t.real(op.inputs[0]), axis]
    layer(t, op, "CumSum", inputs, shape, exclusive=int(op.options.flag(0)), reverse=int(op.options.flag(1)))


@lowers("L2_NORMALIZATION")
def _l2_normalize(t: Translation, op: TfliteOperator) -> None:
    (shape,) = t.input_shapes(op, 1)
    if op.options.integer(0, "<b"):
        raise RefusedOperator("a fused activation is not supported")
    name, output = t.real(op.input), t.tensor(op.output).name
    axes = t.constant("axes", np.array([graph_axis(-1, len(shape))], np.int64))
    length = t.emit("ReduceL2", [name, axes], t.fresh(f"{output}_length"), keepdims=1)
    least = t.constant("least", np.float32(_MIN_LENGTH))
    layer(t, op, "Div", [name, t.emit("Max", [length, least], t.fresh(f"{output}_divisor"))], shape)


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
lowers("ADD_N")(lambda t, op: _element_wise("Sum", len(op.inputs), t, op))
lowers("ARG_MAX")(partial(_arg, "ArgMax"))
lowers("ARG_MIN")(partial(_arg, "ArgMin"))


# ---- on the axes of the file --------------------------------------------------------------------
def _give(t: Translation, index: int, shape: Shape, kind: str, *inputs: str, **attributes: Any) -> None:
    """Declare a result of `shape` that a node produces with the axes of the file."""
    t.expect_shape(index, shape)
    t.ordered_result(index, lambda name: t.emit(kind, inputs, name, **attributes))


def _emitter(t: Translation, op: TfliteOperator) -> Emitter:
    return Emitter(t, t.tensor(op.outputs[0]).name)


@lowers("GATHER_ND")
def _gather_nd(t: Translation, op: TfliteOperator) -> None:
    (shape, places) = t.input_shapes(op, 2)
    inputs = t.ordered(op.inputs[0]), t.positions(op.inputs[1])
    _give(t, op.output, (*places[:-1], *shape[places[-1] :]), "GatherND", *inputs)


@lowers("SCATTER_ND")
def _scatter_nd(t: Translation, op: TfliteOperator) -> None:
    """Add updates to zeros; positions that repeat are added up."""
    shape, updates = tuple(t.numbers(op.inputs[2], "shape")), t.tensor(op.inputs[1])
    zeros = t.constant("zeros", np.zeros(shape, np.float32 if updates.is_quantized else updates.dtype))
    inputs = zeros, t.positions(op.inputs[0]), t.ordered(op.inputs[1])
    _give(t, op.output, shape, "ScatterND", *inputs, reduction="add")


@lowers("EMBEDDING_LOOKUP")
def _embedding_lookup(t: Translation, op: TfliteOperator) -> None:
    (places, shape) = t.input_shapes(op, 2)
    inputs = t.ordered(op.inputs[1]), t.positions(op.inputs[0])
    _give(t, op.output, (*places, *shape[1:]), "Gather", *inputs, axis=0)


@lowers("ONE_HOT")
def _one_hot(t: Translation, op: TfliteOperator) -> None:
    (shape, *_) = t.input_shapes(op, 4)
    depth, emit = t.number(op.inputs[1], "depth"), _emitter(t, op)
    axis = file_axis(op.options.integer(0, default=-1), len(shape) + 1)
    on, off = (t.values(index, "values").reshape(()) for index in op.inputs[2:4])
    inputs = t.positions(op.inputs[0]), emit.numbers([depth]), emit.numbers([off, on], on.dtype.type)
    _give(t, op.output, (*shape[:axis], depth, *shape[axis:]), "OneHot", *inputs, axis=axis)


@lowers("TOPK_V2")
def _top_k(t: Translation, op: TfliteOperator) -> None:
    (shape, _), emit = t.input_shapes(op, 2), _emitter(t, op)
    count = t.number(op.inputs[1], "number of elements")
    values, found = emit.emit_two("TopK", t.ordered(op.inputs[0]), emit.numbers([count]), axis=len(shape) - 1)
    result = (*shape[:-1], count)
    _give(t, op.outputs[0], result, "Identity", values)
    _give(t, op.outputs[1], result, "Cast", found, to=onnx_type(t.tensor(op.outputs[1])))


@lowers("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def _non_max_suppression(t: Translation, op: TfliteOperator) -> None:
    """Translate NON_MAX_SUPPRESSION_V4 and V5: positions, scores (V5), number of boxes; results are padded with zeros."""
    with_scores = op.code.endswith("V5")
    ((boxes, _), _), emit = t.input_shapes(op, 2), _emitter(t, op)
    most = t.number(op.inputs[2], "number of boxes")
    overlap, least, *softness = (float(t.values(index, "threshold").item()) for index in op.inputs[3:])
    if any(softness):
        raise RefusedOperator(f"soft suppression (sigma={softness[0]:g}) is not supported")
    corners, scores = (t.ordered(index) for index in op.inputs[:2])
    _, box = emit.suppress(emit.reshape(corners, 1, boxes, 4), emit.reshape(scores, 1, 1, boxes), most, (overlap, least))
    used, free = emit("GreaterOrEqual", box, emit.numbers([0])), most - min(most, boxes)
    positions = emit("Max", box, emit.numbers([0]))
    results = [emit("Cast", positions, to=onnx_type(t.tensor(op.outputs[0])))]
    if with_scores:
        results.append(emit("Where", used, emit.gather(scores, box), emit.numbers([0], np.float32)))
    for index, values in zip(op.outputs[:-1], results, strict=True):
        _give(t, index, (most,), "Pad", values, emit.numbers([0, free]))
    count = emit("ReduceSum", emit("Cast", used, to=onnx_type(t.tensor(op.outputs[-1]))), emit.numbers([0]), keepdims=0)
    _give(t, op.outputs[-1], (), "Identity", count)


@lowers("REVERSE_SEQUENCE")
def _reverse_sequence(t: Translation, op: TfliteOperator) -> None:
    (shape, _), emit = t.input_shapes(op, 2), _emitter(t, op)
    time, batch = op.options.integer(0), op.options.integer(1)
    order = [batch, time, *(axis for axis in range(len(shape)) if axis not in (batch, time))]
    moved = emit("Transpose", t.ordered(op.inputs[0]), perm=order)
    reverse = emit("ReverseSequence", moved, t.positions(op.inputs[1]), batch_axis=0, time_axis=1)
    _give(t, op.output, shape, "Transpose", reverse, perm=np.argsort(order).tolist())


@lowers("REDUCE_ANY", "REDUCE_ALL")
def _truth(t: Translation, op: TfliteOperator) -> None:
    (shape, _), emit = t.input_shapes(op, 2), _emitter(t, op)
    axes = sorted({file_axis(axis, len(shape)) for axis in t.numbers(op.inputs[1], "axes")})
    kept = op.options.flag(0)
    t.expect_shape(op.output, [1 if n in axes else size for n, size in enumerate(shape) if kept or n not in axes])
    numbers = emit("Cast", t.ordered(op.inputs[0], truth=True), to=6)
    found = emit("ReduceMax" if op.code == "REDUCE_ANY" else "ReduceMin", numbers, emit.numbers(axes), keepdims=int(kept))
    t.ordered_result(op.output, lambda name: t.emit("Cast", [found], name, to=9), truth=True)


@lowers("ZEROS_LIKE")
def _zeros_like(t: Translation, op: TfliteOperator) -> None:
    t.set_values(op.output, np.zeros(t.tensor(op.input).shape, t.tensor(op.output).dtype))


# ---- blocks of a batch --------------------------------------------------------------------------
def _block_options(t: Translation, op: TfliteOperator) -> tuple[Shape, list[int], np.ndarray]:
    """Return (shape of the input, block sizes, elements added or removed at both ends of each axis)."""
    (shape, *_), block = t.input_shapes(op, 3), t.numbers(op.inputs[1], "block shape")
    amounts = np.array(t.numbers(op.inputs[2], "padding"), np.int64).reshape(-1, 2)
    if len(amounts) != len(block) or len(block) >= len(shape) or min(block) < 1 or amounts.min() < 0:
        raise RefusedOperator(f"its blocks {block} and amounts {amounts.tolist()} do not fit {len(shape)} axes")
    return shape, block, amounts


@lowers("SPACE_TO_BATCH_ND")
def _space_to_batch(t: Translation, op: TfliteOperator) -> None:
    """Translate SPACE_TO_BATCH_ND: the elements of a block become samples."""
    (shape, block, amounts), emit = _block_options(t, op), _emitter(t, op)
    rest, count = shape[1 + len(block) :], len(block)
    padded = [size + sum(ends) for size, ends in zip(shape[1:], amounts.tolist(), strict=False)]
    pads = emit.numbers(np.pad(amounts, ((1, len(rest)), (0, 0))).T.reshape(-1))
    if op.dilation != (1, 1):
        return _give(t, op.output, (shape[0], *padded, *rest), "Pad", t.ordered(op.inputs[0]), pads)
    x = emit("Pad", t.ordered(op.inputs[0]), pads)
    steps = [size // step for size, step in zip(padded, block, strict=True)]
    pairs = [size for pair in zip(steps, block, strict=True) for size in pair]
    x = emit.reshape(x, shape[0], *pairs, *rest)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    x = emit("Transpose", x, perm=order)
    result = (shape[0] * prod(block), *steps, *rest)
    return _give(t, op.output, result, "Reshape", x, emit.numbers(result))


@lowers("BATCH_TO_SPACE_ND")
def _batch_to_space(t: Translation, op: TfliteOperator) -> None:
    (shape, block, amounts), emit = _block_options(t, op), _emitter(t, op)
    count, rest, x = len(block), shape[1 + len(block) :], t.ordered(op.inputs[0])
    samples, sizes = shape[0], list(shape[1 : 1 + count])
    if op.dilation == (1, 1):
        samples, sizes = samples // prod(block), [size * step for size, step in zip(sizes, block, strict=True)]
        pairs = [axis for index in range(count) for axis in (count + 1 + index, index)]
        x = emit.reshape(x, *block, samples, *shape[1:])
        x = emit("Transpose", x, perm=[count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))])
        x = emit.reshape(x, samples, *sizes, *rest)
    ends = [size - int(end) for size, end in zip(sizes, amounts[:, 1], strict=True)]
    result = (samples, *(end - int(begin) for end, begin in zip(ends, amounts[:, 0], strict=True)), *rest)
    bounds = (emit.numbers(values) for values in (amounts[:, 0], ends, range(1, count + 1)))
    _give(t, op.output, result, "Slice", x, *bounds)


# ---- five axes, spectra -------------------------------------------------------------------------
@lowers("CONV_3D")
def _conv_3d(t: Translation, op: TfliteOperator) -> None:
    (shape, form), emit = t.input_shapes(op, 2), _emitter(t, op)
    if len(shape) != 5 or len(form) != 5 or shape[4] % form[3] or t.tensor(op.inputs[0]).dtype.kind != "f":
        raise RefusedOperator(f"its weights {form} do not fit an input of {shape}, or it is quantized")
    stride, dilation = ([op.options.integer(slot, default=1) for slot in slots] for slots in ((1, 3, 2), (5, 7, 6)))
    sizes, pads = find_windows(op.options.integer(0, "<b"), shape[1:4], form[:3], stride, dilation)
    if op.options.integer(4, "<b"):
        raise RefusedOperator("a fused activation is not supported")
    x = emit("Transpose", t.real(op.inputs[0]), perm=(0, 4, 1, 2, 3))
    inputs = [x, t.parameter(t.tensor(op.inputs[1]), lambda values: values.transpose(4, 3, 0, 1, 2), 0)]
    inputs += [t.real(index) for index in op.inputs[2:3] if index >= 0]
    windows = {"strides": stride, "dilations": dilation, "pads": pads, "group": shape[4] // form[3]}
    _give(t, op.output, (shape[0], *sizes, form[4]), "Transpose", emit("Conv", *inputs, **windows), perm=(0, 2, 3, 4, 1))


@lowers("RFFT2D")
def _rfft_2d(t: Translation, op: TfliteOperator) -> None:
    """Translate RFFT2D; complex numbers have an axis of two at the end."""
    (shape, _), emit = t.input_shapes(op, 2), _emitter(t, op)
    lengths, rank = t.numbers(op.inputs[1], "length"), len(shape)
    if tuple(lengths) != shape[-2:]:
        raise RefusedOperator(f"its lengths {lengths} are not those of its input {shape}")
    t.expect_shape(op.output, (*shape[:-1], shape[-1] // 2 + 1))
    x = emit("Unsqueeze", t.ordered(op.inputs[0]), emit.numbers([-1]))
    x = emit("DFT", x, "", emit.numbers(rank - 1), onesided=1)
    t.bind(op.output, emit("DFT", x, "", emit.numbers(rank - 2)) if lengths[0] > 1 else x)


@lowers("COMPLEX_ABS", "REAL", "IMAG")
def _complex_part(t: Translation, op: TfliteOperator) -> None:
    emit, x = _emitter(t, op), t.real(op.input)
    shape = t.tensor(op.input).shape
    if op.code == "COMPLEX_ABS":
        return _give(t, op.output, shape, "ReduceL2", x, emit.numbers([-1]), keepdims=0)
    return _give(t, op.output, shape, "Gather", x, emit.numbers(int(op.code == "IMAG")), axis=-1)
