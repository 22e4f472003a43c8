"""TFLite operators as ONNX operators on N, C, H, W, by name."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.known_values import strided_index
from n2d2py.frontend.tflite.lowering import find_windows, layer, slice_axis, slices
from n2d2py.frontend.tflite.schema import LIMITS, REFLECT, SAME, VALID, pairs
from n2d2py.frontend.tflite.signatures import TENSOR, UNREAD, Axes, Input, Ints, Number, Rank
from n2d2py.frontend.tflite.translation import Limits, Translation, graph_axis, lowers
from n2d2py.graph.shapes import Shape


# ---- windows ------------------------------------------------------------------------------------
def _pair(op: TfliteOperator, slot: int) -> tuple[int, int]:
    """Return the (vertical, horizontal) values of an option, which are in `slot` and the slot before."""
    return op.options.integer(slot), op.options.integer(slot - 1)


def _bias(t: Translation, op: TfliteOperator, outputs: int, weights: TfliteTensor) -> str | None:
    """Return the dequantized bias of a layer, input 2, in the scale of its accumulators."""
    if len(op.inputs) < 3 or op.inputs[2] < 0:
        return None
    tensor, source = t.tensor(op.inputs[2]), t.tensor(op.inputs[0])
    values = tensor.constant().reshape(-1)
    if values.size != outputs:
        raise RefusedOperator(f"its bias has {values.size} values for {outputs} outputs")
    if values.dtype.kind == "f":
        return t.constant(f"{tensor.name}_values", values.astype(np.float32))
    if values.dtype not in (np.int32, np.int64) or not source.is_quantized or not weights.is_quantized:
        raise RefusedOperator(f"a bias of type {values.dtype.name} is not supported")
    name = tensor.name
    steps = source.scale[0].astype(np.float64) * weights.scale.astype(np.float64)
    if np.abs(values).max(initial=0) >= 2**31:  # int64, next to activations in 16 bits
        return t.constant(f"{name}_values", (values * steps).astype(np.float32))
    values = values.astype(np.int32)
    scale = t.constant(f"{name}_scale", steps[0].astype(np.float32) if steps.size == 1 else steps.astype(np.float32))
    return t.emit("DequantizeLinear", [t.constant(f"{name}_stored", values), scale], t.fresh(f"{name}_real"), axis=0)


def _weights(t: Translation, op: TfliteOperator, axis: int = 0) -> TfliteTensor:
    """Return the weights of a layer, input 1, whose scales are along the axis of its outputs; those after floats are
    dequantized (dynamic range)."""
    weights = t.tensor(op.inputs[1])
    if t.tensor(op.inputs[0]).dtype.kind != "f" and weights.dtype.kind == "f":
        raise RefusedOperator("its input is quantized, but its weights are float")
    if 0 in weights.shape:
        raise RefusedOperator(f"its weights have the shape {' x '.join(map(str, weights.shape))}")
    if weights.scale.size > 1 and weights.axis != axis:
        raise RefusedOperator(f"its weights have scales along the axis {weights.axis}, not {axis}")
    return weights


@lowers("CONV_2D", "DEPTHWISE_CONV_2D", inputs=(Rank(4), Rank(4), Rank(optional=True)))
def _conv(t: Translation, op: TfliteOperator, shape: Shape, *_) -> None:
    depthwise = op.code == "DEPTHWISE_CONV_2D"
    weights = _weights(t, op, 3 if depthwise else 0)
    order = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
    outputs, each, kh, kw = (weights.shape[axis] for axis in order)  # each: channels of a group
    after, groups, stride = (1 if depthwise else 0), shape[3] // each, _pair(op, 2)
    dilation = tuple(op.options.integer(5 + after - axis, default=1) * op.dilation[axis] for axis in (0, 1))
    sizes, pads = find_windows(op.options.integer(0, "<b"), shape[1:3], (kh, kw), stride, dilation)
    if (depthwise and each != 1) or groups == 0 or shape[3] % each or outputs % groups:
        raise RefusedOperator(f"its weights for {outputs} outputs of {each} channels do not fit {shape[3]} channels")
    result, matrix = (shape[0], *sizes, outputs), t.parameter(weights, lambda values: values.transpose(order))
    inputs = [t.real(op.inputs[0]), matrix, _bias(t, op, outputs, weights)]
    windows = {"kernel_shape": [kh, kw], "strides": stride, "dilations": dilation, "pads": pads, "group": groups}
    layer(t, op, "Conv", inputs, result, op.fused_limits(3 + after), **windows)


@lowers("TRANSPOSE_CONV", inputs=(UNREAD, Rank(4), Rank(4), Rank(optional=True)))
def _transposed_conv(t: Translation, op: TfliteOperator, *_) -> None:
    moved = replace(op, inputs=(op.inputs[2], op.inputs[1], *op.inputs[3:]))
    _add_transposed_conv(t, moved, op.options.integer(0, "<b"), _pair(op, 2), op.fused_limits(3))


@lowers("custom Convolution2DTransposeBias", inputs=(Rank(4), Rank(4), Rank(optional=True)))
def _mediapipe_conv(t: Translation, op: TfliteOperator, *_) -> None:
    """Translate MediaPipe's transposed convolution: options padding (1: SAME, 2: VALID), stride (horizontal, vertical)."""
    if len(op.custom_options) < 12:
        raise RefusedOperator(f"its options of {len(op.custom_options)} bytes are damaged")
    padding, *stride = struct.unpack_from("<3i", op.custom_options)
    _add_transposed_conv(t, op, {1: SAME, 2: VALID}.get(padding, -1), (stride[1], stride[0]), None)


def _add_transposed_conv(t: Translation, op: TfliteOperator, padding: int, stride: tuple[int, int], limits: Limits) -> None:
    source, weights = op.inputs[0], _weights(t, op)
    shape, declared = (t.tensor(index).shape for index in (source, op.outputs[0]))
    if weights.shape[3] != shape[3]:
        raise RefusedOperator(f"its weights {' x '.join(map(str, weights.shape))} do not fit {shape[3]} channels")
    outputs, kh, kw, _ = weights.shape
    back, pads = find_windows(padding, (*declared, 0, 0, 0)[1:3], (kh, kw), stride, (1, 1))
    if tuple(back) != shape[1:3] or declared != (shape[0], *declared[1:3], outputs):
        raise RefusedOperator(f"its result of shape {declared} does not fit its input of shape {shape}")
    full = [(n - 1) * s + k for n, s, k in zip(shape[1:3], stride, (kh, kw), strict=True)]
    ends = [f - o - p for f, o, p in zip(full, declared[1:3], pads[:2], strict=True)]
    matrix = t.parameter(weights, lambda values: values.transpose(3, 0, 1, 2), 1)
    inputs = [t.real(source), matrix, _bias(t, op, outputs, weights)]
    crop, extra = [*pads[:2], *(max(end, 0) for end in ends)], [max(-end, 0) for end in ends]
    windows = {"kernel_shape": [kh, kw], "strides": stride, "pads": crop, "output_padding": extra}
    layer(t, op, "ConvTranspose", inputs, None, limits, **windows)


@lowers("FULLY_CONNECTED", inputs=(TENSOR, Rank(2), Rank(optional=True)))
def _fully_connected(t: Translation, op: TfliteOperator, *_) -> None:
    source, weights = t.tensor(op.inputs[0]), _weights(t, op)
    if op.options.integer(1, "<b"):
        raise RefusedOperator("its weights are shuffled")
    outputs, each = weights.shape
    rows, limits = prod(source.shape) // each, op.fused_limits(0)
    if t.tensor(op.outputs[0]).is_open:
        t.set_shape(op.outputs[0], (*(source.shape[:-1] if op.options.flag(2) else (rows,)), outputs))
    declared = t.tensor(op.outputs[0]).shape
    if prod(declared) != rows * outputs or declared[-1:] != (outputs,):
        raise RefusedOperator(f"its result is {rows} x {outputs}, but is declared as {' x '.join(map(str, declared))}")
    name, bias = t.real(op.inputs[0]), _bias(t, op, outputs, weights)
    by_rows = len(declared) > 2 and source.shape[:-1] == declared[:-1]  # a convolution of 1x1 over the rows
    ends: tuple[Shape, Shape] = ((rows, each), (rows, outputs))
    if by_rows:
        ends = (source.shape, declared) if len(declared) == 4 else ((1, rows, 1, each), (1, rows, 1, outputs))
    if source.shape != ends[0]:
        name = t.reshape(name, source.shape, ends[0], t.fresh(f"{source.name}_{'rows' if by_rows else 'flat'}"))
    matrix = t.parameter(weights, lambda values: values[:, :, None, None] if by_rows else values, 0)
    inputs = [name, matrix, bias]
    kind, attributes = ("Conv", {"kernel_shape": [1, 1]}) if by_rows else ("Gemm", {"transB": 1})
    layer(t, op, kind, inputs, declared, limits, ends[1], **attributes)


@lowers("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", inputs=(Rank(4),))
def _pool(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    kernel, stride = _pair(op, 4), _pair(op, 2)
    sizes, pads = find_windows(op.options.integer(0, "<b"), shape[1:3], kernel, stride, (1, 1))
    result = (shape[0], *sizes, shape[3])
    kind, more = ("MaxPool", {}) if op.code == "MAX_POOL_2D" else ("AveragePool", {"count_include_pad": 0})
    window = {"kernel_shape": kernel, "strides": stride, "pads": pads, **more}
    if op.code != "L2_POOL_2D":
        return layer(t, op, kind, [t.real(op.inputs[0])], result, op.fused_limits(5), **window)
    x = t.real(op.inputs[0])
    return layer(t, op, "Sqrt", [t.add(kind, t.add("Mul", x, x), **window)], result, op.fused_limits(5))


# ---- elements -----------------------------------------------------------------------------------
def _function(kind: str, t: Translation, op: TfliteOperator, shape: Shape, limits: Limits = None, **attributes) -> None:
    layer(t, op, kind, [t.real(op.inputs[0])], shape, limits, **attributes)


@lowers("RSQRT", inputs=(TENSOR,))
def _rsqrt(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    t.expect_shape(op.outputs[0], shape)
    name = t.real(op.inputs[0])
    t.result(op.outputs[0], lambda output: t.emit("Reciprocal", [t.emit("Sqrt", [name], t.fresh(f"{output}_root"))], output))


@lowers("LOCAL_RESPONSE_NORMALIZATION", inputs=(Rank(4),))
def _response_norm(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    """Translate LOCAL_RESPONSE_NORMALIZATION; ONNX divides alpha by the number of channels."""
    size = 2 * op.options.integer(0) + 1
    bias, alpha, beta = (op.options.real(slot) for slot in (1, 2, 3))
    layer(t, op, "LRN", [t.real(op.inputs[0])], shape, size=size, bias=bias, alpha=alpha * size, beta=beta)


@lowers("PRELU", inputs=(TENSOR, TENSOR))
def _prelu(t: Translation, op: TfliteOperator, shape: Shape, _: Shape) -> None:
    slopes, rank = t.tensor(op.inputs[1]), len(shape)
    # ONNX broadcasts slopes to the input: without the axis of the batch
    full = (1,) * (rank - len(slopes.shape)) + slopes.shape
    if len(full) > rank or (rank > 1 and full[0] != 1) or slopes.scale.size > 1:
        raise RefusedOperator("its slopes differ between samples, have several scales, or more axes than its input")

    def first(stored: np.ndarray) -> np.ndarray:
        stored = stored.reshape(full)
        return (stored.transpose(0, 3, 1, 2) if rank == 4 else stored)[0 if rank > 1 else slice(None)]

    x = t.real(op.inputs[0])
    if not slopes.is_quantized or not t.tensor(op.outputs[0]).is_quantized or rank < 4:
        constant = t.constant(f"{slopes.name}_values", first(slopes.real_values()))
        layer(t, op, "PRelu", [x, constant], shape)
        return
    # one of two terms is zero, each rounded to the scale of the result
    zero = t.constant(f"{x}_zero", np.float32(0))
    negative = t.in_grid(op.inputs[0], t.emit("Min", [x, zero], t.fresh(f"{x}_negative")))
    below = t.emit("Mul", [negative, t.parameter(slopes, first, 0)], t.fresh(f"{x}_below"))
    above = t.emit("Relu", [x], t.fresh(f"{x}_above"))
    layer(t, op, "Add", [t.in_grid(op.outputs[0], term) for term in (above, below)], shape)


@lowers("SOFTMAX", "LOG_SOFTMAX", inputs=(Rank(1, at_least=True),))
def _softmax(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    name, beta = t.real(op.inputs[0]), op.options.real(0)
    if op.code == "SOFTMAX" and beta != 1:
        if not 0 < beta < 1e6:
            raise RefusedOperator(f"beta={beta:g} is not supported")
        factor = t.constant(f"{name}_beta", np.float32(beta))
        name = t.emit("Mul", [name, factor], t.fresh(f"{name}_scaled"))
    kind = "Softmax" if op.code == "SOFTMAX" else "LogSoftmax"
    layer(t, op, kind, [name], shape, axis=graph_axis(-1, len(shape)))


# ---- moves --------------------------------------------------------------------------------------
@lowers("RESHAPE", "SQUEEZE", "EXPAND_DIMS", inputs=(TENSOR, Input(optional=True)))
def _reshape(t: Translation, op: TfliteOperator, *_) -> None:
    """Translate RESHAPE, SQUEEZE and EXPAND_DIMS, from the declared shape of the result, or from that which a RESHAPE gives."""
    source = t.tensor(op.inputs[0])
    if source.values is not None:
        raise RefusedOperator("a constant input is not supported")
    if t.tensor(op.outputs[0]).is_open:
        t.set_shape(op.outputs[0], _open_shape(t, op, source.shape))
    declared, name = t.tensor(op.outputs[0]).shape, t.real(op.inputs[0])
    if source.dtype.kind == "c":
        return t.bind(op.outputs[0], t.shaped(name, *declared, 2))
    return t.result(op.outputs[0], lambda output: t.reshape(name, source.shape, declared, output))


def _open_shape(t: Translation, op: TfliteOperator, shape: Shape) -> Sequence[int]:
    declared = t.tensor(op.outputs[0]).shape
    if op.dilation != (1, 1):
        return (*shape[:1], 1, *shape[1:]) if len(declared) > len(shape) else (*shape[:1], *shape[2:])
    if op.code != "RESHAPE" or len(op.inputs) < 2:
        return declared
    sizes = Ints().read(t.tensor(op.inputs[1]), len(shape))
    rest = prod(size for size in sizes if size != -1)
    return [prod(shape) // max(rest, 1) if size == -1 else size for size in sizes]


@lowers("CONCATENATION", inputs=(Rank(many=True),), axis_options=(0,))
def _concatenation(t: Translation, op: TfliteOperator, *shapes: Shape) -> None:
    rank, axis = len(shapes[0]), op.options.integer(0) % len(shapes[0])
    size = sum(shape[axis] for shape in shapes if len(shape) == rank)
    for shape in shapes:
        t.expect_shape(op.outputs[0], (*shape[:axis], size, *shape[axis + 1 :]))
    layer(t, op, "Concat", list(map(t.real, op.inputs)), None, op.fused_limits(1), axis=graph_axis(axis, rank))


@lowers("PAD", "PADV2", "MIRROR_PAD", inputs=(TENSOR, Ints(per_axis=2), Number(1, optional=True)))
def _pad(t: Translation, op: TfliteOperator, shape: Shape, pads: list[int], *_) -> None:
    amounts = np.array(pads, np.int64).reshape(len(shape), 2)
    if amounts.min(initial=0) < 0:
        raise RefusedOperator(f"its padding is {amounts.tolist()}")
    padded = [size + sum(ends) for size, ends in zip(shape, amounts.tolist(), strict=True)]
    if len(shape) == 4:
        amounts = amounts[[0, 3, 1, 2]]
    inputs: list[str | None] = [t.real(op.inputs[0]), t.constant("pads", amounts.T.reshape(-1))]
    mode = "constant"
    if op.code == "MIRROR_PAD":
        if op.options.integer(0, "<b") != REFLECT and amounts.max(initial=0) > 0:
            raise RefusedOperator("mode SYMMETRIC is not supported")
        mode = "reflect"
    if op.code == "PADV2":
        constant = (*op.inputs, -1)[2]
        inputs.append(t.constant("fill", t.tensor(constant).real_values().reshape(())))
    layer(t, op, "Pad", inputs, padded, mode=mode)


def _reduction(kind: str, t: Translation, op: TfliteOperator, shape: Shape, axes: list[int]) -> None:
    rank = len(shape)
    over = {axis % rank for axis in axes}
    full = tuple(1 if axis in over else size for axis, size in enumerate(shape))
    declared = full if op.options.flag(0) else tuple(size for axis, size in enumerate(shape) if axis not in over)
    places = np.array(sorted(graph_axis(axis, rank) for axis in over), np.int64)
    if op.code in ("SUM", "REDUCE_PROD") and t.tensor(op.inputs[0]).is_quantized:
        raise RefusedOperator("its input is quantized")
    layer(t, op, kind, [t.real(op.inputs[0]), t.constant("axes", places)], declared, made=full, keepdims=1)


@lowers("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", inputs=(Rank(4), Ints(2)))
def _resize(t: Translation, op: TfliteOperator, shape: Shape, sizes: list[int]) -> None:
    linear = op.code == "RESIZE_BILINEAR"
    aligned, centred = (op.options.flag(slot) for slot in ((2, 3) if linear else (0, 1)))
    coordinates = "align_corners" if aligned else "half_pixel" if centred else "asymmetric"
    attributes: dict[str, Any] = {"mode": "linear" if linear else "nearest", "coordinate_transformation_mode": coordinates}
    if not linear:
        # with half pixels the middle of two is the next one, as floor(x + 0.5) is of TFLite's own coordinates
        attributes["nearest_mode"] = "round_prefer_ceil" if aligned or centred else "floor"
    target = t.constant("size", np.array([shape[0], shape[3], *sizes], np.int64))
    inputs = [t.real(op.inputs[0]), "", "", target]
    layer(t, op, "Resize", inputs, (shape[0], *sizes, shape[3]), None, **attributes)


@lowers("TRANSPOSE", inputs=(TENSOR, Axes(per_axis=1)))
def _transpose(t: Translation, op: TfliteOperator, shape: Shape, order: list[int]) -> None:
    perm = [graph_axis(order[axis], 4) for axis in (0, 3, 1, 2)] if len(shape) == 4 else order
    layer(t, op, "Transpose", [t.real(op.inputs[0])], [shape[axis] for axis in order], perm=perm)


@lowers("SLICE", inputs=(TENSOR, *2 * (Ints(per_axis=1),)))
def _slice(t: Translation, op: TfliteOperator, shape: Shape, begins: list[int], sizes: list[int]) -> None:
    ends = [n if size == -1 else begin + size for begin, size, n in zip(begins, sizes, shape, strict=True)]
    if any(not 0 <= begin <= end <= n for begin, end, n in zip(begins, ends, shape, strict=True)):
        raise RefusedOperator("its begin and size exceed its input")
    slices(t, op, list(map(slice, begins, ends)))


@lowers("SPLIT", inputs=(Axes(1), TENSOR), results=None)
@lowers("SPLIT_V", inputs=(TENSOR, UNREAD, Axes(1)), results=None)
def _split(t: Translation, op: TfliteOperator, *operands: Any) -> None:
    by_sizes = op.code == "SPLIT_V"
    (shape, axis), source = (operands, op.inputs[0]) if by_sizes else (operands[::-1], op.inputs[1])
    place, begin = axis % len(shape), 0
    for output in op.outputs:
        end = begin + sum(t.tensor(output).shape[place : place + 1])
        slice_axis(t, replace(op, inputs=(source,), outputs=(output,)), place, slice(begin, end))
        begin = end
    if begin != shape[place]:
        raise RefusedOperator(f"its parts take {begin} of {shape[place]}")


@lowers("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", inputs=(Rank(4),))
def _space_to_depth(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    """Translate with TFLite's channel order, which is also ONNX's: block position before channel (DCR)."""
    block = op.options.integer(0)
    if block < 1:
        raise RefusedOperator(f"its block size is {block}")
    if op.code == "SPACE_TO_DEPTH":
        result = (shape[0], shape[1] // block, shape[2] // block, shape[3] * block * block)
        return layer(t, op, "SpaceToDepth", [t.real(op.inputs[0])], result, blocksize=block)
    result = (shape[0], shape[1] * block, shape[2] * block, shape[3] // (block * block))
    return layer(t, op, "DepthToSpace", [t.real(op.inputs[0])], result, blocksize=block, mode="DCR")


@lowers("QUANTIZE", "DEQUANTIZE", "DENSIFY", inputs=(TENSOR,))
def _convert(t: Translation, op: TfliteOperator, shape: Shape) -> None:
    """Translate QUANTIZE, DEQUANTIZE and DENSIFY: the input's real values, in the type of the result."""
    source = t.tensor(op.inputs[0])
    t.expect_shape(op.outputs[0], shape)
    if op.code == "DENSIFY" and source.values is None:
        raise RefusedOperator("its input is not a constant")
    if source.values is not None and op.code != "QUANTIZE":
        return t.set_shape(op.outputs[0], shape, source.real_values())
    return t.alias(op.outputs[0], op.inputs[0])


lowers("STRIDED_SLICE", inputs=(TENSOR, *3 * (Ints(per_axis=1),)))(
    lambda t, op, _, *bounds: slices(t, op, strided_index(op, *bounds))
)
lowers("READ_VARIABLE", inputs=(UNREAD,))(lambda t, op: t.variables.read(op.outputs[0], op.inputs[0]))
lowers("ASSIGN_VARIABLE", inputs=(UNREAD, TENSOR), results=0)(lambda t, op, _: t.variables.assign(*op.inputs))
lowers("VAR_HANDLE", "CALL_ONCE")(lambda t, op: None)  # `TfliteFile` has their content

# Element-wise functions that keep quantized types, and reductions.
lowers("LEAKY_RELU", inputs=(TENSOR,))(lambda t, op, shape: _function("LeakyRelu", t, op, shape, alpha=op.options.real(0)))
lowers("GELU", inputs=(TENSOR,))(
    lambda t, op, x: _function("Gelu", t, op, x, approximate="tanh" if op.options.flag(0) else "none")
)
for _code, _limits in LIMITS.items():
    lowers(_code, inputs=(TENSOR,))(partial(_function, "Identity", limits=_limits))
for _code, _kind in pairs("LOGISTIC=Sigmoid TANH=Tanh HARD_SWISH=HardSwish ABS=Abs EXP=Exp SQRT=Sqrt LOG=Log").items():
    lowers(_code, inputs=(TENSOR,))(partial(_function, _kind))
for _code, _kind in pairs("SUM=Sum MEAN=Mean REDUCE_MAX=Max REDUCE_MIN=Min REDUCE_PROD=Prod").items():
    lowers(_code, inputs=(TENSOR, Axes()))(partial(_reduction, f"Reduce{_kind}"))
