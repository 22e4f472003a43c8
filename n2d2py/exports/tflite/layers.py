"""Layers as TFLite operators, by operator kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from n2d2py.contracts.functions import FUNCTIONS, Clip, Elu, Gelu, GeluTanh, HardSwish, LeakyRectifier, Tanh
from n2d2py.contracts.quant.quantizer import QUANTIZERS
from n2d2py.exports.model_file import NoForm, write_network
from n2d2py.exports.tflite.file import PROBABILITIES, SIGNED_UNITS, Grid, ModelFile, int8_grid, need_schema
from n2d2py.exports.tflite.writer import LOWERINGS, Layers, channels_last, fused_name
from n2d2py.graph import QuantGraph, QuantNode, Shape, elements
from n2d2py.graph.forms import Shifted
from n2d2py.graph.shapes import axis_along
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


def write_layer(layers: Layers, node: QuantNode) -> None:
    """Write a layer. Raise NoForm if TFLite cannot express it."""
    if node.op.kind not in LOWERINGS:
        raise NoForm(f"{node.op.kind}")
    ends = [*node.inputs, *node.outputs]
    integers = (name for name in ends if name not in layers.real and not layers.graph.type(name).is_float)
    wrong = [name for name in integers if not layers.is_int8(name)]
    if not wrong and node.op.kind != "Convert":
        wrong = [name for name in ends if (name in layers.real) != (node.output in layers.real)]
    if wrong:
        raise NoForm(f"{node.op.kind} reads or writes '{wrong[0]}', which is {layers.graph.type(wrong[0]).name}")
    for part in layers.parts(node):
        LOWERINGS[part.op.kind](layers, part)


@LOWERINGS.declare("Conv")
def _conv(layers: Layers, node: QuantNode) -> None:
    op, shape = node.op, layers.graph.shape(node.inputs[0])
    outputs, each, kh, kw = node.params["weights"].shape
    inputs = shape[1]
    depthwise = op.groups == inputs and each == 1 and op.groups > 1
    extents = [(k - 1) * d + 1 for k, d in zip((kh, kw), op.dilation, strict=True)]
    index, padding = layers.pad_window(node, op.pads, extents, op.stride)
    fields = {
        "padding": padding,
        "strideH": op.stride[0],
        "strideW": op.stride[1],
        "dilationHFactor": op.dilation[0],
        "dilationWFactor": op.dilation[1],
        "fusedActivationFunction": layers.activation(node),
    }
    if depthwise:  # output c * multiplier + m reads channel c, in both orders
        constants = layers.add_weights(node, lambda weights: weights[:, 0].transpose(1, 2, 0)[None], 3)
        layers.write(node, "DEPTHWISE_CONV_2D", [index, *constants], depthMultiplier=outputs // inputs, **fields)
        return
    constants = layers.add_weights(node, lambda weights: weights.transpose(0, 2, 3, 1), 0)
    layers.write(node, "CONV_2D", [index, *constants], **fields)


@LOWERINGS.declare("Fc")
def _fc(layers: Layers, node: QuantNode) -> None:
    shape = layers.graph.shape(node.inputs[0])

    def ordered(weights: np.ndarray) -> np.ndarray:
        if len(shape) == 4:
            weights = weights.reshape(-1, *shape[1:]).transpose(0, 2, 3, 1)
        return weights.reshape(len(weights), -1)

    inputs = [*layers.sources(node), *layers.add_weights(node, ordered, 0)]
    layers.write(node, "FULLY_CONNECTED", inputs, fusedActivationFunction=layers.activation(node))


@LOWERINGS.declare("Affine")
def _affine(layers: Layers, node: QuantNode) -> None:
    """Write scale and bias; for integers as a 1x1 depthwise convolution, with vectors as one-row images."""
    shape = layers.graph.shape(node.inputs[0])
    if node.output in layers.real:
        product = layers.add_tensor(f"{node.output}/product", shape, None)
        gain, shift = (
            (values if len(shape) in (2, 4) else values.reshape(-1, *(1,) * (len(shape) - 2)))
            for values in (node.params["weights"], node.params["bias"])
        )
        layers.file.operator("MUL", [*layers.sources(node), layers.add_floats(f"{node.name}/weights", gain)], product)
        inputs = [product, layers.add_floats(f"{node.name}/bias", shift)]
        layers.write(node, "ADD", inputs, fusedActivationFunction=layers.activation(node))
        return
    constants, index = layers.add_weights(node, lambda weights: weights.reshape(1, 1, 1, -1), 3), layers.index[node.inputs[0]]
    if len(shape) == 4:
        _depthwise(layers, node, index, constants, (1, 1))
        return
    name, grid, source, length = node.output, layers.grid(node.output), layers.grid(node.inputs[0]), prod(shape[2:])
    rows, pixels = (1, shape[1], length), (1, length, shape[1])
    if length > 1:
        index = reshape(layers, f"{name}/lines", index, rows, source)
        index = transpose(layers, f"{name}/pixels", index, rows, (0, 2, 1), source)
    image = reshape(layers, f"{name}/image", index, (1, *pixels), source)
    result = layers.add_file_tensor(f"{name}/scaled", (1, *pixels), grid)
    _depthwise(layers, node, image, constants, (1, 1), result)
    if length > 1:
        result = reshape(layers, f"{name}/rows", result, pixels, grid)
        result = transpose(layers, f"{name}/back", result, pixels, (0, 2, 1), grid)
    finish_reshaped(layers, node, result, grid)


def _depthwise(
    layers: Layers, node: QuantNode, index: int, constants: list[int], stride: tuple[int, int], result: int | None = None
) -> None:
    """Write a depthwise convolution; its result is the tensor `result`, or else the output of the layer."""
    layers.file.operator(
        "DEPTHWISE_CONV_2D",
        [index, *constants],
        layers.declare(node.output) if result is None else result,
        depthMultiplier=1,
        padding=layers.file.schema.Padding.VALID,
        strideH=stride[0],
        strideW=stride[1],
        dilationHFactor=1,
        dilationWFactor=1,
        fusedActivationFunction=layers.activation(node),
    )


@LOWERINGS.declare("Pool")
def _pool(layers: Layers, node: QuantNode) -> None:
    op, shape = node.op, layers.graph.shape(node.inputs[0])
    schema, grid = layers.file.schema, layers.grid(node.inputs[0])
    fields = {"strideH": op.stride[0], "strideW": op.stride[1], "filterHeight": op.kernel[0], "filterWidth": op.kernel[1]}
    if op.mode == "Max":
        index, padding = layers.pad_window(node, op.pads, op.kernel, op.stride, lowest=True)
        fields["fusedActivationFunction"] = layers.activation(node)
        layers.write_in(grid, node, "MAX_POOL_2D", [index], padding=padding, **fields)
        return
    counts, index = op.window_counts(shape[2:]), layers.index[node.inputs[0]]
    even, padding = bool((counts == counts.flat[0]).all()), schema.Padding.VALID
    if not even:
        index, padding = layers.pad_window(node, op.pads, op.kernel, op.stride)
        if padding != schema.Padding.SAME:
            raise NoForm("its mean leaves out pads other than those of SAME")
    elif any(op.pads):
        full = (shape[0], shape[1], shape[2] + op.pads[0] + op.pads[2], shape[3] + op.pads[1] + op.pads[3])
        index = layers.pad(index, node, op.pads, full)
    whole = tuple(op.kernel) == tuple(shape[2:]) and not any(op.pads)
    if whole and grid is not None and layers.activation(node) == schema.ActivationFunctionType.NONE:
        axes = layers.file.constant(f"{node.name}/axes", np.array([1, 2]))
        layers.write(node, "MEAN", [index, axes], keepDims=True)
        return
    if even and grid not in (None, layers.grid(node.output)):  # weights of 1 round once, whatever the scale of the result
        channels, count, scale = shape[1], int(counts.flat[0]), layers.graph.type(node.inputs[0]).scale
        values, scales = np.ones((1, *op.kernel, channels), np.int8), np.full(channels, 1 / count)
        constants = layers.add_integers(node, values, scales, 3, np.zeros(channels, np.int64), scales * scale)
        _depthwise(layers, node, index, constants, op.stride)
        return
    result = layers.add_tensor(f"{node.output}/mean" if grid else node.output, layers.graph.shape(node.output), grid)
    fields["fusedActivationFunction"] = layers.activation(node)
    layers.file.operator("AVERAGE_POOL_2D", [index], result, padding=padding, **fields)
    layers.finish(node, result, grid)


@LOWERINGS.declare("ElemWise")
def _elemwise(layers: Layers, node: QuantNode) -> None:
    op, count = node.op, len(node.inputs)
    weights, shifts = op.coefficients(count)
    sources, difference = layers.sources(node), op.operation == "Sum" and sorted(weights) == [-1.0, 1.0]
    code = {"Sum": "ADD", "Prod": "MUL", "Max": "MAXIMUM", "Min": "MINIMUM"}.get(op.operation)
    plain = not any(shifts) and (op.operation != "Sum" or set(weights) == {1.0} or difference)
    if code is None or count < 2 or (count > 2 and node.output not in layers.real) or not plain:
        raise NoForm(f"{op.operation} of {count} tensors with weights {list(weights)} and shifts {list(shifts)}")
    if difference:
        code, sources = "SUB", sources[:: int(weights[0])]
    fields = {"fusedActivationFunction": layers.activation(node)}
    if op.operation in ("Max", "Min"):
        if fields.pop("fusedActivationFunction") != layers.file.schema.ActivationFunctionType.NONE:
            raise NoForm(f"{op.operation} with an activation")
        sources = layers.in_grid(node, layers.grid(node.output))
    shape = channels_last(layers.graph.shape(node.output))
    for number, source in enumerate(sources[1:-1], 1):  # real numbers
        sources[0] = layers.add(f"{node.output}/of_{number + 1}", code, [sources[0], source], shape, None)
    layers.write(node, code, [sources[0], sources[-1]], **fields)


@LOWERINGS.declare("Concat")
def _concat(layers: Layers, node: QuantNode) -> None:
    """Write a concatenation of images along an axis, or of arrays; TFLite requires one scale for all."""
    op, grid, rank = node.op, layers.grid(node.output), len(layers.graph.shape(node.output))
    if op.slots or (op.rows > 1 and rank == 2):
        return concat_rows(layers, node)
    axis = channels_last(range(rank)).index(op.axis)
    inputs, activation = layers.in_grid(node, grid), layers.activation(node)
    layers.write(node, "CONCATENATION", inputs, axis=axis, fusedActivationFunction=activation)


@LOWERINGS.declare("Activation")
def _function(layers: Layers, node: QuantNode) -> None:
    """Write an element-wise function with the scale that TFLite requires, then requantize to that of the result."""
    function, (source,) = node.op.function, layers.sources(node)
    own = layers.grid(node.output)
    real = own is None
    if isinstance(function, Clip) and real:
        _clamp(layers, node, function)
    elif isinstance(function, Clip):
        if layers.activation(node) != layers.file.schema.ActivationFunctionType.NONE:
            raise NoForm("its limits are not those of its integers")
        layers.write(node, "QUANTIZE", [source])
    elif function in _UNIT_FUNCTIONS:
        code, grid = _UNIT_FUNCTIONS[function]
        layers.write_in(layers.required_grid(node, grid), node, code, [source])
    elif function == HardSwish():
        layers.write(node, "HARD_SWISH", [source])
    elif function == FUNCTIONS["Swish"]():
        grid, shape = layers.required_grid(node, PROBABILITIES), channels_last(layers.graph.shape(node.output))
        layers.write(node, "MUL", [source, layers.add(f"{node.output}/logistic", "LOGISTIC", [source], shape, grid)])
    elif isinstance(function, LeakyRectifier) and function == LeakyRectifier(function.slope):
        layers.write(node, "LEAKY_RELU", [source], alpha=float(function.slope))
    elif isinstance(function, (Gelu, GeluTanh)):
        layers.write(node, "GELU", [source], approximate=isinstance(function, GeluTanh))
    elif real and function in _REAL_FUNCTIONS:
        layers.write(node, _REAL_FUNCTIONS[function], [source])
    else:
        raise NoForm(f"the function {function}")


_UNIT_FUNCTIONS = {FUNCTIONS["Logistic"](): ("LOGISTIC", PROBABILITIES), Tanh(): ("TANH", SIGNED_UNITS)}
"""Functions whose int8 results have a fixed scale and zero point."""
_REAL_FUNCTIONS = {Elu(): "ELU", **{FUNCTIONS[name](): name.upper() for name in ("Abs", "Exp", "Log", "Sqrt")}}
"""Functions that TFLite has only in floating point."""


def _clamp(layers: Layers, node: QuantNode, function: Clip) -> None:
    (source,), shape = layers.sources(node), layers.graph.shape(node.output)
    if code := fused_name(function):
        return layers.write(node, code, [source])
    limits = [(code, limit) for code, limit in (("MAXIMUM", function.low), ("MINIMUM", function.high)) if np.isfinite(limit)]
    for number, (code, limit) in enumerate(limits, 1):
        last = number == len(limits)
        result = layers.declare(node.output) if last else layers.add_tensor(f"{node.output}/at_least", shape, None)
        bound = layers.add_floats(f"{node.name}/{code.lower()}", np.array([limit], np.float32))
        layers.file.operator(code, [source, bound], result)
        source = result


@LOWERINGS.declare("Softmax")
def _softmax(layers: Layers, node: QuantNode) -> None:
    shape = layers.graph.shape(node.output)
    lines = node.op.rows(shape)
    axis = axis_along(shape, *lines[1:])
    if axis is None and len(shape) == 3:
        raise NoForm("a Softmax of groups")
    if axis is not None:
        stored = channels_last(range(len(shape)))
        before, after = stored[1 : stored.index(axis)], stored[stored.index(axis) + 1 :]
        lines = prod(shape[each] for each in before), shape[axis], prod(shape[each] for each in after)
    if axis is None or node.op.log or axis != channels_last(range(len(shape)))[-1]:
        return array_softmax(layers, node, lines)
    layers.write_in(layers.required_grid(node, PROBABILITIES), node, "SOFTMAX", layers.sources(node), beta=1.0)


@LOWERINGS.declare("Resize")
def _resize(layers: Layers, node: QuantNode) -> None:
    op, bilinear = node.op, node.op.mode != "Nearest"
    size = layers.file.constant(f"{node.name}/size", np.array(op.size, np.int32))
    layers.write_in(
        layers.grid(node.inputs[0]),
        node,
        "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR",
        [*layers.sources(node), size],
        alignCorners=bilinear and op.coordinates == "AlignCorners",
        halfPixelCenters=bilinear and op.coordinates == "HalfPixel",
    )


@LOWERINGS.declare("Deconv")
def _deconv(layers: Layers, node: QuantNode) -> None:
    op, file = node.op, layers.file
    outputs, _, kh, kw = node.params["weights"].shape
    if op.groups != 1 or op.dilation != (1, 1):
        raise NoForm("a transposed convolution of groups, or a dilated one")
    shape, out = layers.graph.shape(node.inputs[0]), layers.graph.shape(node.output)
    whole = [(n - 1) * s + k for n, s, k in zip(shape[2:], op.stride, (kh, kw), strict=True)]
    if op.pads[0] < 0 or op.pads[1] < 0 or any(a + o > w for a, o, w in zip(op.pads[:2], out[2:], whole, strict=True)):
        raise NoForm("its pads are negative")
    activation, grid = layers.activation(node), layers.grid(node.output)
    target = file.constant(f"{node.name}/shape", np.array([1, *whole, outputs], np.int32))
    cropped = tuple(whole) != tuple(out[2:])
    result = layers.add_tensor(f"{node.output}/whole", (1, outputs, *whole), grid) if cropped else layers.declare(node.output)
    weights, bias = layers.add_weights(node, lambda weights: weights.transpose(0, 2, 3, 1), 0)
    file.operator(
        "TRANSPOSE_CONV",
        [target, weights, layers.index[node.inputs[0]], bias],
        result,
        padding=file.schema.Padding.VALID,
        strideH=op.stride[0],
        strideW=op.stride[1],
        fusedActivationFunction=activation,
    )
    if cropped:
        begin = file.constant(f"{node.name}/begin", np.array([0, op.pads[0], op.pads[1], 0], np.int32))
        size = file.constant(f"{node.name}/size", np.array([1, *out[2:], outputs], np.int32))
        layers.write(node, "SLICE", [result, begin, size])


@LOWERINGS.declare("Reshape")
def _reshape(layers: Layers, node: QuantNode) -> None:
    shape, out = layers.graph.shape(node.inputs[0]), layers.graph.shape(node.output)
    (index,), grid, file = layers.sources(node), layers.grid(node.inputs[0]), layers.file
    if len(shape) == 4 and np.prod(shape[2:]) > 1 and shape[1] > 1:
        moved = layers.add_file_tensor(f"{node.name}/nchw", shape, grid)
        file.operator("TRANSPOSE", [index, file.constant(f"{node.name}/perm", np.array([0, 3, 1, 2]))], moved)
        index = moved
    back = len(out) == 4 and np.prod(out[2:]) > 1 and out[1] > 1
    target = tuple(out) if back else channels_last(out)
    result = layers.add_file_tensor(f"{node.output}/nchw" if back else node.output, target, grid)
    values = np.array(target, np.int32)
    file.operator("RESHAPE", [index, file.constant(f"{node.name}/shape", values)], result, newShape=values)
    if back:
        last = layers.add_tensor(node.output, out, grid)
        file.operator("TRANSPOSE", [result, file.constant(f"{node.name}/back", np.array([0, 2, 3, 1]))], last)
        result = last
    layers.finish(node, result, grid)


@LOWERINGS.declare("Transpose")
def _transpose(layers: Layers, node: QuantNode) -> None:
    axes = channels_last(range(len(node.op.perm)))
    perm = layers.file.constant(f"{node.name}/perm", np.array([axes.index(node.op.perm[axis]) for axis in axes]))
    layers.write_in(layers.grid(node.inputs[0]), node, "TRANSPOSE", [*layers.sources(node), perm])


@LOWERINGS.declare("IndexSelect")
def _select(layers: Layers, node: QuantNode) -> None:
    """Write a strided slice for evenly spaced positions on every axis, else a GATHER for each axis with a selection."""
    if not node.op.by_axes(layers.graph.shape(node.inputs[0])):
        return select_elements(layers, node)
    file, (index,), grid = layers.file, layers.sources(node), layers.grid(node.inputs[0])
    shape, rank = list(layers.graph.shape(node.inputs[0])), len(node.op.indices) + 1
    indices = [None, *node.op.indices]
    order = channels_last(tuple(range(rank)))
    whole = [np.arange(size) if one is None else np.array(one) for one, size in zip(indices, shape, strict=True)]
    steps = [_step(one) for one in whole]
    if all(steps):
        ends = [int(one[-1]) + 1 for one in whole]
        bounds = zip(("begin", "end", "steps"), ([int(one[0]) for one in whole], ends, steps), strict=True)
        limits = [file.constant(f"{node.name}/{name}", np.array(values)[list(order)]) for name, values in bounds]
        return layers.write_in(grid, node, "STRIDED_SLICE", [index, *limits])
    for axis, positions in enumerate(indices):
        if positions is None:
            continue
        shape[axis] = len(positions)
        gathered = layers.add_tensor(f"{node.output}/axis_{axis}", tuple(shape), grid)
        wanted = file.constant(f"{node.name}/positions_{axis}", np.array(positions))
        file.operator("GATHER", [index, wanted], gathered, axis=order.index(axis))
        index = gathered
    return layers.finish(node, index, grid)


def _permute_channels(layers: Layers, name: str, index: int, shape: Shape, channels: np.ndarray, grid: Grid) -> int:
    result = layers.add_tensor(name, shape, grid)
    wanted = layers.file.constant(f"{name}/positions", channels)
    layers.file.operator("GATHER", [index, wanted], result, axis=3)
    return result


@LOWERINGS.declare("DepthToSpace")
def _depth_to_space(layers: Layers, node: QuantNode) -> None:
    """Write DEPTH_TO_SPACE; other channel orders are permuted to TFLite's first."""
    (index,), grid, area = layers.sources(node), layers.grid(node.inputs[0]), node.op.block**2
    shape = layers.graph.shape(node.inputs[0])
    if node.op.channels_first:
        channels = np.arange(shape[1]).reshape(-1, area).T.reshape(-1)
        index = _permute_channels(layers, f"{node.output}/channels", index, shape, channels, grid)
    layers.write_in(grid, node, "DEPTH_TO_SPACE", [index], blockSize=node.op.block)


@LOWERINGS.declare("SpaceToDepth")
def _space_to_depth(layers: Layers, node: QuantNode) -> None:
    """Write SPACE_TO_DEPTH, and permute TFLite's channel order to another one."""
    (index,), grid, area = layers.sources(node), layers.grid(node.inputs[0]), node.op.block**2
    after = layers.graph.shape(node.output)
    result = layers.add_tensor(f"{node.output}/depth" if node.op.channels_first else node.output, after, grid)
    layers.file.operator("SPACE_TO_DEPTH", [index], result, blockSize=node.op.block)
    if node.op.channels_first:
        channels = np.arange(after[1]).reshape(area, -1).T.reshape(-1)
        result = _permute_channels(layers, node.output, result, after, channels, grid)
    layers.finish(node, result, grid)


def _step(positions: np.ndarray) -> int:
    """Return the distance of evenly spaced ascending positions; 0 for others."""
    steps = set(np.diff(positions).tolist())
    return 1 if not steps else max(steps.pop(), 0) if len(steps) == 1 else 0


@LOWERINGS.declare("Padding")
def _padding(layers: Layers, node: QuantNode) -> None:
    op = node.op
    if min(op.pads) < 0 or getattr(op, "fill", 0):
        raise NoForm("it crops, or fills with another number than 0")
    result = layers.pad(layers.index[node.inputs[0]], node, op.pads, layers.graph.shape(node.output))
    layers.finish(node, result, layers.grid(node.inputs[0]))


@LOWERINGS.declare("Convert", "Identity")
def _reuse_input(layers: Layers, node: QuantNode) -> None:
    name, grid = node.output, layers.grid(node.inputs[0])
    if layers.graph.type(name).is_float:
        if name not in layers.real:  # a Softmax reads the integers
            grid = layers.grid(name)
    elif layers.activation(node) != layers.file.schema.ActivationFunctionType.NONE:
        raise NoForm("its limits are not those of its integers")
    layers.finish(node, layers.index[node.inputs[0]], grid)


@dataclass(frozen=True)
class TfliteModel:
    """The file; `codes` as in `ModelFile`, `index` as in `Layers`."""

    data: bytes
    codes: tuple[str, ...]
    index: Mapping[str, int]


def write_model(graph: QuantGraph, integer_io: bool = False) -> TfliteModel:
    """Return the model of a quantized network; inputs and outputs are float32, or int8 with `integer_io`. Raise E701 for every
    layer without TFLite form, E721 if the package with the schema is missing."""
    file = ModelFile(need_schema())
    layers, inputs = Layers(graph, file), dict[str, int]()

    def add_input(name: str) -> None:
        if name in layers.real or (integer_io and layers.is_int8(name)):
            inputs[name] = layers.declare(name)
            return
        kind, shape = graph.type(name), channels_last(graph.shape(name))
        if not layers.is_int8(name):
            raise NoForm(kind.name)
        inputs[name] = file.tensor(name, shape, np.float32)
        layers.index[name] = file.tensor(f"{name}/quantized", shape, np.int8, int8_grid(kind))
        file.operator("QUANTIZE", [inputs[name]], layers.index[name])

    write_network(graph, "TFLite", add_input, partial(write_layer, layers), layers.index, -1)
    outputs = {name: layers.index[name] for name in graph.outputs}
    for name, index in outputs.items():
        if not integer_io and name not in layers.real:
            outputs[name] = file.tensor(f"{name}/real", channels_last(graph.shape(name)), np.float32)
            file.operator("DEQUANTIZE", [index], outputs[name])
    return TfliteModel(file.to_bytes(graph.name, inputs, outputs), tuple(file.codes), dict(layers.index))
