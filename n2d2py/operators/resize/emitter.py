"""How ONNX Runtime resamples images."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("Resize")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, shape = node.op, writer.graph.shape(node.inputs[0])
    if op.mode == "Nearest":  # by positions, which no rounding of a scale can change
        rows, columns = (writer.constant(op.taps(n, m)[0]) for n, m in zip(shape[2:], op.size, strict=True))
        writer.emit("Gather", [writer.emit("Gather", [node.inputs[0], rows], axis=2), columns], output, axis=3)
        return
    rows, columns = (
        writer.constant(_matrix(op, n, m), f"{node.name}_weights") for n, m in zip(shape[2:], op.size, strict=True)
    )
    across = writer.emit("MatMul", [node.inputs[0], writer.emit("Transpose", [columns], perm=[1, 0])])
    writer.emit("MatMul", [rows, across], output)


def _matrix(op, inputs: int, outputs: int) -> np.ndarray:
    """float32 (outputs, inputs): the interpolation along an axis as a matrix, free of the runtime's own rounding."""
    first, second, fraction = op.taps(inputs, outputs)
    matrix = np.zeros((outputs, inputs))
    np.add.at(matrix, (np.arange(outputs), first), 1 - fraction)
    np.add.at(matrix, (np.arange(outputs), second), fraction)
    return matrix.astype(np.float32)
