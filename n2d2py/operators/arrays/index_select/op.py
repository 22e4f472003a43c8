"""Elements of an array in another order, repeated, left out, with a fill value around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Array, Constants, Expression
from n2d2py.graph import Node
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.emitting import typed
from n2d2py.operators.arrays.lowering import loops
from n2d2py.operators.base import register
from n2d2py.quant.contract import quantizer
from n2d2py.quant.forming import Moving
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class ArrayIndexSelect(ArrayOp):
    """y[i, j, ...] = x[offsets[0][i] + offsets[1][j] + ...] of `size` elements; `fill` where an offset is negative.

    Transpositions, slices, gathering by constant indices, repetition and padding are all of this form.
    """

    size: int
    offsets: tuple[tuple[int, ...], ...]
    fill: float = 0.0
    kind: ClassVar[str] = "ArrayIndexSelect"
    moves_values: ClassVar[bool] = True

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.size,)

    def output_size(self) -> int:
        return prod(len(axis) for axis in self.offsets)

    def output_kinds(self, kinds: list[str], node) -> list[str]:
        return [kinds[0]]

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """(offset of each element of the result, whether it is filled), flat; the offset is one within x in either case."""
        axes = [np.asarray(axis, np.int64) for axis in self.offsets]

        def spread(combine, first, parts):
            return reduce(lambda a, b: combine(a[:, None], b[None]).reshape(-1), parts, first)

        filled = spread(np.logical_or, np.zeros(1, bool), (axis < 0 for axis in axes))
        return spread(np.add, np.zeros(1, np.int64), (np.maximum(axis, 0) for axis in axes)), filled

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._taken(inputs[0], inputs[0].dtype.type(self.fill))]

    def _taken(self, x: np.ndarray, fill) -> np.ndarray:
        positions, filled = self.positions()
        result = x[:, positions]
        result[:, filled] = fill
        return result

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """The same integers; the fill value as the type stores it."""
        kind = graph.type(node.output)
        return [self._taken(inputs[0], self.stored_fill(kind))]

    def stored_fill(self, kind) -> int:
        """The fill value in a number type."""
        if kind.is_float or kind.plain:
            return kind.dtype.type(self.fill)
        return kind.quantize(np.array([self.fill]))[0]


memory_access("ArrayIndexSelect")(whole)


quantizer("ArrayIndexSelect")(Moving)


# ---- C++ -----------------------------------------------------------------------------------------
@cpp("ArrayIndexSelect")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a reordering: progressions as loops, everything else by tables."""
    op, first = layer.op, 0
    runs: list[Array | list[tuple[int, int]]] = []
    for index, offsets in enumerate(op.offsets):
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
    text = "n2d2::AxisEnd"
    for run in reversed(runs):
        if isinstance(run, Array):
            text = f"n2d2::TakeAxis<{run.values.size}, {run}, {text} >"
        else:
            text = loops([size for size, _ in run], [[step for _, step in run]], text)
    kind, fill = layer.output, op.stored_fill(layer.output)
    value = Constants(f"{layer.identifier}_fill", kind.cpp, {"value": fill if kind.is_float else int(fill)}, constexpr=False)
    types = {
        **layer.planes,
        "Axes": Expression.of(text, *(run for run in runs if isinstance(run, Array))),
        "Fill": Expression(value.name, (value,)),
    }
    config = layer.config("elements in another order", types, {"First": first})
    return layer.code("array_move", layer.call("arrayIndexSelect", config))


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("ArrayIndexSelect")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, x = node.op, node.inputs[0]
    positions, filled = op.positions()
    if filled.any():
        kind = writer.graph.kind(x)
        x = writer.emit("Pad", [x, writer.constant([0, 0, 0, 1]), typed(writer, np.array(op.fill), kind)])
        positions = np.where(filled, op.size, positions)
    writer.emit("Gather", [x, writer.constant(positions.tolist())], output, axis=1)
