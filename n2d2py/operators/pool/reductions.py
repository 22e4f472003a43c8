"""ONNX reductions: of images, over axes after the batch, as pools with functions before and after; else of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import NamedTuple

from n2d2py.contracts.functions import Abs, FunctionRow, Log, Sqrt
from n2d2py.operators.arrays.reduce import reduce_axes
from n2d2py.operators.arrays.values import Arrays, Value, onnx
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation, Affine, uniform_gain
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import transpose_source


class _Pooling(NamedTuple):
    """A reduction of images: `before` on each element, a pool, a gain (None: the number of elements), `after` on the result."""

    mode: str
    gain: float | None = None
    before: Callable[[Arrays, Value], Value] | None = None
    after: FunctionRow | None = None


def _add_gain(a: Arrays, x: Value, gain: float) -> Value:
    return a.layer(Affine(), x, "gain", uniform_gain(x.dims[1], gain))


def _square(a: Arrays, x: Value) -> Value:
    assert x.image is not None
    return a.image_value(a.builder.layer(a.node, ElemWise("Prod"), [x.image, x.image], part="square"))


_POOLINGS: dict[str, _Pooling | None] = {
    "Mean": _Pooling("Average", 1.0),
    "Max": _Pooling("Max", 1.0),
    "Sum": _Pooling("Average"),
    "Min": _Pooling("Max", -1.0, before=lambda a, x: _add_gain(a, x, -1.0)),
    "L1": _Pooling("Average", before=lambda a, x: a.layer(Activation(Abs()), x, "before")),
    "SumSquare": _Pooling("Average", before=_square),
    "L2": _Pooling("Average", before=_square, after=Sqrt()),
    "LogSum": _Pooling("Average", after=Log()),
    "LogSumExp": None,
    "Prod": None,
}
"""Pools by reduction; None if only arrays have it."""
_IDENTITIES = ("Sum", "Mean", "Max", "Min", "Prod")
"""Reductions that do not change a single element."""


def _reduce(function: str, a: Arrays) -> None:
    x, pooling = a.input(), _POOLINGS[function]
    axes, keep = a.node.axes(len(x.dims)), bool(a.node.attribute("keepdims", 1))
    has_channels = keep or len(axes or ()) < len(x.dims) - 1
    if pooling is not None and x.image is not None and len(x.dims) > 1 and axes and 0 not in axes and has_channels:
        _reduce_image(a, pooling, x, axes, keep)
        return
    x = a.value(0)
    if not axes and a.node.attribute("noop_with_empty_axes", 0):
        a.bind(x if function in _IDENTITIES else reduce_axes(a, function, a.reshape(x, (*x.dims, 1)), [len(x.dims)], False))
        return
    axes = axes or list(range(len(x.dims)))
    for axis in axes:
        a.builder.guard_batch(a.node, 0, axis, "reduces")
    numbers = a.cast(x, "uint8") if x.kind == "bool" else x
    a.bind(a.cast(reduce_axes(a, function, numbers, axes, keep), x.kind))


def _reduce_image(a: Arrays, pooling: _Pooling, x: Value, axes: list[int], keep: bool) -> None:
    assert x.image is not None
    dims, (tensor, permutation) = x.dims, transpose_source(x.image, a.builder.graph)
    others = [permutation[axis] for axis in range(len(dims)) if axis not in axes and dims[axis] > 1]
    if others != sorted(others):  # the other axes would change their order
        tensor, permutation = x.image, tuple(range(len(dims)))
    x = a.image_value(tensor)
    reduced = sorted(permutation[axis] for axis in axes)
    count = prod(x.dims[axis] for axis in reduced)
    x = _add_pool(a, pooling.mode, x if pooling.before is None else pooling.before(a, x), reduced)
    x = a.reshape(x, (1, *(1 if axis in axes else dims[axis] for axis in range(1, len(dims)) if keep or axis not in axes)))
    if pooling.gain != 1.0:
        x = _add_gain(a, x, float(count if pooling.gain is None else pooling.gain))
    a.bind(x if pooling.after is None else a.layer(Activation(pooling.after), x, "after"))


def _add_pool(a: Arrays, mode: str, x: Value, reduced: list[int]) -> Value:
    """Add a pool; the reduced axes have length 1, or the result is (kept, 1, 1) unless they are height and width."""
    shape = x.dims
    if len(shape) == 4 and set(reduced) <= {2, 3}:
        return a.layer(Pool(mode, (shape[2] if 2 in reduced else 1, shape[3] if 3 in reduced else 1)), x, "pool")
    others = [axis for axis in range(1, len(shape)) if axis not in reduced]
    window = (1, prod(shape[axis] for axis in reduced))
    lines = a.reshape(a.transpose(x, (0, *others, *reduced)), (1, prod(shape[axis] for axis in others), *window))
    return a.layer(Pool(mode, window), lines, "pool")


for _name in _POOLINGS:
    onnx(f"Reduce{_name}")(partial(_reduce, _name))
