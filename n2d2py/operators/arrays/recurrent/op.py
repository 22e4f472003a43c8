"""LSTM, GRU and RNN over the steps of one or several sequences, a layer for each direction, and their ONNX nodes."""

from dataclasses import field, replace
from typing import Any

import numpy as np

from n2d2py.arithmetic import recurrent
from n2d2py.arithmetic.float32 import functions_of
from n2d2py.contracts.facets import OnnxWriter, onnx_emitter, register
from n2d2py.contracts.onnx.nodes import CELL_LIMIT, OnnxNode, Unsupported
from n2d2py.graph import Custom, Node, Shape
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.values import Arrays, Value, onnx
from n2d2py.operators.concat import concatenate

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

    @property
    def order(self) -> range:
        """The steps in the order of the computation."""
        return range(self.steps)[:: -1 if self.reverse else 1]

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
        for t in self.order:
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
        states, cell = recurrent.all_states(self.cell, x, form, self.order, self.linear_before_reset, h, c)
        return [node.requantize(self.to_output(cell if self.part else states), graph.type(node.output))]

    def _integer_state(self, role: str, inputs: list[np.ndarray], node, graph) -> np.ndarray:
        x, form = self.initial_state(role, inputs, node).astype(np.int64), node.form_as(Custom).by_role
        if role in self.given:
            x = recurrent.begun(x - graph.type(node.inputs[1 + self.given.index(role)]).zero_point, *form[f"given_{role[-1]}"])
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


_ACTIVATIONS = {"LSTM": [("sigmoid", "tanh", "tanh")], "GRU": [("sigmoid", "tanh")], "RNN": [("tanh",), ("relu",)]}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def _is_relu(node: OnnxNode, directions: int) -> bool:
    functions = [name.decode(errors="replace") for name in node.attribute("activations", [])]
    for known in _ACTIVATIONS[node.type] if functions else ():
        if tuple(name.lower() for name in functions) == known * directions:
            return known == ("relu",)
    if functions:
        raise Unsupported(f"activations {', '.join(functions)} are not supported", "use sigmoid and tanh in their usual places")
    return False


class _Sequence:
    """Input of a node as (steps, sequences, size), and its parameters."""

    def __init__(self, a: Arrays):
        self.a, node = a, a.node
        self.batch_first = bool(node.attribute("layout", 0))
        direction = node.attribute("direction", "forward")
        if direction not in _DIRECTIONS:
            raise Unsupported(f"direction={direction} is not supported")
        self.reversed = _DIRECTIONS[direction]
        self.relu, self.clip = _is_relu(node, len(self.reversed)), float(node.attribute("clip", 0))
        if not 0 <= self.clip < np.inf:
            raise Unsupported(f"clip={self.clip} is not supported", "export the model without clip")
        x = a.tensor(a.value(0))
        if len(x.dims) != 3:
            raise Unsupported(f"its input has rank {len(x.dims)}, not 3")
        if self.batch_first:
            x = a.transpose(x, (1, 0, 2))
        else:
            a.builder.guard_batch(node, 0, 0, "iterates over")
        self.steps, self.sequences, self.size = x.dims
        if min(x.dims) < 1:
            raise Unsupported("its sequence is empty")
        self.x = x
        self.weights, self.recurrent = node.constant(1, "weights"), node.constant(2, "recurrent weights")
        self.hidden = max(self.recurrent.shape[2:], default=0)
        rows = (len(self.reversed), GATES[node.type] * self.hidden)
        shapes = [list(weights.shape) for weights in (self.weights, self.recurrent)]
        if shapes != [[*rows, self.size], [*rows, self.hidden]]:
            raise Unsupported(f"its weights of {shapes[0]} and {shapes[1]} do not fit its input of {self.size}")
        if int(node.attribute("hidden_size", self.hidden)) != self.hidden:
            raise Unsupported(f"its hidden_size {node.attribute('hidden_size')} is not that of its weights, {self.hidden}")
        self.biases = self._optional(3, "biases", (rows[0], 2, rows[1]))
        lengths = node.optional_constant(4, "sequence lengths")
        if lengths is not None and np.any(lengths != self.steps):
            reason = f"its sequence length {int(lengths.flat[0])} is not that of its input, {self.steps}"
            raise Unsupported(reason, "cut the input to the length of the sequence")
        self.given: dict[str, Value] = {}
        self.initial = {"initial_h": self._initial_states(5, "initial_h")}
        none, is_lstm = np.zeros((rows[0], self.sequences, self.hidden), np.float32), node.type == "LSTM"
        self.initial["initial_c"] = self._initial_states(6, "initial_c") if is_lstm else none
        self.peepholes = self._optional(7, "peephole weights", (rows[0], 3 * self.hidden)) if is_lstm else none

    def _optional(self, index: int, what: str, shape: tuple[int, ...]) -> np.ndarray:
        values = self.a.node.optional_constant(index, what)
        if values is not None and values.size != np.prod(shape):
            raise Unsupported(f"its {what} of {list(values.shape)} do not fit its weights")
        return np.zeros(shape, np.float32) if values is None else values.reshape(shape)

    def _initial_states(self, index: int, role: str) -> np.ndarray:
        """Return constant initial states (directions, sequences, hidden); zeros if they are an input, recorded in `given`."""
        shape = (len(self.reversed), self.sequences, self.hidden)
        stored = (shape[1], shape[0], shape[2]) if self.batch_first else shape
        if not self.a.node.has(index) or self.a.node.is_constant(index):
            values = self._optional(index, "initial states", stored)
            return values.swapaxes(0, 1) if self.batch_first else values
        value = self.a.tensor(self.a.value(index))
        if value.size != np.prod(shape) or value.kind:
            raise Unsupported(f"its initial states of {list(value.dims)} do not fit its weights")
        value = self.a.reshape(value, stored)
        self.given[role] = self.a.transpose(value, (1, 0, 2)) if self.batch_first else value
        return np.zeros(shape, np.float32)

    def layer(self, index: int, part: str = "") -> Value:
        """Add the layer of direction `index`; return (steps, sequences, hidden), or (sequences, hidden) of a part."""
        a, node = self.a, self.a.node
        linear = bool(node.attribute("linear_before_reset", 0)) and node.type == "GRU"
        inputs = {role: a.tensor(a.select(value, {0: [index]})) for role, value in self.given.items()}
        sizes = {"steps": self.steps, "size": self.size, "hidden": self.hidden, "sequences": self.sequences}
        limits = {"gate_limit": self.clip, "cell_limit": float(node.metadata.get(CELL_LIMIT, 0))}
        flags: dict[str, Any] = {"linear_before_reset": linear, "relu": self.relu, "reverse": self.reversed[index]}
        flags["coupled"] = bool(node.attribute("input_forget", 0))
        flags["peepholes"] = bool(self.peepholes[index].any())
        op = ArrayRecurrent(node.type, part=part, given=tuple(inputs), **sizes, **limits, **flags)
        first, second = self.biases[index]
        total = first + second
        if linear:
            total[2 * self.hidden :] = first[2 * self.hidden :]
        params = {
            "input_weights": self.weights[index],
            "recurrent_weights": self.recurrent[index],
            "gate_bias": total,
            "recurrent_bias": second[2 * self.hidden : 3 * self.hidden] if linear else np.zeros(self.hidden, np.float32),
            **{role: values[index] for role, values in self.initial.items() if role not in inputs},
        }
        if op.peepholes:
            params["peepholes"] = self.peepholes[index].reshape(-1)
        builder = a.builder
        name = builder.fresh(f"{node.name}_{part or ('reverse' if self.reversed[index] else 'states')}")
        checked = {role: builder.parameter(node.name, role, values) for role, values in params.items()}
        tensors = [value.tensor for value in (self.x, *inputs.values()) if value.tensor is not None]
        builder.graph.add(Node(name, op, tensors, [name], checked, location=builder.model.place(node.name)))
        last = (self.sequences, self.hidden)
        return Value(last if part else (self.steps, *last), "", name)


@onnx("LSTM", "GRU", "RNN")
def _recurrent(a: Arrays) -> None:
    sequence = _Sequence(a)
    count, hidden, steps, side = len(sequence.reversed), sequence.hidden, sequence.steps, sequence.sequences
    states, result = [sequence.layer(position) for position in range(count)], {}
    if a.is_output_used(1):
        ends = (0 if back else steps - 1 for back in sequence.reversed)
        result[1] = [a.select(value, {0: [end]}) for value, end in zip(states, ends, strict=True)]
    if a.is_output_used(2):
        result[2] = [a.reshape(sequence.layer(position, "cell"), (1, side, hidden)) for position in range(count)]
    for index, values in result.items():
        output = concatenate(a, values, 0)
        result[index] = a.transpose(output, (1, 0, 2)) if sequence.batch_first else output
    if a.node.outputs[0]:
        rows = [replace(value, dims=(1, steps, side, hidden)) for value in states]
        result[0] = a.transpose(concatenate(a, rows, 0), (2, 1, 0, 3) if sequence.batch_first else (1, 0, 2, 3))
    for index, value in result.items():
        a.bind(value, index)
