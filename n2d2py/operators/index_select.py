"""Selection of positions: slices, splits, reversals, repetition, borders; for arrays any reordering, with a fill value."""

from functools import reduce
from math import prod

import numpy as np

from n2d2py.contracts.cpp import Array, Constants, Expression, Layer, LayerCode, Reference, cpp, moving_epilogue
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.quant.quantizer import Moving, quantizer
from n2d2py.graph import Node, Shape, dims_text
from n2d2py.operators.arrays.base import kind_dtype, loop_type


@register
class IndexSelect(Op):
    """y[i, j, ...] = x[indices[0][i], indices[1][j], ...].

    Of an array, a vector (1, E): y = x[indices[0][i] + indices[1][j] + ...] for any number of axes, and `fill` if one of the
    indices is negative. Transposition, slicing, repetition and padding of arrays are special cases.
    None selects all positions of an axis.
    """

    indices: tuple[tuple[int, ...] | None, ...]
    fill: float = 0.0
    moves_values = True
    same_bits = True

    @property
    def fills(self) -> bool:
        """True if an index is negative."""
        return any(index is not None and min(index, default=0) < 0 for index in self.indices)

    def by_axes(self, shape: Shape) -> bool:
        """True if each axis of an input of `shape` has its own positions, none of them filled."""
        return len(self.indices) == len(shape) - 1 and not self.fills

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape, indices = inputs[0], self.indices
        if self.by_axes(shape):
            sizes = [size if one is None else len(one) for one, size in zip(indices, shape[1:], strict=True)]
            fits = all(one is None or (one and max(one) < size) for one, size in zip(indices, shape[1:], strict=True))
        else:
            fits = len(shape) == 2 and all(indices) and sum(max(0, max(one or (0,))) for one in indices) < shape[1]
            sizes = [prod(len(one or ()) for one in indices)]
        if not fits:
            raise self.error("E243", node, f"reads positions outside its input of shape {dims_text(shape[1:])}")
        return [(shape[0], *sizes)]

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the flat offset of each element of an array's result, a valid one in any case, and whether it is filled."""
        axes = [np.asarray(axis, np.int64) for axis in self.indices]
        filled = reduce(np.logical_or.outer, (axis < 0 for axis in axes), np.False_)
        return np.ravel(reduce(np.add.outer, (np.maximum(axis, 0) for axis in axes), np.int64(0))), np.ravel(filled)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._taken(inputs[0], inputs[0].dtype.type(self.fill))]

    def _taken(self, x: np.ndarray, fill) -> np.ndarray:
        if self.by_axes(x.shape):
            for axis, index in enumerate(self.indices, 1):
                if index is not None:
                    x = np.take(x, index, axis)
            return np.ascontiguousarray(x)
        positions, filled = self.positions()
        result = x[:, positions]
        result[:, filled] = fill
        return result

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return [self._taken(inputs[0], self.stored_fill(graph.type(node.output)))]

    def stored_fill(self, kind) -> int:
        """Return the fill value as a number type stores it."""
        if kind.is_float or kind.plain:
            return kind.dtype.type(self.fill)
        return kind.quantize(np.array([self.fill]))[0]


@onnx_emitter("IndexSelect")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, x = node.op, node.inputs[0]
    if op.by_axes(writer.graph.shape(x)):
        chosen = [(axis, index) for axis, index in enumerate(op.indices, 1) if index is not None]
        for number, (axis, index) in enumerate(chosen, 1):
            x = writer.emit("Gather", [x, writer.constant(list(index))], output if number == len(chosen) else None, axis=axis)
        if not chosen:
            writer.emit("Identity", node.inputs, output)
        return
    size = writer.graph.shape(x)[1]
    if not op.fills:
        writer.take(x, size, [np.asarray(axis, np.int64) for axis in op.indices], output)
        return
    positions, filled = op.positions()
    amounts, fill = writer.constant([0, 0, 0, 1]), writer.exact(np.array([op.fill], kind_dtype(writer.graph.kind(x))))
    x = writer.emit("Pad", [x, amounts, fill])
    writer.emit("Gather", [x, writer.exact(np.where(filled, size, positions))], output, axis=1)


quantizer("IndexSelect")(Moving)


_AXES = {2: ("channels",), 3: ("channels", "columns"), 4: ("channels", "lines", "columns")}
"""Rank -> role of each axis after the batch in memory."""


@cpp("IndexSelect")
def _lower(layer: Layer) -> LayerCode:
    rank = len(layer.input_shape)
    if not layer.op.by_axes(layer.input_shape):
        return _lower_array(layer)
    if rank not in _AXES:
        raise layer.beyond_axes(layer.input_shape)
    ranges = {role: Expression.type("n2d2::TakeRange", 0, 1) for role in _AXES[4]}
    for role, positions in zip(_AXES[rank], layer.requiring_whole_input().op.indices, strict=True):
        if positions is not None:
            ranges[role] = _positions_type(layer, role, positions)
    names = {"Lines": "lines", "Columns": "columns", "Taken": "channels"}
    types = {name: Expression(f"{{{list(ranges).index(role)}}}", tuple(ranges.values())) for name, role in names.items()}
    types = {**layer.planes, **types, "Epilogue": moving_epilogue(layer)}
    return layer.code("index_select", layer.call("indexSelect", layer.config("chosen positions", types, {"Serial": 0})))


def _lower_array(layer: Layer) -> LayerCode:
    """Return the C++ of a reordered array: loops for arithmetic progressions, tables for other offsets."""
    op, first = layer.op, 0
    runs: list[Array | list[tuple[int, int]]] = []
    for index, offsets in enumerate(op.indices):
        line = np.asarray(offsets, np.int64)
        if line.min() < 0 or (line.size > 2 and len(set(np.diff(line).tolist())) > 1):
            runs.append(layer.array(f"offsets{index}", line, "std::int32_t"))
            continue
        first += int(line[0])
        axis = (line.size, int(line[1] - line[0]) if line.size > 1 else 0)
        if runs and isinstance(runs[-1], list):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    axes: Reference = "n2d2::AxisEnd"
    for run in reversed(runs):
        if isinstance(run, Array):
            axes = Expression("n2d2::TakeAxis<{}, {}, {} >", (run.values.size, run, axes))
        else:
            axes = loop_type([size for size, _ in run], [[step for _, step in run]], axes)
    kind, fill = layer.output, op.stored_fill(layer.output)
    value = Constants(f"{layer.identifier}_fill", kind.cpp, {"value": fill if kind.is_float else int(fill)}, constexpr=False)
    types = {**layer.planes, "Axes": axes, "Fill": value}
    config = layer.config("elements in another order", types, {"First": first})
    return layer.code("array_move", layer.call("arrayIndexSelect", config))


def _positions_type(layer: Layer, role: str, positions: tuple[int, ...]) -> Expression:
    steps = set(np.diff(positions).tolist())
    if len(steps) <= 1:
        return Expression.type("n2d2::TakeRange", positions[0], steps.pop() if steps else 1)
    if role == "channels" and (turns := _shuffle_groups(positions)):
        return Expression.type("n2d2::TakeTurns", *turns)
    table = layer.array(role, np.array(positions), "std::int32_t")
    return Expression.type("n2d2::TakeTable", table)


def _shuffle_groups(positions: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return (first, groups, step) if the positions interleave `groups` runs, as a channel shuffle does; else None."""
    first, step = positions[0], positions[1] - positions[0]
    groups = next((i for i, p in enumerate(positions) if p != first + i * step), len(positions))
    result = tuple(first + i % groups * step + i // groups for i in range(len(positions)))
    return (first, groups, step) if result == tuple(positions) else None
