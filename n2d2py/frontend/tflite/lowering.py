"""Helpers for operator translations: results, slices, windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.schema import SAME, VALID
from n2d2py.frontend.tflite.translation import Limits, Translation, graph_axis

_INNER = {"Conv": "rows", "Gemm": "flat"}
"""Ending of the name of a result that is reshaped, by ONNX operator; others are "kept"."""


def layer(
    t: Translation,
    op: TfliteOperator,
    kind: str,
    inputs: Sequence[str | None],
    shape: Sequence[int] | None,
    limits: Limits = None,
    made: Sequence[int] | None = None,
    **attributes: Any,
) -> None:
    """Add an ONNX node that produces the result, with the limits of a fused activation; inputs of None are dropped.

    `shape`: that of the result, in the order of the file; None if it is checked already. `made`: that of the node, if it is
    reshaped to `shape`.
    """
    names = [name for name in inputs if name is not None]

    def add(output: str) -> str:
        if shape is None or made is None or tuple(made) == tuple(shape):
            return t.emit(kind, names, output, **attributes)
        inner = t.emit(kind, names, t.fresh(f"{output}_{_INNER.get(kind, 'kept')}"), **attributes)
        return t.reshape(inner, made, shape, output)

    if shape is not None:
        t.expect_shape(op.outputs[0], shape)
    t.result(op.outputs[0], add, limits)


def slices(t: Translation, op: TfliteOperator, index: Sequence[int | slice]) -> None:
    """Add a slice of input 0 by an index for each axis of the file, as in NumPy: a number removes its axis."""
    shape = t.tensor(op.inputs[0]).shape
    ranges: list[range] = []
    for one, size in zip(index, shape, strict=True):
        if isinstance(one, int) and not -size <= one < size:
            raise RefusedOperator(f"its index {one} is out of range for an axis of {size}")
        ranges.append(range(one % size, one % size + 1) if isinstance(one, int) else range(size)[one])
    full = tuple(map(len, ranges))
    declared = tuple(size for size, one in zip(full, index, strict=True) if isinstance(one, slice))
    cut = [axis for axis, one in enumerate(ranges) if one != range(shape[axis])]
    bounds = {
        "begins": [ranges[axis].start for axis in cut],
        "ends": [ranges[axis].stop if ranges[axis].stop >= 0 else -(2**31) for axis in cut],
        "axes": [graph_axis(axis, len(shape)) for axis in cut],
        "steps": [ranges[axis].step for axis in cut],
    }
    rows = [t.constant(f"slice_{what}", np.array(values, np.int64)) for what, values in bounds.items()]
    layer(t, op, "Slice" if cut else "Identity", [t.real(op.inputs[0]), *(rows if cut else [])], declared, made=full)


def slice_axis(t: Translation, op: TfliteOperator, axis: int, part: int | slice) -> None:
    """Add a slice of input 0 along one axis of the file; a number removes it."""
    slices(t, op, [part if index == axis else slice(None) for index in range(len(t.tensor(op.inputs[0]).shape))])


def find_windows(
    padding: int, sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return (result sizes, ONNX pads)."""
    if min(*kernel, *stride, *dilation) < 1:
        raise RefusedOperator(f"its kernel {kernel}, stride {stride} or dilation {dilation} is below 1")
    if padding not in (SAME, VALID):
        raise RefusedOperator(f"padding number {padding} is not defined")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if padding == VALID:
        if any(n < e for n, e in zip(sizes, extents, strict=True)):
            window, size = (" x ".join(map(str, each)) for each in (extents, sizes))
            raise RefusedOperator(f"its window {window} is larger than its input {size}")
        return [(n - e) // s + 1 for n, e, s in zip(sizes, extents, stride, strict=True)], [0] * 2 * len(sizes)
    outputs = [-(-n // s) for n, s in zip(sizes, stride, strict=True)]
    total = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(outputs, stride, extents, sizes, strict=True)]
    return outputs, [amount // 2 for amount in total] + [amount - amount // 2 for amount in total]
