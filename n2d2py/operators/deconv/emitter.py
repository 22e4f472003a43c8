"""How ONNX Runtime computes a transposed convolution."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter


@onnx_emitter("Deconv")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """ONNX has the weights as (inputs, outputs of a group, H, W): outputs lie along an axis there without groups, or with one in each."""
    op = node.op
    outputs, per_group, kh, kw = node.params["weights"].shape
    by_group = outputs // op.groups

    def ordered(weights: np.ndarray) -> np.ndarray:
        grouped = weights.reshape(op.groups, by_group, per_group, kh, kw).transpose(0, 2, 1, 3, 4)
        return grouped.reshape(op.groups * per_group, by_group, kh, kw)

    added = [max(0, -p) for p in op.pads]
    if added[0] or added[1] or any(a >= s for a, s in zip(added[2:], op.stride, strict=True)):
        raise NoOnnxForm(f"the negative pads of layer {node.name} are too large for an ONNX ConvTranspose")
    axis = 1 if op.groups == 1 else 0 if by_group == per_group == 1 else None
    writer.emit(
        "ConvTranspose",
        [node.inputs[0], writer.weights(node, ordered, axis), writer.bias(node)],
        output,
        kernel_shape=[kh, kw],
        strides=list(op.stride),
        pads=[max(0, p) for p in op.pads],
        dilations=list(op.dilation),
        group=op.groups,
        output_padding=added[2:],
    )
