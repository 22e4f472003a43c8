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
    if op.part:
        raise NoOnnxForm(f"the {op.part} of a normalisation has no ONNX form")
    x, emit = shaped(writer, node.inputs[0], (op.outer, op.inner)), writer.emit
    affine = [typed(writer, node.params[role], "") for role in ("gain", "shift") if role in node.params]
    if op.centred and not op.added:
        gain = affine[:1] or [typed(writer, np.ones(op.inner), "")]
        flat(writer, emit("LayerNormalization", [x, *gain, *affine[1:]], axis=-1, epsilon=op.epsilon), output)
        return
    away = emit("Sub", [x, emit("ReduceMean", [x], axes=[-1])]) if op.centred else x
    power = emit("Add", [emit("ReduceMean", [emit("Mul", [away, away])], axes=[-1]), typed(writer, np.array(op.epsilon), "")])
    made = emit("Div", [away, emit("Add", [emit("Sqrt", [power]), typed(writer, np.array(op.added), "")])])
    for function, constant in zip(("Mul", "Add"), affine, strict=False):
        made = emit(function, [made, constant])
    flat(writer, made, output)
