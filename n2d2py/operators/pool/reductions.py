"""Reductions over axes after the batch: pools over them, with functions before and after."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph.shapes import channels
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Abs, FunctionRow, Log, Sqrt
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.transpose import Transpose, channels_first


def _reduce(mode: str, gain: float | None = 1.0, *, before: FunctionRow | str | None = None, after: FunctionRow | None = None):
    """Converter: `before` each element, the pool, times gain (None: the number of elements), `after` the result.

    `before` is a function, "negative" (undone after the pool) or "square".
    """

    def convert(node: OnnxNode, builder: Builder) -> None:
        shape = node.require_rank(2, 3, 4)
        axes = node.axes(len(shape))
        if not axes:
            noop = node.attribute("noop_with_empty_axes", 0)
            raise Unsupported("it reduces no axis" if noop else "it reduces all axes, including the batch")
        if 0 in axes:
            raise Unsupported("it reduces the batch axis", "reduce other axes")
        tensor, permutation = channels_first(node.tensor(), builder.graph)
        kept = [permutation[axis] for axis in range(len(shape)) if axis not in axes and shape[axis] > 1]
        if kept != sorted(kept):  # what is left would lie in another order
            tensor, permutation = node.tensor(), tuple(range(len(shape)))
        reduced = sorted(permutation[axis] for axis in axes)
        count = prod(builder.graph.shape(tensor)[axis] for axis in reduced)
        if isinstance(before, FunctionRow):
            tensor = builder.layer(node, Activation(before), [tensor], part="before")
        elif before == "square":
            tensor = builder.layer(node, ElemWise("Prod"), [tensor, tensor], part="square")
        elif before == "negative":
            tensor = _gain(node, builder, tensor, -1.0, "negative")
        steps: list[tuple[str, float | FunctionRow]] = [("gain", count if gain is None else gain)] if gain != 1.0 else []
        steps += [("after", after)] if after is not None else []
        keep = bool(node.attribute("keepdims", 1))
        dims = tuple(1 if axis in axes else shape[axis] for axis in range(1, len(shape)) if keep or axis not in axes)
        if not dims:
            dims = (1,)
            if not keep and len(shape) == len(axes) + 1:
                raise Unsupported("its result has no channels", "export with keepdims=1")
        plain = permutation == tuple(range(len(shape))) and keep
        tensor = _pool(node, builder, mode, tensor, reduced, last=plain and not steps)
        if plain and not steps:
            return
        if builder.graph.shape(tensor)[1:] != dims:
            tensor = builder.layer(node, Reshape(dims), [tensor], part="result" if steps else None)
        for index, (name, step) in enumerate(steps):
            part = name if index < len(steps) - 1 else None
            if isinstance(step, FunctionRow):
                tensor = builder.layer(node, Activation(step), [tensor], part=part)
            else:
                tensor = _gain(node, builder, tensor, float(step), part)
        if tensor != node.name:
            builder.layer(node, Reshape(dims), [tensor])

    return convert


def _gain(node: OnnxNode, builder: Builder, tensor: str, gain: float, part: str | None) -> str:
    count = channels(builder.graph.shape(tensor))
    return builder.layer(node, Affine(), [tensor], {"weights": np.full(count, gain), "bias": np.zeros(count)}, part=part)


def _pool(node: OnnxNode, builder: Builder, mode: str, tensor: str, reduced: list[int], last: bool) -> str:
    """The reduced axes at length 1, or (kept, 1, 1) where they are not height and width; the node's result if `last`."""
    shape = builder.graph.shape(tensor)
    if len(shape) == 4 and set(reduced) <= {2, 3}:
        lines, columns = (shape[axis] if axis in reduced else 1 for axis in (2, 3))
        return builder.layer(node, Pool(mode, (lines, columns)), [tensor], part=None if last else "pool")
    kept = [axis for axis in range(1, len(shape)) if axis not in reduced]
    order = (0, *kept, *reduced)
    if order != tuple(range(len(shape))):
        tensor = builder.layer(node, Transpose(order), [tensor], part="order")
    size = prod(shape[axis] for axis in reduced)
    tensor = builder.layer(node, Reshape((prod(shape[axis] for axis in kept), 1, size)), [tensor], part="lines")
    pooled = builder.layer(node, Pool(mode, (1, size)), [tensor], part="pool")
    dims = tuple(1 if axis in reduced else shape[axis] for axis in range(1, len(shape)))
    return builder.layer(node, Reshape(dims), [pooled], part=None if last else "axes")


onnx("ReduceMean")(_reduce("Average"))
onnx("ReduceMax")(_reduce("Max"))
onnx("ReduceSum")(_reduce("Average", None))
onnx("ReduceMin")(_reduce("Max", -1.0, before="negative"))
onnx("ReduceL1")(_reduce("Average", None, before=Abs()))
onnx("ReduceSumSquare")(_reduce("Average", None, before="square"))
onnx("ReduceL2")(_reduce("Average", None, before="square", after=Sqrt()))
onnx("ReduceLogSum")(_reduce("Average", None, after=Log()))
