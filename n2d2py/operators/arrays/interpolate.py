"""Resampling along one axis."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.operator import register
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, Shape
from n2d2py.operators.arrays.base import AxisOp
from n2d2py.operators.arrays.emitting import emit_constant, emit_flat, emit_reshape
from n2d2py.operators.arrays.lowering import kernel_call


@register
class ArrayInterpolate(AxisOp):
    """y[o, j, i] = sum over t of weights[j][t] * x[o, positions[j][t], i] for x (outer, size, inner).

    Attributes:
        positions: input rows of each output row, the same number for each.
        weights: weights of these rows.
    """

    positions: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]

    def output_size(self) -> int:
        return self.outer * len(self.positions) * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * len(self.positions[0])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = self.to_lines(inputs[0])
        wide = x.astype(np.float64)
        total = np.zeros((len(x), self.outer, len(self.positions), self.inner))
        weights = np.asarray(self.weights, x.dtype).astype(np.float64)
        for tap in range(len(self.positions[0])):
            lines = [line[tap] for line in self.positions]
            total += wide[:, :, lines] * weights[:, tap][None, None, :, None]
        return self.as_output(total, inputs)


# ---- C++ -----------------------------------------------------------------------------------------
@cpp("ArrayInterpolate")
def _lower(layer: Layer) -> LayerCode:
    op = layer.op
    positions = layer.array("positions", np.array(op.positions), "std::int32_t")
    weights = layer.array("weights", np.array(op.weights).astype(layer.output.dtype), layer.output.cpp)
    sizes = (op.outer, op.size, op.inner, len(op.positions), len(op.positions[0]))
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", positions, weights)
    return kernel_call(layer, "array_norm", "arrayInterpolate", sizes, operands)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("ArrayInterpolate")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    matrix = np.zeros((1, 1, len(op.positions), op.size))
    for line, (positions, weights) in enumerate(zip(op.positions, op.weights, strict=True)):
        np.add.at(matrix[0, 0, line], list(positions), weights)
    x = emit_reshape(writer, node.inputs[0], (op.outer, op.size, op.inner))
    emit_flat(writer, writer.emit("MatMul", [emit_constant(writer, matrix, ""), x]), output)
