"""TFLite operators on arrays: those that are only translated in floating point, and those on the axes of the file."""

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.lowering import find_windows, layer, slice_axis, slices
from n2d2py.frontend.tflite.schema import pairs
from n2d2py.frontend.tflite.signatures import NUMBER, TENSOR, Axes, Ints, Rank
from n2d2py.frontend.tflite.translation import Translation, graph_axis, lowers, onnx_type
from n2d2py.graph.shapes import Shape

_MIN_LENGTH = 1e-6
"""Smallest divisor of L2_NORMALIZATION."""
_COMPARISONS = ("Equal", "Not", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def _element_wise(kind: str, t: Translation, op: TfliteOperator, *shapes: Shape) -> None:
    """Translate an element-wise function, with broadcasting and a fused activation of arithmetic."""
    if op.code == "SELECT" and len(set(shapes)) > 1 and prod(shapes[0]) > 1:
        raise RefusedOperator("its condition and its inputs must have the same shape")
    t.expect_shape(op.outputs[0], np.broadcast_shapes(*shapes))
    limits = op.fused_limits(0) if op.code in ("ADD", "SUB", "MUL", "DIV") else None
    rank, logical = max(map(len, shapes)), op.code.startswith("LOGICAL")
    truths = [logical or (kind == "Where" and position == 0) for position in range(len(shapes))]
    operands = [t.real(index, rank, truth) for index, truth in zip(op.inputs, truths, strict=False)]
    if kind.startswith("Floor") and len(shapes) == 2:
        kind, operands = _floor_parts(kind, t, operands, t.tensor(op.outputs[0]).dtype.kind != "f")
    if op.code == "SQUARED_DIFFERENCE":
        operands = [t.emit("Sub", operands, t.fresh(f"{t.name}_difference"))]
    if op.code in ("SQUARE", "SQUARED_DIFFERENCE"):
        operands *= 2
    if op.code == "NOT_EQUAL":
        operands = [t.emit("Equal", operands, t.fresh(f"{t.name}_equal"))]
    t.result(op.outputs[0], lambda output: t.emit(kind, operands, output), limits, logical or kind in _COMPARISONS)


def _floor_parts(kind: str, t: Translation, operands: list[str], integers: bool) -> tuple[str, list[str]]:
    """Return the last node of a division that rounds down, or of its remainder, which has the sign of the divisor."""
    x, y = operands
    if integers:
        return ("Mod", operands) if kind == "FloorMod" else ("Div", [t.add("Sub", x, t.add("Mod", x, y)), y])
    quotient = t.add("Div", x, y)
    return ("Floor", [quotient]) if kind == "FloorDiv" else ("Sub", [x, t.add("Mul", t.add("Floor", quotient), y)])


@lowers("CAST", inputs=(TENSOR,))
def _cast(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    source, target = (t.tensor(index) for index in (op.inputs[0], op.outputs[0]))
    t.expect_shape(op.outputs[0], shape)
    if source.is_quantized or target.is_quantized:
        raise RefusedOperator(f"a cast from {source.dtype.name} to {target.dtype.name} of quantized values is not supported")
    x, to = t.real(op.inputs[0], truth=source.dtype.kind == "b"), onnx_type(target)
    t.result(op.outputs[0], lambda name: t.emit("Cast", [x], name, to=to), truth=target.dtype.kind == "b")


@lowers("PACK", inputs=(Rank(many=True),), axis_options=(1,), adds_axis=True)
def _pack(t: Translation, op: TfliteOperator, shape: Shape, *_) -> None:
    rank = len(shape) + 1
    axis = op.options.integer(1) % rank
    one = (*shape[:axis], 1, *shape[axis:])
    result = (*shape[:axis], len(op.inputs), *shape[axis:])
    parts = [t.reshape(t.real(index), shape, one, t.fresh(f"{t.name}_{number}")) for number, index in enumerate(op.inputs)]
    layer(t, op, "Concat", parts, result, axis=graph_axis(axis, rank))


@lowers("UNPACK", inputs=(TENSOR,), results=None, axis_options=(1,))
def _unpack(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    axis = op.options.integer(1) % len(shape)
    for index, output in enumerate(op.outputs):
        slice_axis(t, replace(op, outputs=(output,)), axis, index)


@lowers("REVERSE_V2", inputs=(TENSOR, Axes()))
def _reverse(t: Translation, op: TfliteOperator, shape: Shape, axes: list[int]) -> None:
    slices(t, op, [slice(None, None, -1 if {axis, axis - len(shape)} & {*axes} else 1) for axis in range(len(shape))])


@lowers("TILE", inputs=(TENSOR, Ints(per_axis=1)))
@lowers("BROADCAST_TO", inputs=(TENSOR, Ints()))
def _repeat(t: Translation, op: TfliteOperator, shape: Shape, counts: list[int]) -> None:
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


@lowers("GATHER", inputs=(TENSOR, TENSOR), axis_options=(0,))
def _gather(t: Translation, op: TfliteOperator, shape: Shape, places: Shape) -> None:
    axis = op.options.integer(0) % len(shape)
    if op.options.integer(1):
        raise RefusedOperator("indices that differ between samples (batch_dims) are not supported")
    if t.tensor(op.inputs[1]).values is None or len(places) > 1:
        t.expect_shape(op.outputs[0], (*shape[:axis], *places, *shape[axis + 1 :]))
        inputs = [t.ordered(op.inputs[0]), t.positions(op.inputs[1])]
        return t.ordered_result(op.outputs[0], lambda name: t.emit("Gather", inputs, name, axis=axis))
    indexes = Ints().read(t.tensor(op.inputs[1]), len(shape))
    if any(not 0 <= index < shape[axis] for index in indexes):
        raise RefusedOperator(f"its indices are out of range for an axis of {shape[axis]}")
    if not places:
        return slice_axis(t, op, axis, indexes[0])
    inputs = [t.real(op.inputs[0]), t.constant("positions", np.array(indexes, np.int64))]
    result = (*shape[:axis], len(indexes), *shape[axis + 1 :])
    return layer(t, op, "Gather", inputs, result, axis=graph_axis(axis, len(shape)))


@lowers("BATCH_MATMUL", inputs=(Rank(2, at_least=True), Rank(per_axis=1)), broadcast=2)
def _batch_matmul(t: Translation, op: TfliteOperator, *shapes: Shape) -> None:
    """Translate BATCH_MATMUL, whose last two axes of the file are rows and columns."""
    rank = len(shapes[0])
    name, operands, forms = t.tensor(op.outputs[0]).name, [], []
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


def _arg(kind: str, t: Translation, op: TfliteOperator, shape: Shape, axis: int) -> None:
    axis, result = axis % len(shape), t.tensor(op.outputs[0])
    wanted, name = (*shape[:axis], *shape[axis + 1 :]), f"{result.name}_found"
    found = t.emit(kind, [t.real(op.inputs[0])], t.fresh(name), axis=graph_axis(axis, len(shape)), keepdims=1)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    layer(t, op, "Cast", [found], wanted, made=kept, to=onnx_type(result))


@lowers("CUMSUM", inputs=(TENSOR, Axes(1)))
def _running_sum(t: Translation, op: TfliteOperator, shape: Shape, axis: int) -> None:
    inputs = [t.real(op.inputs[0]), t.constant("axis", np.array(graph_axis(axis, len(shape))))]
    layer(t, op, "CumSum", inputs, shape, exclusive=int(op.options.flag(0)), reverse=int(op.options.flag(1)))


@lowers("L2_NORMALIZATION", inputs=(Rank(1, at_least=True),))
def _l2_normalize(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    if op.options.integer(0, "<b"):
        raise RefusedOperator("a fused activation is not supported")
    name, output = t.real(op.inputs[0]), t.tensor(op.outputs[0]).name
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
        lowers(_code, inputs=(TENSOR,) * _operands, broadcast=0)(partial(_element_wise, _kind))
lowers("ADD_N", inputs=(Rank(many=True),), broadcast=0)(partial(_element_wise, "Sum"))
lowers("ZEROS_LIKE", inputs=(TENSOR,))(
    lambda t, op, x: t.set_shape(op.outputs[0], x, np.zeros(x, t.tensor(op.outputs[0]).dtype))
)
lowers("ARG_MAX", inputs=(TENSOR, Axes(1)))(partial(_arg, "ArgMax"))
lowers("ARG_MIN", inputs=(TENSOR, Axes(1)))(partial(_arg, "ArgMin"))


# ---- on the axes of the file --------------------------------------------------------------------
def _give(t: Translation, index: int, shape: Shape, kind: str, *inputs: str, **attributes: Any) -> None:
    """Declare a result of `shape` that a node produces with the axes of the file."""
    t.expect_shape(index, shape)
    t.ordered_result(index, lambda name: t.emit(kind, inputs, name, **attributes))


@lowers("GATHER_ND", inputs=(TENSOR, Rank(1, at_least=True)))
def _gather_nd(t: Translation, op: TfliteOperator, shape: Shape, places: Shape) -> None:
    inputs = t.ordered(op.inputs[0]), t.positions(op.inputs[1])
    _give(t, op.outputs[0], (*places[:-1], *shape[places[-1] :]), "GatherND", *inputs)


@lowers("SCATTER_ND", inputs=(TENSOR, TENSOR, Ints()))
def _scatter_nd(t: Translation, op: TfliteOperator, _: Shape, _updates: Shape, shape: list[int]) -> None:
    """Add updates to zeros; positions that repeat are added up."""
    updates = t.tensor(op.inputs[1])
    t.expect_shape(op.outputs[0], shape)
    zeros = t.constant("zeros", np.zeros(shape, np.float32 if updates.is_quantized else updates.dtype))
    inputs = zeros, t.positions(op.inputs[0]), t.ordered(op.inputs[1])
    _give(t, op.outputs[0], tuple(shape), "ScatterND", *inputs, reduction="add")


@lowers("EMBEDDING_LOOKUP", inputs=(TENSOR, Rank(1, at_least=True)))
def _embedding_lookup(t: Translation, op: TfliteOperator, places: Shape, shape: Shape) -> None:
    inputs = t.ordered(op.inputs[1]), t.positions(op.inputs[0])
    _give(t, op.outputs[0], (*places, *shape[1:]), "Gather", *inputs, axis=0)


@lowers("ONE_HOT", inputs=(TENSOR, Ints(1), NUMBER, NUMBER), axis_options=(0,), adds_axis=True)
def _one_hot(t: Translation, op: TfliteOperator, shape: Shape, depth: int, on: np.ndarray, off: np.ndarray) -> None:
    axis = op.options.integer(0, default=-1) % (len(shape) + 1)
    inputs = t.positions(op.inputs[0]), t.array([depth]), t.array([off, on], on.dtype.type)
    _give(t, op.outputs[0], (*shape[:axis], depth, *shape[axis:]), "OneHot", *inputs, axis=axis)


@lowers("TOPK_V2", inputs=(Rank(1, at_least=True), Ints(1)), results=2)
def _top_k(t: Translation, op: TfliteOperator, shape: Shape, count: int) -> None:
    values, found = t.add_two("TopK", t.ordered(op.inputs[0]), t.array([count]), axis=len(shape) - 1)
    result = (*shape[:-1], count)
    _give(t, op.outputs[0], result, "Identity", values)
    _give(t, op.outputs[1], result, "Cast", found, to=onnx_type(t.tensor(op.outputs[1])))


@lowers("NON_MAX_SUPPRESSION_V4", inputs=(Rank(2), Rank(1), Ints(1), NUMBER, NUMBER), results=2)
@lowers("NON_MAX_SUPPRESSION_V5", inputs=(Rank(2), Rank(1), Ints(1), NUMBER, NUMBER, NUMBER), results=3)
def _non_max_suppression(
    t: Translation, op: TfliteOperator, form: Shape, _scores: Shape, most: int, *limits: np.ndarray
) -> None:
    """Translate NON_MAX_SUPPRESSION_V4 and V5: positions, scores (V5), number of boxes; results are padded with zeros."""
    with_scores = op.code.endswith("V5")
    boxes = form[0]
    overlap, least, *softness = map(float, limits)
    if any(softness):
        raise RefusedOperator(f"soft suppression (sigma={softness[0]:g}) is not supported")
    corners, scores = (t.ordered(index) for index in op.inputs[:2])
    _, box = t.suppress(t.shaped(corners, 1, boxes, 4), t.shaped(scores, 1, 1, boxes), most, (overlap, least))
    used, free = t.add("GreaterOrEqual", box, t.array([0])), most - min(most, boxes)
    positions = t.add("Max", box, t.array([0]))
    results = [t.add("Cast", positions, to=onnx_type(t.tensor(op.outputs[0])))]
    if with_scores:
        results.append(t.add("Where", used, t.gather(scores, box), t.array([0], np.float32)))
    for index, values in zip(op.outputs[:-1], results, strict=True):
        _give(t, index, (most,), "Pad", values, t.array([0, free]))
    count = t.add("ReduceSum", t.add("Cast", used, to=onnx_type(t.tensor(op.outputs[-1]))), t.array([0]), keepdims=0)
    _give(t, op.outputs[-1], (), "Identity", count)


@lowers("REVERSE_SEQUENCE", inputs=(TENSOR, Rank(1)), axis_options=(0, 1))
def _reverse_sequence(t: Translation, op: TfliteOperator, shape: Shape, _: Shape) -> None:
    time, batch = op.options.integer(0), op.options.integer(1)
    order = [batch, time, *(axis for axis in range(len(shape)) if axis not in (batch, time))]
    moved = t.add("Transpose", t.ordered(op.inputs[0]), perm=order)
    reverse = t.add("ReverseSequence", moved, t.positions(op.inputs[1]), batch_axis=0, time_axis=1)
    _give(t, op.outputs[0], shape, "Transpose", reverse, perm=np.argsort(order).tolist())


@lowers("REDUCE_ANY", "REDUCE_ALL", inputs=(TENSOR, Axes()))
def _truth(t: Translation, op: TfliteOperator, shape: Shape, axes: list[int]) -> None:
    axes, kept = sorted({axis % len(shape) for axis in axes}), op.options.flag(0)
    t.expect_shape(op.outputs[0], [1 if n in axes else size for n, size in enumerate(shape) if kept or n not in axes])
    numbers = t.add("Cast", t.ordered(op.inputs[0], truth=True), to=6)
    found = t.add("ReduceMax" if op.code == "REDUCE_ANY" else "ReduceMin", numbers, t.array(axes), keepdims=int(kept))
    t.ordered_result(op.outputs[0], lambda name: t.emit("Cast", [found], name, to=9), truth=True)


# ---- blocks of a batch --------------------------------------------------------------------------
def _block_ends(shape: Shape, block: list[int], amounts: list[int]) -> np.ndarray:
    """Return the elements added or removed at both ends of each axis. Raise RefusedOperator if they do not fit the shape."""
    if len(amounts) != 2 * len(block) or not 0 < len(block) < len(shape) or min(block) < 1 or min(amounts) < 0:
        raise RefusedOperator(f"its blocks {block} and amounts {amounts} do not fit {len(shape)} axes")
    return np.array(amounts, np.int64).reshape(-1, 2)


@lowers("SPACE_TO_BATCH_ND", inputs=(TENSOR, Ints(), Ints()))
def _space_to_batch(t: Translation, op: TfliteOperator, shape: Shape, block: list[int], pads: list[int]) -> None:
    """Translate SPACE_TO_BATCH_ND: the elements of a block become samples."""
    amounts = _block_ends(shape, block, pads)
    rest, count = shape[1 + len(block) :], len(block)
    padded = [size + sum(ends) for size, ends in zip(shape[1:], amounts.tolist(), strict=False)]
    inputs = t.ordered(op.inputs[0]), t.array(np.pad(amounts, ((1, len(rest)), (0, 0))).T.reshape(-1))
    if op.dilation != (1, 1):
        return _give(t, op.outputs[0], (shape[0], *padded, *rest), "Pad", *inputs)
    x = t.add("Pad", *inputs)
    steps = [size // step for size, step in zip(padded, block, strict=True)]
    pairs = [size for pair in zip(steps, block, strict=True) for size in pair]
    x = t.shaped(x, shape[0], *pairs, *rest)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    x = t.add("Transpose", x, perm=order)
    result = (shape[0] * prod(block), *steps, *rest)
    return _give(t, op.outputs[0], result, "Reshape", x, t.array(result))


@lowers("BATCH_TO_SPACE_ND", inputs=(TENSOR, Ints(), Ints()))
def _batch_to_space(t: Translation, op: TfliteOperator, shape: Shape, block: list[int], crops: list[int]) -> None:
    amounts = _block_ends(shape, block, crops)
    count, rest, x = len(block), shape[1 + len(block) :], t.ordered(op.inputs[0])
    samples, sizes = shape[0], list(shape[1 : 1 + count])
    if op.dilation == (1, 1):
        samples, sizes = samples // prod(block), [size * step for size, step in zip(sizes, block, strict=True)]
        pairs = [axis for index in range(count) for axis in (count + 1 + index, index)]
        x = t.shaped(x, *block, samples, *shape[1:])
        x = t.add("Transpose", x, perm=[count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))])
        x = t.shaped(x, samples, *sizes, *rest)
    ends = [size - int(end) for size, end in zip(sizes, amounts[:, 1], strict=True)]
    result = (samples, *(end - int(begin) for end, begin in zip(ends, amounts[:, 0], strict=True)), *rest)
    bounds = (t.array(values) for values in (amounts[:, 0], ends, range(1, count + 1)))
    _give(t, op.outputs[0], result, "Slice", x, *bounds)


# ---- five axes, spectra -------------------------------------------------------------------------
@lowers("CONV_3D", inputs=(Rank(5), Rank(5), Rank(optional=True)))
def _conv_3d(t: Translation, op: TfliteOperator, shape: Shape, form: Shape, *_) -> None:
    if 0 in form or shape[4] % form[3] or t.tensor(op.inputs[0]).dtype.kind != "f":
        raise RefusedOperator(f"its weights {form} do not fit an input of {shape}, or it is quantized")
    stride, dilation = ([op.options.integer(slot, default=1) for slot in slots] for slots in ((1, 3, 2), (5, 7, 6)))
    sizes, pads = find_windows(op.options.integer(0, "<b"), shape[1:4], form[:3], stride, dilation)
    if op.options.integer(4, "<b"):
        raise RefusedOperator("a fused activation is not supported")
    x = t.add("Transpose", t.real(op.inputs[0]), perm=(0, 4, 1, 2, 3))
    inputs = [x, t.parameter(t.tensor(op.inputs[1]), lambda values: values.transpose(4, 3, 0, 1, 2), 0)]
    inputs += [t.real(index) for index in op.inputs[2:3] if index >= 0]
    windows = {"strides": stride, "dilations": dilation, "pads": pads, "group": shape[4] // form[3]}
    _give(t, op.outputs[0], (shape[0], *sizes, form[4]), "Transpose", t.add("Conv", *inputs, **windows), perm=(0, 2, 3, 4, 1))


@lowers("RFFT2D", inputs=(Rank(2, at_least=True), Ints(2)))
def _rfft_2d(t: Translation, op: TfliteOperator, shape: Shape, lengths: list[int]) -> None:
    """Translate RFFT2D; complex numbers have an axis of two at the end."""
    rank = len(shape)
    if tuple(lengths) != shape[-2:]:
        raise RefusedOperator(f"its lengths {lengths} are not those of its input {shape}")
    t.expect_shape(op.outputs[0], (*shape[:-1], shape[-1] // 2 + 1))
    x = t.add("Unsqueeze", t.ordered(op.inputs[0]), t.array([-1]))
    x = t.add("DFT", x, "", t.array(rank - 1), onesided=1)
    t.bind(op.outputs[0], t.add("DFT", x, "", t.array(rank - 2)) if lengths[0] > 1 else x)


@lowers("COMPLEX_ABS", "REAL", "IMAG", inputs=(TENSOR,))
def _complex_part(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    x = t.real(op.inputs[0])
    if op.code == "COMPLEX_ABS":
        return _give(t, op.outputs[0], shape, "ReduceL2", x, t.array([-1]), keepdims=0)
    return _give(t, op.outputs[0], shape, "Gather", x, t.array(int(op.code == "IMAG")), axis=-1)
