"""Shared C++ of operators on arrays: loops as types, operands as pointers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.contracts.cpp import Argument, Call, Expression, Layer, LayerCode, Reference
from n2d2py.operators.arrays.base import strides

_CTYPES = {
    "bool": "std::uint8_t",
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def loop_type(sizes: Sequence[int], steps: Sequence[Sequence[int]], inner: Reference = "n2d2::AxisEnd") -> Reference:
    """Return the C++ type of nested loops over `sizes` around `inner`; steps[k] are the strides of operand k."""
    merged: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        own = [operand[axis] for operand in steps]
        if merged and all(before == step * size for before, step in zip(merged[-1][1], own, strict=True)):
            merged[-1] = (merged[-1][0] * size, own)
        else:
            merged.append((size, own))
    loops = inner
    for size, own in reversed(merged):
        loops = Expression("n2d2::Axis<{}, {}, {}, {}, {} >", (size, *[*own, 0, 0][:3], loops))
    return loops


def broadcast_strides(dims: Sequence[int]) -> list[int]:
    """Return row-major strides, 0 along axes of length 1."""
    return [0 if size == 1 else step for size, step in zip(dims, strides(dims), strict=True)]


def operand_pointers(layer: Layer, slots: Sequence[int] | None = None) -> list[Argument]:
    """Return a C++ pointer for each operand."""
    results: list[Argument] = []
    real = next((kind.dtype.name for kind in (layer.output, *layer.inputs) if kind.is_float), "float32")
    for index, slot in enumerate(slots or layer.op.slots):
        if slot >= 0:
            results.append(f"n2d2::elements<{layer.input_planes[slot]}>(in{slot})")
            continue
        values = layer.values(f"operand{index}")
        name = real if values.dtype.kind == "f" else values.dtype.name
        results.append(layer.array(f"operand{index}", values.astype(np.uint8 if name == "bool" else name), _CTYPES[name]))
    return results


def kernel_call(
    layer: Layer, header: str, function: str, template: Sequence[Argument], arguments: Sequence[Argument] = ()
) -> LayerCode:
    """Return the call of a kernel with template arguments; it gets the first input, or `arguments`, and the output."""
    operands = arguments or (f"n2d2::elements<{layer.input_planes[0]}>(in0)",)
    return layer.code(header, Call(f"n2d2::{function}", tuple(template), (*operands, output_pointer(layer))))


def output_pointer(layer: Layer) -> str:
    """Return a C++ pointer to the output."""
    return f"n2d2::elements<{layer.output_plane}>(out)"
