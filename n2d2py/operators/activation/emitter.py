"""How ONNX Runtime computes a function of single values."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("Activation")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.apply(node.op.function, node.inputs[0], output)
