"""How ONNX Runtime computes normalisations and softmax of arrays."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, shaped, typed
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter


@onnx_emitter("ArraySoftmax")
def _softmax(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x = shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    flat(writer, writer.emit("LogSoftmax" if op.log else "Softmax", [x], axis=2), output)


@onnx_emitter("ArrayMaskedSoftmax")
def _masked_softmax(writer: OnnxWriter, node: Node, output: str) -> None:
    op, mask = node.op, node.params["mask"]
    x = shaped(writer, node.inputs[0], (op.outer // len(mask), len(mask), op.size))
    lowest = typed(writer, np.array(np.finfo(np.float32).min), "")
    flat(writer, writer.emit("Softmax", [writer.emit("Where", [typed(writer, mask, "bool"), x, lowest])], axis=3), output)


@onnx_emitter("ArrayNorm")
def _norm(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.part or not op.centred or op.added:
        raise NoOnnxForm("a normalisation without mean, or with a deviation that is added to, has no ONNX form")
    x = shaped(writer, node.inputs[0], (op.outer, op.inner))
    gains = [typed(writer, node.params.get("gain", np.ones(op.inner)), "")]
    gains += [typed(writer, node.params["shift"], "")] if "shift" in node.params else []
    flat(writer, writer.emit("LayerNormalization", [x, *gains], axis=-1, epsilon=op.epsilon), output)
