"""How ONNX Runtime computes a transposed convolution."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter


@onnx_emitter("Deconv")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, weights = node.op, node.params["weights"]
    outputs, per_group, kh, kw = weights.shape
    grouped = weights.reshape(op.groups, outputs // op.groups, per_group, kh, kw).transpose(0, 2, 1, 3, 4)
    added = [max(0, -p) for p in op.pads]
    if added[0] or added[1] or any(a >= s for a, s in zip(added[2:], op.stride, strict=True)):
        raise NoOnnxForm(f"the negative pads of layer {node.name} are too large for an ONNX ConvTranspose")
    writer.emit(
        "ConvTranspose",
        [
            node.inputs[0],
            writer.constant(grouped.reshape(op.groups * per_group, outputs // op.groups, kh, kw), f"{node.name}_weights"),
            writer.constant(node.params["bias"], f"{node.name}_bias"),
        ],
        output,
        kernel_shape=[kh, kw],
        strides=list(op.stride),
        pads=[max(0, p) for p in op.pads],
        dilations=list(op.dilation),
        group=op.groups,
        output_padding=added[2:],
    )
