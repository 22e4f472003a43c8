"""How ONNX Runtime takes elements."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import typed
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayIndexSelect")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, x = node.op, node.inputs[0]
    positions, filled = op.positions()
    if filled.any():
        kind = writer.graph.kind(x)
        x = writer.emit("Pad", [x, writer.constant([0, 0, 0, 1]), typed(writer, np.array(op.fill), kind)])
        positions = np.where(filled, op.size, positions)
    writer.emit("Gather", [x, writer.constant(positions.tolist())], output, axis=1)
