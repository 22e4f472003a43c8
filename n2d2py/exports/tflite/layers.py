"""Layers as TFLite operators, by operator kind."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from n2d2py.contracts.functions import FUNCTIONS, Clip, Elu, Gelu, GeluTanh, HardSwish, LeakyRectifier, Tanh
from n2d2py.contracts.quant.quantizer import QUANTIZERS
from n2d2py.exports.model_file import NoForm, write_network
from n2d2py.exports.tflite.file import PROBABILITIES, SIGNED_UNITS, ModelFile, as_int8, int8_grid, need_schema
from n2d2py.exports.tflite.writer import LOWERINGS, Dims, FileTensor, Layers, channels_last, fused_name
from n2d2py.graph import QuantGraph, QuantNode, dims_text, elements
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


def add_gather(layers: Layers, name: str, tensor: FileTensor, positions: np.ndarray) -> FileTensor:
    """Add a gather of the elements `positions` of a vector; of whole rows if possible."""
    size = prod(tensor.dims)
    line = _row_length(positions.reshape(-1), size)
    return _gather_rows(layers, name, layers.reshape(f"{name}/lines", tensor, (size // line, line)), positions)


def _gather_rows(layers: Layers, name: str, rows: FileTensor, positions: np.ndarray) -> FileTensor:
    """Add a gather of whole rows, for the positions of their elements."""
    line = rows.dims[1]
    wanted = layers.constant(f"{name}/positions", positions.reshape(-1, line)[:, 0] // line)
    return layers.add(f"{name}/taken", "GATHER", [rows, wanted], (positions.size // line, line), rows.grid, axis=0)


def _row_length(positions: np.ndarray, size: int) -> int:
    """Return the largest row length for which a vector of `size` elements is gathered by whole rows."""
    breaks = np.flatnonzero(np.diff(positions) != 1) + 1
    line = int(np.gcd.reduce(np.concatenate([breaks, [len(positions), size], positions[breaks], positions[:1]])))
    return max(line, 1)


def add_view(layers: Layers, name: str, tensor: FileTensor, view: View, dims: Dims) -> FileTensor:
    """Add the elements of a view, with the dimensions `dims`."""
    order = _storage_order(view, dims)
    if order is None:
        return layers.reshape(name, add_gather(layers, name, tensor, view_positions(view, dims)), dims)
    if order == tuple(range(len(dims))):
        return layers.reshape(name, tensor, dims)
    rows = layers.reshape(f"{name}/stored", tensor, tuple(dims[axis] for axis in order))
    return layers.transpose(name, rows, np.argsort(order).tolist())


def _storage_order(view: View, dims: Dims) -> Dims | None:
    """Return the axes in storage order; None if the view is not a permutation of the whole vector."""
    size, first, *steps = view
    order = tuple(sorted(range(len(dims)), key=lambda axis: -steps[axis] if dims[axis] > 1 else -np.inf))
    expected = [prod(dims[axis] for axis in order[place + 1 :]) for place in range(len(order))]
    fits = all(dims[axis] == 1 or steps[axis] == step for axis, step in zip(order, expected, strict=True))
    return order if first == 0 and size == prod(dims) and fits else None


def merge_axes(dims: Dims, shapes: tuple[Dims, ...]) -> tuple[Dims, list[Dims]]:
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
def _map(layers: Layers, node: QuantNode) -> None:
    """Write a map in floating point."""
    op = node.op
    if layers.grid(node.output) is not None or op.function not in MAPS or op.result:
        raise NoForm(f"the function {op.function} of arrays of {layers.graph.type(node.output).name}")
    dims, shapes = merge_axes(op.dims, op.shapes)
    if len(dims) > _MOST_AXES:
        raise NoForm(f"it repeats elements along axes of {dims_text(dims)}")
    operands = []
    for number, (slot, shape) in enumerate(zip(op.slots, shapes, strict=True)):
        if slot < 0:
            operands.append(layers.stored(f"{node.name}/operand_{number}", node.params[f"operand{number}"].reshape(shape)))
        else:
            operands.append(layers.reshape(f"{node.name}/input_{number}", layers.of(node.inputs[slot]), shape))
    code = MAPS[op.function]
    layers.finish_reshaped(node, layers.add(f"{node.output}/{code.lower()}", code, operands, dims, None))


def _concat_rows(layers: Layers, node: QuantNode) -> None:
    """Write a concatenation of vectors as rows, all with one scale."""
    op, grid = node.op, layers.grid(node.output)
    inputs, parts = layers.in_grid(node, grid), []
    lengths = op.lengths([layers.graph.shape(name) for name in node.inputs], node)
    for number, (slot, length) in enumerate(zip(op.slots or range(len(inputs)), lengths, strict=True)):
        name, dims = f"{node.name}/part_{number}", (op.rows, length)
        if slot >= 0:
            parts.append(layers.reshape(name, inputs[slot], dims))
        else:
            values = node.params[f"operand{number}"].reshape(dims)
            parts.append(layers.stored(name, values if grid is None else as_int8(values, layers.graph.type(node.output)), grid))
    joined = layers.add(f"{node.output}/lines", "CONCATENATION", parts, (op.rows, sum(lengths)), grid, axis=1)
    layers.finish_reshaped(node, joined)


def _select_elements(layers: Layers, node: QuantNode) -> None:
    """Write a gather of elements; filled elements are read from a row of the fill value after the others."""
    source, size = layers.source(node), layers.graph.shape(node.inputs[0])[1]
    positions, filled = node.op.positions()
    if not node.op.fills:
        layers.finish_reshaped(node, add_gather(layers, node.name, source, positions))
        return
    begins = filled & ~np.concatenate([[False], filled[:-1]])
    within = np.arange(len(positions)) - np.maximum.accumulate(np.where(begins, np.arange(len(positions)), 0))
    line = _row_length(np.where(filled, size + within, positions), size)
    rows = layers.reshape(f"{node.name}/lines", source, (size // line, line))
    kind = layers.graph.type(node.inputs[0])
    fill = np.full((1, line), node.op.stored_fill(kind))
    fills = layers.stored(f"{node.name}/fill", fill if rows.grid is None else as_int8(fill, kind), rows.grid)
    dims = (size // line + 1, line)
    joined = layers.add(f"{node.name}/and_fill", "CONCATENATION", [rows, fills], dims, rows.grid, axis=0)
    layers.finish_reshaped(node, _gather_rows(layers, node.name, joined, np.where(filled, size, positions)))


@LOWERINGS.declare("ArrayMatMul")
def _matmul(layers: Layers, node: QuantNode) -> None:
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
            tensor = layers.stored(f"{name}/values", node.params[f"operand{number}"].reshape(1, -1))
        else:
            tensor = layers.of(node.inputs[slot])
        if number == 0 and op.scale != 1:
            tensor = _scale_vector(layers, node, tensor)
        swapped = view[-2] == 1 and view[-1] != 1
        if swapped:
            view, shape = (*view[:-2], view[-1], view[-2]), (*shape[:-2], shape[-1], shape[-2])
        across.append(swapped)
        operands.append(add_view(layers, name, tensor, view, shape))
    grid, name = layers.grid(node.output), f"{node.output}/ordered"
    result = layers.add(f"{node.output}/product", "BATCH_MATMUL", operands, op.dims, grid, adjX=across[0], adjY=across[1])
    order = _storage_order(views[2], op.dims)
    if order is None:
        result = add_gather(layers, name, result, np.argsort(view_positions(views[2], op.dims).reshape(-1)))
    elif order != tuple(range(len(order))):
        result = layers.transpose(name, result, order)
    layers.finish_reshaped(node, result)


def _scale_vector(layers: Layers, node: QuantNode, tensor: FileTensor) -> FileTensor:
    """Return a vector times the factor of a product: the same integers with another scale."""
    factor, name, grid = node.op.scale, f"{node.name}/factor", tensor.grid
    if grid is None:
        constant = layers.stored(name, np.array([factor]))
    else:
        constant = layers.stored(name, np.array([_UNIT], np.int8), (np.float32(factor / _UNIT), 0))
        grid = (np.float32(grid[0] * np.float32(factor)), grid[1])
    return layers.add(f"{node.name}/scaled", "MUL", [tensor, constant], tensor.dims, grid)


@LOWERINGS.declare("AddConstants")
def _add_constants(layers: Layers, node: QuantNode) -> None:
    """Write a sum with a constant for each element, repeated explicitly."""
    dims, grid = layers.dims(node.output), None
    if node.output in layers.real:
        values = node.params["constants"]
    else:
        form, step = node.form_as(Shifted), node.rescaling.effective()[0] * layers.graph.type(node.output).scale
        values, grid = form.stored.astype(np.int8), (np.float32(form.constant_multiplier[0] * step), 0)
    constants = layers.stored(f"{node.name}/constants", np.resize(values, (1, dims[1])), grid)
    layers.write(node, "ADD", [layers.source(node), constants], fusedActivationFunction=layers.activation(node))


def _array_softmax(layers: Layers, node: QuantNode, dims: tuple[int, int, int]) -> None:
    """Write a Softmax along the middle of three axes, transposed to the last one."""
    op, source, name = node.op, layers.source(node), node.output
    if op.log and source.grid is not None:
        raise NoForm("the logarithm of a Softmax of integers")
    across = dims[2] > 1
    rows = layers.reshape(f"{name}/lines", source, dims if across else dims[:2])
    if across:
        rows = layers.transpose(f"{name}/turned", rows, (0, 2, 1))
    code, fields = ("LOG_SOFTMAX", {}) if op.log else ("SOFTMAX", {"beta": 1.0})
    result = layers.add(f"{name}/softmax", code, [rows], rows.dims, layers.required_grid(node, PROBABILITIES), **fields)
    if across:
        result = layers.transpose(f"{name}/back", result, (0, 2, 1))
    layers.finish_reshaped(node, result)


@LOWERINGS.declare("Normalize")
def _normalize(layers: Layers, node: QuantNode) -> None:
    """Write a normalization in float32, also for integers: TFLite has none."""
    op, source, params, shape = node.op, layers.source(node), node.params, layers.graph.shape(node.inputs[0])
    if op.part or len(shape) == 3 or op.power == 1:
        axes = "a normalisation of the channels of a sequence" if len(shape) == 3 else "a normalisation by the L1 norm"
        raise NoForm("a part of a normalisation" if op.part else axes)
    dims, name = (elements(shape) // op.size, op.size), node.output

    def step(code: str, inputs: list[FileTensor], label: str, **fields) -> FileTensor:
        size = (dims[0], 1) if label in ("mean", "variance", "shifted", "inverse", "root", "divisor") else dims
        return layers.add(f"{name}/{label}", code, inputs, size, None, **fields)

    def constant(label: str, value: float) -> FileTensor:
        return layers.stored(f"{name}/{label}", np.array([value]))

    rows = layers.reshape(f"{name}/lines", source, dims)
    if source.grid is not None:
        params = QUANTIZERS[node.op.kind].real_params(node, layers.graph) or {}
        rows = step("DEQUANTIZE", [rows], "real")
    last = layers.constant(f"{name}/axis", [1])
    away = rows
    if op.centred:
        away = step("SUB", [rows, step("MEAN", [rows, last], "mean", keepDims=True)], "away")
    variance = step("MEAN", [step("MUL", [away, away], "squares"), last], "variance", keepDims=True)
    shifted = step("ADD", [variance, constant("epsilon", op.epsilon)], "shifted")
    if op.added:
        added = constant("added", op.added)
        result = step("DIV", [away, step("ADD", [step("SQRT", [shifted], "root"), added], "divisor")], "normal")
    else:
        result = step("MUL", [away, step("RSQRT", [shifted], "inverse")], "normal")
    for role, code in (("gain", "MUL"), ("shift", "ADD")):
        if role in params:
            result = step(code, [result, layers.stored(f"{name}/{role}_values", params[role])], role)
    grid = layers.grid(name)
    if grid is not None:
        result = layers.add(f"{name}/quantized", "QUANTIZE", [result], dims, grid)
    layers.finish_reshaped(node, result)


@LOWERINGS.declare("MemoryView")
def _view(layers: Layers, node: QuantNode) -> None:
    """Write a view between arrays and channels-last images; the byte order is unchanged."""
    layers.finish_reshaped(node, layers.source(node))


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


def _strides(stride: tuple[int, int]) -> dict[str, int]:
    return {"strideH": stride[0], "strideW": stride[1]}


def _dilations(dilation: tuple[int, int]) -> dict[str, int]:
    return {"dilationHFactor": dilation[0], "dilationWFactor": dilation[1]}


@LOWERINGS.declare("Conv")
def _conv(layers: Layers, node: QuantNode) -> None:
    op, inputs = node.op, layers.graph.shape(node.inputs[0])[1]
    outputs, each, kh, kw = node.params["weights"].shape
    extents = [(k - 1) * d + 1 for k, d in zip((kh, kw), op.dilation, strict=True)]
    source, padding = layers.pad_window(node, op.pads, extents, op.stride)
    fields = {"padding": padding, **_strides(op.stride), **_dilations(op.dilation)}
    fields["fusedActivationFunction"] = layers.activation(node)
    if op.groups == inputs and each == 1 and op.groups > 1:  # output c * multiplier + m reads channel c, in both orders
        constants = layers.add_weights(node, lambda weights: weights[:, 0].transpose(1, 2, 0)[None], 3)
        layers.write(node, "DEPTHWISE_CONV_2D", [source, *constants], depthMultiplier=outputs // inputs, **fields)
    else:
        constants = layers.add_weights(node, lambda weights: weights.transpose(0, 2, 3, 1), 0)
        layers.write(node, "CONV_2D", [source, *constants], **fields)


@LOWERINGS.declare("Fc")
def _fc(layers: Layers, node: QuantNode) -> None:
    shape = layers.graph.shape(node.inputs[0])

    def ordered(weights: np.ndarray) -> np.ndarray:
        if len(shape) == 4:
            weights = weights.reshape(-1, *shape[1:]).transpose(0, 2, 3, 1)
        return weights.reshape(len(weights), -1)

    inputs = [layers.source(node), *layers.add_weights(node, ordered, 0)]
    layers.write(node, "FULLY_CONNECTED", inputs, fusedActivationFunction=layers.activation(node))


@LOWERINGS.declare("Affine")
def _affine(layers: Layers, node: QuantNode) -> None:
    """Write scale and bias; for integers as a 1x1 depthwise convolution, with vectors as one-row images."""
    shape, source, name = layers.graph.shape(node.inputs[0]), layers.source(node), node.output
    if name in layers.real:
        product = layers.new(f"{name}/product", source.dims, None)
        axes = (-1,) if len(shape) in (2, 4) else (-1, *(1,) * (len(shape) - 2))
        gain, shift = (node.params[role].reshape(axes) for role in ("weights", "bias"))
        layers.operator("MUL", [source, layers.stored(f"{node.name}/weights", gain)], product)
        inputs = [product, layers.stored(f"{node.name}/bias", shift)]
        layers.write(node, "ADD", inputs, fusedActivationFunction=layers.activation(node))
        return
    constants = layers.add_weights(node, lambda weights: weights.reshape(1, 1, 1, -1), 3)
    if len(shape) == 4:
        layers.write(node, "DEPTHWISE_CONV_2D", [source, *constants], **_depthwise(layers, node, (1, 1)))
        return
    length = prod(shape[2:])
    rows, pixels = (1, shape[1], length), (1, length, shape[1])
    if length > 1:
        source = layers.transpose(f"{name}/pixels", layers.reshape(f"{name}/lines", source, rows), (0, 2, 1))
    image, grid = layers.reshape(f"{name}/image", source, (1, *pixels)), layers.grid(name)
    fields = _depthwise(layers, node, (1, 1))
    result = layers.add(f"{name}/scaled", "DEPTHWISE_CONV_2D", [image, *constants], (1, *pixels), grid, **fields)
    if length > 1:
        result = layers.transpose(f"{name}/back", layers.reshape(f"{name}/rows", result, pixels), (0, 2, 1))
    layers.finish_reshaped(node, result)


def _depthwise(layers: Layers, node: QuantNode, stride: tuple[int, int]) -> dict[str, int]:
    """Return the fields of a depthwise convolution without padding, for a layer that is one in TFLite only."""
    fields = {"depthMultiplier": 1, "padding": layers.file.schema.Padding.VALID, **_strides(stride), **_dilations((1, 1))}
    return {**fields, "fusedActivationFunction": layers.activation(node)}


@LOWERINGS.declare("Pool")
def _pool(layers: Layers, node: QuantNode) -> None:
    op, source, valid = node.op, layers.source(node), layers.file.schema.Padding.VALID
    fields = {**_strides(op.stride), "filterHeight": op.kernel[0], "filterWidth": op.kernel[1]}
    if op.mode == "Max":
        tensor, padding = layers.pad_window(node, op.pads, op.kernel, op.stride, lowest=True)
        fields["fusedActivationFunction"] = layers.activation(node)
        layers.write_in(source.grid, node, "MAX_POOL_2D", [tensor], padding=padding, **fields)
        return
    counts, tensor, padding = op.window_counts(source.dims[1:3]), source, valid
    even = bool((counts == counts.flat[0]).all())
    if not even:
        tensor, padding = layers.pad_window(node, op.pads, op.kernel, op.stride)
        if padding != layers.file.schema.Padding.SAME:
            raise NoForm("its mean leaves out pads other than those of SAME")
    elif any(op.pads):
        tensor = layers.pad(node, op.pads)
    whole = tuple(op.kernel) == source.dims[1:3] and not any(op.pads)
    if whole and source.grid is not None and not layers.activation(node):
        layers.write(node, "MEAN", [tensor, layers.constant(f"{node.name}/axes", [1, 2])], keepDims=True)
        return
    if even and source.grid not in (None, layers.grid(node.output)):  # weights of 1 round once, whatever the scale
        channels, count, scale = source.dims[3], int(counts.flat[0]), layers.graph.type(node.inputs[0]).scale
        values, scales = np.ones((1, *op.kernel, channels), np.int8), np.full(channels, 1 / count)
        constants = layers.add_integers(node, values, scales, 3, np.zeros(channels, np.int64), scales * scale)
        layers.write(node, "DEPTHWISE_CONV_2D", [tensor, *constants], **_depthwise(layers, node, op.stride))
        return
    fields["fusedActivationFunction"] = layers.activation(node)
    name, dims = f"{node.output}/mean" if source.grid else node.output, layers.dims(node.output)
    layers.finish(node, layers.add(name, "AVERAGE_POOL_2D", [tensor], dims, source.grid, padding=padding, **fields))


@LOWERINGS.declare("ElemWise")
def _elemwise(layers: Layers, node: QuantNode) -> None:
    op, count = node.op, len(node.inputs)
    weights, shifts = op.coefficients(count)
    sources, difference = [layers.of(name) for name in node.inputs], op.operation == "Sum" and sorted(weights) == [-1.0, 1.0]
    code = {"Sum": "ADD", "Prod": "MUL", "Max": "MAXIMUM", "Min": "MINIMUM"}.get(op.operation)
    plain = not any(shifts) and (op.operation != "Sum" or set(weights) == {1.0} or difference)
    if code is None or count < 2 or (count > 2 and node.output not in layers.real) or not plain:
        raise NoForm(f"{op.operation} of {count} tensors with weights {list(weights)} and shifts {list(shifts)}")
    if difference:
        code, sources = "SUB", sources[:: int(weights[0])]
    fields = {"fusedActivationFunction": layers.activation(node)}
    if op.operation in ("Max", "Min"):
        if fields.pop("fusedActivationFunction"):
            raise NoForm(f"{op.operation} with an activation")
        sources = layers.in_grid(node, layers.grid(node.output))
    first, *others, last = sources
    for number, source in enumerate(others, 2):  # real numbers
        first = layers.add(f"{node.output}/of_{number}", code, [first, source], layers.dims(node.output), None)
    layers.write(node, code, [first, last], **fields)


@LOWERINGS.declare("Concat")
def _concat(layers: Layers, node: QuantNode) -> None:
    """Write a concatenation of images along an axis, or of arrays; TFLite requires one scale for all."""
    op, rank = node.op, len(layers.graph.shape(node.output))
    if op.slots or (op.rows > 1 and rank == 2):
        return _concat_rows(layers, node)
    axis = channels_last(range(rank)).index(op.axis)
    inputs, activation = layers.in_grid(node, layers.grid(node.output)), layers.activation(node)
    layers.write(node, "CONCATENATION", inputs, axis=axis, fusedActivationFunction=activation)


@LOWERINGS.declare("Activation")
def _function(layers: Layers, node: QuantNode) -> None:
    """Write an element-wise function with the scale that TFLite requires, then requantize to that of the result."""
    function, source, real = node.op.function, layers.source(node), layers.grid(node.output) is None
    if isinstance(function, Clip) and real:
        _clamp(layers, node, function)
    elif isinstance(function, Clip):
        layers.refuse_limits(node)
        layers.write(node, "QUANTIZE", [source])
    elif function in _UNIT_FUNCTIONS:
        code, grid = _UNIT_FUNCTIONS[function]
        layers.write_in(layers.required_grid(node, grid), node, code, [source])
    elif function == HardSwish():
        layers.write(node, "HARD_SWISH", [source])
    elif function == FUNCTIONS["Swish"]():
        grid, dims = layers.required_grid(node, PROBABILITIES), layers.dims(node.output)
        layers.write(node, "MUL", [source, layers.add(f"{node.output}/logistic", "LOGISTIC", [source], dims, grid)])
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
    source = layers.source(node)
    if code := fused_name(function):
        return layers.write(node, code, [source])
    limits = [(code, limit) for code, limit in (("MAXIMUM", function.low), ("MINIMUM", function.high)) if np.isfinite(limit)]
    for number, (code, limit) in enumerate(limits, 1):
        is_last = number == len(limits)
        result = layers.declare(node.output) if is_last else layers.new(f"{node.output}/at_least", source.dims, None)
        bound = layers.stored(f"{node.name}/{code.lower()}", np.array([limit]))
        source = layers.operator(code, [source, bound], result)


@LOWERINGS.declare("Softmax")
def _softmax(layers: Layers, node: QuantNode) -> None:
    shape = layers.graph.shape(node.output)
    lines = node.op.rows(shape)
    axis = axis_along(shape, *lines[1:])
    if axis is None and len(shape) == 3:
        raise NoForm("a Softmax of groups")
    stored = channels_last(range(len(shape)))
    if axis is not None:
        before, after = stored[1 : stored.index(axis)], stored[stored.index(axis) + 1 :]
        lines = prod(shape[each] for each in before), shape[axis], prod(shape[each] for each in after)
    if axis is None or node.op.log or axis != stored[-1]:
        return _array_softmax(layers, node, lines)
    layers.write_in(layers.required_grid(node, PROBABILITIES), node, "SOFTMAX", [layers.source(node)], beta=1.0)


@LOWERINGS.declare("Resize")
def _resize(layers: Layers, node: QuantNode) -> None:
    op, source, bilinear = node.op, layers.source(node), node.op.mode != "Nearest"
    inputs = [source, layers.constant(f"{node.name}/size", op.size)]
    code = "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR"
    rules = {"alignCorners": "AlignCorners", "halfPixelCenters": "HalfPixel"}
    fields = {field: bilinear and op.coordinates == rule for field, rule in rules.items()}
    layers.write_in(source.grid, node, code, inputs, **fields)


@LOWERINGS.declare("Deconv")
def _deconv(layers: Layers, node: QuantNode) -> None:
    op, source = node.op, layers.source(node)
    outputs, _, kh, kw = node.params["weights"].shape
    if op.groups != 1 or op.dilation != (1, 1):
        raise NoForm("a transposed convolution of groups, or a dilated one")
    out = layers.dims(node.output)[1:3]
    whole = tuple((n - 1) * s + k for n, s, k in zip(source.dims[1:3], op.stride, (kh, kw), strict=True))
    if op.pads[0] < 0 or op.pads[1] < 0 or any(a + o > w for a, o, w in zip(op.pads[:2], out, whole, strict=True)):
        raise NoForm("its pads are negative")
    activation, dims = layers.activation(node), (1, *whole, outputs)
    target, cropped = layers.constant(f"{node.name}/shape", dims), whole != out
    grid = layers.grid(node.output)
    result = layers.new(f"{node.output}/whole", dims, grid) if cropped else layers.declare(node.output)
    weights, bias = layers.add_weights(node, lambda weights: weights.transpose(0, 2, 3, 1), 0)
    fields = {"padding": layers.file.schema.Padding.VALID, **_strides(op.stride), "fusedActivationFunction": activation}
    layers.operator("TRANSPOSE_CONV", [target, weights, source, bias], result, **fields)
    if cropped:
        begin = layers.constant(f"{node.name}/begin", (0, op.pads[0], op.pads[1], 0))
        size = layers.constant(f"{node.name}/size", (1, *out, outputs))
        layers.write(node, "SLICE", [result, begin, size])


@LOWERINGS.declare("Reshape")
def _reshape(layers: Layers, node: QuantNode) -> None:
    shape, out, tensor = layers.graph.shape(node.inputs[0]), layers.graph.shape(node.output), layers.source(node)
    if len(shape) == 4 and prod(shape[2:]) > 1 and shape[1] > 1:
        tensor = layers.transpose(f"{node.name}/nchw", tensor, (0, 3, 1, 2), f"{node.name}/perm")
    if len(out) == 4 and prod(out[2:]) > 1 and out[1] > 1:
        tensor = layers.reshape(f"{node.output}/nchw", tensor, tuple(out), f"{node.name}/shape")
        tensor = layers.transpose(node.output, tensor, (0, 2, 3, 1), f"{node.name}/back")
    else:
        tensor = layers.reshape(node.output, tensor, channels_last(out), f"{node.name}/shape")
    layers.finish(node, tensor)


@LOWERINGS.declare("Transpose")
def _transpose(layers: Layers, node: QuantNode) -> None:
    axes, source = channels_last(range(len(node.op.perm))), layers.source(node)
    perm = layers.constant(f"{node.name}/perm", [axes.index(node.op.perm[axis]) for axis in axes])
    layers.write_in(source.grid, node, "TRANSPOSE", [source, perm])


@LOWERINGS.declare("IndexSelect")
def _select(layers: Layers, node: QuantNode) -> None:
    """Write a strided slice for evenly spaced positions on every axis, else a GATHER for each axis with a selection."""
    shape, tensor = layers.graph.shape(node.inputs[0]), layers.source(node)
    if not node.op.by_axes(shape):
        return _select_elements(layers, node)
    indices = [None, *node.op.indices]
    order = channels_last(range(len(indices)))
    whole = [np.arange(size) if one is None else np.array(one) for one, size in zip(indices, shape, strict=True)]
    steps = [_step(one) for one in whole]
    if all(steps):
        bounds = {"begin": [one[0] for one in whole], "end": [one[-1] + 1 for one in whole], "steps": steps}
        limits = [layers.constant(f"{node.name}/{name}", np.array(values)[list(order)]) for name, values in bounds.items()]
        return layers.write_in(tensor.grid, node, "STRIDED_SLICE", [tensor, *limits])
    for axis, positions in enumerate(indices):
        if positions is not None:
            name, constant = f"{node.output}/axis_{axis}", f"{node.name}/positions_{axis}"
            tensor = layers.gather(name, tensor, np.array(positions), order.index(axis), constant)
    return layers.finish(node, tensor)


@LOWERINGS.declare("DepthToSpace")
def _depth_to_space(layers: Layers, node: QuantNode) -> None:
    """Write DEPTH_TO_SPACE; other channel orders are permuted to TFLite's first."""
    tensor, area = layers.source(node), node.op.block**2
    if node.op.channels_first:
        name, channels = f"{node.output}/channels", np.arange(tensor.dims[3]).reshape(-1, area).T.reshape(-1)
        tensor = layers.gather(name, tensor, channels, 3, f"{name}/positions")
    layers.write_in(tensor.grid, node, "DEPTH_TO_SPACE", [tensor], blockSize=node.op.block)


@LOWERINGS.declare("SpaceToDepth")
def _space_to_depth(layers: Layers, node: QuantNode) -> None:
    """Write SPACE_TO_DEPTH, and permute TFLite's channel order to another one."""
    source, area, dims = layers.source(node), node.op.block**2, layers.dims(node.output)
    name = f"{node.output}/depth" if node.op.channels_first else node.output
    result = layers.add(name, "SPACE_TO_DEPTH", [source], dims, source.grid, blockSize=node.op.block)
    if node.op.channels_first:
        channels = np.arange(dims[3]).reshape(area, -1).T.reshape(-1)
        result = layers.gather(node.output, result, channels, 3, f"{node.output}/positions")
    layers.finish(node, result)


def _step(positions: np.ndarray) -> int:
    """Return the distance of evenly spaced ascending positions; 0 for others."""
    steps = set(np.diff(positions).tolist())
    return 1 if not steps else max(steps.pop(), 0) if len(steps) == 1 else 0


@LOWERINGS.declare("Padding")
def _padding(layers: Layers, node: QuantNode) -> None:
    if min(node.op.pads) < 0 or getattr(node.op, "fill", 0):
        raise NoForm("it crops, or fills with another number than 0")
    layers.finish(node, layers.pad(node, node.op.pads))


@LOWERINGS.declare("Convert", "Identity")
def _reuse_input(layers: Layers, node: QuantNode) -> None:
    tensor, name = layers.source(node), node.output
    if not layers.graph.type(name).is_float:
        layers.refuse_limits(node)
    elif name not in layers.real:  # a Softmax reads the integers
        tensor = replace(tensor, grid=layers.grid(name))
    layers.finish(node, tensor)


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
            inputs[name] = layers.declare(name).index
            return
        kind, dims = graph.type(name), layers.dims(name)
        if not layers.is_int8(name):
            raise NoForm(kind.name)
        real = layers.new(name, dims, None)
        inputs[name] = real.index
        layers.index[name] = layers.add(f"{name}/quantized", "QUANTIZE", [real], dims, int8_grid(kind)).index

    write_network(graph, "TFLite", add_input, partial(write_layer, layers), layers.index, -1)
    outputs = {name: layers.of(name) for name in graph.outputs}
    for name, tensor in outputs.items():
        if not integer_io and name not in layers.real:
            outputs[name] = layers.add(f"{name}/real", "DEQUANTIZE", [tensor], tensor.dims, None)
    data = file.to_bytes(graph.name, inputs, {name: tensor.index for name, tensor in outputs.items()})
    return TfliteModel(data, tuple(file.codes), dict(layers.index))
