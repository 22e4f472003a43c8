"""Operators on arrays: their loops as C++ types, their constants as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.export.cpp.parts import Argument, Array, Call, Constants, Expression

__all__ = [
    "gather",
    "interpolate",
    "join",
    "map_elements",
    "norm",
    "order",
    "product",
    "reduce",
    "scan",
    "scatter",
    "softmax",
    "take",
    "window",
]

_CTYPES = {
    "bool": "std::uint8_t",
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def loops(sizes: Sequence[int], steps: Sequence[Sequence[int]], inner: str = "n2d2::AxisEnd") -> str:
    """The C++ type of nested loops over `sizes` around `inner`; steps[k] are the strides of operand k."""
    merged: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        own = [operand[axis] for operand in steps]
        if merged and all(before == step * size for before, step in zip(merged[-1][1], own, strict=True)):
            merged[-1] = (merged[-1][0] * size, own)
        else:
            merged.append((size, own))
    text = inner
    for size, own in reversed(merged):
        own = [*own, 0, 0, 0][:3]
        text = f"n2d2::Axis<{size}, {own[0]}, {own[1]}, {own[2]}, {text} >"
    return text


def _strides(dims: Sequence[int]) -> list[int]:
    return [prod(dims[axis + 1 :]) for axis in range(len(dims))]


def _broadcast(dims: Sequence[int]) -> list[int]:
    """Strides, 0 along axes of length 1."""
    return [0 if size == 1 else step for size, step in zip(dims, _strides(dims), strict=True)]


def _operands(layer: Layer) -> list[Argument]:
    """A C++ pointer for each operand."""
    made: list[Argument] = []
    for index, slot in enumerate(layer.op.slots):
        if slot >= 0:
            made.append(f"n2d2::elements<{layer.input_planes[slot]}>(in{slot})")
            continue
        values = layer.values(f"operand{index}")
        name = layer.output.dtype.name if values.dtype.kind == "f" and layer.output.is_float else values.dtype.name
        if values.dtype.kind == "f" and not layer.output.is_float:
            name = next((kind.dtype.name for kind in layer.inputs if kind.is_float), "float32")
        made.append(layer.array(f"operand{index}", values.astype(np.uint8 if name == "bool" else name), _CTYPES[name]))
    return made


def _run(
    layer: Layer, header: str, function: str, template: Sequence[Argument], arguments: Sequence[Argument] = ()
) -> LayerCode:
    """The call of a kernel by its numbers and types; its arguments are the first input, or `arguments`, and the output."""
    operands = arguments or (f"n2d2::elements<{layer.input_planes[0]}>(in0)",)
    return layer.code(header, Call(f"n2d2::{function}", tuple(template), (*operands, _output(layer))))


def _output(layer: Layer) -> str:
    return f"n2d2::elements<{layer.output_plane}>(out)"


@cpp("ArrayMap")
def map_elements(layer: Layer) -> LayerCode:
    """The C++ of an element-wise function."""
    op = layer.op
    function = "CastBool" if op.function == "Cast" and op.result == "bool" else op.function
    axes = loops(op.dims, [_broadcast(shape) for shape in op.shapes])
    types = {"Output": layer.output_plane, "Function": f"n2d2::maps::{function}", "Axes": axes}
    config = layer.config(f"{op.function} of arrays", types, {})
    return layer.code("array_map", layer.call("arrayMap", config, inputs=tuple(_operands(layer))))


@cpp("ArrayIndexSelect")
def take(layer: Layer) -> LayerCode:
    """The C++ of a reordering: progressions as loops, everything else by tables."""
    op, first = layer.op, 0
    runs: list[Array | list[tuple[int, int]]] = []
    for index, offsets in enumerate(op.offsets):
        line = np.asarray(offsets, np.int64)
        if line.min() < 0 or (line.size > 2 and len(set(np.diff(line).tolist())) > 1):
            runs.append(layer.array(f"offsets{index}", line, "std::int32_t"))
            continue
        first += int(line[0])
        axis = (line.size, int(line[1] - line[0]) if line.size > 1 else 0)
        if runs and isinstance(runs[-1], list):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    text = "n2d2::AxisEnd"
    for run in reversed(runs):
        if isinstance(run, Array):
            text = f"n2d2::TakeAxis<{run.values.size}, {run}, {text} >"
        else:
            text = loops([size for size, _ in run], [[step for _, step in run]], text)
    kind, fill = layer.output, op.stored_fill(layer.output)
    value = Constants(f"{layer.identifier}_fill", kind.cpp, {"value": fill if kind.is_float else int(fill)}, constexpr=False)
    types = {
        **layer.planes,
        "Axes": Expression.of(text, *(run for run in runs if isinstance(run, Array))),
        "Fill": Expression(value.name, (value,)),
    }
    config = layer.config("elements in another order", types, {"First": first})
    return layer.code("array_move", layer.call("arrayIndexSelect", config))


@cpp("ArrayConcat")
def join(layer: Layer) -> LayerCode:
    """The C++ of a concatenation."""
    op, calls, first = layer.op, [], 0
    for operand, length in zip(_operands(layer), op.lengths, strict=True):
        calls.append(Call("n2d2::arrayConcat", (op.outer, length, sum(op.lengths), first), (operand, _output(layer))))
        first += length
    return layer.code("array_move", *calls)


@cpp("ArrayReduce")
def reduce(layer: Layer) -> LayerCode:
    """The C++ of a reduction."""
    op = layer.op
    steps = _strides(op.dims)
    kept = [axis for axis in range(len(op.dims)) if axis not in op.axes]
    types = {
        **layer.planes,
        "Kept": loops([op.dims[a] for a in kept], [[steps[a] for a in kept]]),
        "Reduced": loops([op.dims[a] for a in op.axes], [[steps[a] for a in op.axes]]),
    }
    kernel = "arrayLogSumExp" if op.function == "LogSumExp" else "arrayReduce"
    if kernel == "arrayReduce":
        types["Function"] = f"n2d2::reductions::{op.function}<{layer.inputs[0].cpp}>"
    return layer.code("array_reduce", layer.call(kernel, layer.config(op.function, types, {})))


@cpp("ArrayTopK")
def order(layer: Layer) -> LayerCode:
    """The C++ of positions in order."""
    op = layer.op
    return _run(layer, "array_reduce", "arrayTopK", (op.outer, op.size, op.inner, op.count, bool(op.largest)))


@cpp("ArrayCumSum")
def scan(layer: Layer) -> LayerCode:
    """The C++ of running sums."""
    op = layer.op
    flags = map(bool, (op.exclusive, op.reverse, op.product))
    return _run(layer, "array_reduce", "arrayCumSum", (op.outer, op.size, op.inner, *flags))


@cpp("ArraySoftmax")
def softmax(layer: Layer) -> LayerCode:
    """The C++ of a softmax."""
    op = layer.op
    return _run(layer, "array_norm", "arraySoftmax", (op.outer, op.size, op.inner, bool(op.log)))


@cpp("ArrayNorm")
def norm(layer: Layer) -> LayerCode:
    """The C++ of a normalisation."""
    op = layer.op
    part = ("", "mean", "inverse").index(op.part)
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", repr(op.epsilon))
    return _run(layer, "array_norm", "arrayNorm", (op.outer, op.inner, bool(op.centred), part), operands)


@cpp("ArrayInterpolate")
def interpolate(layer: Layer) -> LayerCode:
    """The C++ of a resampling along an axis."""
    op = layer.op
    positions = layer.array("positions", np.array(op.positions), "std::int32_t")
    weights = layer.array("weights", np.array(op.weights).astype(layer.output.dtype), layer.output.cpp)
    sizes = (op.outer, op.size, op.inner, len(op.positions), len(op.positions[0]))
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", positions, weights)
    return _run(layer, "array_norm", "arrayInterpolate", sizes, operands)


@cpp("ArrayMatMul")
def product(layer: Layer) -> LayerCode:
    """The C++ of a matrix product."""
    op = layer.op
    axes = loops(op.batch, [_broadcast(op.left)[:-2], _broadcast(op.right)[:-2]])
    return _run(layer, "array_matmul", "arrayMatMul", (axes, op.left[-2], op.left[-1], op.right[-1]), _operands(layer))


@cpp("ArrayConvPool")
def window(layer: Layer) -> LayerCode:
    """The C++ of a convolution or a pool of up to three axes."""
    op = layer.op
    constants = {
        "Batch": op.dims[0],
        "Outputs": op.outputs,
        "Groups": op.groups,
        "ColumnMajor": op.column_major,
        "Depth": op.dims[1] // op.groups if op.function == "Conv" else 1,
    }
    for index, axis in enumerate("DHW"):
        counted = op.counted is not None
        constants.update(
            {
                f"Input{axis}": op.dims[2 + index],
                f"Output{axis}": op.size[index],
                f"Kernel{axis}": op.kernel[index],
                f"Stride{axis}": op.stride[index],
                f"Pad{axis}": op.pads[index],
                f"Dilation{axis}": op.dilation[index],
                f"First{axis}": -op.pads[index] if counted else 0,
                f"Last{axis}": op.dims[2 + index] + (op.counted[index] if counted else 0),
            }
        )
    config, operands = layer.config(f"{op.function} over windows", {}, constants), _operands(layer)
    if op.function == "Conv":
        call = Call("n2d2::arrayConvolution", (config,), (*operands[:2], _output(layer)))
    else:
        pools = {"Max": "WindowMax", "MaxIndex": "WindowMaxIndex", "Average": "WindowAverage", "Lp": f"WindowNorm<{op.order}>"}
        call = Call("n2d2::arrayPool", (config, f"n2d2::{pools[op.function]} "), (operands[0], _output(layer)))
    return layer.code("array_matmul", call)


@cpp("ArrayGather")
def gather(layer: Layer) -> LayerCode:
    """The C++ of elements at computed positions."""
    op = layer.op
    sizes = (op.outer, op.size, op.inner, op.count, bool(op.each))
    return _run(layer, "array_move", "arrayGather", sizes, _operands(layer))


@cpp("ArrayScatter")
def scatter(layer: Layer) -> LayerCode:
    """The C++ of updates at computed positions."""
    op = layer.op
    combine = f"n2d2::Scatter{op.combine.capitalize()}"
    return _run(layer, "array_move", "arrayScatter", (op.size, op.inner, op.count, combine), _operands(layer))
