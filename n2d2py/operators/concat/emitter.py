"""How ONNX Runtime computes a concatenation."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("Concat")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Concat", node.inputs, output, axis=1)
