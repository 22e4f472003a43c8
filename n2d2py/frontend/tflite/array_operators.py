"""TFLite operators that are translated on the axes of the file: selections, scatters, blocks of a batch, spectra."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.lowering import Emitter, check_arity, find_windows, input_shapes
from n2d2py.frontend.tflite.translation import Translation, file_axis, lowers, onnx_type
from n2d2py.graph.shapes import Shape


def _give(t: Translation, index: int, shape: Shape, kind: str, *inputs: str, **attributes: Any) -> None:
    """Declare a result of `shape` that a node produces with the axes of the file."""
    t.expect_shape(index, shape)
    t.ordered_result(index, lambda name: t.emit(kind, inputs, name, **attributes))


def _emitter(t: Translation, operator: TfliteOperator) -> Emitter:
    return Emitter(t, t.tensor(operator.outputs[0]).name)


@lowers("GATHER_ND")
def _gather_nd(t: Translation, operator: TfliteOperator) -> None:
    (shape, places) = input_shapes(t, operator, 2)
    if not 0 < places[-1] <= len(shape):
        raise RefusedOperator(f"its indices of {places[-1]} axes do not fit {len(shape)} axes")
    inputs = t.ordered(operator.inputs[0]), t.positions(operator.inputs[1])
    _give(t, operator.output, (*places[:-1], *shape[places[-1] :]), "GatherND", *inputs)


@lowers("SCATTER_ND")
def _scatter_nd(t: Translation, operator: TfliteOperator) -> None:
    """Add updates to zeros; positions that repeat are added up."""
    check_arity(operator, 3)
    shape, updates = tuple(t.numbers(operator.inputs[2], "shape")), t.tensor(operator.inputs[1])
    zeros = t.constant("zeros", np.zeros(shape, np.float32 if updates.is_quantized else updates.dtype))
    inputs = zeros, t.positions(operator.inputs[0]), t.ordered(operator.inputs[1])
    _give(t, operator.output, shape, "ScatterND", *inputs, reduction="add")


@lowers("EMBEDDING_LOOKUP")
def _embedding_lookup(t: Translation, operator: TfliteOperator) -> None:
    (places, shape) = input_shapes(t, operator, 2)
    inputs = t.ordered(operator.inputs[1]), t.positions(operator.inputs[0])
    _give(t, operator.output, (*places, *shape[1:]), "Gather", *inputs, axis=0)


@lowers("ONE_HOT")
def _one_hot(t: Translation, operator: TfliteOperator) -> None:
    (shape, *_) = input_shapes(t, operator, 4)
    (depth,), emit = t.numbers(operator.inputs[1], "depth"), _emitter(t, operator)
    axis = file_axis(operator.option(0, default=-1), len(shape) + 1)
    on, off = (t.values(index, "values").reshape(()) for index in operator.inputs[2:4])
    inputs = t.positions(operator.inputs[0]), emit.numbers([depth]), emit.numbers([off, on], on.dtype.type)
    _give(t, operator.output, (*shape[:axis], depth, *shape[axis:]), "OneHot", *inputs, axis=axis)


@lowers("TOPK_V2")
def _top_k(t: Translation, operator: TfliteOperator) -> None:
    check_arity(operator, 2, 2)
    (shape, _), emit = input_shapes(t, operator, 2), _emitter(t, operator)
    (count,) = t.numbers(operator.inputs[1], "number of elements")
    if not 0 < count <= shape[-1]:
        raise RefusedOperator(f"it selects {count} of {shape[-1]} elements")
    values, found = emit.emit_two("TopK", t.ordered(operator.inputs[0]), emit.numbers([count]), axis=len(shape) - 1)
    result = (*shape[:-1], count)
    _give(t, operator.outputs[0], result, "Identity", values)
    _give(t, operator.outputs[1], result, "Cast", found, to=onnx_type(t.tensor(operator.outputs[1])))


@lowers("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def _non_max_suppression(t: Translation, operator: TfliteOperator) -> None:
    """Translate NON_MAX_SUPPRESSION_V4 and V5: positions, scores (V5), number of boxes; results are padded with zeros."""
    with_scores = operator.code.endswith("V5")
    check_arity(operator, 6 if with_scores else 5, 3 if with_scores else 2)
    ((boxes, _), _), emit = input_shapes(t, operator, 2), _emitter(t, operator)
    (most,) = t.numbers(operator.inputs[2], "number of boxes")
    overlap, least, *softness = (float(t.values(index, "threshold").item()) for index in operator.inputs[3:])
    if any(softness):
        raise RefusedOperator(f"soft suppression (sigma={softness[0]:g}) is not supported")
    corners, scores = (t.ordered(index) for index in operator.inputs[:2])
    _, box = emit.suppress(emit.reshape(corners, 1, boxes, 4), emit.reshape(scores, 1, 1, boxes), most, (overlap, least))
    used, free = emit("GreaterOrEqual", box, emit.numbers([0])), most - min(most, boxes)
    positions = emit("Max", box, emit.numbers([0]))
    results = [emit("Cast", positions, to=onnx_type(t.tensor(operator.outputs[0])))]
    if with_scores:
        results.append(emit("Where", used, emit.gather(scores, box), emit.numbers([0], np.float32)))
    for index, values in zip(operator.outputs, results, strict=False):
        _give(t, index, (most,), "Pad", values, emit.numbers([0, free]))
    count = emit("ReduceSum", emit("Cast", used, to=onnx_type(t.tensor(operator.outputs[-1]))), emit.numbers([0]), keepdims=0)
    _give(t, operator.outputs[-1], (), "Identity", count)


@lowers("MATRIX_DIAG", "MATRIX_SET_DIAG")
def _matrix_diagonal(t: Translation, operator: TfliteOperator) -> None:
    """Translate MATRIX_DIAG (zeros elsewhere) and MATRIX_SET_DIAG (the first input elsewhere)."""
    shapes, emit = input_shapes(t, operator, len(operator.inputs)), _emitter(t, operator)
    if operator.code == "MATRIX_DIAG":
        result, rest = (*shapes[0], shapes[0][-1]), emit.numbers(0, t.tensor(operator.inputs[0]).dtype.type)
    else:
        result, rest = shapes[0], t.ordered(operator.inputs[0])
    rows, columns = result[-2:]
    lines = emit("Unsqueeze", t.ordered(operator.inputs[-1]), emit.numbers([-1 if rows <= columns else -2]))
    _give(t, operator.output, result, "Where", emit.numbers(np.eye(rows, columns), np.bool_), lines, rest)


@lowers("REVERSE_SEQUENCE")
def _reverse_sequence(t: Translation, operator: TfliteOperator) -> None:
    (shape, _), emit = input_shapes(t, operator, 2), _emitter(t, operator)
    time, batch = operator.option(0), operator.option(1)
    order = [batch, time, *(axis for axis in range(len(shape)) if axis not in (batch, time))]
    moved = emit("Transpose", t.ordered(operator.inputs[0]), perm=order)
    reverse = emit("ReverseSequence", moved, t.positions(operator.inputs[1]), batch_axis=0, time_axis=1)
    _give(t, operator.output, shape, "Transpose", reverse, perm=np.argsort(order).tolist())


@lowers("REDUCE_ANY", "REDUCE_ALL")
def _truth(t: Translation, operator: TfliteOperator) -> None:
    (shape, _), emit = input_shapes(t, operator, 2), _emitter(t, operator)
    axes = sorted({file_axis(axis, len(shape)) for axis in t.numbers(operator.inputs[1], "axes")})
    kept = operator.flag(0)
    t.expect_shape(operator.output, [1 if n in axes else size for n, size in enumerate(shape) if kept or n not in axes])
    numbers = emit("Cast", t.ordered(operator.inputs[0], truth=True), to=6)
    found = emit("ReduceMax" if operator.code == "REDUCE_ANY" else "ReduceMin", numbers, emit.numbers(axes), keepdims=int(kept))
    t.ordered_result(operator.output, lambda name: t.emit("Cast", [found], name, to=9), truth=True)


@lowers("ZEROS_LIKE")
def _zeros_like(t: Translation, operator: TfliteOperator) -> None:
    t.set_values(operator.output, np.zeros(t.tensor(operator.input).shape, t.tensor(operator.output).dtype))


# ---- blocks of a batch --------------------------------------------------------------------------
def _block_options(t: Translation, operator: TfliteOperator) -> tuple[Shape, list[int], np.ndarray]:
    """Return (shape of the input, block sizes, elements added or removed at both ends of each axis)."""
    (shape, *_), block = input_shapes(t, operator, 3), t.numbers(operator.inputs[1], "block shape")
    amounts = np.array(t.numbers(operator.inputs[2], "padding"), np.int64).reshape(-1, 2)
    if len(amounts) != len(block) or len(block) >= len(shape) or min(block) < 1 or amounts.min() < 0:
        raise RefusedOperator(f"its blocks {block} and amounts {amounts.tolist()} do not fit {len(shape)} axes")
    return shape, block, amounts


@lowers("SPACE_TO_BATCH_ND")
def _space_to_batch(t: Translation, operator: TfliteOperator) -> None:
    """Translate SPACE_TO_BATCH_ND: the elements of a block become samples."""
    (shape, block, amounts), emit = _block_options(t, operator), _emitter(t, operator)
    rest, count = shape[1 + len(block) :], len(block)
    padded = [size + sum(ends) for size, ends in zip(shape[1:], amounts.tolist(), strict=False)]
    if any(size % step for size, step in zip(padded, block, strict=True)):
        raise RefusedOperator(f"its padded sizes {padded} are not multiples of {block}")
    pads = emit.numbers(np.pad(amounts, ((1, len(rest)), (0, 0))).T.reshape(-1))
    if operator.dilation != (1, 1):
        return _give(t, operator.output, (shape[0], *padded, *rest), "Pad", t.ordered(operator.inputs[0]), pads)
    x = emit("Pad", t.ordered(operator.inputs[0]), pads)
    steps = [size // step for size, step in zip(padded, block, strict=True)]
    pairs = [size for pair in zip(steps, block, strict=True) for size in pair]
    x = emit.reshape(x, shape[0], *pairs, *rest)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    x = emit("Transpose", x, perm=order)
    result = (shape[0] * prod(block), *steps, *rest)
    return _give(t, operator.output, result, "Reshape", x, emit.numbers(result))


@lowers("BATCH_TO_SPACE_ND")
def _batch_to_space(t: Translation, operator: TfliteOperator) -> None:
    """Translate BATCH_TO_SPACE_ND, the inverse of SPACE_TO_BATCH_ND."""
    (shape, block, amounts), emit = _block_options(t, operator), _emitter(t, operator)
    count, rest, x = len(block), shape[1 + len(block) :], t.ordered(operator.inputs[0])
    samples, sizes = shape[0], list(shape[1 : 1 + count])
    if operator.dilation == (1, 1):
        samples, sizes = samples // prod(block), [size * step for size, step in zip(sizes, block, strict=True)]
        pairs = [axis for index in range(count) for axis in (count + 1 + index, index)]
        x = emit.reshape(x, *block, samples, *shape[1:])
        x = emit("Transpose", x, perm=[count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))])
        x = emit.reshape(x, samples, *sizes, *rest)
    ends = [size - int(end) for size, end in zip(sizes, amounts[:, 1], strict=True)]
    result = (samples, *(end - int(begin) for end, begin in zip(ends, amounts[:, 0], strict=True)), *rest)
    bounds = (emit.numbers(values) for values in (amounts[:, 0], ends, range(1, count + 1)))
    _give(t, operator.output, result, "Slice", x, *bounds)


# ---- five axes, spectra -------------------------------------------------------------------------
@lowers("CONV_3D")
def _conv_3d(t: Translation, operator: TfliteOperator) -> None:
    """Translate CONV_3D: N, D, H, W, C, weights D, H, W, C, outputs."""
    (shape, form), emit = input_shapes(t, operator, 2), _emitter(t, operator)
    if len(shape) != 5 or len(form) != 5 or shape[4] % form[3] or t.tensor(operator.inputs[0]).dtype.kind != "f":
        raise RefusedOperator(f"its weights {form} do not fit an input of {shape}, or it is quantized")
    stride, dilation = ([operator.option(slot, default=1) for slot in slots] for slots in ((1, 3, 2), (5, 7, 6)))
    sizes, pads = find_windows(operator.option(0, "<b"), shape[1:4], form[:3], stride, dilation)
    if operator.option(4, "<b"):
        raise RefusedOperator("a fused activation is not supported")
    x = emit("Transpose", t.real(operator.inputs[0]), perm=(0, 4, 1, 2, 3))
    inputs = [x, t.parameter(t.tensor(operator.inputs[1]), lambda values: values.transpose(4, 3, 0, 1, 2), 0)]
    inputs += [t.real(index) for index in operator.inputs[2:3] if index >= 0]
    windows = {"strides": stride, "dilations": dilation, "pads": pads, "group": shape[4] // form[3]}
    _give(t, operator.output, (shape[0], *sizes, form[4]), "Transpose", emit("Conv", *inputs, **windows), perm=(0, 2, 3, 4, 1))


@lowers("RFFT2D")
def _rfft_2d(t: Translation, operator: TfliteOperator) -> None:
    """Translate RFFT2D; complex numbers have an axis of two at the end."""
    (shape, _), emit = input_shapes(t, operator, 2), _emitter(t, operator)
    lengths, rank = t.numbers(operator.inputs[1], "length"), len(shape)
    if tuple(lengths) != shape[-2:]:
        raise RefusedOperator(f"its lengths {lengths} are not those of its input {shape}")
    t.expect_shape(operator.output, (*shape[:-1], shape[-1] // 2 + 1))
    x = emit("Unsqueeze", t.ordered(operator.inputs[0]), emit.numbers([-1]))
    x = emit("DFT", x, "", emit.numbers(rank - 1), onesided=1)
    t.bind(operator.output, emit("DFT", x, "", emit.numbers(rank - 2)) if lengths[0] > 1 else x)


@lowers("COMPLEX_ABS", "REAL", "IMAG")
def _complex_part(t: Translation, operator: TfliteOperator) -> None:
    emit, x = _emitter(t, operator), t.real(operator.input)
    shape = t.tensor(operator.input).shape
    if operator.code == "COMPLEX_ABS":
        return _give(t, operator.output, shape, "ReduceL2", x, emit.numbers([-1]), keepdims=0)
    return _give(t, operator.output, shape, "Gather", x, emit.numbers(int(operator.code == "IMAG")), axis=-1)
