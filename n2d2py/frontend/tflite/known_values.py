"""Constant folding of .tflite operators: counters, shapes, positions."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.schema import pairs

_MOST_ELEMENTS = 2**20


def compute_values(op: TfliteOperator, output: TfliteTensor, values: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the values of the result `output` for the given input values; None if they are not computed."""
    function = _FUNCTIONS.get(op.code)
    try:
        return None if function is None else function(op, output, *values)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, RefusedOperator):
        return None


def strided_index(op: TfliteOperator, begins: Iterable[int], ends: Iterable[int], steps: Iterable[int]) -> list[int | slice]:
    """Return the index of a STRIDED_SLICE for each axis, as in NumPy. Raise RefusedOperator for a mask without such an index."""
    masks = [op.options.integer(slot) for slot in range(5)]
    if masks[2] or masks[3] or op.options.flag(5) or 0 in list(steps):
        raise RefusedOperator("ellipsis_mask, new_axis_mask, offset and steps of 0 are not supported")
    index: list[int | slice] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        low, high = None if masks[0] >> axis & 1 else int(begin), None if masks[1] >> axis & 1 else int(end)
        first = (0 if step > 0 else -1) if low is None else low
        index.append(first if masks[4] >> axis & 1 else slice(low, high, int(step)))
    return index


def _strided_slice(op: TfliteOperator, output: TfliteTensor, x: np.ndarray, *bounds: np.ndarray) -> np.ndarray:
    return x[tuple(strided_index(op, *bounds))]


def _slice(op: TfliteOperator, output: TfliteTensor, x: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    ends = [None if size == -1 else int(index + size) for index, size in zip(begins, sizes, strict=True)]
    return x[tuple(slice(int(index), end) for index, end in zip(begins, ends, strict=True))]


def _reshape(op: TfliteOperator, output: TfliteTensor, x: np.ndarray, *shape: np.ndarray) -> np.ndarray:
    return x.reshape(shape[0] if output.is_open and shape else output.shape)


def _concat(op: TfliteOperator, output: TfliteTensor, *parts: np.ndarray) -> np.ndarray | None:
    large = sum(part.size for part in parts) > 16 * _MOST_ELEMENTS
    return None if large or op.options.integer(1, "<b") else np.concatenate(parts, op.options.integer(0))


def _range(op: TfliteOperator, output: TfliteTensor, *bounds: np.ndarray) -> np.ndarray | None:
    start, stop, step = (int(bound) for bound in bounds)
    return np.arange(start, stop, step) if abs(stop - start) <= _MOST_ELEMENTS else None


def _fill(op: TfliteOperator, output: TfliteTensor, shape: np.ndarray, value: np.ndarray) -> np.ndarray | None:
    return np.full(shape, value) if 0 <= prod(map(int, shape)) <= _MOST_ELEMENTS else None


def _gather(op: TfliteOperator, output: TfliteTensor, x: np.ndarray, positions: np.ndarray) -> np.ndarray | None:
    wrong = op.options.integer(1) or positions.min(initial=0) < 0 or positions.size * x.size > 16 * _MOST_ELEMENTS
    return None if wrong else np.take(x, positions, op.options.integer(0))


def _element_wise(
    function: Callable[..., np.ndarray], op: TfliteOperator, output: TfliteTensor, *values: Any
) -> np.ndarray | None:
    """Return an element-wise function; None with a fused activation."""
    return None if output.dtype.kind == "f" or np.broadcast(*values).size > 16 * _MOST_ELEMENTS else function(*values)


_FUNCTIONS: dict[str, Callable[..., np.ndarray | None]] = {
    **{
        code: partial(_element_wise, getattr(np, name))
        for code, name in pairs(
            """
            ADD=add SUB=subtract MUL=multiply FLOOR_DIV=floor_divide FLOOR_MOD=mod NEG=negative MINIMUM=minimum MAXIMUM=maximum
            EQUAL=equal NOT_EQUAL=not_equal LESS=less LESS_EQUAL=less_equal GREATER=greater GREATER_EQUAL=greater_equal
            LOGICAL_AND=logical_and LOGICAL_OR=logical_or LOGICAL_NOT=logical_not SELECT=where SELECT_V2=where
            """
        ).items()
    },
    "REDUCE_PROD": lambda op, made, x, axes: np.prod(x, tuple(axes.reshape(-1))),
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _reshape),
    "CONCATENATION": _concat,
    "PACK": lambda op, made, *parts: np.stack(parts, op.options.integer(1)),
    "CAST": lambda op, made, x: x.astype(made.dtype),
    "STRIDED_SLICE": _strided_slice,
    "SLICE": _slice,
    "GATHER": _gather,
    "RANGE": _range,
    "FILL": _fill,
    "ZEROS_LIKE": lambda op, made, x: np.zeros_like(x),
    "BROADCAST_ARGS": lambda op, made, *shapes: np.array(np.broadcast_shapes(*map(tuple, shapes))),
}
"""Functions of operator, result tensor and input values, by operator; they return the result's values, or None."""
