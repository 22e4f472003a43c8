"""How ONNX Runtime computes recurrent layers."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, shaped, typed
from n2d2py.operators.arrays.recurrent.op import GATES
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayRecurrent")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """The sequences of all stimuli side by side are a batch."""
    op, params = node.op, node.params
    rows = GATES[op.cell] * op.hidden
    second = np.zeros(rows, np.float32)
    if op.cell == "GRU":
        second[2 * op.hidden :] = params["recurrent_bias"]
    x = writer.emit("Transpose", [shaped(writer, node.inputs[0], (op.steps, op.sequences, op.size))], perm=[1, 0, 2, 3])
    x = writer.emit("Reshape", [x, writer.constant([0, -1, op.size])])
    constants = [
        params["input_weights"][None],
        params["recurrent_weights"][None],
        np.concatenate([params["gate_bias"], second])[None],
    ]
    operands = [x, *(typed(writer, values, "") for values in constants), ""]
    count = writer.emit("Shape", [node.inputs[0]], start=0, end=1)
    each = [writer.constant([op.sequences]), writer.constant([op.hidden])]
    batch = writer.emit("Slice", [writer.emit("Shape", [x]), *(writer.constant([n]) for n in (1, 2))])
    size = writer.emit("Concat", [writer.constant([1]), batch, writer.constant([op.hidden])], axis=0)
    for role in ("initial_h", "initial_c")[: 2 if op.cell == "LSTM" else 1]:
        if role in op.given:
            operands.append(
                writer.emit("Reshape", [node.inputs[1 + op.given.index(role)], writer.constant([1, -1, op.hidden])])
            )
            continue
        first = typed(writer, params[role].reshape(1, 1, op.sequences, op.hidden), "")
        if op.sequences > 1:
            first = writer.emit("Expand", [first, writer.emit("Concat", [writer.constant([1]), count, *each], axis=0)])
        flat_first = writer.emit("Reshape", [first, writer.constant([1, -1, op.hidden])])
        operands.append(writer.emit("Expand", [flat_first, size]))
    more = {"linear_before_reset": int(op.linear_before_reset)} if op.cell == "GRU" else {}
    attributes = {"hidden_size": op.hidden, "direction": "reverse" if op.reverse else "forward", **more}
    made = writer.emit_all(op.cell, operands, 3 if op.cell == "LSTM" else 2, **attributes)
    if op.part:
        apart = writer.emit("Reshape", [made[2], writer.constant([-1, op.sequences, op.hidden])])
        flat(writer, apart, output)
    else:
        apart = writer.emit("Reshape", [made[0], writer.constant([op.steps, -1, op.sequences, op.hidden])])
        flat(writer, writer.emit("Transpose", [apart], perm=[1, 0, 2, 3]), output)
