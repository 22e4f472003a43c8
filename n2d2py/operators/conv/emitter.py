"""How ONNX Runtime computes a convolution."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("Conv")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x, pads = writer.padded(node.inputs[0], op.pads, None)
    writer.emit(
        "Conv",
        [x, writer.weights(node), writer.bias(node)],
        output,
        kernel_shape=list(node.params["weights"].shape[2:]),
        strides=list(op.stride),
        pads=pads,
        dilations=list(op.dilation),
        group=op.groups,
    )
