"""How ONNX Runtime computes a fully connected layer."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("Fc")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    x = node.inputs[0]
    if len(writer.graph.shape(x)) > 2:
        x = writer.emit("Flatten", [x], axis=1)
    writer.emit("Gemm", [x, writer.weights(node), writer.bias(node)], output, transB=1)
