"""Array operators, whose tensors are vectors in the network, as TFLite operators with array dimensions."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.contracts.quant.quantizer import QUANTIZERS
from n2d2py.exports.model_file import NoForm
from n2d2py.exports.tflite.file import PROBABILITIES, Grid
from n2d2py.exports.tflite.writer import LOWERINGS, Layers, channels_last
from n2d2py.graph import QuantNode, Shifted, elements
from n2d2py.operators.arrays.matmul import View, view_positions

_MOST_AXES = 4
"""Largest rank that every operator with broadcasting supports."""
_UNIT = 127
"""Integer of a constant factor."""

MAPS = {name: name.upper() for name in "Abs Add Ceil Cos Div Exp Floor Log Mul Neg PRelu Pow Round Sin Sqrt Sub Tanh".split()}
MAPS |= {"Max": "MAXIMUM", "Min": "MINIMUM", "Sigmoid": "LOGISTIC"}
"""Operators of array functions."""


def reshape(layers: Layers, name: str, index: int, dims: tuple[int, ...], grid: Grid) -> int:
    """Add a reshape to other dimensions."""
    result = layers.add_file_tensor(name, dims, grid)
    values = np.array(dims, np.int32)
    target = layers.file.constant(f"{name}/shape", values)
    layers.file.operator("RESHAPE", [index, target], result, newShape=values)
    return result


def transpose(layers: Layers, name: str, index: int, dims: tuple[int, ...], order: tuple[int, ...], grid: Grid) -> int:
    """Add a transposition of a tensor with the dimensions `dims`."""
    result = layers.add_file_tensor(name, tuple(dims[axis] for axis in order), grid)
    perm = layers.file.constant(f"{name}/perm", np.array(order))
    layers.file.operator("TRANSPOSE", [index, perm], result)
    return result


def finish_reshaped(layers: Layers, node: QuantNode, index: int, grid: Grid) -> None:
    """Make a tensor of other dimensions the result of a layer."""
    is_in_grid = layers.grid(node.output) == grid
    name = node.output if is_in_grid else f"{node.output}/vector"
    layers.finish(node, reshape(layers, name, index, channels_last(layers.graph.shape(node.output)), grid), grid)


def add_gather(layers: Layers, name: str, index: int, size: int, positions: np.ndarray, grid: Grid) -> int:
    """Add a gather of the elements `positions` of a vector; of whole rows if possible."""
    line = _row_length(positions.reshape(-1), size)
    rows = reshape(layers, f"{name}/lines", index, (size // line, line), grid)
    wanted = layers.file.constant(f"{name}/positions", positions.reshape(-1, line)[:, 0] // line)
    return layers.add(f"{name}/taken", "GATHER", [rows, wanted], (positions.size // line, line), grid, axis=0)


def _row_length(positions: np.ndarray, size: int) -> int:
    """Return the largest row length for which a vector of `size` elements is gathered by whole rows."""
    breaks = np.flatnonzero(np.diff(positions) != 1) + 1
    line = int(np.gcd.reduce(np.concatenate([breaks, [len(positions), size], positions[breaks], positions[:1]])))
    return max(line, 1)


def add_view(layers: Layers, name: str, index: int, view: View, dims: tuple[int, ...], grid: Grid) -> int:
    """Add the elements of a view, with the dimensions `dims`."""
    order = _storage_order(view, dims)
    if order is None:
        gathered = add_gather(layers, name, index, view[0], view_positions(view, dims), grid)
        return reshape(layers, name, gathered, dims, grid)
    stored = tuple(dims[axis] for axis in order)
    if order == tuple(range(len(dims))):
        return reshape(layers, name, index, dims, grid)
    rows = reshape(layers, f"{name}/stored", index, stored, grid)
    return transpose(layers, name, rows, stored, tuple(order.index(axis) for axis in range(len(dims))), grid)


def _storage_order(view: View, dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the axes in storage order; None if the view is not a permutation of the whole vector."""
    size, first, *steps = view
    order = tuple(sorted(range(len(dims)), key=lambda axis: -steps[axis] if dims[axis] > 1 else -np.inf))
    expected = [prod(dims[axis] for axis in order[place + 1 :]) for place in range(len(order))]
    fits = all(dims[axis] == 1 or steps[axis] == step for axis, step in zip(order, expected, strict=True))
    return order if first == 0 and size == prod(dims) and fits else None


def merge_axes(dims: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return dimensions of a result and its operands, of one rank; neighbouring axes that broadcast alike are merged."""
    full = [(1,) * (len(dims) - len(shape)) + tuple(shape) for shape in shapes]
    columns: list[list[int]] = []
    last = None
    for axis, size in enumerate(dims):
        repeated = tuple(shape[axis] == 1 != size for shape in full)
        column = [size, *(shape[axis] for shape in full)]
        if columns and (size == 1 or repeated == last):
            columns[-1] = [a * b for a, b in zip(columns[-1], column, strict=True)]
        else:
            columns.append(column)
            last = repeated
    columns = columns or [[1] * (len(shapes) + 1)]
    whole, *each = zip(*columns, strict=True)
    return whole, each


@LOWERINGS.declare("ArrayMap")
def array_map(layers: Layers, node: QuantNode) -> None:
    """Write a map in floating point."""
    op, grid = node.op, layers.grid(node.output)
    if grid is not None or op.function not in MAPS or op.result:
        raise NoForm(f"the function {op.function} of arrays of {layers.graph.type(node.output).name}")
    dims, shapes = merge_axes(op.dims, op.shapes)
    if len(dims) > _MOST_AXES:
        raise NoForm(f"it repeats elements along axes of {'x'.join(map(str, dims))}")
    operands = []
    for number, (slot, shape) in enumerate(zip(op.slots, shapes, strict=True)):
        if slot < 0:
            operands.append(layers.add_floats(f"{node.name}/operand_{number}", node.params[f"operand{number}"].reshape(shape)))
        else:
            index = layers.index[node.inputs[slot]]
            operands.append(reshape(layers, f"{node.name}/input_{number}", index, shape, None))
    code = MAPS[op.function]
    finish_reshaped(layers, node, layers.add(f"{node.output}/{code.lower()}", code, operands, dims, None), None)


def concat_rows(layers: Layers, node: QuantNode) -> None:
    """Write a concatenation of vectors as rows, all with one scale."""
    op, grid = node.op, layers.grid(node.output)
    inputs, parts = layers.in_grid(node, grid), []
    lengths = op.lengths([layers.graph.shape(name) for name in node.inputs], node)
    for number, (slot, length) in enumerate(zip(op.slots or range(len(inputs)), lengths, strict=True)):
        name, dims = f"{node.name}/part_{number}", (op.rows, length)
        if slot >= 0:
            parts.append(reshape(layers, name, inputs[slot], dims, grid))
            continue
        values = node.params[f"operand{number}"].reshape(dims)
        if grid is None:
            parts.append(layers.add_floats(name, values))
        else:
            shift = 0 if layers.graph.type(node.output).signed else 128
            stored = (values.astype(np.int16) - shift).astype(np.int8)
            parts.append(layers.file.tensor(name, dims, np.int8, grid, stored))
    joined = layers.add(f"{node.output}/lines", "CONCATENATION", parts, (op.rows, sum(lengths)), grid, axis=1)
    finish_reshaped(layers, node, joined, grid)


def select_elements(layers: Layers, node: QuantNode) -> None:
    """Write a gather of elements; filled elements are read from a row of the fill value after the others."""
    (index,), grid, size = layers.sources(node), layers.grid(node.inputs[0]), layers.graph.shape(node.inputs[0])[1]
    positions, filled = node.op.positions()
    if not node.op.fills:
        finish_reshaped(layers, node, add_gather(layers, node.name, index, size, positions, grid), grid)
        return
    begins = filled & ~np.concatenate([[False], filled[:-1]])
    within = np.arange(len(positions)) - np.maximum.accumulate(np.where(begins, np.arange(len(positions)), 0))
    line = _row_length(np.where(filled, size + within, positions), size)
    rows = reshape(layers, f"{node.name}/lines", index, (size // line, line), grid)
    parts = [rows, _fill_row(layers, node, line, grid)]
    joined = layers.add(f"{node.name}/and_fill", "CONCATENATION", parts, (size // line + 1, line), grid, axis=0)
    wanted = layers.file.constant(f"{node.name}/positions", np.where(filled, size, positions).reshape(-1, line)[:, 0] // line)
    gathered = layers.add(f"{node.name}/taken", "GATHER", [joined, wanted], (len(positions) // line, line), grid, axis=0)
    finish_reshaped(layers, node, gathered, grid)


def _fill_row(layers: Layers, node: QuantNode, length: int, grid: Grid) -> int:
    """Return a row of `length` fill values."""
    kind, name = layers.graph.type(node.inputs[0]), f"{node.name}/fill"
    value = node.op.stored_fill(kind)
    if grid is None:
        return layers.add_floats(name, np.full((1, length), value, np.float32))
    stored = np.full((1, length), int(value) - (0 if kind.signed else 128), np.int8)
    return layers.file.tensor(name, (1, length), np.int8, grid, stored)


@LOWERINGS.declare("ArrayMatMul")
def array_matmul(layers: Layers, node: QuantNode) -> None:
    """Write BATCH_MATMUL; an operand that is stored transposed is passed with adjX or adjY."""
    op = node.op
    if op.result or (min(op.slots) < 0 and node.output not in layers.real):
        raise NoForm("a product of a constant array of integers, or of whole numbers")
    views, dims = op.full_views(), (op.left, op.right, op.dims)
    if len(op.dims) > _MOST_AXES + 1:
        raise NoForm(f"a product of {len(op.dims)} axes")
    operands, across = [], []
    for number, (slot, view, shape) in enumerate(zip(op.slots, views, dims, strict=False)):
        name = f"{node.name}/operand_{number}"
        if slot < 0:
            index, grid = layers.add_floats(f"{name}/values", node.params[f"operand{number}"].reshape(1, -1)), None
        else:
            index, grid = layers.index[node.inputs[slot]], layers.grid(node.inputs[slot])
        if number == 0 and op.scale != 1:
            index, grid = _scale_vector(layers, node, index, (1, view[0]), grid)
        swapped = view[-2] == 1 and view[-1] != 1
        if swapped:
            view, shape = (*view[:-2], view[-1], view[-2]), (*shape[:-2], shape[-1], shape[-2])
        across.append(swapped)
        operands.append(add_view(layers, name, index, view, shape, grid))
    grid = layers.grid(node.output)
    result = layers.add(f"{node.output}/product", "BATCH_MATMUL", operands, op.dims, grid, adjX=across[0], adjY=across[1])
    order = _storage_order(views[2], op.dims)
    if order is None:
        back = np.argsort(view_positions(views[2], op.dims).reshape(-1))
        result = add_gather(layers, f"{node.output}/ordered", result, len(back), back, grid)
    elif order != tuple(range(len(order))):
        result = transpose(layers, f"{node.output}/ordered", result, op.dims, order, grid)
    finish_reshaped(layers, node, result, grid)


def _scale_vector(layers: Layers, node: QuantNode, index: int, shape: tuple[int, ...], grid: Grid) -> tuple[int, Grid]:
    """Return a vector times the factor of a product: the same integers with another scale."""
    name, factor = f"{node.name}/scaled", node.op.scale
    if grid is None:
        constant, scaled = layers.add_floats(f"{node.name}/factor", np.array([factor], np.float32)), None
    else:
        stored = np.array([_UNIT], np.int8)
        unit = (np.float32(factor / _UNIT), 0)
        constant = layers.file.tensor(f"{node.name}/factor", (1,), np.int8, unit, stored)
        scaled = (np.float32(grid[0] * np.float32(factor)), grid[1])
    return layers.add(name, "MUL", [index, constant], shape, scaled), scaled


@LOWERINGS.declare("AddConstants")
def add_constants(layers: Layers, node: QuantNode) -> None:
    """Write a sum with a constant for each element, repeated explicitly."""
    _, size = layers.graph.shape(node.output)
    if node.output in layers.real:
        constants = layers.add_floats(f"{node.name}/constants", np.resize(node.params["constants"], (1, size)))
    else:
        form, step = node.form_as(Shifted), node.rescaling.effective()[0] * layers.graph.type(node.output).scale
        grid = (np.float32(form.constant_multiplier[0] * step), 0)
        values = np.resize(form.stored, (1, size))
        constants = layers.file.tensor(f"{node.name}/constants", values.shape, np.int8, grid, values)
    layers.write(node, "ADD", [*layers.sources(node), constants], fusedActivationFunction=layers.activation(node))


def array_softmax(layers: Layers, node: QuantNode, dims: tuple[int, int, int]) -> None:
    """Write a Softmax along the middle of three axes, transposed to the last one."""
    op, (index,), source = node.op, layers.sources(node), layers.grid(node.inputs[0])
    if op.log and source is not None:
        raise NoForm("the logarithm of a Softmax of integers")
    grid, name = layers.required_grid(node, PROBABILITIES), node.output
    order, swapped = (0, 2, 1), (dims[0], dims[2], dims[1])
    rows = reshape(layers, f"{name}/lines", index, dims[:2] if dims[2] == 1 else dims, source)
    if dims[2] > 1:
        rows = transpose(layers, f"{name}/turned", rows, dims, order, source)
    code, fields = ("LOG_SOFTMAX", {}) if op.log else ("SOFTMAX", {"beta": 1.0})
    result = layers.add(f"{name}/softmax", code, [rows], dims[:2] if dims[2] == 1 else swapped, grid, **fields)
    if dims[2] > 1:
        result = transpose(layers, f"{name}/back", result, swapped, order, grid)
    finish_reshaped(layers, node, result, grid)


@LOWERINGS.declare("Normalize")
def normalize(layers: Layers, node: QuantNode) -> None:
    """Write a normalization in float32, also for integers: TFLite has none."""
    op, (index,), grid, params = node.op, layers.sources(node), layers.grid(node.inputs[0]), node.params
    shape = layers.graph.shape(node.inputs[0])
    if op.part or len(shape) == 3 or op.power == 1:
        part = "a part of a normalisation" if op.part else ""
        axes = "a normalisation of the channels of a sequence" if len(shape) == 3 else "a normalisation by the L1 norm"
        raise NoForm(part or axes)
    dims, name = (elements(shape) // op.size, op.size), node.output

    def step(code: str, inputs: list[int], label: str, **fields) -> int:
        shape = (dims[0], 1) if label in ("mean", "variance", "shifted", "inverse", "root", "divisor") else dims
        return layers.add(f"{name}/{label}", code, inputs, shape, None, **fields)

    rows = reshape(layers, f"{name}/lines", index, dims, grid)
    if grid is not None:
        params = QUANTIZERS[node.op.kind].real_params(node, layers.graph) or {}
        rows = step("DEQUANTIZE", [rows], "real")
    last = layers.file.constant(f"{name}/axis", np.array([1]))
    away = rows
    if op.centred:
        away = step("SUB", [rows, step("MEAN", [rows, last], "mean", keepDims=True)], "away")
    variance = step("MEAN", [step("MUL", [away, away], "squares"), last], "variance", keepDims=True)
    epsilon = layers.add_floats(f"{name}/epsilon", np.array([op.epsilon], np.float32))
    shifted = step("ADD", [variance, epsilon], "shifted")
    if op.added:
        added = layers.add_floats(f"{name}/added", np.array([op.added], np.float32))
        result = step("DIV", [away, step("ADD", [step("SQRT", [shifted], "root"), added], "divisor")], "normal")
    else:
        result = step("MUL", [away, step("RSQRT", [shifted], "inverse")], "normal")
    for role, code in (("gain", "MUL"), ("shift", "ADD")):
        if role in params:
            result = step(code, [result, layers.add_floats(f"{name}/{role}_values", params[role])], role)
    wanted = layers.grid(name)
    if wanted is not None:
        result = layers.add(f"{name}/quantized", "QUANTIZE", [result], dims, wanted)
    finish_reshaped(layers, node, result, wanted)


@LOWERINGS.declare("MemoryView")
def view(layers: Layers, node: QuantNode) -> None:
    """Write a view between arrays and channels-last images; the byte order is unchanged."""
    finish_reshaped(layers, node, layers.index[node.inputs[0]], layers.grid(node.inputs[0]))
