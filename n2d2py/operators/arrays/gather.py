"""Selection of elements by indices computed in the network."""

from functools import partial, reduce
from itertools import pairwise
from math import prod

import numpy as np

from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, onnx_emitter, register
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, integer_layer, quantizer
from n2d2py.graph import Custom, Node, QuantNode, Shape
from n2d2py.operators.arrays.base import ArrayOp, AxisOp, around_axis, kernel_call, operand_pointers, strides
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, check_positions, onnx
from n2d2py.operators.concat import concatenate


@register
class ArrayGather(AxisOp):
    """Rows of x (outer, size, inner) selected by `count` indices: y (outer, count, inner). Operands: x, indices.

    With `each`, the indices have the shape of the result (outer, count, inner) and select single elements. Negative indices
    count from the end; indices out of range are clamped.
    """

    count: int
    each: bool = False
    slots: tuple[int, ...] = (0, 1)
    result: str = ""

    def is_embedding(self, node: Node) -> bool:
        """True if a layer looks up whole rows of a constant table of real numbers."""
        plain = self.slots[0] < 0 <= self.slots[1] and self.outer == 1 and not self.each and node.activation is None
        return plain and not self.result

    def operand_dims(self) -> tuple[Shape, ...]:
        return (self.outer, self.size, self.inner), self.output_dims() if self.each else (1, self.count, 1)

    def output_dims(self) -> Shape:
        return self.outer, self.count, self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, indices = self.operands(inputs, node)
        return self.as_output(np.take_along_axis(x, _row_numbers(indices, self.size), axis=2), inputs)


def _row_numbers(indices: np.ndarray, size: int) -> np.ndarray:
    """Return indices as rows from 0 to size - 1; negative ones count from the end."""
    rows = indices.astype(np.int64)
    return np.clip(np.where(rows < 0, rows + size, rows), 0, size - 1)


_MAX_PIECES = 8
"""Largest number of concatenated pieces of a scatter at constant positions; else it selects single elements."""


@register
class ArrayScatter(ArrayOp):
    """x with updates at positions: y = x; y[indices[i]] = update i, in order. Operands: x, indices, updates.

    x is (size, inner), indices are `count` row numbers, and each update is a row of `inner`. `combine` with the old row:
    "none", "add", "mul", "max" or "min".
    """

    size: int
    inner: int
    count: int
    combine: str = "none"
    slots: tuple[int, ...] = (0, 1, 2)
    result: str = ""

    def operand_dims(self) -> tuple[Shape, ...]:
        return (self.size, self.inner), (self.count,), (self.count, self.inner)

    def output_dims(self) -> Shape:
        return self.size, self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        operands = self.operands(inputs, node)
        count = max(map(len, operands))
        x, indices, updates = (np.broadcast_to(values, (count, *values.shape[1:])) for values in operands)
        result, rows = x.copy(), _row_numbers(indices, self.size)
        apply = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[self.combine]
        for n, k in np.ndindex(rows.shape):
            row = rows[n, k]
            result[n, row] = apply(result[n, row], updates[n, k])
        return self.as_output(result, inputs)


@quantizer("ArrayGather")
class EmbeddingQuantizer(Quantizer):
    """The rows of a constant table are stored in the type of the result; the indices are integers of their own."""

    reads_plain = True

    def refuses(self, node: Node) -> str | None:
        return None if node.op.is_embedding(node) else node.op.kind

    def in_files(self, node: Node) -> bool:
        return False

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        table = types.output.quantize(node.params["operand0"])
        return integer_layer(node, Custom({"operand0": table}), (types.output.qmin, types.output.qmax))


@onnx("Gather")
def _gather(a: Arrays) -> None:
    dims = a.input().dims
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(dims))
    a.builder.guard_batch(a.node, 0, axis, "selects samples along")
    if not a.node.is_constant(1):
        x, indices = a.value(0), a.value(1)
        op = ArrayGather(*around_axis(dims, axis), indices.size, False, a.slots([x, indices]), x.kind)
        a.bind(a.add(op, [x, indices], (*dims[:axis], *indices.dims, *dims[axis + 1 :]), label="gathered"))
        return
    indices = a.node.constant(1, "indices")
    x = a.input() if indices.ndim < 2 else a.value(0)
    check_positions([indices.size])
    flat = indices.reshape(-1).astype(np.int64)
    if flat.size and (flat.min() < -dims[axis] or flat.max() >= dims[axis]):
        raise Unsupported("its indices are outside the axis")
    selected = a.select(x, {axis: (flat % dims[axis]).tolist()})
    a.bind(a.reshape(selected, (*dims[:axis], *indices.shape, *dims[axis + 1 :])))


@onnx("GatherElements")
def _gather_elements(a: Arrays) -> None:
    x, indices = a.value(0), a.value(1)
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    if len(indices.dims) != len(x.dims):
        raise Unsupported("its indices and its input differ in rank")
    x = a.select(x, {i: range(n) for i, n in enumerate(indices.dims) if i != axis and n < x.dims[i]})
    op = ArrayGather(*around_axis(x.dims, axis), indices.dims[axis], True, a.slots([x, indices]), x.kind)
    a.bind(a.add(op, [x, indices], indices.dims, label="gathered"))


def _wrap_indices(a: Arrays, indices: Value, size: int) -> Value:
    negative = a.map("Less", indices, a.const(0, indices), result="bool")
    return a.map("Where", negative, a.map("Add", indices, a.const(size, indices)), indices, result=indices.kind)


def _flatten_indices(a: Arrays, indices: Value, dims: tuple[int, ...]) -> Value:
    numbers = (a.select(indices, {len(indices.dims) - 1: [position]}) for position in range(len(dims)))
    parts = (
        a.map("Mul", _wrap_indices(a, number, size), a.const(step, number))
        for number, size, step in zip(numbers, dims, strides(dims), strict=True)
    )
    total = reduce(partial(a.map, "Add"), parts)
    return a.reshape(total, total.dims[:-1])


@onnx("GatherND")
def _gather_nd(a: Arrays) -> None:
    x, indices, batch = a.value(0), a.value(1), int(a.node.attribute("batch_dims", 0))
    if not 0 <= batch < min(len(x.dims), len(indices.dims)):
        raise Unsupported(f"batch_dims={batch} does not match its inputs")
    depth = _index_depth(indices, len(x.dims) - batch)
    if batch:
        outer = prod(x.dims[:batch])
        offsets = np.arange(outer).reshape(*x.dims[:batch], *(1,) * (len(indices.dims) - batch - 1))
        line = _flatten_indices(a, indices, x.dims[batch : batch + depth])
        line = a.map("Add", line, a.const(offsets * prod(x.dims[batch : batch + depth]), line))
        size = prod(x.dims[: batch + depth])
    else:
        line, size = _flatten_indices(a, indices, x.dims[:depth]), prod(x.dims[:depth])
    rest = x.dims[batch + depth :]
    op = ArrayGather(1, size, prod(rest), line.size, False, a.slots([x, line]), x.kind)
    a.bind(a.add(op, [x, line], (*indices.dims[:-1], *rest), label="gathered"))


def _index_depth(indices: Value, rank: int) -> int:
    depth = indices.dims[-1] if indices.dims else 0
    if not 0 < depth <= rank:
        raise Unsupported(f"its indices select along {depth} axes of an input of rank {rank}")
    return depth


@onnx("ScatterElements", "Scatter")
def _scatter_elements(a: Arrays) -> None:
    x, indices, updates = a.values()
    if len(x.dims) != len(indices.dims) or indices.dims != updates.dims:
        raise Unsupported("its data, indices and updates must have the same rank, and indices and updates the same shape")
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    if any(n > m for i, (n, m) in enumerate(zip(indices.dims, x.dims, strict=True)) if i != axis):
        raise Unsupported("its indices exceed the shape of its input")
    order = [i for i in range(len(x.dims)) if i != axis]
    # rows of one element: the other axes become outer positions
    outer = a.transpose(x, [*order, axis])
    size, region = x.dims[axis], tuple(indices.dims[i] for i in order)
    places = np.arange(prod(outer.dims[:-1])).reshape(outer.dims[:-1])[tuple(slice(0, n) for n in region)]
    line = a.transpose(indices, [*order, axis])
    line = _wrap_indices(a, line, size)
    line = a.map("Add", line, a.const(places[..., None] * size, line))
    values = a.transpose(updates, [*order, axis])
    result = a.reshape(_scatter_rows(a, outer, a.reshape(line, (line.size,)), values, x.size, 1), outer.dims)
    a.bind(a.transpose(result, np.argsort([*order, axis]).tolist()))


def _scatter_rows(a: Arrays, x: Value, line: Value, updates: Value, size: int, inner: int) -> Value:
    """Combine rows of `x` (size, inner) with `updates`. At constant positions, concatenate pieces of both: integers only move."""
    how = a.node.attribute("reduction", "none")
    if how not in ("none", "add", "mul", "max", "min"):
        raise Unsupported(f"reduction={how} is not supported")
    operands = [a.reshape(x, (size, inner)), line, a.reshape(updates, (line.size, inner))]
    if line.constant is None or how != "none" or not line.size:
        op = ArrayScatter(size, inner, line.size, combine=how, slots=a.slots(operands), result=x.kind)
        return a.add(op, operands, (size, inner), label="scattered")
    source = np.arange(size)
    source[np.clip(line.constant.reshape(-1), 0, size - 1)] = size + np.arange(line.size)
    starts = [0, *(1 + np.flatnonzero((np.diff(source) != 1) | (source[1:] == size))).tolist(), size]
    if len(starts) > _MAX_PIECES + 1:
        return a.select(concatenate(a, [operands[0], operands[2]], 0), {0: source.tolist()})
    pieces = []
    for start, stop in pairwise(starts):
        first = int(source[start])
        value, first = (operands[0], first) if first < size else (operands[2], first - size)
        pieces.append(a.select(value, {0: range(first, first + stop - start)}))
    return concatenate(a, pieces, 0)


@onnx("ScatterND")
def _scatter_nd(a: Arrays) -> None:
    x, indices, updates = a.values()
    depth = _index_depth(indices, len(x.dims))
    line = _flatten_indices(a, indices, x.dims[:depth])
    a.bind(a.reshape(_scatter_rows(a, x, line, updates, prod(x.dims[:depth]), prod(x.dims[depth:])), x.dims))


@onnx("OneHot")
def _one_hot(a: Arrays) -> None:
    indices, depth, values = a.value(0), int(a.node.constant(1, "depth").item()), a.value(2)
    check_positions([depth])
    rank = len(indices.dims) + 1
    axis = a.node.axis_of(a.node.attribute("axis", -1), rank)
    wide = a.reshape(indices, (*indices.dims[:axis], 1, *indices.dims[axis:]))
    places = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(rank)])
    hit = a.map("Equal", _wrap_indices(a, wide, depth), a.const(places, wide), result="bool")
    off, on = (a.select(values, {0: [index]}) for index in (0, 1))
    a.bind(a.map("Where", hit, on, off, result=values.kind))


@cpp("ArrayGather")
def _lower_gather(layer: Layer) -> LayerCode:
    op = layer.op
    sizes = (op.outer, op.size, op.inner, op.count, bool(op.each))
    return kernel_call(layer, "array_move", "arrayGather", sizes, operand_pointers(layer))


@cpp("ArrayScatter")
def _lower_scatter(layer: Layer) -> LayerCode:
    op = layer.op
    combine = f"n2d2::Scatter{op.combine.capitalize()}"
    return kernel_call(layer, "array_move", "arrayScatter", (op.size, op.inner, op.count, combine), operand_pointers(layer))


@onnx_emitter("ArrayGather")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """Add a GatherElements; the index of a row is repeated for each of its elements."""
    op = node.op
    if min(op.slots) < 0:
        raise NoOnnxForm("a constant whose elements are chosen has no ONNX form")
    x, lines = writer.operands(node)
    lines = writer.emit("Cast", [lines], to=writer.element(np.int64))
    if not op.each:
        lines = writer.emit("Expand", [lines, writer.constant([1, *op.output_dims()])])
    writer.flat(writer.emit("GatherElements", [x, lines], axis=2), output)
