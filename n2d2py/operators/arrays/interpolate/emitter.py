"""How ONNX Runtime resamples arrays."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, shaped, typed
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayInterpolate")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    matrix = np.zeros((1, 1, len(op.positions), op.size))
    for line, (positions, weights) in enumerate(zip(op.positions, op.weights, strict=True)):
        np.add.at(matrix[0, 0, line], list(positions), weights)
    x = shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    flat(writer, writer.emit("MatMul", [typed(writer, matrix, ""), x]), output)
