"""How ONNX Runtime computes recurrent layers."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, shaped, typed
from n2d2py.operators.arrays.recurrent.op import GATES
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayRecurrent")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """The stimuli side by side are the sequences of a batch."""
    op, params = node.op, node.params
    rows = GATES[op.cell] * op.hidden
    second = np.zeros(rows, np.float32)
    if op.cell == "GRU":
        second[2 * op.hidden :] = params["recurrent_bias"]
    x = writer.emit("Transpose", [shaped(writer, node.inputs[0], (op.steps, op.size))], perm=[1, 0, 2])
    constants = [
        params["input_weights"][None],
        params["recurrent_weights"][None],
        np.concatenate([params["gate_bias"], second])[None],
    ]
    operands = [x, *(typed(writer, values, "") for values in constants), ""]
    batch = writer.emit("Slice", [writer.emit("Shape", [x]), *(writer.constant([n]) for n in (1, 2))])
    size = writer.emit("Concat", [writer.constant([1]), batch, writer.constant([op.hidden])], axis=0)
    for role in ("initial_h", "initial_c")[: 2 if op.cell == "LSTM" else 1]:
        if role in op.given:
            state = shaped(writer, node.inputs[1 + op.given.index(role)], (1, op.hidden))
            operands.append(writer.emit("Transpose", [state], perm=[1, 0, 2]))
        else:
            operands.append(writer.emit("Expand", [typed(writer, params[role].reshape(1, 1, -1), ""), size]))
    more = {"linear_before_reset": int(op.linear_before_reset)} if op.cell == "GRU" else {}
    attributes = {"hidden_size": op.hidden, "direction": "reverse" if op.reverse else "forward", **more}
    made = writer.emit_all(op.cell, operands, 3 if op.cell == "LSTM" else 2, **attributes)
    if op.part:
        flat(writer, writer.emit("Transpose", [made[2]], perm=[1, 0, 2]), output)
    else:
        flat(writer, writer.emit("Transpose", [made[0]], perm=[2, 0, 1, 3]), output)
