"""Operators that read or write at positions: constant ones, or computed in the network."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.errors import InternalError
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.tensors import Value, check_lines, strides
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.index_select.onnx import gather_constant
from n2d2py.operators.arrays.values import Arrays, onnx_array


@onnx_array("Gather")
def _gather(a: Arrays) -> None:
    x, indices = a.value(0), a.value(1)
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "takes stimuli of")
    if indices.is_constant:
        gather_constant(a)
        return
    dims = (*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :])
    op = ArrayGather(
        prod(x.dims[:axis]), x.dims[axis], prod(x.dims[axis + 1 :]), indices.size, False, a.slots([x, indices]), x.kind
    )
    a.bind(a.add(op, [x, indices], dims, label="gathered"))


@onnx_array("GatherElements")
def _gather_elements(a: Arrays) -> None:
    x, indices = a.value(0), a.value(1)
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    if len(indices.dims) != len(x.dims):
        raise Unsupported("its indices have another rank than its input")
    x = a.axes(x, {i: range(n) for i, n in enumerate(indices.dims) if i != axis and n < x.dims[i]})
    op = ArrayGather(
        prod(x.dims[:axis]), x.dims[axis], prod(x.dims[axis + 1 :]), indices.dims[axis], True, a.slots([x, indices]), x.kind
    )
    a.bind(a.add(op, [x, indices], indices.dims, label="gathered"))


def _from_the_front(a: Arrays, indices: Value, size: int) -> Value:
    """Indices into an axis of `size`, those from the end counted from the front."""
    negative = a.map("Less", indices, a.const(0, indices), result="bool")
    return a.map("Where", negative, a.map("Add", indices, a.const(size, indices)), indices, result=indices.kind)


def _linear(a: Arrays, indices: Value, dims: tuple[int, ...]) -> Value:
    """Tuples of indices (..., K) as one index into an array of dimensions `dims`."""
    steps = strides(dims)
    total = None
    for position, (size, step) in enumerate(zip(dims, steps, strict=True)):
        part = a.axes(indices, {len(indices.dims) - 1: [position]})
        part = a.map("Mul", _from_the_front(a, part, size), a.const(step, part))
        total = part if total is None else a.map("Add", total, part)
    if total is None:
        raise InternalError(f"{a.node.name} has indices of no axis")
    return a.reshape(total, total.dims[:-1])


@onnx_array("GatherND")
def _gather_nd(a: Arrays) -> None:
    x, indices, batch = a.value(0), a.value(1), int(a.node.attribute("batch_dims", 0))
    if not 0 <= batch < min(len(x.dims), len(indices.dims)):
        raise Unsupported(f"its batch_dims {batch} do not fit its inputs")
    depth = _depth(indices, len(x.dims) - batch)
    if batch:
        outer = prod(x.dims[:batch])
        offsets = np.arange(outer).reshape(*x.dims[:batch], *(1,) * (len(indices.dims) - batch - 1))
        line = _linear(a, indices, x.dims[batch : batch + depth])
        line = a.map("Add", line, a.const(offsets * prod(x.dims[batch : batch + depth]), line))
        size = prod(x.dims[: batch + depth])
    else:
        line, size = _linear(a, indices, x.dims[:depth]), prod(x.dims[:depth])
    rest = x.dims[batch + depth :]
    op = ArrayGather(1, size, prod(rest), line.size, False, a.slots([x, line]), x.kind)
    a.bind(a.add(op, [x, line], (*indices.dims[:-1], *rest), label="gathered"))


def _depth(indices: Value, rank: int) -> int:
    """Axes that the last axis of `indices` chooses on."""
    depth = indices.dims[-1] if indices.dims else 0
    if not 0 < depth <= rank:
        raise Unsupported(f"its indices choose on {depth} axes of {rank}")
    return depth


@onnx_array("ScatterElements", "Scatter")
def _scatter_elements(a: Arrays) -> None:
    x, indices, updates = a.values()
    if len(x.dims) != len(indices.dims) or indices.dims != updates.dims:
        raise Unsupported("its data, indices and updates have other ranks or shapes than each other")
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    if any(n > m for i, (n, m) in enumerate(zip(indices.dims, x.dims, strict=True)) if i != axis):
        raise Unsupported("its indices are larger than its input")
    order = [i for i in range(len(x.dims)) if i != axis]
    # lines of one element: the result of the other axes as outer positions
    outer = a.transpose(x, [*order, axis])
    size, region = x.dims[axis], tuple(indices.dims[i] for i in order)
    places = np.arange(prod(outer.dims[:-1])).reshape(outer.dims[:-1])[tuple(slice(0, n) for n in region)]
    line = a.transpose(indices, [*order, axis])
    line = _from_the_front(a, line, size)
    line = a.map("Add", line, a.const(places[..., None] * size, line))
    values = a.transpose(updates, [*order, axis])
    flat = [a.reshape(v, (v.size,)) for v in (outer, line, values)]
    op = ArrayScatter(1, x.size, 1, line.size, combine=_combine(a), slots=a.slots(flat), result=x.kind)
    made = a.reshape(a.add(op, flat, (x.size,), label="scattered"), outer.dims)
    a.bind(a.transpose(made, np.argsort([*order, axis]).tolist()))


def _combine(a: Arrays) -> str:
    how = a.node.attribute("reduction", "none")
    if how not in ("none", "add", "mul", "max", "min"):
        raise Unsupported(f"its reduction is {how}")
    return how


@onnx_array("ScatterND")
def _scatter_nd(a: Arrays) -> None:
    x, indices, updates = a.values()
    depth = _depth(indices, len(x.dims))
    line = _linear(a, indices, x.dims[:depth])
    operands = [x, line, updates]
    op = ArrayScatter(
        1, prod(x.dims[:depth]), prod(x.dims[depth:]), line.size, combine=_combine(a), slots=a.slots(operands), result=x.kind
    )
    a.bind(a.add(op, operands, x.dims, label="scattered"))


@onnx_array("OneHot")
def _one_hot(a: Arrays) -> None:
    indices, depth, values = a.value(0), int(a.node.constant(1, "depth").item()), a.value(2)
    check_lines([depth])
    rank = len(indices.dims) + 1
    axis = a.node.axis_of(a.node.attribute("axis", -1), rank)
    wide = a.reshape(indices, (*indices.dims[:axis], 1, *indices.dims[axis:]))
    places = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(rank)])
    wrapped = a.map(
        "Where",
        a.map("Less", wide, a.const(0, wide), result="bool"),
        a.map("Add", wide, a.const(depth, wide)),
        wide,
        result=wide.kind,
    )
    hit = a.map("Equal", wrapped, a.const(places, wide), result="bool")
    off, on = (a.axes(values, {0: [index]}) for index in (0, 1))
    a.bind(a.map("Where", hit, on, off, result=values.kind))
