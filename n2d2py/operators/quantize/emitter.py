"""How ONNX Runtime rounds to the integers of a type."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("Quantize")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """16-bit integers stand for numbers that the file does not quantize: the reference keeps them."""
    kind, x = node.op.type, node.inputs[0]
    if kind.bits > 8:
        writer.emit("Identity", [x], output)
        return
    if kind.least is not None or kind.most is not None:
        limits = ((limit - kind.zero_point) * kind.scale for limit in (kind.qmin, kind.qmax))
        x = writer.emit("Clip", [x, *(writer.constant(limit) for limit in limits)])
    scale, zero = writer.constant(kind.scale), writer.exact(np.array(kind.zero_point, kind.dtype), "integer")
    writer.emit("DequantizeLinear", [writer.emit("QuantizeLinear", [x, scale, zero]), scale, zero], output)
