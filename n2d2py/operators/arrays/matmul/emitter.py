"""How ONNX Runtime computes products of matrices."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, operands, typed
from n2d2py.operators.arrays.matmul.op import positions
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayMatMul")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if not op.views and op.scale == 1:
        flat(writer, writer.emit("MatMul", operands(writer, node, (op.left, op.right))), output)
        return
    views = op.placed()
    parts = []
    vectors = operands(writer, node, ((views[0][0],), (views[1][0],)))
    for vector, view, dims in zip(vectors, views, (op.left, op.right), strict=False):
        places = writer.exact(positions(view, dims).reshape(-1))
        taken = writer.emit("Gather", [vector, places], axis=1)
        parts.append(writer.emit("Reshape", [taken, writer.constant([0, *dims])]))
    made = writer.emit("MatMul", parts)
    if op.scale != 1:
        made = writer.emit("Mul", [made, typed(writer, np.array([op.scale]), "")])
    ordered = writer.emit("Reshape", [made, writer.constant([0, -1])])
    back = np.argsort(positions(views[2], op.dims).reshape(-1))
    writer.emit("Gather", [ordered, writer.exact(back)], output, axis=1)
