"""Tensors and operators of a .tflite file, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.model import read_model
from n2d2py.frontend.tflite import schema
from n2d2py.frontend.tflite.schema import NO_TABLE, DamagedFile, FlatTable, read_numbers
from n2d2py.graph.shapes import MAX_TENSOR, Shape
from n2d2py.naming import FreshNames

_MOST_TABLES = 100_000
_MOST_DIMENSIONS = 8
_MOST_ELEMENTS = 2**31
CALLS = {"WHILE": (0, 1), "IF": (0, 1), "CALL": (0,)}
"""Option slots with the subgraphs that an operator runs, by operator."""
COMPILED = frozenset({"ethos-u", "edgetpu-custom-op"})
"""Custom operators that compilers for accelerators write; they read tensors that no operator writes."""
_WITHOUT_RESULT = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE"})


class RefusedOperator(Exception):
    """An operator cannot be translated; the message is the reason."""


@dataclass(frozen=True)
class TfliteTensor:
    """A tensor of the file.

    Attributes:
        name: its name, made unique.
        shape: in the order of the file (N, H, W, C).
        dtype: stored type; float32 if the tensor is unusable.
        scale, zero_point: quantization of stored integers, one or one for each index of `axis`; empty if not quantized.
        values: values of a constant; 4-bit values are unpacked to int8.
        refusal: the reason why the tensor is unusable, or "".
        is_open: True if the file leaves a size after the batch open, for which `shape` has a default.
    """

    name: str
    shape: Shape
    dtype: np.dtype
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int = 0
    values: np.ndarray | None = None
    refusal: str = ""
    is_open: bool = False

    @property
    def is_quantized(self) -> bool:
        """True if it stores integers with a scale."""
        return self.scale.size > 0

    def constant(self) -> np.ndarray:
        """Return the stored values of a constant. Raise RefusedOperator if the tensor is computed."""
        if self.values is None:
            raise RefusedOperator(f"its input '{self.name}' is computed at run time")
        return self.values

    def real_values(self) -> np.ndarray:
        """Return the dequantized values of a constant, float32. Raise RefusedOperator if the tensor is computed."""
        values = self.constant()
        if not self.is_quantized:
            return values.astype(np.float32)
        shape = [-1 if index == self.axis and self.scale.size > 1 else 1 for index in range(values.ndim)]
        zero, scale = (array.reshape(shape) for array in (self.zero_point, self.scale))
        return ((values.astype(np.int64) - zero) * scale).astype(np.float32)


@dataclass(frozen=True, eq=False)
class RecurrentCell:
    """A recurrent cell, with the `kind` LSTM, GRU or RNN of ONNX.

    Attributes:
        x, counter: loop variables of the input sequence and of the position in it.
        h, c: loop variables of the hidden and cell state; c is -1 without one.
        weights, recurrent, biases: one for each gate in ONNX's order, (gates, hidden, size), (gates, hidden, hidden), (gates, hidden).
        recurrent_bias: of the last gate of a GRU with the reset gate after the product; None if it is before the product.
    """

    kind: str
    x: int
    counter: int
    h: int
    c: int
    weights: np.ndarray
    recurrent: np.ndarray
    biases: np.ndarray
    recurrent_bias: np.ndarray | None = None
    activation: str = "Tanh"


@dataclass(frozen=True)
class TfliteOperator:
    """An operator: its position and name, the indexes of its tensors (-1: absent), its options.

    `custom_options`: option bytes of a custom operator. `cell`: the recurrent layer that a loop computes. `dilation`:
    (vertical, horizontal) of a convolution of a batch of blocks, and of the operators around it (`mark_dilations`).
    """

    index: int
    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: FlatTable = NO_TABLE
    custom: bool = False
    custom_options: bytes = b""
    cell: RecurrentCell | None = None
    dilation: tuple[int, int] = (1, 1)

    def fused_limits(self, slot: int) -> tuple[float, float] | None:
        """Return the limits of the fused activation of an option; None without one."""
        number = self.options.integer(slot, "<b")
        name = schema.ACTIVATIONS[number] if 0 <= number < len(schema.ACTIVATIONS) else f"number {number}"
        if name != "NONE" and name not in schema.LIMITS:
            raise RefusedOperator(f"its fused activation {name} is not supported")
        return schema.LIMITS.get(name)


@dataclass(frozen=True)
class TfliteFile:
    """A subgraph of a file, and the data it needs of others.

    Attributes:
        initial: initial values of its variables, by name.
        graphs: the subgraphs that WHILE, IF and CALL run, by index.
    """

    path: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    initial: Mapping[str, TfliteTensor] = field(default_factory=dict)
    graphs: Mapping[int, TfliteFile] = field(default_factory=dict)

    def place(self, operator: TfliteOperator) -> Location:
        """Return the location of an operator for messages."""
        return Location(self.path, None, self.label(operator))

    def label(self, operator: TfliteOperator) -> str:
        """Return the index and name of an operator, and the name of its result or of the variable that it assigns."""
        tensors = (*operator.outputs, *operator.inputs)[:1]
        return " ".join([str(operator.index), operator.code, *(self.tensors[index].name for index in tensors if index >= 0)])

    def variables(self) -> dict[int, str]:
        """Return the names of variables, by the index of their handle tensors."""
        return {one.outputs[0]: one.options.text(1) for one in self.operators if one.code == "VAR_HANDLE"}

    def called_graphs(self) -> set[int]:
        """Return the indexes of the subgraphs that its operators run."""
        calls = (operator for operator in self.operators if operator.code in CALLS and not operator.custom)
        return {operator.options.integer(slot) for operator in calls for slot in CALLS[operator.code]}


def read_tflite(path: Path) -> TfliteFile:
    """Return the tensors and operators of a file.

    Raises:
        N2D2Error: E301 unreadable, E302 not a .tflite file, E310 subgraphs that the main graph does not use.
        DamagedFile: a table is damaged, also when options of operators are read later.
    """
    name = str(path)
    data = read_model(path, "TFLite", "convert or download the model again")
    if data[4:8] != schema.IDENTIFIER:
        raise invalid_file_error(name, "the file is damaged, truncated or not a TFLite model")
    model = FlatTable.root(data)
    if model.integer(0, "<I") != 3:
        raise invalid_file_error(name, f"the schema of the file has version {model.integer(0, '<I')}, not 3")
    graphs = model.tables(2, _MOST_TABLES)
    codes = [_operator_code(entry) for entry in model.tables(1, _MOST_TABLES)]
    what = f"the file has {len(graphs)} graphs; supported are one graph, and others that it runs or that initialize variables"
    unused = N2D2Error("E310", what, where=Location(name), remedy="convert the model with one signature")
    if not graphs:
        raise unused
    read = partial(_read_graph, data, name, model.tables(4, _MOST_TABLES), codes)
    main = read(graphs[0])
    once = {one.options.integer(0) for one in main.operators if one.code == "CALL_ONCE"}
    others = {index: read(graphs[index]) for index in range(1, len(graphs))}
    called, more = set(), main.called_graphs() & set(others)
    while more:
        called |= more
        more = {index for each in more for index in others[each].called_graphs() if index in others} - called
    if once | called != set(others):
        raise unused
    initial = {key: tensor for index in sorted(once) for key, tensor in _initial_values(others[index], index).items()}
    return replace(main, initial=initial, graphs={index: others[index] for index in called})


def invalid_file_error(path: str, what: str) -> N2D2Error:
    """Return E302 for a file."""
    return N2D2Error("E302", what, where=Location(path), remedy="convert or download the model again")


def _initial_values(graph: TfliteFile, index: int) -> dict[str, TfliteTensor]:
    """Return the values that a run-once subgraph assigns to variables, by name."""
    names, values = graph.variables(), {}
    for operator in graph.operators:
        known = operator.code == "ASSIGN_VARIABLE" and len(operator.inputs) == 2 and operator.inputs[0] in names
        if known and operator.inputs[1] >= 0 and graph.tensors[operator.inputs[1]].values is not None:
            values[names[operator.inputs[0]]] = graph.tensors[operator.inputs[1]]
        elif operator.code != "VAR_HANDLE":
            what = f"{operator.code} of graph {index}, which runs once, does not initialize a variable with a constant"
            remedy = "convert the model with variables that start as constants"
            raise N2D2Error("E310", what, where=graph.place(operator), remedy=remedy)
    return values


def _read_graph(
    data: bytes, path: str, buffers: list[FlatTable], codes: list[tuple[str, bool]], graph: FlatTable
) -> TfliteFile:
    names = FreshNames()
    entries = enumerate(graph.tables(0, _MOST_TABLES))
    tensors = [_read_tensor(entry, names(entry.text(3) or f"tensor_{index}"), buffers, data) for index, entry in entries]
    count, operators = len(tensors), []
    for index, entry in enumerate(graph.tables(3, _MOST_TABLES)):
        code = entry.integer(0, "<I")
        if code >= len(codes):
            raise DamagedFile(f"operator {index} has the code {code} of {len(codes)}")
        name, custom = codes[code]
        inputs, outputs = (tuple(map(int, entry.vector(slot, "<i4"))) for slot in (1, 2))
        wrong = [one for one in inputs if not -1 <= one < count] + [one for one in outputs if not 0 <= one < count]
        if wrong or not (outputs or name in _WITHOUT_RESULT):
            raise DamagedFile(f"operator {index} names the tensors {', '.join(map(str, wrong)) or 'of no output'} of {count}")
        options = entry.table(4) if entry.integer(3, "<B") else NO_TABLE
        operators.append(TfliteOperator(index, name, inputs, outputs, options, custom, entry.vector(5, "u1").tobytes()))
    ends = tuple(map(int, graph.vector(1, "<i4"))), tuple(map(int, graph.vector(2, "<i4")))
    for what, indices in zip(("input", "output"), ends, strict=True):
        if wrong := [position for position in indices if not 0 <= position < count]:
            raise DamagedFile(f"the {what} {wrong[0]} is not one of the {count} tensors")
    _check_order(operators, tensors, ends[0])
    return TfliteFile(path, tuple(tensors), tuple(operators), *ends)


def _operator_code(entry: FlatTable) -> tuple[str, bool]:
    """Return (name of an operator, whether it is custom)."""
    number = max(entry.integer(0, "<b"), entry.integer(3))
    if number == schema.CUSTOM:
        return entry.text(1) or "CUSTOM", True
    return (schema.OPERATORS[number] if 0 <= number < len(schema.OPERATORS) else f"OPERATOR_{number}"), False


def _check_order(operators: list[TfliteOperator], tensors: list[TfliteTensor], inputs: tuple[int, ...]) -> None:
    """Raise an error unless every tensor is written once, before it is read."""
    known = set(inputs)
    if len(known) < len(inputs):
        raise DamagedFile("an input is listed twice")
    for operator in operators:
        for index in operator.inputs if operator.code not in COMPILED else ():
            constant = tensors[index].values is not None or not prod(tensors[index].shape)  # no elements need no buffer
            if index >= 0 and index not in known and not constant and not tensors[index].refusal:
                raise DamagedFile(f"operator {operator.index} reads '{tensors[index].name}', which no earlier operator writes")
        for index in operator.outputs:
            name = tensors[index].name
            if index in known or tensors[index].values is not None:
                raise DamagedFile(f"operator {operator.index} writes '{name}', which is written or constant already")
            known.add(index)


def _read_tensor(entry: FlatTable, name: str, buffers: list[FlatTable], data: bytes) -> TfliteTensor:
    shape = tuple(map(int, entry.vector(0, "<i4")))
    if len(shape) > _MOST_DIMENSIONS or any(size < 0 for size in shape) or prod(shape) > _MOST_ELEMENTS:
        raise DamagedFile(f"the tensor '{name}' has the shape {' x '.join(map(str, shape[:9]))}")
    kind, offset = entry.integer(1, "<b"), entry.integer(2, "<I")
    if offset >= max(1, len(buffers)):
        raise DamagedFile(f"the tensor '{name}' has the buffer {offset} of {len(buffers)}")
    stored = _buffer_bytes(buffers[offset], data) if buffers else np.zeros(0, np.uint8)
    numbers = entry.table(4)
    scale, zero = numbers.vector(2, "<f4"), numbers.vector(3, "<i8")
    axis = numbers.integer(6) if len(shape) > 1 else 0  # files give biases that of their weights
    refusal = _refusal(entry, kind, numbers)
    if prod(shape) > MAX_TENSOR and (entry.has(6) or not stored.size):
        refusal = refusal or f"has {prod(shape):,} elements, at most {MAX_TENSOR:,} are supported"
    dtype = schema.TYPES.get(kind, np.dtype(np.float32))
    if not scale.size or dtype.kind not in "iu" or (refusal and not entry.flag(5)):
        scale, zero = scale[:0], zero[:0]
    else:
        _check_scales(name, shape, 4 if kind == schema.INT4 else 8 * dtype.itemsize, dtype.kind == "u", scale, zero, axis)
        zero = zero if zero.size else np.zeros(scale.size, np.int64)
    tensor = TfliteTensor(name, shape, dtype, scale, zero, refusal=refusal)
    if refusal:
        return tensor
    if entry.has(6):
        listed = _constant_values((stored.size // dtype.itemsize,), dtype, stored, False)
        return replace(tensor, axis=axis, values=_dense_values(entry.table(6), shape, listed))
    opened = entry.vector(7, "<i4") < 0
    is_open = bool(opened[1:].any() or (opened.any() and shape[:1] != (1,)))
    values = _constant_values(shape, dtype, stored, kind == schema.INT4) if stored.size else None
    return replace(tensor, axis=axis, values=values, is_open=is_open)


def _refusal(entry: FlatTable, kind: int, numbers: FlatTable) -> str:
    """Return the reason why a tensor is unusable, or ""; `numbers`: its quantization."""
    if kind not in schema.TYPES:
        return f"is of type {schema.OTHER_TYPES.get(kind, f'number {kind}')}"
    if entry.flag(5):
        return "is a variable, which keeps its value from run to run"
    if entry.integer(10, "<I"):
        return "has its values in another file, which is not supported"
    if entry.has(6) and kind == schema.INT4:
        return "is sparse and 4-bit"
    return "is quantized without scale and zero point" if numbers.integer(4, "<B") else ""


def _buffer_bytes(buffer: FlatTable, data: bytes) -> np.ndarray:
    """Return the bytes of a buffer, from its table or, in a large file, after the tables."""
    offset, size = buffer.integer(1, "<Q"), buffer.integer(2, "<Q")
    return buffer.vector(0, "u1") if offset <= 1 else read_numbers(data, "u1", size, offset)


def _check_scales(name: str, shape: Shape, bits: int, unsigned: bool, scale: np.ndarray, zero: np.ndarray, axis: int) -> None:
    if zero.size not in (0, scale.size):
        raise DamagedFile(f"the tensor '{name}' has {scale.size} scales and {zero.size} zero points")
    if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
        raise DamagedFile(f"the tensor '{name}' has {scale.size} scales for the axis {axis} of {' x '.join(map(str, shape))}")
    if not np.all(np.isfinite(scale) & (scale > 0)):
        raise DamagedFile(f"the tensor '{name}' has a scale that is not a positive number")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if zero.size and (zero.min() < low or zero.max() > high):
        raise DamagedFile(f"the tensor '{name}' has a zero point outside of its {bits} bits")


def _constant_values(shape: Shape, dtype: np.dtype, stored: np.ndarray, packed: bool) -> np.ndarray:
    has, wanted = stored.size, -(-prod(shape) // 2) if packed else prod(shape) * dtype.itemsize
    if has < wanted or (has > wanted and not packed):
        raise DamagedFile(f"a buffer has {has:,} bytes for a tensor of {' x '.join(map(str, shape))} {dtype.name} values")
    if packed:  # the first of two in the low bits
        nibbles = np.stack([stored & 15, stored >> 4], axis=1).reshape(-1)[: prod(shape)].astype(np.int8)
        return ((nibbles ^ 8) - 8).astype(np.int8).reshape(shape)
    return stored.view(dtype.newbyteorder("<")).reshape(shape).astype(dtype)


# ---- sparse tensors -----------------------------------------------------------------------------
_MIN_POSITIONS = 1 << 16
"""Number of positions that is always allowed."""
_INDEX_TYPES = {1: "<i4", 2: "<u2", 3: "u1"}
"""Element types of an index list, by the type of its table."""
_Lists = tuple[np.ndarray, np.ndarray]
"""The segments and the indices of an axis that is not dense."""


def _dense_values(sparsity: FlatTable, shape: Shape, stored: np.ndarray) -> np.ndarray:
    """Return the values of a tensor of this shape; `stored` are the nonzero values.

    The format is `SparsityParameters` of TFLite's schema. Axes, some of them split into an outer and a block axis, are
    traversed in a stored order. Each axis is dense, or lists its indices below each position of the axis before it.

    Raises DamagedFile: the lists do not fit each other, the shape or the values.
    """
    order, blocked = (sparsity.vector(slot, "<i4").tolist() for slot in (0, 1))
    axes = [_read_axis(entry) for entry in sparsity.tables(2, len(order))]
    rank = len(shape)
    if not shape or sorted(order) != [*range(rank + len(blocked))] or len(axes) != len(order):
        raise DamagedFile(f"{rank} axes and {len(blocked)} blocks in the order {order[:16]}")
    if len({*blocked} & {*range(rank)}) < len(blocked):
        raise DamagedFile(f"blocks of the axes {blocked[:16]}")
    blocks = [axes[order.index(rank + index)] for index in range(len(blocked))]
    sizes = [*shape, *(block if isinstance(block, int) else 0 for block in blocks)]
    for axis, block in zip(blocked, sizes[rank:], strict=True):
        if block < 1 or shape[axis] % block:
            raise DamagedFile(f"blocks of {block} in an axis of {shape[axis]}")
        sizes[axis] //= block
    places = _value_positions(order, axes, sizes, stored.size)
    index = places[:rank]
    for position, axis in enumerate(blocked, rank):
        index[axis] = index[axis] * sizes[position] + places[position]
    values = np.zeros(shape, stored.dtype)
    values[tuple(index)] = stored
    return values


def _read_axis(entry: FlatTable) -> int | _Lists:
    """Return the size of a dense axis, or the lists of another one."""
    if entry.integer(0, "<b") == 0:
        return entry.integer(1)
    kinds = [_INDEX_TYPES.get(entry.integer(slot, "<B"), "") for slot in (2, 4)]
    if not all(kinds):
        raise DamagedFile("a list of indices is missing")
    begins, indices = (entry.table(slot).vector(0, kind).astype(np.int64) for slot, kind in zip((3, 5), kinds, strict=True))
    return begins, indices


def _value_positions(order: list[int], axes: list[int | _Lists], sizes: list[int], values: int) -> list[np.ndarray]:
    """Return the index of each of the stored `values` along each axis."""
    result: dict[int, np.ndarray] = {}
    longest = max(_MIN_POSITIONS, values, *(len(one[0]) for one in axes if not isinstance(one, int)))
    count = 1
    for axis, one in zip(order, axes, strict=True):
        if isinstance(one, int):
            if one != sizes[axis] or count * one > longest:  # no list after it is as long: nothing so large is made
                raise DamagedFile(f"a dense axis of {one}, not {sizes[axis]}, or more positions than the file lists")
            lengths, indices = np.full(count, one), np.tile(np.arange(one), count)
        else:
            begins, indices = one
            lengths = np.diff(begins)
            if len(begins) != count + 1 or begins[0] != 0 or begins[-1] != len(indices) or lengths.min(initial=0) < 0:
                raise DamagedFile(f"indices of {len(lengths)} positions, not {count}")
            if np.any((indices < 0) | (indices >= sizes[axis])):
                raise DamagedFile(f"an index outside of {sizes[axis]}")
        result = {other: np.repeat(index, lengths) for other, index in result.items()}
        result[axis] = indices
        count = len(indices)
        if count > prod(sizes):
            raise DamagedFile("more positions than elements")
    if count != values:
        raise DamagedFile(f"{count:,} positions for {values:,} values")
    return [result[axis] for axis in range(len(sizes))]
