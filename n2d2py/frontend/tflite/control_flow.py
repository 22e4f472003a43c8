"""Inlining of WHILE, IF and CALL of a .tflite file with constant conditions.

Keras writes an LSTM or GRU as a WHILE over its steps. Values that depend only on constants and shapes are folded here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import prod

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.frontend.tflite.cells import RECURRENT_LOOP, recognize_cell
from n2d2py.frontend.tflite.file import CALLS, RefusedOperator, TfliteFile, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.flatbuffer import DamagedFile
from n2d2py.frontend.tflite.known_values import compute_values
from n2d2py.naming import FreshNames

_MAX_CALLS = 4096
"""Largest number of subgraph calls; the operators of each become layers of the network."""
_MOST_DEPTH = 16


def inline_graphs(main: TfliteFile) -> TfliteFile:
    """Return the main graph of a file without WHILE, IF and CALL.

    Raises:
        DamagedFile: a subgraph that does not exist, or has another number of tensors.
        N2D2Error: E310 a condition depends on the inputs of the network, or a loop does not end.
    """
    flat = _FlatGraph(main)
    places = {index: index for index in range(-1, len(main.tensors))}
    for operator in main.operators:
        try:
            flat.add(operator, places, 0)
        except RefusedOperator as reason:
            what = f"{operator.code} cannot be imported: {reason}"
            remedy = "convert the model with a fixed number of steps and without conditions"
            raise N2D2Error("E310", what, where=main.place(operator), remedy=remedy) from None
    return flat.file(main, tuple(places[index] for index in main.outputs))


class _FlatGraph:
    """Operators and tensors of the main graph and of every subgraph call, in one list each."""

    def __init__(self, main: TfliteFile):
        self._graphs, self._calls = main.graphs, 0
        self._tensors = list(main.tensors)
        self._fresh = FreshNames(tensor.name for tensor in main.tensors)
        self._operators: list[TfliteOperator] = []
        self._constants: dict[tuple[int, int], int] = {}
        self._parts: dict[int, tuple[TfliteOperator, int, list[int]]] = {}
        """By tensor: its CONCATENATION, the axis, the parts."""

    def add(self, operator: TfliteOperator, places: dict[int, int], depth: int) -> None:
        """Add an operator whose tensors are at `places`; it may be inlined, folded or moved instead."""
        inputs = tuple(places[index] for index in operator.inputs)
        if operator.code in CALLS and not operator.custom:
            results = self._run(operator, inputs, depth)
            if len(results) != len(operator.outputs):
                raise DamagedFile(f"{operator.code} has {len(operator.outputs)} results, its graph {len(results)}")
            places.update(zip(operator.outputs, results, strict=True))
            return
        if depth and operator.code == "CAST" and len(inputs) == len(operator.outputs) == 1:
            (output,) = operator.outputs
            if self._tensors[inputs[0]].dtype == self._tensors[places[output]].dtype:
                places[output] = inputs[0]
                return
        operator = replace(operator, inputs=inputs, outputs=tuple(places[index] for index in operator.outputs))
        values = self._fold(operator)
        if values is not None:
            self._tensors[operator.outputs[0]] = replace(
                self._tensors[operator.outputs[0]], values=values, shape=values.shape, is_open=False
            )
        elif operator.code == "CONCATENATION":
            self._merge_concat(operator)
        elif not (operator.code == "SLICE" and self._replace_slice(operator)):
            self._size_moved(operator)
            self._append(operator)

    def file(self, main: TfliteFile, outputs: tuple[int, ...]) -> TfliteFile:
        """Return the main graph; outputs keep their names."""
        for index, declared in zip(outputs, main.outputs, strict=True):
            if index != declared and index >= len(main.tensors):
                name = main.tensors[declared].name
                self._tensors[declared] = replace(self._tensors[declared], name=self._fresh(f"{name}_loop"))
                self._tensors[index] = replace(self._tensors[index], name=name)
        return replace(main, tensors=tuple(self._tensors), operators=tuple(self._operators), outputs=outputs)

    def _append(self, operator: TfliteOperator) -> None:
        self._operators.append(replace(operator, index=len(self._operators)))

    def _tensor(self, tensor: TfliteTensor, name: str) -> int:
        self._tensors.append(replace(tensor, name=self._fresh(name)))
        return len(self._tensors) - 1

    # ---- calls ----------------------------------------------------------------------------------
    def _run(self, operator: TfliteOperator, inputs: tuple[int, ...], depth: int) -> tuple[int, ...]:
        if operator.options is None:
            raise DamagedFile(f"{operator.code} names no graph")
        first, last = (operator.options.integer(slot) for slot in (CALLS[operator.code][0], CALLS[operator.code][-1]))
        if operator.code == "CALL":
            return self._call_graph(first, inputs, depth)
        if operator.code == "IF":
            return self._call_graph(first if self._truth(inputs[0]) else last, inputs[1:], depth)
        history = [inputs]
        while self._truth(*self._call_graph(first, history[-1], depth)):
            history.append(self._call_graph(last, history[-1], depth))
        return self._replace_by_layer(self._graphs[last], history) if last in self._graphs else inputs

    def _replace_by_layer(self, body: TfliteFile, history: list[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the variables of a loop after its last step; `history` has them before each step too.

        If the steps are those of an LSTM, GRU or RNN over a sequence, one operator computes its states.
        """
        results, steps = list(history[-1]), len(history) - 1
        cell = recognize_cell(body) if steps > 1 else None
        if cell is None:
            return history[-1]
        x, first = history[0][cell.x], self._tensors[history[0][cell.h]]
        counts = [self._tensors[each[cell.counter]].values for each in history[:-1]]
        known = all(count is not None and count == step for step, count in enumerate(counts))
        if not known or any(each[cell.x] != x for each in history) or self._tensors[x].shape[0] != steps:
            return history[-1]
        state = replace(first, values=None)
        sequence = self._tensor(replace(state, shape=(steps, *first.shape)), f"{first.name}_sequence")
        last = self._tensor(state, f"{first.name}_last")
        states = [index for index in (cell.h, cell.c) if index >= 0]
        outputs = [sequence, *(self._tensor(state, f"{self._tensors[results[index]].name}_last") for index in states[1:])]
        inputs = (x, *(history[0][index] for index in states))
        self._append(TfliteOperator(0, RECURRENT_LOOP, inputs, tuple(outputs), None, cell=cell))
        end = replace(state, shape=(), dtype=np.dtype(np.int32), values=np.array(steps - 1, np.int32))
        self._append(TfliteOperator(0, "GATHER", (sequence, self._tensor(end, f"{first.name}_end")), (last,), None))
        for index, output in zip(states, (last, *outputs[1:]), strict=True):
            results[index] = output
        producers = {output: operator for operator in self._operators for output in operator.outputs}
        hidden = [each[cell.h] for each in history[1:]]
        for index, result in enumerate(results):
            _, axis, parts = self._parts.get(result, (None, 0, [result]))
            rows = [producers[part] for part in parts if part in producers and producers[part].code == "RESHAPE"]
            read = [row.inputs[0] for row in rows]
            if axis == 0 and read == hidden and self._tensors[result].shape == (steps, *first.shape):
                results[index] = sequence
            elif len(parts) == 1 and read == hidden[-1:]:
                results[index] = self._tensor(self._tensors[result], self._tensors[result].name)
                self._append(replace(rows[0], inputs=(last, *rows[0].inputs[1:]), outputs=(results[index],)))
        return tuple(results)

    def _truth(self, *indexes: int) -> bool:
        values = self._tensors[indexes[0]].values if indexes else None
        if values is None or values.size != 1:
            raise RefusedOperator("its condition depends on the inputs of the network")
        return bool(values.item())

    def _call_graph(self, index: int, inputs: tuple[int, ...], depth: int) -> tuple[int, ...]:
        """Return the results of a subgraph for tensors."""
        graph = self._graphs.get(index)
        if graph is None or len(graph.inputs) != len(inputs):
            raise DamagedFile(f"graph {index} is called with {len(inputs)} tensors, but is not there or takes others")
        self._calls += 1
        if self._calls > _MAX_CALLS or depth > _MOST_DEPTH:
            raise RefusedOperator(f"it has more than {_MAX_CALLS // 2:,} steps, or does not end")
        call, places = self._calls, dict(zip((-1, *graph.inputs), (-1, *inputs), strict=True))
        for position, tensor in enumerate(graph.tensors):
            if position in places:
                continue
            if tensor.values is None:
                places[position] = self._tensor(tensor, f"{tensor.name}_{call}")
                continue
            if (index, position) not in self._constants:
                self._constants[index, position] = self._tensor(tensor, tensor.name)
            places[position] = self._constants[index, position]
        for operator in graph.operators:
            self.add(operator, places, depth + 1)
        return tuple(places[position] for position in graph.outputs)

    # ---- constant folding -----------------------------------------------------------------------
    def _fold(self, operator: TfliteOperator) -> np.ndarray | None:
        """Return the values of an operator's only result; None if they are unknown."""
        if operator.custom or len(operator.outputs) != 1 or min(operator.inputs, default=-1) < 0:
            return None
        output, tensors = self._tensors[operator.outputs[0]], [self._tensors[index] for index in operator.inputs]
        if output.refusal or output.is_quantized:
            return None
        if operator.code in ("SHAPE", "RANK"):
            shape = tensors[0].shape
            known = not tensors[0].is_open and not tensors[0].refusal
            return np.array(shape if operator.code == "SHAPE" else len(shape), output.dtype) if known else None
        values = [tensor.values for tensor in tensors if tensor.values is not None and not tensor.is_quantized]
        results = compute_values(operator, output, values) if len(values) == len(tensors) else None
        fits = results is not None and (output.is_open or results.shape == output.shape)
        return np.asarray(results, output.dtype) if fits else None

    def _size_moved(self, operator: TfliteOperator) -> None:
        """Set the shape of a TRANSPOSE or EXPAND_DIMS, whose open batch may be after the first axis."""
        move = {"TRANSPOSE": np.transpose, "EXPAND_DIMS": np.expand_dims}.get(operator.code)
        if move is not None and len(operator.inputs) == 2:
            source, axes = (self._tensors[index] for index in operator.inputs)
            if axes.values is not None and not source.is_open:
                with suppress(ValueError):
                    self._size(operator, move(np.broadcast_to(np.False_, source.shape), tuple(axes.values.reshape(-1))).shape)

    def _size(self, operator: TfliteOperator, shape: tuple[int, ...]) -> None:
        """Set the shape of the result of an operator if the file leaves it open."""
        output = self._tensors[operator.outputs[0]]
        if output.is_open:
            self._tensors[operator.outputs[0]] = replace(output, shape=shape, is_open=False)

    def _merge_concat(self, operator: TfliteOperator) -> None:
        """Merge a CONCATENATION with inputs that are concatenations along the same axis, and drop empty inputs."""
        shape = self._tensors[operator.inputs[0]].shape if operator.inputs else ()
        axis = operator.option(0)
        if operator.option(1, "<b") or not -len(shape) <= axis < len(shape) or min(operator.inputs, default=-1) < 0:
            return self._append(operator)
        axis, parts = axis % len(shape), []
        for index in operator.inputs:
            _, along, inner = self._parts.get(index, (operator, axis, [index]))
            parts += inner if along == axis else [index]
        parts = [index for index in parts if self._tensors[index].is_open or prod(self._tensors[index].shape)]
        if not parts or any(self._tensors[index].is_quantized for index in (*parts, operator.outputs[0])):
            return self._append(operator)
        self._parts[operator.outputs[0]] = (operator, axis, parts)
        tensors = [self._tensors[index] for index in parts]
        if not any(tensor.is_open for tensor in tensors):
            size = sum(tensor.shape[axis] for tensor in tensors)
            self._size(operator, (*tensors[0].shape[:axis], size, *tensors[0].shape[axis + 1 :]))
        return self._append(replace(operator, inputs=tuple(parts)))

    def _replace_slice(self, operator: TfliteOperator) -> bool:
        """Replace a SLICE of a concatenation by a CONCATENATION of the selected parts; return True if this is possible."""
        match = self._parts.get(operator.inputs[0])
        begins, sizes = (self._tensors[index].values if index >= 0 else None for index in (*operator.inputs, -1, -1)[1:3])
        if match is None or begins is None or sizes is None:
            return False
        join, axis, parts = match
        shape = self._tensors[operator.inputs[0]].shape
        if not len(begins) == len(sizes) == len(shape) or any(self._tensors[index].is_open for index in parts):
            return False
        ends = [size if length == -1 else index + length for index, length, size in zip(begins, sizes, shape, strict=True)]
        if any(
            (index, end) != (0, size) for k, (index, end, size) in enumerate(zip(begins, ends, shape, strict=True)) if k != axis
        ):
            return False
        parts_taken, start = [], 0
        for index in parts:
            tensor = self._tensors[index]
            size = tensor.shape[axis]
            low, high = (min(max(int(end) - start, 0), size) for end in (begins[axis], ends[axis]))
            start += size
            if low >= high:
                continue
            if (low, high) != (0, size):
                if tensor.values is None:
                    return False
                values = np.take(tensor.values, range(low, high), axis)
                index = self._tensor(replace(tensor, values=values, shape=values.shape), tensor.name)
            parts_taken.append(index)
        (output,) = operator.outputs
        wanted = (*shape[:axis], sum(self._tensors[index].shape[axis] for index in parts_taken), *shape[axis + 1 :])
        self._tensors[output] = replace(self._tensors[output], shape=wanted, is_open=False)
        if parts_taken:
            self._merge_concat(replace(join, inputs=tuple(parts_taken), outputs=(output,)))
        return True
