"""Rewrites of a .tflite file before its translation: WHILE, IF and CALL inlined, dilated convolutions marked.

Keras writes an LSTM or GRU as a WHILE over its steps. Values that depend only on constants and shapes are folded here.
TensorFlow writes a dilated convolution as SPACE_TO_BATCH_ND, a convolution, and BATCH_TO_SPACE_ND.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.frontend.tflite.cells import RECURRENT_LOOP, recognize_cell
from n2d2py.frontend.tflite.file import CALLS, RefusedOperator, TfliteFile, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.known_values import compute_values
from n2d2py.frontend.tflite.schema import VALID, DamagedFile
from n2d2py.naming import FreshNames

_MAX_CALLS = 4096
"""Largest number of subgraph calls; the operators of each become layers of the network."""
_MOST_DEPTH = 16


def inline_graphs(main: TfliteFile) -> TfliteFile:
    """Return the main graph of a file without WHILE, IF and CALL.

    Raises:
        DamagedFile: a subgraph does not exist, or has another number of tensors.
        N2D2Error: E310 a condition depends on the inputs of the network, or a loop does not end.
    """
    flat = _FlatGraph(main)
    places = {index: index for index in range(-1, len(main.tensors))}
    for op in main.operators:
        try:
            flat.add(op, places, 0)
        except RefusedOperator as reason:
            what = f"{op.code} cannot be imported: {reason}"
            remedy = "convert the model with a fixed number of steps and without conditions"
            raise N2D2Error("E310", what, where=main.place(op), remedy=remedy) from None
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

    def add(self, op: TfliteOperator, places: dict[int, int], depth: int) -> None:
        """Add an operator whose tensors are at `places`; it may be inlined, folded or moved instead."""
        inputs = tuple(places[index] for index in op.inputs)
        if op.code in CALLS and not op.custom:
            results = self._run(op, inputs, depth)
            if len(results) != len(op.outputs):
                raise DamagedFile(f"{op.code} has {len(op.outputs)} outputs, and a graph with {len(results)}")
            places.update(zip(op.outputs, results, strict=True))
            return
        if depth and op.code == "CAST" and len(inputs) == len(op.outputs) == 1:
            (output,) = op.outputs
            if self._tensors[inputs[0]].dtype == self._tensors[places[output]].dtype:
                places[output] = inputs[0]
                return
        op = replace(op, inputs=inputs, outputs=tuple(places[index] for index in op.outputs))
        values = self._fold(op)
        if values is not None:
            folded = self._tensors[op.outputs[0]]
            self._tensors[op.outputs[0]] = replace(folded, values=values, shape=values.shape, is_open=False)
        elif op.code == "CONCATENATION":
            self._merge_concat(op)
        elif not (op.code == "SLICE" and self._replace_slice(op)):
            self._size_moved(op)
            self._append(op)

    def file(self, main: TfliteFile, outputs: tuple[int, ...]) -> TfliteFile:
        """Return the main graph; outputs keep their names."""
        for index, declared in zip(outputs, main.outputs, strict=True):
            if index != declared and index >= len(main.tensors):
                name = main.tensors[declared].name
                self._tensors[declared] = replace(self._tensors[declared], name=self._fresh(f"{name}_loop"))
                self._tensors[index] = replace(self._tensors[index], name=name)
        return replace(main, tensors=tuple(self._tensors), operators=tuple(self._operators), outputs=outputs)

    def _append(self, op: TfliteOperator) -> None:
        self._operators.append(replace(op, index=len(self._operators)))

    def _tensor(self, tensor: TfliteTensor, name: str) -> int:
        self._tensors.append(replace(tensor, name=self._fresh(name)))
        return len(self._tensors) - 1

    # ---- calls ----------------------------------------------------------------------------------
    def _run(self, op: TfliteOperator, inputs: tuple[int, ...], depth: int) -> tuple[int, ...]:
        first, last = (op.options.integer(slot) for slot in (CALLS[op.code][0], CALLS[op.code][-1]))
        if op.code == "CALL":
            return self._call_graph(first, inputs, depth)
        if op.code == "IF":
            return self._call_graph(first if self._truth(*inputs[:1]) else last, inputs[1:], depth)
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
        if not known or any(each[cell.x] != x for each in history) or self._tensors[x].shape[:1] != (steps,):
            return history[-1]
        state = replace(first, values=None)
        sequence = self._tensor(replace(state, shape=(steps, *first.shape)), f"{first.name}_sequence")
        last = self._tensor(state, f"{first.name}_last")
        states = [index for index in (cell.h, cell.c) if index >= 0]
        outputs = [sequence, *(self._tensor(state, f"{self._tensors[results[index]].name}_last") for index in states[1:])]
        inputs = (x, *(history[0][index] for index in states))
        self._append(TfliteOperator(0, RECURRENT_LOOP, inputs, tuple(outputs), cell=cell))
        end = replace(state, shape=(), dtype=np.dtype(np.int32), values=np.array(steps - 1, np.int32))
        self._append(TfliteOperator(0, "GATHER", (sequence, self._tensor(end, f"{first.name}_end")), (last,)))
        for index, output in zip(states, (last, *outputs[1:]), strict=True):
            results[index] = output
        producers = {output: op for op in self._operators for output in op.outputs}
        hidden = [each[cell.h] for each in history[1:]]
        for index, result in enumerate(results):
            _, axis, parts = self._parts.get(result, (None, 0, [result]))
            rows = [producers[part] for part in parts if part in producers and producers[part].code == "RESHAPE"]
            read = [(*row.inputs, -1)[0] for row in rows]
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
        graph = self._graphs.get(index)
        if graph is None or len(graph.inputs) != len(inputs):
            raise DamagedFile(f"the graph {index} does not exist, or has other inputs than the operator that runs it")
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
        for op in graph.operators:
            self.add(op, places, depth + 1)
        return tuple(places[position] for position in graph.outputs)

    # ---- constant folding -----------------------------------------------------------------------
    def _fold(self, op: TfliteOperator) -> np.ndarray | None:
        if op.custom or len(op.outputs) != 1 or min(op.inputs, default=-1) < 0:
            return None
        output, tensors = self._tensors[op.outputs[0]], [self._tensors[index] for index in op.inputs]
        if output.refusal or output.is_quantized:
            return None
        if op.code in ("SHAPE", "RANK"):
            shape = tensors[0].shape
            known = not tensors[0].is_open and not tensors[0].refusal
            return np.array(shape if op.code == "SHAPE" else len(shape), output.dtype) if known else None
        values = [tensor.values for tensor in tensors if tensor.values is not None and not tensor.is_quantized]
        results = compute_values(op, output, values) if len(values) == len(tensors) else None
        fits = results is not None and (output.is_open or results.shape == output.shape)
        return np.asarray(results, output.dtype) if fits else None

    def _size_moved(self, op: TfliteOperator) -> None:
        """Set the shape of a TRANSPOSE or EXPAND_DIMS, whose open batch may be after the first axis."""
        move = {"TRANSPOSE": np.transpose, "EXPAND_DIMS": np.expand_dims}.get(op.code)
        if move is not None and len(op.inputs) == 2:
            source, axes = (self._tensors[index] for index in op.inputs)
            if axes.values is not None and axes.values.dtype.kind in "iu" and not source.is_open:
                with suppress(ValueError):
                    self._size(op, move(np.broadcast_to(np.False_, source.shape), tuple(axes.values.reshape(-1))).shape)

    def _size(self, op: TfliteOperator, shape: tuple[int, ...]) -> None:
        """Set the shape of the result of an operator if the file leaves it open."""
        output = self._tensors[op.outputs[0]]
        if output.is_open:
            self._tensors[op.outputs[0]] = replace(output, shape=shape, is_open=False)

    def _merge_concat(self, op: TfliteOperator) -> None:
        """Merge a CONCATENATION with inputs that are concatenations along the same axis, and drop empty inputs."""
        shape = self._tensors[op.inputs[0]].shape if op.inputs else ()
        axis = op.options.integer(0)
        if op.options.integer(1, "<b") or not -len(shape) <= axis < len(shape) or min(op.inputs, default=-1) < 0:
            return self._append(op)
        axis, parts = axis % len(shape), []
        for index in op.inputs:
            _, along, inner = self._parts.get(index, (op, axis, [index]))
            parts += inner if along == axis else [index]
        parts = [index for index in parts if self._tensors[index].is_open or prod(self._tensors[index].shape)]
        *tensors, output = (self._tensors[index] for index in (*parts, op.outputs[0]))
        if not parts or any(one.is_quantized or len(one.shape) != len(shape) for one in (*tensors, output)):
            return self._append(op)
        self._parts[op.outputs[0]] = (op, axis, parts)
        if not any(tensor.is_open for tensor in tensors):
            size = sum(tensor.shape[axis] for tensor in tensors)
            self._size(op, (*tensors[0].shape[:axis], size, *tensors[0].shape[axis + 1 :]))
        return self._append(replace(op, inputs=tuple(parts)))

    def _replace_slice(self, op: TfliteOperator) -> bool:
        """Replace a SLICE of a concatenation by a CONCATENATION of the selected parts; return True if this is possible."""
        match = self._parts.get(op.inputs[0]) if op.inputs and len(op.outputs) == 1 else None
        begins, sizes = (self._tensors[index].values if index >= 0 else None for index in (*op.inputs[1:], -1, -1)[:2])
        if match is None or begins is None or sizes is None:
            return False
        join, axis, parts = match
        shape = self._tensors[op.inputs[0]].shape
        fits = all(one.shape == (len(shape),) and one.dtype.kind == "i" for one in (begins, sizes))
        if not fits or any(self._tensors[index].is_open for index in parts):
            return False
        ends = [size if length == -1 else index + length for index, length, size in zip(begins, sizes, shape, strict=True)]
        is_whole = [(begin, end) == (0, size) for begin, end, size in zip(begins, ends, shape, strict=True)]
        if not all(whole for index, whole in enumerate(is_whole) if index != axis):
            return False
        parts_taken, begin, end = [], int(begins[axis]), int(ends[axis])
        for index in parts:
            tensor = self._tensors[index]
            size = tensor.shape[axis]
            low, high = max(begin, 0), min(end, size)
            begin, end = begin - size, end - size
            if low >= high:
                continue
            if (low, high) != (0, size):
                if tensor.values is None:
                    return False
                values = np.take(tensor.values, range(low, high), axis)
                index = self._tensor(replace(tensor, values=values, shape=values.shape), tensor.name)
            parts_taken.append(index)
        (output,) = op.outputs
        wanted = (*shape[:axis], sum(self._tensors[index].shape[axis] for index in parts_taken), *shape[axis + 1 :])
        self._tensors[output] = replace(self._tensors[output], shape=wanted, is_open=False)
        if parts_taken:
            self._merge_concat(replace(join, inputs=tuple(parts_taken), outputs=(output,)))
        return True


# ---- dilated convolutions -----------------------------------------------------------------------
_CONVOLUTIONS = {"CONV_2D": (1, 2, 4, 5), "DEPTHWISE_CONV_2D": (1, 2, 5, 6)}
"""Option slots of strides and dilations."""
_SINGLE_VALUES = "ADD MUL SUB RELU RELU6 RELU_N1_TO_1 LOGISTIC TANH PRELU LEAKY_RELU ELU HARD_SWISH".split()
_NEW_AXIS = ("EXPAND_DIMS", "SQUEEZE", "RESHAPE")


def mark_dilations(file: TfliteFile) -> TfliteFile:
    """Return the file with the dilation of each convolution of a batch of blocks, and with open shapes around it.

    The convolution of all x[i::d] is that of x with the dilation d. Operators on single values, and a new axis of 1, may stand
    between it and the blocks.
    """
    readers: dict[int, list[TfliteOperator]] = {}
    for op in file.operators:
        for index in op.inputs:
            readers.setdefault(index, []).append(op)
    dilations: dict[int, tuple[int, int]] = {}
    tensors = list(file.tensors)
    for op in file.operators:
        chain = _find_chain(file, op, readers) if op.code == "SPACE_TO_BATCH_ND" else []
        block = file.tensors[op.inputs[1]].values if chain else None
        if block is not None:
            dilation = (int(block[0]) if block.size > 1 else 1, int(block[-1]))
            dilations.update({each.index: dilation for each in chain})
        for each in chain[:-1]:
            tensors[each.outputs[0]] = replace(tensors[each.outputs[0]], is_open=True)
    operators = tuple(replace(one, dilation=dilations.get(one.index, one.dilation)) for one in file.operators)
    return replace(file, tensors=tuple(tensors), operators=operators)


def _find_chain(file: TfliteFile, first: TfliteOperator, readers: Mapping[int, list[TfliteOperator]]) -> list[TfliteOperator]:
    """Return the operators from a SPACE_TO_BATCH_ND to its BATCH_TO_SPACE_ND; empty if they are not a dilated convolution."""
    chain = [first]
    while chain[-1].code != "BATCH_TO_SPACE_ND":
        result = chain[-1].outputs[0]
        following = readers.get(result, [])
        if len(following) != 1 or result in file.outputs or not _commutes(file, following[0], result):
            return []
        chain.append(following[0])
    constants = [file.tensors[index].values for end in (first, chain[-1]) for index in end.inputs[1:]]
    block, *others = [np.zeros(0) if values is None else values for values in constants] or [np.zeros(0)]
    is_dilation = sum(one.code in _CONVOLUTIONS for one in chain) == 1 and len(others) == 3 and np.array_equal(block, others[1])
    return chain if is_dilation and block.size in (1, 2) and block.min() > 0 else []


def _commutes(file: TfliteFile, op: TfliteOperator, tensor: int) -> bool:
    """True if an operator computes the same of the samples of blocks as of the whole, with its dilation."""
    if op.code in _CONVOLUTIONS:
        steps = [op.options.integer(slot, default=1) for slot in _CONVOLUTIONS[op.code]]
        return op.options.integer(0, "<b") == VALID and steps == [1, 1, 1, 1]
    if op.code in _NEW_AXIS:
        before, after = (file.tensors[index].shape for index in (tensor, op.outputs[0]))
        return after == (*before[:1], 1, *before[1:]) or before == (*after[:1], 1, *after[1:])
    others = [file.tensors[index] for index in op.inputs if index not in (-1, tensor)]
    wide = any(one.values is None or one.values.size not in (1, one.shape[-1]) for one in others)
    return op.code == "BATCH_TO_SPACE_ND" or (op.code in _SINGLE_VALUES and not wide)
