"""How ONNX Runtime computes a pool."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter

_LOWEST = float(np.finfo(np.float32).min)


@onnx_emitter("Pool")
def emit_pool(writer: OnnxWriter, node: Node, output: str) -> None:
    """Writes the pool of a node with a Pool.

    Raises:
        NoOnnxForm: for windows outside the image, or pads that no ONNX pool has.
    """
    op, x = node.op, node.inputs[0]
    counts = np.asarray(type(op)("Average", op.kernel, op.stride, op.pads, False).window_counts(writer.graph.shape(x)[2:]))
    if not counts.all() and not (op.mode == "Average" and op.count_pad):
        raise NoOnnxForm(f"the layer {node.name} has windows outside the image")
    if op.mode == "Max":
        x, pads = writer.padded(x, op.pads, op.kernel, _LOWEST)
        writer.emit("MaxPool", [x], output, kernel_shape=list(op.kernel), strides=list(op.stride), pads=pads)
        return
    if op.count_pad:
        x, pads = (writer.pad(x, op.pads) if any(op.pads) else x), [0, 0, 0, 0]
    else:
        if min(op.pads) < 0 or any(p >= op.kernel[i % 2] for i, p in enumerate(op.pads)):
            raise NoOnnxForm(f"the pads of layer {node.name} are too large for an ONNX pool")
        pads = list(op.pads)
    writer.emit(
        "AveragePool", [x], output, kernel_shape=list(op.kernel), strides=list(op.stride), pads=pads, count_include_pad=0
    )
