"""LSTM, GRU and RNN over the steps of one or several sequences, in one direction."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from n2d2py.arithmetic.float32 import functions_of
from n2d2py.arithmetic.recurrent import begun, gru, lstm, rnn
from n2d2py.contracts.operator import register
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Custom, Node, Shape
from n2d2py.operators.arrays.base import ArrayOp

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Number of gates of a cell, in the order of ONNX: i, o, f, c; z, r, h; h."""


@register
class ArrayRecurrent(ArrayOp):
    """Hidden states (steps, sequences, hidden) of a `cell`, a key of `GATES`, over an input (steps, sequences, size). Part
    "cell": the last cell state (sequences, hidden).

    `reverse`: from the last step to the first; the state at step t keeps index t. Parameters, gates in the order of ONNX:
    "input_weights" (gates * hidden, size), "recurrent_weights" (gates * hidden, hidden), "gate_bias" (gates * hidden), the sum
    of both ONNX biases except for gate h of a GRU, whose second one is "recurrent_bias" (hidden). "initial_h" and "initial_c",
    each (sequences, hidden); the roles in `given` are further inputs in that order instead.

    Attributes:
        gate_limit: accumulators of gates are clamped to +- this (`clip` of ONNX); 0: no limit.
        cell_limit: the same for cell states (`cell_clip` of TFLite).
        coupled: the forget gate of an LSTM is 1 - i.
        peepholes: gates i, o, f of an LSTM also read the cell state, with weights "peepholes" (3 * hidden).
        relu: an RNN has ReLU instead of tanh.
    """

    cell: str
    steps: int
    size: int
    hidden: int
    reverse: bool = False
    linear_before_reset: bool = False
    part: str = ""
    given: tuple[str, ...] = field(default=(), repr=False)
    result: str = ""
    sequences: int = 1
    gate_limit: float = 0.0
    cell_limit: float = 0.0
    coupled: bool = False
    peepholes: bool = False
    relu: bool = False

    @property
    def slots(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Every operand is an input."""
        return tuple(range(1 + len(self.given)))

    def operand_dims(self) -> tuple[Shape, ...]:
        return (self.steps, self.sequences, self.size), *((self.sequences, self.hidden) for _ in self.given)

    def to_sequences(self, x: np.ndarray) -> np.ndarray:
        """Return an input (n, ...) as separate sequences (n * sequences, steps, size)."""
        return x.reshape(-1, self.steps, self.sequences, self.size).swapaxes(1, 2).reshape(-1, self.steps, self.size)

    def to_output(self, states: np.ndarray) -> np.ndarray:
        """Return states (n * sequences, ..., hidden) of all steps or of one in the layout of the output (n, ...)."""
        by_sequence = states.reshape(-1, self.sequences, *states.shape[1:])
        return (by_sequence.swapaxes(1, 2) if by_sequence.ndim == 4 else by_sequence).reshape(len(by_sequence), -1)

    def initial_state(self, role: str, inputs: list[np.ndarray], node) -> np.ndarray:
        """Return the initial states (n * sequences, hidden): an input or a parameter."""
        first = inputs[1 + self.given.index(role)] if role in self.given else node.params[role].reshape(1, -1)
        return np.broadcast_to(first, (len(inputs[0]), first.shape[1])).reshape(-1, self.hidden)

    def output_dims(self) -> Shape:
        return (self.sequences, self.hidden) if self.part else (self.steps, self.sequences, self.hidden)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.sequences * self.steps * GATES[self.cell] * self.hidden * (self.size + self.hidden)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        """Accumulate in the type of the input: bias, then inputs, then states."""
        states, cells = self.all_states(inputs, node)
        cell = cells[:, 0 if self.reverse else -1]
        return self.as_output(self.to_output(cell if self.part else states), inputs)

    def previous_states(self, inputs: list[np.ndarray], node) -> np.ndarray:
        """Return the hidden states (n * sequences, steps, hidden) that each step reads."""
        states, _ = self.all_states(inputs, node)
        first = self.initial_state("initial_h", inputs, node)[:, None]
        return np.concatenate([states[:, 1:], first] if self.reverse else [first, states[:, :-1]], axis=1)

    def all_states(self, inputs: list[np.ndarray], node) -> tuple[np.ndarray, np.ndarray]:
        """Return all hidden and all cell states (n * sequences, steps, hidden)."""
        x = self.to_sequences(inputs[0])
        kind, count, params = x.dtype, len(x), node.params
        roles = ("input_weights", "recurrent_weights", "gate_bias", "recurrent_bias")
        w, r, bias, last = (params[role].astype(kind) for role in roles)
        totals = np.zeros((count, self.steps, len(w)), kind) + bias
        for k in range(self.size):
            totals += x[..., k, None] * w[:, k]
        h, c = (self.initial_state(role, inputs, node).astype(kind) for role in ("initial_h", "initial_c"))
        states, cells = np.zeros((2, count, self.steps, self.hidden), kind)
        for t in range(self.steps - 1, -1, -1) if self.reverse else range(self.steps):
            if self.cell == "LSTM":
                h, c = self._lstm(totals[:, t], r, h, c, node.params.get("peepholes"))
            elif self.cell == "GRU":
                h = self._gru(totals[:, t], r, last, h)
            else:
                total = self._clip_gate(_add(totals[:, t], r, h))
                h = np.maximum(total, 0) if self.relu else functions_of(kind).tanh(total)
            states[:, t], cells[:, t] = h, c
        return states, cells

    def _clip_gate(self, total: np.ndarray) -> np.ndarray:
        limit = total.dtype.type(self.gate_limit)
        return np.clip(total, -limit, limit) if self.gate_limit else total

    def _lstm(
        self, total: np.ndarray, r: np.ndarray, h: np.ndarray, c: np.ndarray, peepholes: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        i, o, f, g = np.split(_add(total, r, h), 4, axis=1)
        peephole_rows = np.zeros((3, self.hidden), h.dtype) if peepholes is None else peepholes.astype(h.dtype).reshape(3, -1)
        _, sigmoid, tanh = functions_of(h.dtype)
        entered = sigmoid(self._clip_gate(i + peephole_rows[0] * c))
        forgotten = (1 - entered if self.coupled else sigmoid(self._clip_gate(f + peephole_rows[2] * c))) * c
        cell = forgotten + entered * tanh(self._clip_gate(g))
        if self.cell_limit:
            cell = np.clip(cell, h.dtype.type(-self.cell_limit), h.dtype.type(self.cell_limit))
        return sigmoid(self._clip_gate(o + peephole_rows[1] * cell)) * tanh(cell), cell

    def _gru(self, total: np.ndarray, r: np.ndarray, last: np.ndarray, h: np.ndarray) -> np.ndarray:
        size, (_, sigmoid, tanh) = self.hidden, functions_of(h.dtype)
        gates = sigmoid(self._clip_gate(_add(total[:, : 2 * size], r[: 2 * size], h)))
        z, reset = gates[:, :size], gates[:, size:]
        if self.linear_before_reset:
            linear = _add(np.zeros((len(h), size), h.dtype) + last, r[2 * size :], h)
            n = tanh(self._clip_gate(total[:, 2 * size :] + reset * linear))
        else:
            n = tanh(self._clip_gate(_add(total[:, 2 * size :], r[2 * size :], reset * h)))
        return (1 - z) * n + z * h

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute as specified in `arithmetic/recurrent.py`."""
        if node.rescale is None:
            return super().run_integer(inputs, node, graph)
        form = node.form_as(Custom).by_role
        x = self.to_sequences(inputs[0]).astype(np.int64) - graph.type(node.inputs[0]).zero_point
        h, c = (self._integer_state(role, inputs, node, graph) for role in ("initial_h", "initial_c"))
        if self.cell == "LSTM":
            states, cell = lstm(x, form, self.reverse, h, c)
        elif self.cell == "GRU":
            states, cell = gru(x, form, self.reverse, self.linear_before_reset, h), np.zeros(0)
        else:
            states, cell = rnn(x, form, self.reverse, h), np.zeros(0)
        acc = self.to_output(cell if self.part else states)
        return [node.requantize(acc, graph.type(node.output))]

    def _integer_state(self, role: str, inputs: list[np.ndarray], node, graph) -> np.ndarray:
        x, form = self.initial_state(role, inputs, node).astype(np.int64), node.form_as(Custom).by_role
        if role in self.given:
            x = begun(x - graph.type(node.inputs[1 + self.given.index(role)]).zero_point, *form[f"given_{role[-1]}"])
        return x


def _add(total: np.ndarray, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return total + weights @ x, in the order of the elements of x."""
    total = total.copy()
    for k in range(weights.shape[1]):
        total += x[:, k, None] * weights[:, k]
    return total


@onnx_emitter("ArrayRecurrent")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, params = node.op, node.params
    rows = GATES[op.cell] * op.hidden
    second = np.zeros(rows, np.float32)
    if op.cell == "GRU":
        second[2 * op.hidden :] = params["recurrent_bias"]
    x = writer.emit("Transpose", [writer.array(node.inputs[0], (op.steps, op.sequences, op.size))], perm=[1, 0, 2, 3])
    x = writer.emit("Reshape", [x, writer.constant([0, -1, op.size])])
    constants = params["input_weights"], params["recurrent_weights"], np.concatenate([params["gate_bias"], second])
    operands = [x, *(writer.constant(values[None]) for values in constants), ""]
    count = writer.emit("Shape", [node.inputs[0]], start=0, end=1)
    each = [writer.constant([op.sequences]), writer.constant([op.hidden])]
    batch = writer.emit("Slice", [writer.emit("Shape", [x]), *(writer.constant([n]) for n in (1, 2))])
    size = writer.emit("Concat", [writer.constant([1]), batch, writer.constant([op.hidden])], axis=0)
    for role in ("initial_h", "initial_c")[: 2 if op.cell == "LSTM" else 1]:
        if role in op.given:
            first = node.inputs[1 + op.given.index(role)]
            operands.append(writer.emit("Reshape", [first, writer.constant([1, -1, op.hidden])]))
            continue
        first = writer.constant(params[role].reshape(1, 1, op.sequences, op.hidden))
        if op.sequences > 1:
            first = writer.emit("Expand", [first, writer.emit("Concat", [writer.constant([1]), count, *each], axis=0)])
        flat_first = writer.emit("Reshape", [first, writer.constant([1, -1, op.hidden])])
        operands.append(writer.emit("Expand", [flat_first, size]))
    more: dict[str, object] = {"clip": op.gate_limit} if op.gate_limit else {}
    if op.cell == "GRU":
        more["linear_before_reset"] = int(op.linear_before_reset)
    elif op.cell == "LSTM":
        more["input_forget"] = int(op.coupled)
        operands += [writer.constant(params["peepholes"][None])] if op.peepholes else []
    elif op.relu:
        more["activations"] = ["Relu"]
    attributes = {"hidden_size": op.hidden, "direction": "reverse" if op.reverse else "forward", **more}
    result = writer.emit_all(op.cell, operands, 3 if op.cell == "LSTM" else 2, **attributes)
    if op.part:
        by_sequence = writer.emit("Reshape", [result[2], writer.constant([-1, op.sequences, op.hidden])])
        writer.flat(by_sequence, output)
    else:
        by_sequence = writer.emit("Reshape", [result[0], writer.constant([op.steps, -1, op.sequences, op.hidden])])
        writer.flat(writer.emit("Transpose", [by_sequence], perm=[1, 0, 2, 3]), output)
