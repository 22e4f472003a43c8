"""Operators on arrays: their loops as C++ types, their constants as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from n2d2py.export.cpp.code import LayerCode, float_literal
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = [
    "gather_code",
    "interpolate_code",
    "join_code",
    "map_code",
    "norm_code",
    "order_code",
    "product_code",
    "reduce_code",
    "scan_code",
    "scatter_code",
    "softmax_code",
    "take_code",
    "window_code",
]

_CTYPES = {
    "bool": "std::uint8_t",
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def loops(sizes: Sequence[int], steps: Sequence[Sequence[int]]) -> str:
    """The C++ type of nested loops over `sizes`; steps[k] are the strides of operand k."""
    merged: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        own = [operand[axis] for operand in steps]
        if merged and all(before == step * size for before, step in zip(merged[-1][1], own, strict=True)):
            merged[-1] = (merged[-1][0] * size, own)
        else:
            merged.append((size, own))
    text = "n2d2::AxisEnd"
    for size, own in reversed(merged):
        own = [*own, 0, 0, 0][:3]
        text = f"n2d2::Axis<{size}, {own[0]}, {own[1]}, {own[2]}, {text} >"
    return text


def _strides(dims: Sequence[int]) -> list[int]:
    return [prod(dims[axis + 1 :]) for axis in range(len(dims))]


def _broadcast(dims: Sequence[int]) -> list[int]:
    """Strides, 0 along axes of length 1."""
    return [0 if size == 1 else step for size, step in zip(dims, _strides(dims), strict=True)]


def _operands(build: LayerBuilder) -> list[str]:
    """A C++ pointer for each operand."""
    texts = []
    for index, slot in enumerate(build.node.op.slots):
        if slot >= 0:
            texts.append(f"n2d2::elements<{build.identifiers.plane(build.node.inputs[slot])}>(in{slot})")
            continue
        values = build.node.params[f"operand{index}"]
        name = build.output.dtype.name if values.dtype.kind == "f" and build.output.is_float else values.dtype.name
        if values.dtype.kind == "f" and not build.output.is_float:
            name = next((kind.dtype.name for kind in build.inputs if kind.is_float), "float32")
        texts.append(build.array(f"operand{index}", values.astype(np.uint8 if name == "bool" else name), _CTYPES[name]))
    return texts


def _output(build: LayerBuilder) -> str:
    return f"n2d2::elements<{build.output_plane}>(out)"


def map_code(*layer) -> LayerCode:
    """The C++ of an element-wise function."""
    build = LayerBuilder(*layer)
    op = build.node.op
    function = op.function
    if function == "Cast" and op.result == "bool":
        function = "CastBool"
    axes = loops(op.dims, [_broadcast(shape) for shape in op.shapes])
    operands = _operands(build)
    config = build.config(
        f"{build.node.name}: {op.function} of arrays",
        {"Output": build.output_plane, "Function": f"n2d2::maps::{function}", "Axes": axes},
        {},
    )
    return build.code("array_map", f"n2d2::arrayMap<{config}>({', '.join(operands)}, out);")


def take_code(*layer) -> LayerCode:
    """The C++ of a reordering: progressions as loops, everything else by tables."""
    build = LayerBuilder(*layer)
    op = build.node.op
    first, axes, pending = 0, [], []

    def flush() -> None:
        if pending:
            axes.append(("loop", list(pending)))
            pending.clear()

    for index, offsets in enumerate(op.offsets):
        line = np.asarray(offsets, np.int64)
        if line.min() < 0 or (line.size > 2 and len(set(np.diff(line).tolist())) > 1):
            flush()
            axes.append(("table", (line.size, build.array(f"offsets{index}", line, "std::int32_t"))))
        else:
            first += int(line[0])
            pending.append((line.size, int(line[1] - line[0]) if line.size > 1 else 0))
    flush()
    text = "n2d2::AxisEnd"
    for form, data in reversed(axes):
        if form == "table":
            text = f"n2d2::TakeAxis<{data[0]}, {data[1]}, {text} >"
        else:
            inner = loops([size for size, _ in data], [[step for _, step in data]])
            text = inner.replace("n2d2::AxisEnd", text)
    fill = op.stored_fill(build.output)
    kind = build.output.cpp
    literal = float_literal(fill, kind) if build.output.is_float else str(int(fill))
    struct = f"{build.identifier}_fill"
    build.text(f"struct {struct} {{\n    static {kind} value() {{ return {literal}; }}\n}};\n")
    config = build.config(
        f"{build.node.name}: elements in another order",
        {"Input": build.input_plane, "Output": build.output_plane, "Axes": text, "Fill": struct},
        {"First": first},
    )
    return build.code("array_move", f"n2d2::arrayTake<{config}>(in0, out);")


def join_code(*layer) -> LayerCode:
    """The C++ of a concatenation."""
    build = LayerBuilder(*layer)
    op, lines, first = build.node.op, [], 0
    for operand, length in zip(_operands(build), op.lengths, strict=True):
        lines.append(f"n2d2::arrayJoin<{op.outer}, {length}, {sum(op.lengths)}, {first}>({operand}, {_output(build)});")
        first += length
    return build.code("array_move", "\n".join(lines))


def reduce_code(*layer) -> LayerCode:
    """The C++ of a reduction."""
    build = LayerBuilder(*layer)
    op = build.node.op
    steps = _strides(op.dims)
    kept = [axis for axis in range(len(op.dims)) if axis not in op.axes]
    element = build.inputs[0].cpp
    types = {
        "Input": build.input_plane,
        "Output": build.output_plane,
        "Kept": loops([op.dims[a] for a in kept], [[steps[a] for a in kept]]),
        "Reduced": loops([op.dims[a] for a in op.axes], [[steps[a] for a in op.axes]]),
    }
    if op.function == "LogSumExp":
        config = build.config(f"{build.node.name}: {op.function}", types, {})
        return build.code("array_reduce", f"n2d2::arrayLogSumExp<{config}>(in0, out);")
    types["Function"] = f"n2d2::reductions::{op.function}<{element}>"
    config = build.config(f"{build.node.name}: {op.function}", types, {})
    return build.code("array_reduce", f"n2d2::arrayReduce<{config}>(in0, out);")


def _flag(value: object) -> str:
    return "true" if value else "false"


def _in(build: LayerBuilder) -> str:
    return f"n2d2::elements<{build.input_plane}>(in0)"


def order_code(*layer) -> LayerCode:
    """The C++ of positions in order."""
    build = LayerBuilder(*layer)
    op = build.node.op
    return build.code(
        "array_reduce",
        f"n2d2::arrayOrder<{op.outer}, {op.size}, {op.inner}, {op.count}, {_flag(op.largest)}>("
        f"{_in(build)}, {_output(build)});",
    )


def scan_code(*layer) -> LayerCode:
    """The C++ of running sums."""
    build = LayerBuilder(*layer)
    op = build.node.op
    flags = ", ".join(map(_flag, (op.exclusive, op.reverse, op.product)))
    return build.code(
        "array_reduce", f"n2d2::arrayScan<{op.outer}, {op.size}, {op.inner}, {flags}>({_in(build)}, {_output(build)});"
    )


def softmax_code(*layer) -> LayerCode:
    """The C++ of a softmax."""
    build = LayerBuilder(*layer)
    op = build.node.op
    return build.code(
        "array_norm", f"n2d2::arraySoftmax<{op.outer}, {op.size}, {op.inner}, {_flag(op.log)}>({_in(build)}, {_output(build)});"
    )


def norm_code(*layer) -> LayerCode:
    """The C++ of a normalisation."""
    build = LayerBuilder(*layer)
    op = build.node.op
    part = ("", "mean", "inverse").index(op.part)
    return build.code(
        "array_norm",
        f"n2d2::arrayNorm<{op.outer}, {op.inner}, {_flag(op.centred)}, {part}>("
        f"{_in(build)}, {op.epsilon!r}, {_output(build)});",
    )


def interpolate_code(*layer) -> LayerCode:
    """The C++ of a resampling along an axis."""
    build = LayerBuilder(*layer)
    op = build.node.op
    positions = build.array("positions", np.array(op.positions), "std::int32_t")
    weights = build.array("weights", np.array(op.weights).astype(build.output.dtype), build.output.cpp)
    return build.code(
        "array_norm",
        f"n2d2::arrayInterpolate<{op.outer}, {op.size}, {op.inner}, {len(op.positions)}, "
        f"{len(op.positions[0])}>({_in(build)}, {positions}, {weights}, {_output(build)});",
    )


def product_code(*layer) -> LayerCode:
    """The C++ of a matrix product."""
    build = LayerBuilder(*layer)
    op = build.node.op
    axes = loops(op.batch, [_outer(op.left), _outer(op.right)])
    left, right = _operands(build)
    return build.code(
        "array_product",
        f"n2d2::arrayProduct<{axes}, {op.left[-2]}, {op.left[-1]}, {op.right[-1]}>({left}, {right}, {_output(build)});",
    )


def _outer(dims: tuple[int, ...]) -> list[int]:
    """Strides of the leading axes, 0 along axes of length 1."""
    return _broadcast(dims)[:-2]


def window_code(*layer) -> LayerCode:
    """The C++ of a convolution or a pool of up to three axes."""
    build = LayerBuilder(*layer)
    op = build.node.op
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
    config = build.config(f"{build.node.name}: {op.function} over windows", {}, constants)
    operands = ", ".join(_operands(build)[: 2 if op.function == "Conv" else 1])
    if op.function == "Conv":
        return build.code("array_product", f"n2d2::arrayConvolution<{config}>({operands}, {_output(build)});")
    pool = {"Max": "WindowMax", "MaxIndex": "WindowMaxIndex", "Average": "WindowAverage", "Lp": f"WindowNorm<{op.order}>"}
    return build.code("array_product", f"n2d2::arrayPool<{config}, n2d2::{pool[op.function]} >({operands}, {_output(build)});")


def gather_code(*layer) -> LayerCode:
    """The C++ of elements at computed positions."""
    build = LayerBuilder(*layer)
    op = build.node.op
    return build.code(
        "array_move",
        f"n2d2::arrayGather<{op.outer}, {op.size}, {op.inner}, {op.count}, {_flag(op.each)}>("
        f"{', '.join(_operands(build))}, {_output(build)});",
    )


def scatter_code(*layer) -> LayerCode:
    """The C++ of updates at computed positions."""
    build = LayerBuilder(*layer)
    op = build.node.op
    return build.code(
        "array_move",
        f"n2d2::arrayScatter<{op.size}, {op.inner}, {op.count}, "
        f"n2d2::Scatter{op.combine.capitalize()}>({', '.join(_operands(build))}, {_output(build)});",
    )
