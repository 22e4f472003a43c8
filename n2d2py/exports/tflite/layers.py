"""Layers as TFLite operators, by operator kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from n2d2py.contracts.functions import FUNCTIONS, Clip, Elu, Gelu, GeluTanh, HardSwish, LeakyRectifier, Tanh
from n2d2py.exports.model_file import NoForm, write_network
from n2d2py.exports.tflite import arrays
from n2d2py.exports.tflite.file import PROBABILITIES, SIGNED_UNITS, Grid, ModelFile, int8_grid, need_schema
from n2d2py.exports.tflite.writer import LOWERINGS, Layers, channels_last, fused_name
from n2d2py.graph import QuantGraph, QuantNode, Shape, axis_along


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
        index = arrays.reshape(layers, f"{name}/lines", index, rows, source)
        index = arrays.transpose(layers, f"{name}/pixels", index, rows, (0, 2, 1), source)
    image = arrays.reshape(layers, f"{name}/image", index, (1, *pixels), source)
    result = layers.add_file_tensor(f"{name}/scaled", (1, *pixels), grid)
    _depthwise(layers, node, image, constants, (1, 1), result)
    if length > 1:
        result = arrays.reshape(layers, f"{name}/rows", result, pixels, grid)
        result = arrays.transpose(layers, f"{name}/back", result, pixels, (0, 2, 1), grid)
    arrays.finish_reshaped(layers, node, result, grid)


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
    """Write sums and differences, products, maxima, minima; in floating point also of more than two tensors."""
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
        return arrays.concat_rows(layers, node)
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
        return arrays.array_softmax(layers, node, lines)
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
    """Write a transposed convolution without crop, then a slice if pads crop it."""
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
    """Write a reshape between images and vectors in the network's order of elements."""
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
    """Write the permutation of the network's axes as one of the file's axes."""
    axes = channels_last(range(len(node.op.perm)))
    perm = layers.file.constant(f"{node.name}/perm", np.array([axes.index(node.op.perm[axis]) for axis in axes]))
    layers.write_in(layers.grid(node.inputs[0]), node, "TRANSPOSE", [*layers.sources(node), perm])


@LOWERINGS.declare("IndexSelect")
def _select(layers: Layers, node: QuantNode) -> None:
    """Write a strided slice for evenly spaced positions on every axis, else a GATHER for each axis with a selection."""
    if not node.op.by_axes(layers.graph.shape(node.inputs[0])):
        return arrays.select_elements(layers, node)
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
    """Add an image of `shape` with its channels in another order."""
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
