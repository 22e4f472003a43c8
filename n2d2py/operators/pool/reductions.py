"""Reductions over axes after the batch, as pools with functions before and after."""

from __future__ import annotations

from functools import partial
from math import prod

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine, uniform_gain
from n2d2py.operators.arrays.values import Arrays, Value
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Abs, FunctionRow, Log, Sqrt
from n2d2py.operators.pool import Pool
from n2d2py.operators.transpose import transpose_source


def _reduce(
    mode: str,
    gain: float | None,
    node: OnnxNode,
    builder: Builder,
    *,
    before: FunctionRow | str | None = None,
    after: FunctionRow | None = None,
) -> None:
    """Add `before` on each element, pool, gain (None: the number of elements), `after` on the result.

    `before` is a function, "negative" (undone after the pool) or "square".
    """
    shape = node.require_rank(2, 3, 4)
    axes = node.axes(len(shape))
    if not axes:
        noop = node.attribute("noop_with_empty_axes", 0)
        raise Unsupported("it reduces no axis" if noop else "it reduces all axes, including the batch")
    if 0 in axes:
        raise Unsupported("it reduces the batch axis", "reduce other axes")
    tensor, permutation = transpose_source(node.tensor(), builder.graph)
    kept = [permutation[axis] for axis in range(len(shape)) if axis not in axes and shape[axis] > 1]
    if kept != sorted(kept):  # the kept axes would change their order
        tensor, permutation = node.tensor(), tuple(range(len(shape)))
    reduced = sorted(permutation[axis] for axis in axes)
    count = prod(builder.graph.shape(tensor)[axis] for axis in reduced)
    keep = bool(node.attribute("keepdims", 1))
    dims = tuple(1 if axis in axes else shape[axis] for axis in range(1, len(shape)) if keep or axis not in axes)
    if not dims and len(shape) == len(axes) + 1:
        raise Unsupported("its result has no channels", "export with keepdims=1")
    a = Arrays(node, builder)
    x = a.image_value(tensor)
    if isinstance(before, FunctionRow):
        x = a.layer(Activation(before), x, "before")
    elif before == "square":
        x = a.image_value(builder.layer(node, ElemWise("Prod"), [tensor, tensor], part="square"))
    elif before == "negative":
        x = _add_gain(a, x, -1.0)
    x = a.reshape(_add_pool(a, mode, x, reduced), (1, *dims))
    if gain != 1.0:
        x = _add_gain(a, x, float(count if gain is None else gain))
    a.bind(x if after is None else a.layer(Activation(after), x, "after"))


def _add_gain(a: Arrays, x: Value, gain: float) -> Value:
    return a.layer(Affine(), x, "gain", uniform_gain(x.dims[1], gain))


def _add_pool(a: Arrays, mode: str, x: Value, reduced: list[int]) -> Value:
    """Add a pool; the reduced axes have length 1, or the result is (kept, 1, 1) unless they are height and width."""
    shape = x.dims
    if len(shape) == 4 and set(reduced) <= {2, 3}:
        return a.layer(Pool(mode, (shape[2] if 2 in reduced else 1, shape[3] if 3 in reduced else 1)), x, "pool")
    kept = [axis for axis in range(1, len(shape)) if axis not in reduced]
    window = (1, prod(shape[axis] for axis in reduced))
    lines = a.reshape(a.transpose(x, (0, *kept, *reduced)), (1, prod(shape[axis] for axis in kept), *window))
    return a.layer(Pool(mode, window), lines, "pool")


onnx("ReduceMean")(partial(_reduce, "Average", 1.0))
onnx("ReduceMax")(partial(_reduce, "Max", 1.0))
onnx("ReduceSum")(partial(_reduce, "Average", None))
onnx("ReduceMin")(partial(_reduce, "Max", -1.0, before="negative"))
onnx("ReduceL1")(partial(_reduce, "Average", None, before=Abs()))
onnx("ReduceSumSquare")(partial(_reduce, "Average", None, before="square"))
onnx("ReduceL2")(partial(_reduce, "Average", None, before="square", after=Sqrt()))
onnx("ReduceLogSum")(partial(_reduce, "Average", None, after=Log()))
