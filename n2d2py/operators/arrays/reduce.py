"""Sums, means, extremes and their positions over axes, and cumulative sums along an axis. ONNX reductions of images, over axes after
the batch, are pools with functions before and after."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from n2d2py.arithmetic import functions as exact
from n2d2py.arithmetic.functions import sequential_sum
from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.facets import OnnxWriter, onnx_emitter, register
from n2d2py.contracts.functions import Abs, FunctionRow, Log, Sqrt
from n2d2py.graph import Node, Shape
from n2d2py.operators.arrays.base import ArrayOp, AxisOp, around_axis, kernel_call, loop_type, strides
from n2d2py.operators.arrays.values import Arrays, Value, onnx
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation, Affine, uniform_gain
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import transpose_source


def _last(function):
    return lambda x: x.shape[-1] - 1 - function(x[..., ::-1], axis=-1)


def _log_sum_exp(x: np.ndarray) -> np.ndarray:
    top = x.max(-1).astype(np.float64)
    shift = np.where(np.isfinite(top), top, 0.0)
    return exact.log(sequential_sum(exact.exp(x.astype(np.float64) - shift[..., None]))) + shift


def _square(x: np.ndarray) -> np.ndarray:
    return np.square(x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64))


def _mean(x: np.ndarray) -> np.ndarray:
    total = sequential_sum(x)
    if x.dtype.kind == "f":
        return total / x.shape[-1]
    signed = total.astype(np.int64)  # as the 64-bit sums in C++
    return np.where(signed < 0, -(-signed // x.shape[-1]), signed // x.shape[-1])


def _product(x: np.ndarray) -> np.ndarray:
    return np.multiply.accumulate(x.astype(np.float64 if x.dtype.kind == "f" else np.int64), axis=-1)[..., -1]


REDUCTIONS = {
    "Sum": sequential_sum,
    "Mean": _mean,
    "Max": lambda x: x.max(-1),
    "Min": lambda x: x.min(-1),
    "Prod": _product,
    "L1": lambda x: sequential_sum(np.abs(x)),
    "L2": lambda x: np.sqrt(sequential_sum(_square(x))),
    "SumSquare": lambda x: sequential_sum(_square(x)),
    "LogSum": lambda x: exact.log(sequential_sum(x)),
    "LogSumExp": _log_sum_exp,
    "ArgMax": lambda x: np.argmax(x, -1),
    "ArgMin": lambda x: np.argmin(x, -1),
    "ArgMaxLast": _last(np.argmax),
    "ArgMinLast": _last(np.argmin),
}
"""Function -> its value along the last axis; sums in float64 (integers: int64), in order."""


@register
class ArrayReduce(ArrayOp):
    """`function` over `axes` of an array of dimensions `dims`. ArgMax and ArgMin, over one axis: position of the first extreme,
    or of the last one with "Last"."""

    function: str
    dims: tuple[int, ...]
    axes: tuple[int, ...]
    result: str = ""

    @property
    def outer(self) -> list[int]:
        """The axes that stay."""
        return [axis for axis in range(len(self.dims)) if axis not in self.axes]

    def operand_dims(self) -> tuple[Shape, ...]:
        return (self.dims,)

    def output_dims(self) -> Shape:
        return tuple(self.dims[axis] for axis in self.outer)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return prod(self.dims)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        (x,) = self.operands(inputs, node)
        lines = x.transpose(0, *(axis + 1 for axis in (*self.outer, *self.axes))).reshape(len(x), self.output_size(), -1)
        with np.errstate(all="ignore"):
            return self.as_output(REDUCTIONS[self.function](lines), inputs)


@register
class ArrayCumSum(AxisOp):
    """Cumulative sums (with `product`: products) along the middle axis of (outer, size, inner).

    `exclusive`: without the element itself; `reverse`: from the last element on.
    """

    exclusive: bool = False
    reverse: bool = False
    product: bool = False
    result: str = ""

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        (x,) = self.operands(inputs, node)
        x = x[:, :, ::-1] if self.reverse else x
        wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
        total = (np.multiply if self.product else np.add).accumulate(wide, axis=2)
        if self.exclusive:
            first = np.full_like(total[:, :, :1], 1 if self.product else 0)
            total = np.concatenate([first, total[:, :, :-1]], axis=2)
        return self.as_output(total[:, :, ::-1] if self.reverse else total, inputs)


def reduce_axes(a: Arrays, function: str, x: Value, axes: list[int], keep: bool = True, result: str | None = None) -> Value:
    """Add `function` over `axes`."""
    dims = [1 if axis in axes else size for axis, size in enumerate(x.dims) if keep or axis not in axes]
    x = a.tensor(x)
    op = ArrayReduce(function, tuple(x.dims), tuple(axes), x.kind if result is None else result)
    return a.add(op, [x], tuple(dims), label=function.lower())


@onnx("ArgMax", "ArgMin")
def _argument(a: Arrays) -> None:
    x = a.value(0)
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "compares")
    name = a.node.type + ("Last" if a.node.attribute("select_last_index", 0) else "")
    a.bind(reduce_axes(a, name, x, [axis], bool(a.node.attribute("keepdims", 1)), "int64"))


@onnx("CumSum", "CumProd")
def _scan(a: Arrays) -> None:
    x = a.tensor(a.value(0))
    axis = a.node.axis_of(int(a.node.constant(1, "axis").item()), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "runs along")
    exclusive, reverse = (bool(a.node.attribute(name, 0)) for name in ("exclusive", "reverse"))
    op = ArrayCumSum(*around_axis(x.dims, axis), exclusive, reverse, a.node.type == "CumProd", x.kind)
    a.bind(a.add(op, [x], x.dims, label="running"))


@cpp("ArrayReduce")
def _lower_reduce(layer: Layer) -> LayerCode:
    op = layer.op
    steps = strides(op.dims)
    kept, reduced = (loop_type([op.dims[a] for a in axes], [[steps[a] for a in axes]]) for axes in (op.outer, op.axes))
    types = {**layer.planes, "Kept": kept, "Reduced": reduced}
    kernel = "arrayLogSumExp" if op.function == "LogSumExp" else "arrayReduce"
    if kernel == "arrayReduce":
        types["Function"] = f"n2d2::reductions::{op.function}<{layer.inputs[0].cpp}>"
    return layer.code("array_reduce", layer.call(kernel, layer.config(op.function, types, {})))


@cpp("ArrayCumSum")
def _lower_scan(layer: Layer) -> LayerCode:
    op = layer.op
    flags = map(bool, (op.exclusive, op.reverse, op.product))
    return kernel_call(layer, "array_reduce", "arrayCumSum", (op.outer, op.size, op.inner, *flags))


@onnx_emitter("ArrayReduce")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x, axes = writer.array(node.inputs[0], op.dims), [axis + 1 for axis in op.axes]
    if op.function.startswith("Arg"):
        is_last = int(op.function.endswith("Last"))
        result = writer.emit(op.function[:6], [x], axis=axes[0], keepdims=1, select_last_index=is_last)
    elif op.function == "Sum":
        result = writer.emit("ReduceSum", [x, writer.constant(axes)], keepdims=1)
    else:
        result = writer.emit(f"Reduce{op.function}", [x], axes=axes, keepdims=1)
    writer.flat(result, output)


class _Pooling(NamedTuple):
    """A reduction of images: `before` on each element, a pool, a gain (None: the number of elements), `after` on the result."""

    mode: str
    gain: float | None = None
    before: Callable[[Arrays, Value], Value] | None = None
    after: FunctionRow | None = None


def _add_gain(a: Arrays, x: Value, gain: float) -> Value:
    return a.layer(Affine(), x, "gain", uniform_gain(x.dims[1], gain))


def _square_image(a: Arrays, x: Value) -> Value:
    assert x.image is not None
    return a.image_value(a.builder.layer(a.node, ElemWise("Prod"), [x.image, x.image], part="square"))


_POOLINGS = {
    "Mean": _Pooling("Average", 1.0),
    "Max": _Pooling("Max", 1.0),
    "Sum": _Pooling("Average"),
    "Min": _Pooling("Max", -1.0, before=lambda a, x: _add_gain(a, x, -1.0)),
    "L1": _Pooling("Average", before=lambda a, x: a.layer(Activation(Abs()), x, "before")),
    "SumSquare": _Pooling("Average", before=_square_image),
    "L2": _Pooling("Average", before=_square_image, after=Sqrt()),
    "LogSum": _Pooling("Average", after=Log()),
}
"""Pools by reduction; arrays alone have LogSumExp and Prod."""
_IDENTITIES = ("Sum", "Mean", "Max", "Min", "Prod")
"""Reductions that do not change a single element."""


def _reduce(function: str, a: Arrays) -> None:
    x, pooling = a.input(), _POOLINGS.get(function)
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


for _name in (*_POOLINGS, "LogSumExp", "Prod"):
    onnx(f"Reduce{_name}")(partial(_reduce, _name))
