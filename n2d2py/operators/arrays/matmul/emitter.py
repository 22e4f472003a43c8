"""How ONNX Runtime computes products of matrices."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, operands
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayMatMul")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    flat(writer, writer.emit("MatMul", operands(writer, node, (node.op.left, node.op.right))), output)
