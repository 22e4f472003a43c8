"""TFLite's LSTM and RNN as ONNX operators: over sequences from zero states; of one step with states kept between calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from n2d2py.contracts.onnx.nodes import CELL_LIMIT
from n2d2py.frontend.tflite.cells import RECURRENT_LOOP
from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.lowering import fused_limits
from n2d2py.frontend.tflite.translation import Translation, lowers

_ACTIVATIONS = {0: "", 1: "Relu", 4: "Tanh"}
"""ONNX's names of fused activations."""
_CELL_BITS = 16


def _has(operator: TfliteOperator, index: int) -> bool:
    return len(operator.inputs) > index and operator.inputs[index] >= 0


def _concat_constants(
    t: Translation, operator: TfliteOperator, places: tuple[int, ...], axes: int, signs: tuple[int, ...] = (1,) * 4
) -> np.ndarray:
    """Return the constants of one shape and rank at some inputs, concatenated as (1, rows, ...)."""
    parts = [sign * t.real_values(operator.inputs[index]) for index, sign in zip(places, signs, strict=False)]
    shapes = {part.shape for part in parts}
    if len(shapes) > 1 or parts[0].ndim != axes:
        raise RefusedOperator(f"the shapes of its constants do not fit: {', '.join(map(str, sorted(shapes)))}")
    return np.concatenate(parts)[None]


def _require_zero_state(t: Translation, operator: TfliteOperator, at: int) -> None:
    index = operator.inputs[at]
    if index < 0:
        raise RefusedOperator("a required input is missing")
    tensor = t.file.tensors[index]  # a variable, which is a state between calls to other runtimes
    result = any(index in other.outputs for other in t.file.operators)
    if result or index in t.file.inputs or (tensor.values is not None and tensor.values.any()):
        raise RefusedOperator("an initial state other than 0 is not supported")


def _recurrent_layer(
    t: Translation,
    operator: TfliteOperator,
    kind: str,
    constants: list[np.ndarray],
    variables: tuple[int, ...],
    major: bool,
    peepholes: np.ndarray | None = None,
    **attributes: object,
) -> tuple[str, int]:
    """Add a recurrent layer; return its states (batch, steps, size), or (steps, batch, size) with `major`, and their size.

    `constants`: weights, recurrent weights and biases, as (1, rows, ...); `variables`: of the hidden and the cell state.
    """
    weights, recurrent, biases = constants
    x = operator.inputs[0]
    if len(t.tensor(x).shape) != 3:
        raise RefusedOperator(f"its input has rank {len(t.tensor(x).shape)}, not 3")
    name = t.tensor(operator.outputs[0]).name
    both = np.concatenate([biases, np.zeros_like(biases)], axis=1)
    inputs = [t.real(x), *(t.constant(f"{name}_constant", each) for each in (weights, recurrent, both))]
    third = [t.constant(f"{name}_peepholes", peepholes)] if peepholes is not None else []
    size = recurrent.shape[2]
    attributes |= {"hidden_size": size, "layout": int(not major)}
    if t.tensor(x).shape[:2] == (1, 1) and attributes.get("direction") != "reverse":  # one step a call
        return _recurrent_step(t, kind, (inputs, third), variables, size, attributes), size
    states = t.emit(kind, [*inputs, *(["", "", "", *third] if third else [])], t.fresh(f"{name}_states"), **attributes)
    axes = t.constant(f"{name}_axes", np.array([1 if major else 2]))
    return t.emit("Squeeze", [states, axes], t.fresh(f"{name}_sequence")), size


def _recurrent_step(
    t: Translation,
    kind: str,
    inputs: tuple[list[str], list[str]],
    variables: tuple[int, ...],
    size: int,
    attributes: dict[str, object],
) -> str:
    """Add a recurrent layer of one step, whose variables keep their values between calls; return its state (1, 1, size).

    `inputs`: those before the initial states, and those after them.
    """
    first, last = inputs
    shape, hidden = (1, 1, size), t.fresh(f"{kind}_hidden")

    def step(old_states: list[str]) -> str:
        initial = [t.reshape(old, shape[1:], shape) for old in old_states]
        cell = t.fresh(f"{kind}_cell") if len(initial) == 2 else ""
        t.emit_many(kind, [*first, "", *initial, *last], ["", hidden, *([cell] if cell else [])], **attributes)
        return cell

    def stepped(old: str) -> str:
        if len(variables) == 2:
            t.state(variables[1], lambda cell: t.reshape(step([old, cell]), shape, shape[1:]))
        else:
            step([old])
        return t.reshape(hidden, shape, shape[1:])

    return t.reshape(t.state(variables[0], stepped), shape[1:], shape)


def _lstm(t: Translation, operator: TfliteOperator, major: bool, direction: str = "forward") -> tuple[str, int]:
    """Add an LSTM. Inputs: x; weights of i, f, c, o; recurrent ones; peepholes; biases; projection, bias; states; norms."""
    if _has(operator, 16) or _has(operator, 17):
        raise RefusedOperator("a projection of the states is not supported")
    if any(_has(operator, index) for index in range(20, 24)):
        raise RefusedOperator("layer normalization of the gates is not supported")
    if _ACTIVATIONS.get(operator.option(0, "<b", 4)) != "Tanh":
        raise RefusedOperator(f"activation number {operator.option(0, '<b')} is not supported, only tanh")
    for index in (18, 19):
        _require_zero_state(t, operator, index)
    coupled = not _has(operator, 1)
    # ONNX derives f from i where gates are coupled, TFLite i from f: i = 1 - sigmoid(s) = sigmoid(-s)
    shift, signs = (1, (-1, 1, -1, 1)) if coupled else (0, (1, 1, 1, 1))
    constants = [
        _concat_constants(t, operator, (base + shift, base + 3, base + 1, base + 2), axes, signs)
        for base, axes in ((1, 2), (5, 2), (12, 1))
    ]
    peepholes = _concat_constants(t, operator, (9 + shift, 11, 10), 1, signs) if _has(operator, 10) else None
    state, clip = t.file.tensors[operator.inputs[19]], operator.real(1)
    if not 0 <= clip < np.inf:
        raise RefusedOperator(f"cell_clip={clip} is not supported")
    cell_limit = (2 ** (_CELL_BITS - 1) - 1) * float(state.scale[0]) if state.is_quantized else 0.0
    if limits := [limit for limit in (clip, cell_limit) if limit]:
        t.note(CELL_LIMIT, repr(min(limits)))
    attributes = {"direction": direction, "input_forget": int(coupled)}
    return _recurrent_layer(t, operator, "LSTM", constants, operator.inputs[18:20], major, peepholes, **attributes)


def _rnn(t: Translation, operator: TfliteOperator, major: bool, direction: str = "forward") -> tuple[str, int]:
    """Add an RNN. Inputs: x; weights; recurrent weights; biases; states."""
    _require_zero_state(t, operator, 4)
    constants = [_concat_constants(t, operator, (index,), axes) for index, axes in ((1, 2), (2, 2), (3, 1))]
    attributes = {"direction": direction, "activations": [_activation(operator, 1)]}
    return _recurrent_layer(t, operator, "RNN", constants, operator.inputs[4:5], major, **attributes)


@lowers(RECURRENT_LOOP)
def _loop(t: Translation, operator: TfliteOperator) -> None:
    """Add all steps of a loop: inputs x (steps, batch, size) and the initial states, results all h and the last c."""
    cell, output, rest = operator.cell, operator.outputs[0], operator.outputs[1:]
    if cell is None:
        raise operator.arity_error()
    name, recurrent = t.tensor(output).name, np.zeros_like(cell.biases)
    attributes: dict[str, object] = {"hidden_size": cell.biases.shape[1]}
    if cell.recurrent_bias is not None:
        recurrent[-1] = cell.recurrent_bias
        attributes["linear_before_reset"] = 1
    if cell.kind == "RNN":
        attributes["activations"] = [cell.activation]
    constants = [np.concatenate(list(each))[None] for each in (cell.weights, cell.recurrent, [*cell.biases, *recurrent])]
    inputs = [t.real(operator.inputs[0]), *(t.constant(f"{name}_constant", each) for each in constants), ""]
    for index in operator.inputs[1:]:
        first = t.tensor(index)
        zeros = first.values is not None and not first.values.any()
        inputs.append("" if zeros else t.reshape(t.real(index), first.shape, (1, *first.shape)))
    wanted = [index for index in rest if any(index in other.inputs for other in t.file.operators) or index in t.file.outputs]
    result = [t.fresh(f"{name}_states"), *(each for _ in wanted for each in ("", t.fresh(f"{name}_cells")))]
    t.emit_many(cell.kind, inputs, result, **attributes)
    for index, source, axis in zip((output, *wanted), result[::2], (1, 0), strict=False):
        axes = t.constant(f"{name}_axes", np.array([axis]))
        t.result(index, lambda to, source=source, axes=axes: t.emit("Squeeze", [source, axes], to))


def _activation(operator: TfliteOperator, slot: int) -> str:
    function = _ACTIVATIONS.get(operator.option(slot, "<b"), "")
    if not function:
        raise RefusedOperator(f"activation number {operator.option(slot, '<b')} is not supported, only tanh and ReLU")
    return function


def _sequence(
    cell: Callable[..., tuple[str, int]], counts: range, time_major: tuple[int, bool], t: Translation, operator: TfliteOperator
) -> None:
    """Translate a layer over a sequence; `counts`: numbers of inputs, `time_major`: slot and default of this option."""
    if len(operator.inputs) not in counts or len(operator.outputs) != 1:
        raise operator.arity_error()
    _declare_states(t, operator, operator.output, [cell(t, operator, operator.flag(*time_major))])


def _bidirectional(
    cell: Callable[..., tuple[str, int]],
    parts: tuple[Sequence[int], Sequence[int], int, int],
    time_major: tuple[int, bool],
    merge: int,
    t: Translation,
    operator: TfliteOperator,
) -> None:
    """Translate a bidirectional layer over a sequence.

    `parts`: for each direction, the inputs after x, the input that replaces x if present, and the first unsupported input;
    `merge`: the slot of the option that concatenates both results.
    """
    forward, backward, auxiliary, unsupported = parts
    merged, count = operator.flag(merge), len(operator.inputs)
    if count <= max(backward) or len(operator.outputs) != 2 - merged:
        raise operator.arity_error()
    if any(_has(operator, index) for index in range(unsupported, count)):
        raise RefusedOperator("its auxiliary input is not supported")
    outputs = []
    for places, x, direction in ((forward, 0, "forward"), (backward, auxiliary if _has(operator, auxiliary) else 0, "reverse")):
        inputs = tuple(operator.inputs[index] for index in (x, *places))
        outputs.append(cell(t, replace(operator, inputs=inputs), operator.flag(*time_major), direction))
    for output, states in zip(operator.outputs, [outputs] if merged else [[each] for each in outputs], strict=True):
        _declare_states(t, operator, output, states)


def _declare_states(t: Translation, operator: TfliteOperator, output: int, states: list[tuple[str, int]]) -> None:
    """Declare a result that concatenates states, each with its size."""
    names, sizes = zip(*states, strict=True)
    t.expect_shape(output, (*t.tensor(operator.inputs[0]).shape[:2], sum(sizes)))
    kind, attributes = ("Identity", {}) if len(names) == 1 else ("Concat", {"axis": 2})
    t.result(output, lambda name: t.emit(kind, names, name, **attributes))


@lowers("RNN")
def _rnn_step(t: Translation, operator: TfliteOperator) -> None:
    """Add one step of an RNN. Inputs: x (batch, size); weights; recurrent weights; biases; states, kept between calls."""
    if len(operator.inputs) != 5 or len(operator.outputs) != 1:
        raise operator.arity_error()
    x, weights, recurrent, bias, state = operator.inputs
    name = t.tensor(operator.output).name

    def stepped(old: str) -> str:
        matrices = [t.parameter(t.tensor(index), lambda values: values, 0) for index in (weights, recurrent, bias)]
        read = t.emit("Gemm", [t.real(x), matrices[0], matrices[2]], t.fresh(f"{name}_read"), transB=1)
        recurrent_sum = t.emit("Gemm", [old, matrices[1]], t.fresh(f"{name}_kept"), transB=1)
        sums = t.emit("Add", [read, recurrent_sum], t.fresh(f"{name}_sums"))
        return t.emit(_activation(operator, 0), [sums], t.fresh(f"{name}_state"))

    result = t.state(state, stepped)
    t.result(operator.output, lambda output: t.emit("Identity", [result], output))


@lowers("SVDF")
def _svdf(t: Translation, operator: TfliteOperator) -> None:
    """Add an SVDF layer. Inputs: x (1, inputs); feature weights (F, inputs), time weights (F, steps); biases (F / rank); last
    steps.

    Each call appends the features of x to the state; each output sums `rank` features over the steps.
    """
    if len(operator.inputs) != 5 or len(operator.outputs) != 1:
        raise operator.arity_error()
    source, features, steps, bias, state = operator.inputs
    rank, (count, length), shape = operator.option(0), t.tensor(steps).shape, t.tensor(source).shape
    if rank < 1 or count % rank or shape[0] != 1 or len(shape) != 2 or t.tensor(features).shape != (count, shape[1]):
        raise RefusedOperator(f"its {count} features of rank {rank} do not match its input or its weights")
    if t.file.tensors[state].shape != (1, count * length):
        raise RefusedOperator(f"its state is not {count} x {length}")
    units = count // rank
    t.expect_shape(operator.output, (1, units))
    name = t.tensor(operator.output).name

    def shifted(old: str) -> str:
        weights = t.parameter(t.tensor(features), lambda values: values, 0)
        result = t.emit("Gemm", [t.real(source), weights], t.fresh(f"{name}_features"), transB=1)
        if t.file.tensors[state].is_quantized:
            result = t.in_grid(state, result)
        rows = t.reshape(old, (1, count * length), (1, count, length))
        bounds = [t.constant(f"{name}_{what}", np.array([value])) for what, value in (("from", 1), ("to", length), ("axis", 2))]
        old_steps = [t.emit("Slice", [rows, *bounds], t.fresh(f"{name}_kept"))] if length > 1 else []
        steps_now = t.emit(
            "Concat", [*old_steps, t.reshape(result, (1, count), (1, count, 1))], t.fresh(f"{name}_steps"), axis=2
        )
        return t.reshape(steps_now, (1, count, length), (1, count * length))

    def summed(output: str) -> None:
        inputs_now = [
            t.emit("Reshape", [last, t.constant(f"{name}_shape", np.array([1, count, 1, length]))], t.fresh(f"{name}_rows"))
        ]
        inputs_now.append(t.parameter(t.tensor(steps), lambda values: values.reshape(units, rank, 1, length), 0))
        if _has(operator, 3):
            inputs_now.append(t.parameter(t.tensor(bias), lambda values: values, 0))
        result = t.emit("Conv", inputs_now, t.fresh(f"{name}_sums"), group=units, kernel_shape=[1, length])
        t.emit("Reshape", [result, t.constant(f"{name}_shape", np.array([1, units]))], output)

    last = t.state(state, shifted)
    t.result(operator.output, summed, fused_limits(operator, 1))


_BOTH_LSTM = ((*range(1, 18), 35, 36), (*range(18, 35), 37, 38), 39, 40)
lowers("UNIDIRECTIONAL_SEQUENCE_LSTM")(partial(_sequence, _lstm, range(20, 25), (3, False)))
lowers("BIDIRECTIONAL_SEQUENCE_LSTM")(partial(_bidirectional, _lstm, _BOTH_LSTM, (4, True), 3))
lowers("UNIDIRECTIONAL_SEQUENCE_RNN")(partial(_sequence, _rnn, range(5, 6), (0, False)))
lowers("BIDIRECTIONAL_SEQUENCE_RNN")(partial(_bidirectional, _rnn, (range(1, 5), range(5, 9), 0, 9), (0, False), 2))
