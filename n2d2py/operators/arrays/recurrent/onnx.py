"""LSTM, GRU and RNN of ONNX: a layer for each direction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from n2d2py.contracts.onnx.nodes import CELL_LIMIT, OnnxNode, Unsupported
from n2d2py.graph import Node
from n2d2py.operators.arrays.recurrent.op import GATES, ArrayRecurrent
from n2d2py.operators.arrays.values import Arrays, Value, onnx
from n2d2py.operators.concat import concatenate

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
        self.weights, self.recurrent = self._weights(1, "weights"), self._weights(2, "recurrent weights")
        self.hidden = self.recurrent.shape[2]
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

    def _weights(self, index: int, what: str) -> np.ndarray:
        values = self.a.node.constant(index, what)
        if values.ndim != 3:
            raise Unsupported(f"its {what} have rank {values.ndim}, not 3")
        return values

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
