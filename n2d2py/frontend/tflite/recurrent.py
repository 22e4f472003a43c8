"""TFLite's LSTM and RNN as ONNX operators: over sequences from zero states; of one step with states kept between calls."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from n2d2py.contracts.onnx.nodes import CELL_LIMIT
from n2d2py.frontend.tflite.cells import RECURRENT_LOOP
from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.signatures import UNREAD, Input, Rank
from n2d2py.frontend.tflite.translation import Translation, lowers
from n2d2py.graph.shapes import Shape

_ACTIVATIONS = {0: "", 1: "Relu", 4: "Tanh"}
"""ONNX's names of fused activations."""
_CELL_BITS = 16
_Cell = Callable[..., tuple[str, int]]
"""Function that adds a layer, and returns its states and their size."""


def _has(op: TfliteOperator, index: int) -> bool:
    return len(op.inputs) > index and op.inputs[index] >= 0


def _concat_constants(
    t: Translation, op: TfliteOperator, places: tuple[int, ...], axes: int, signs: tuple[int, ...] = (1,) * 4
) -> np.ndarray:
    """Return the constants of one shape and rank at some inputs, concatenated as (1, rows, ...)."""
    parts = [sign * t.tensor(op.inputs[index]).real_values() for index, sign in zip(places, signs, strict=False)]
    if len({part.shape for part in parts}) > 1 or parts[0].ndim != axes:
        raise RefusedOperator(f"its constants have not one shape of {axes} axes: {[part.shape for part in parts]}")
    return np.concatenate(parts)[None]


def _require_zero_state(t: Translation, op: TfliteOperator, at: int) -> None:
    index = op.inputs[at]
    tensor = t.file.tensors[index]  # a variable, which is a state between calls to other runtimes
    result = any(index in other.outputs for other in t.file.operators)
    if result or index in t.file.inputs or (tensor.values is not None and tensor.values.any()):
        raise RefusedOperator("an initial state other than 0 is not supported")


def _recurrent_layer(
    t: Translation,
    op: TfliteOperator,
    kind: str,
    constants: list[np.ndarray],
    variables: tuple[int, ...],
    major: bool,
    **attributes,
) -> tuple[str, int]:
    """Add a recurrent layer; return its states (batch, steps, size), or (steps, batch, size) with `major`, and their size.

    `constants`: weights, recurrent weights, biases, and peepholes if there are any, as (1, rows, ...); `variables`: of the hidden
    and the cell state.
    """
    weights, recurrent, biases, *peepholes = constants
    both = np.concatenate([biases, np.zeros_like(biases)], axis=1)
    inputs = [t.real(op.inputs[0]), *(t.constant(f"{t.name}_constant", each) for each in (weights, recurrent, both))]
    third = [t.constant(f"{t.name}_peepholes", each) for each in peepholes]
    size = recurrent.shape[2]
    attributes |= {"hidden_size": size, "layout": int(not major)}
    if t.tensor(op.inputs[0]).shape[:2] == (1, 1) and attributes.get("direction") != "reverse":  # one step a call
        return _recurrent_step(t, kind, (inputs, third), variables, attributes), size
    states = t.emit(kind, [*inputs, *(["", "", "", *third] if third else [])], t.fresh(f"{t.name}_states"), **attributes)
    axes = t.constant(f"{t.name}_axes", np.array([1 if major else 2]))
    return t.emit("Squeeze", [states, axes], t.fresh(f"{t.name}_sequence")), size


def _recurrent_step(t: Translation, kind: str, ends: Sequence[list[str]], variables: Sequence[int], attributes: dict) -> str:
    """Add a recurrent layer of one step, whose variables keep their values between calls; return its state (1, 1, size).

    `ends`: the inputs before and after the initial states.
    """
    shape, hidden = (1, 1, attributes["hidden_size"]), t.fresh(f"{kind}_hidden")

    def step(old_states: list[str]) -> str:
        initial = [t.reshape(old, shape[1:], shape) for old in old_states]
        cell = t.fresh(f"{kind}_cell") if len(initial) == 2 else ""
        t.emit_many(kind, [*ends[0], "", *initial, *ends[1]], ["", hidden, *([cell] if cell else [])], **attributes)
        return cell

    def stepped(old: str) -> str:
        if len(variables) == 2:
            t.state(variables[1], lambda cell: t.reshape(step([old, cell]), shape, shape[1:]))
        else:
            step([old])
        return t.reshape(hidden, shape, shape[1:])

    return t.reshape(t.state(variables[0], stepped), shape[1:], shape)


def _lstm(t: Translation, op: TfliteOperator, major: bool, direction: str = "forward") -> tuple[str, int]:
    """Add an LSTM. Inputs: x; weights of i, f, c, o; recurrent ones; peepholes; biases; projection, bias; states; norms."""
    if _has(op, 16) or _has(op, 17):
        raise RefusedOperator("a projection of the states is not supported")
    if any(_has(op, index) for index in range(20, 24)):
        raise RefusedOperator("layer normalization of the gates is not supported")
    if _ACTIVATIONS.get(op.options.integer(0, "<b", 4)) != "Tanh":
        raise RefusedOperator(f"activation number {op.options.integer(0, '<b')} is not supported, only tanh")
    for index in (18, 19):
        _require_zero_state(t, op, index)
    coupled = not _has(op, 1)
    # ONNX derives f from i where gates are coupled, TFLite i from f: i = 1 - sigmoid(s) = sigmoid(-s)
    shift, signs = (1, (-1, 1, -1, 1)) if coupled else (0, (1, 1, 1, 1))
    first = [(1, 2), (5, 2), (12, 1)]  # weights, recurrent weights, biases: input of gate i, and rank
    constants = [_concat_constants(t, op, (at + shift, at + 3, at + 1, at + 2), axes, signs) for at, axes in first]
    if _has(op, 10):
        constants.append(_concat_constants(t, op, (9 + shift, 11, 10), 1, signs))
    state, clip = t.file.tensors[op.inputs[19]], op.options.real(1)
    if not 0 <= clip < np.inf:
        raise RefusedOperator(f"cell_clip={clip} is not supported")
    cell_limit = (2 ** (_CELL_BITS - 1) - 1) * float(state.scale[0]) if state.is_quantized else 0.0
    if limits := [limit for limit in (clip, cell_limit) if limit]:
        t.notes[CELL_LIMIT] = repr(min(limits))
    attributes = {"direction": direction, "input_forget": int(coupled)}
    return _recurrent_layer(t, op, "LSTM", constants, op.inputs[18:20], major, **attributes)


def _rnn(t: Translation, op: TfliteOperator, major: bool, direction: str = "forward") -> tuple[str, int]:
    """Add an RNN. Inputs: x; weights; recurrent weights; biases; states."""
    _require_zero_state(t, op, 4)
    constants = [_concat_constants(t, op, (index,), axes) for index, axes in ((1, 2), (2, 2), (3, 1))]
    attributes = {"direction": direction, "activations": [_activation(op, 1)]}
    return _recurrent_layer(t, op, "RNN", constants, op.inputs[4:5], major, **attributes)


@lowers(RECURRENT_LOOP)
def _loop(t: Translation, op: TfliteOperator) -> None:
    """Add all steps of a loop: inputs x (steps, batch, size) and the initial states, results all h and the last c."""
    cell, output, rest = op.cell, op.outputs[0], op.outputs[1:]
    assert cell is not None
    name, recurrent = t.tensor(output).name, np.zeros_like(cell.biases)
    attributes: dict[str, object] = {"hidden_size": cell.biases.shape[1]}
    if cell.recurrent_bias is not None:
        recurrent[-1] = cell.recurrent_bias
        attributes["linear_before_reset"] = 1
    if cell.kind == "RNN":
        attributes["activations"] = [cell.activation]
    constants = [np.concatenate(list(each))[None] for each in (cell.weights, cell.recurrent, [*cell.biases, *recurrent])]
    inputs = [t.real(op.inputs[0]), *(t.constant(f"{name}_constant", each) for each in constants), ""]
    for index in op.inputs[1:]:
        first = t.tensor(index)
        zeros = first.values is not None and not first.values.any()
        inputs.append("" if zeros else t.reshape(t.real(index), first.shape, (1, *first.shape)))
    wanted = [index for index in rest if any(index in other.inputs for other in t.file.operators) or index in t.file.outputs]
    result = [t.fresh(f"{name}_states"), *(each for _ in wanted for each in ("", t.fresh(f"{name}_cells")))]
    t.emit_many(cell.kind, inputs, result, **attributes)
    for index, source, axis in zip((output, *wanted), result[::2], (1, 0), strict=False):
        axes = t.constant(f"{name}_axes", np.array([axis]))
        t.result(index, lambda to, source=source, axes=axes: t.emit("Squeeze", [source, axes], to))


def _activation(op: TfliteOperator, slot: int) -> str:
    function = _ACTIVATIONS.get(op.options.integer(slot, "<b"), "")
    if not function:
        raise RefusedOperator(f"activation number {op.options.integer(slot, '<b')} is not supported, only tanh and ReLU")
    return function


def _sequence(cell: _Cell, time_major: tuple[int, bool], t: Translation, op: TfliteOperator, *_) -> None:
    """Translate a layer over a sequence; `time_major`: slot and default of this option."""
    _declare_states(t, op, op.outputs[0], [cell(t, op, op.options.flag(*time_major))])


_Parts = tuple[Sequence[int], Sequence[int], int, int]


def _bidirectional(
    cell: _Cell, parts: _Parts, time_major: tuple[int, bool], merge: int, t: Translation, op: TfliteOperator, *_
) -> None:
    """Translate a bidirectional layer over a sequence.

    `parts`: for each direction, the inputs after x, the input that replaces x if present, and the first unsupported input;
    `merge`: the slot of the option that concatenates both results.
    """
    forward, backward, auxiliary, unsupported = parts
    merged, count = op.options.flag(merge), len(op.inputs)
    if len(op.outputs) != 2 - merged:
        raise RefusedOperator(f"it has {len(op.outputs)} outputs")
    if any(_has(op, index) for index in range(unsupported, count)):
        raise RefusedOperator("its auxiliary input is not supported")
    outputs = []
    for places, x, direction in ((forward, 0, "forward"), (backward, auxiliary if _has(op, auxiliary) else 0, "reverse")):
        inputs = tuple(op.inputs[index] for index in (x, *places))
        outputs.append(cell(t, replace(op, inputs=inputs), op.options.flag(*time_major), direction))
    for output, states in zip(op.outputs, [outputs] if merged else [[each] for each in outputs], strict=True):
        _declare_states(t, op, output, states)


def _declare_states(t: Translation, op: TfliteOperator, output: int, states: list[tuple[str, int]]) -> None:
    names, sizes = zip(*states, strict=True)
    t.expect_shape(output, (*t.tensor(op.inputs[0]).shape[:2], sum(sizes)))
    kind, attributes = ("Identity", {}) if len(names) == 1 else ("Concat", {"axis": 2})
    t.result(output, lambda name: t.emit(kind, names, name, **attributes))


_RNN = (Rank(2), Rank(2), Rank(1), UNREAD)
"""Weights of the inputs and of the state, biases, and the state of a cell."""
_OPTIONAL = (Input(optional=True),)


@lowers("RNN", inputs=(Rank(2), *_RNN))
def _rnn_step(t: Translation, op: TfliteOperator, *_) -> None:
    """Add one step of an RNN. Inputs: x (batch, size); weights; recurrent weights; biases; states, kept between calls."""
    x, weights, recurrent, bias, state = op.inputs

    def stepped(old: str) -> str:
        matrices = [t.parameter(t.tensor(index)) for index in (weights, recurrent, bias)]
        read = t.emit("Gemm", [t.real(x), matrices[0], matrices[2]], t.fresh(f"{t.name}_read"), transB=1)
        recurrent_sum = t.emit("Gemm", [old, matrices[1]], t.fresh(f"{t.name}_kept"), transB=1)
        sums = t.emit("Add", [read, recurrent_sum], t.fresh(f"{t.name}_sums"))
        return t.emit(_activation(op, 0), [sums], t.fresh(f"{t.name}_state"))

    result = t.state(state, stepped)
    t.result(op.outputs[0], lambda output: t.emit("Identity", [result], output))


@lowers("SVDF", inputs=(Rank(2), Rank(2), Rank(2), Rank(1, optional=True), UNREAD))
def _svdf(t: Translation, op: TfliteOperator, shape: Shape, form: Shape, memory: Shape, *_) -> None:
    """Add an SVDF layer. Inputs: x (1, inputs); weights (F, inputs), (F, steps); biases (F / rank); last steps.

    Each call appends the features of x to the state; each output sums `rank` features over the steps.
    """
    source, features, steps, bias, state = op.inputs
    rank, (count, length) = op.options.integer(0), memory
    if rank < 1 or count % rank or shape[0] != 1 or form != (count, shape[1]):
        raise RefusedOperator(f"its {count} features of rank {rank} do not match its input or its weights")
    if t.file.tensors[state].shape != (1, count * length):
        raise RefusedOperator(f"its state is not {count} x {length}")
    units = count // rank
    t.expect_shape(op.outputs[0], (1, units))

    def shifted(old: str) -> str:
        weights = t.parameter(t.tensor(features))
        result = t.emit("Gemm", [t.real(source), weights], t.fresh(f"{t.name}_features"), transB=1)
        if t.file.tensors[state].is_quantized:
            result = t.in_grid(state, result)
        rows = t.reshape(old, (1, count * length), (1, count, length))
        bounds = [
            t.constant(f"{t.name}_{what}", np.array([value])) for what, value in (("from", 1), ("to", length), ("axis", 2))
        ]
        old_steps = [t.emit("Slice", [rows, *bounds], t.fresh(f"{t.name}_kept"))] if length > 1 else []
        result = t.reshape(result, (1, count), (1, count, 1))
        steps_now = t.emit("Concat", [*old_steps, result], t.fresh(f"{t.name}_steps"), axis=2)
        return t.reshape(steps_now, (1, count, length), (1, count * length))

    def summed(output: str) -> None:
        form = t.constant(f"{t.name}_shape", np.array([1, count, 1, length]))
        inputs_now = [t.emit("Reshape", [last, form], t.fresh(f"{t.name}_rows"))]
        inputs_now.append(t.parameter(t.tensor(steps), lambda values: values.reshape(units, rank, 1, length), 0))
        if _has(op, 3):
            inputs_now.append(t.parameter(t.tensor(bias)))
        result = t.emit("Conv", inputs_now, t.fresh(f"{t.name}_sums"), group=units, kernel_shape=[1, length])
        t.emit("Reshape", [result, t.constant(f"{t.name}_shape", np.array([1, units]))], output)

    last = t.state(state, shifted)
    t.result(op.outputs[0], summed, op.fused_limits(1))


_BOTH_LSTM = ((*range(1, 18), 35, 36), (*range(18, 35), 37, 38), 39, 40)
lowers("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs=(Rank(3), *17 * _OPTIONAL, UNREAD, UNREAD, *4 * _OPTIONAL))(
    partial(_sequence, _lstm, (3, False))
)
lowers("BIDIRECTIONAL_SEQUENCE_LSTM", inputs=(Rank(3), *34 * _OPTIONAL, *4 * (UNREAD,), *9 * _OPTIONAL), results=None)(
    partial(_bidirectional, _lstm, _BOTH_LSTM, (4, True), 3)
)
lowers("UNIDIRECTIONAL_SEQUENCE_RNN", inputs=(Rank(3), *_RNN))(partial(_sequence, _rnn, (0, False)))
lowers("BIDIRECTIONAL_SEQUENCE_RNN", inputs=(Rank(3), *2 * _RNN, *3 * _OPTIONAL), results=None)(
    partial(_bidirectional, _rnn, (range(1, 5), range(5, 9), 0, 9), (0, False), 2)
)
