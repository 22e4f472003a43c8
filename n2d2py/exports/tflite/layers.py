"""The layers as operators of TFLite on int8, by operator kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from n2d2py.exports.real_weights import real_weights
from n2d2py.exports.tflite.file import PROBABILITIES, ModelFile, int8_grid
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import Shape
from n2d2py.operators.convert import Convert
from n2d2py.operators.functions import FUNCTIONS, Clip, Gelu, GeluTanh, HardSwish, LeakyRectifier, Tanh
from n2d2py.operators.softmax import Softmax

_SIGNED_UNITS = (np.float32(1 / 128), 0)
"""The grid that TANH demands of its int8 results."""


class NoTfliteForm(Exception):
    """A layer cannot be written; the text says why."""


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape in the order of the file."""
    return (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else tuple(shape)


class Layers:
    """Writes layer after layer.

    Attributes:
        index: by tensor of the network, its tensor in the file.
    """

    def __init__(self, graph: QuantGraph, file: ModelFile):
        self.graph, self.file = graph, file
        self.index: dict[str, int] = {}

    def write(self, node: QuantNode) -> None:
        """Writes a layer.

        Raises:
            NoTfliteForm: for one that TFLite cannot express.
        """
        if node.op.kind not in LOWERINGS:
            raise NoTfliteForm(f"{node.op.kind} has no form here")
        ends = isinstance(node.op, (Convert, Softmax)) and self.graph.type(node.output).is_float
        names = [name for name in [*node.inputs, *node.outputs] if not (ends and self.graph.type(name).is_float)]
        if wrong := [name for name in names if (kind := self.graph.type(name)).is_float or kind.plain or kind.bits != 8]:
            raise NoTfliteForm(f"{node.op.kind} reads or writes '{wrong[0]}', which is {self.graph.type(wrong[0]).name}")
        LOWERINGS[node.op.kind](self, node)

    # ---- tensors --------------------------------------------------------------------------------
    def declare(self, name: str) -> int:
        """The tensor of the file for one of the network, added at first use."""
        if name not in self.index:
            self.index[name] = self.added(name, self.graph.shape(name), int8_grid(self.graph.type(name)))
        return self.index[name]

    def added(self, name: str, shape: Shape, grid: tuple[np.float32, int]) -> int:
        """A new tensor of int8 with `shape` in the order of the network."""
        return self.file.tensor(name, channels_last(shape), np.int8, grid)

    def sources(self, node: QuantNode) -> list[int]:
        """The tensors that a layer reads."""
        return [self.index[name] for name in node.inputs]

    def requantized(self, index: int, name: str, shape: Shape, source: tuple, target: tuple) -> int:
        """The values of a tensor in another grid, behind a QUANTIZE where that differs."""
        if source == target:
            return index
        found = self.added(name, shape, target)
        self.file.operator("QUANTIZE", [index], found, "QuantizeOptions")
        return found

    def in_grid(self, node: QuantNode, grid: tuple) -> list[int]:
        """The inputs of a layer, all in one grid."""
        return [
            self.requantized(
                index, f"{node.name}/input_{number}", self.graph.shape(name), int8_grid(self.graph.type(name)), grid
            )
            for number, (index, name) in enumerate(zip(self.sources(node), node.inputs, strict=True))
        ]

    def finish(self, node: QuantNode, index: int, grid: tuple[np.float32, int]) -> None:
        """Makes a tensor of a grid the result of a layer."""
        name = node.output
        wanted = int8_grid(self.graph.type(name))
        if grid == wanted:
            self.index[name] = index
        else:
            self.file.operator("QUANTIZE", [index], self.declare(name), "QuantizeOptions")

    def in_demanded_grid(
        self, node: QuantNode, code: str, grid: tuple[np.float32, int], inputs: list[int], options: str = "", **fields: Any
    ) -> None:
        """Writes the operator of a layer, whose result has the grid that the operator demands, behind it that of the tensor."""
        name = node.output
        here = grid == int8_grid(self.graph.type(name))
        found = self.declare(name) if here else self.added(f"{name}/{code.lower()}", self.graph.shape(name), grid)
        self.file.operator(code, inputs, found, options, **fields)
        self.finish(node, found, grid)

    def activation(self, node: QuantNode) -> int:
        """The fused activation that the limits of a layer ask for, beyond those of int8.

        Raises:
            NoTfliteForm: for other limits than those of RELU and RELU6.
        """
        kinds, kind = self.file.schema.ActivationFunctionType, self.graph.type(node.output)
        low, high = node.clamp or (kind.qmin, kind.qmax)
        full = (-128, 127) if kind.signed else (0, 255)
        below, above = low > full[0] and not (kind.signed and low == -127), high < full[1]
        six = abs(kind.scale * (high - kind.zero_point) - 6) <= kind.scale / 2
        if (below and low != kind.zero_point) or (above and not (six and low == kind.zero_point)):
            raise NoTfliteForm(f"its result is limited to {low} .. {high} of {kind.name}")
        return kinds.RELU6 if above else kinds.RELU if below else kinds.NONE

    # ---- windows --------------------------------------------------------------------------------
    def padded(
        self, node: QuantNode, pads: Sequence[int], extents: Sequence[int], stride: Sequence[int], lowest: bool = False
    ) -> tuple[int, int]:
        """(input, padding) of a window operator: SAME or VALID, behind a PAD where the pads are neither.

        `lowest`: pads never win a maximum; else they are 0.
        """
        padding, name = self.file.schema.Padding, node.inputs[0]
        index, shape, out = self.index[name], self.graph.shape(name), self.graph.shape(node.output)[2:]
        top, left, bottom, right = pads
        needed = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(out, stride, extents, shape[2:], strict=True)]
        if not any(pads):
            return index, padding.VALID
        same = (needed[0] // 2, needed[1] // 2, needed[0] - needed[0] // 2, needed[1] - needed[1] // 2)
        if same == tuple(pads) and tuple(out) == tuple(-(-n // s) for n, s in zip(shape[2:], stride, strict=True)):
            return index, padding.SAME
        if min(pads) < 0:
            raise NoTfliteForm("its pads are negative")
        full = (shape[0], shape[1], shape[2] + top + bottom, shape[3] + left + right)
        return self.pad(index, node, pads, full, lowest), padding.VALID

    def pad(self, index: int, node: QuantNode, pads: Sequence[int], full: Shape, lowest: bool = False) -> int:
        """A tensor of the shape `full` with a frame around the images."""
        top, left, bottom, right = pads
        grid = int8_grid(self.graph.type(node.inputs[0]))
        amounts = self.file.constant(f"{node.name}/pads", np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        found = self.added(f"{node.name}/padded", full, grid)
        if lowest:
            value = self.file.tensor(f"{node.name}/lowest", (1,), np.int8, grid, np.array([-128]))
            self.file.operator("PADV2", [index, amounts, value], found, "PadV2Options")
        else:
            self.file.operator("PAD", [index, amounts], found, "PadOptions")
        return found

    def bias(self, node: QuantNode, values: np.ndarray, steps: np.ndarray) -> int:
        """A bias of int32, or of 0.

        Raises:
            NoTfliteForm: for one beyond 32 bits.
        """
        if np.abs(values).max(initial=0) >= 2**31:
            raise NoTfliteForm("its bias needs more than 32 bits")
        return self.file.tensor(f"{node.name}/bias", values.shape, np.int32, (steps.astype(np.float32), 0), values)

    def weights(self, node: QuantNode, values: np.ndarray, scales: np.ndarray, axis: int) -> int:
        """Weights of int8.

        Raises:
            NoTfliteForm: for wider ones.
        """
        if values.dtype != np.int8:
            raise NoTfliteForm(f"its weights are {values.dtype.name}")
        return self.file.tensor(f"{node.name}/weights", values.shape, np.int8, (scales.astype(np.float32), 0), values, axis)


Lowering = Callable[[Layers, QuantNode], None]


def _conv(layers: Layers, node: QuantNode) -> None:
    op, real = node.op, real_weights(layers.graph, node)
    outputs, each, kh, kw = real.weights.shape
    inputs = layers.graph.shape(node.inputs[0])[1]
    depthwise = op.groups == inputs and each == 1 and op.groups > 1
    extents = [(k - 1) * d + 1 for k, d in zip((kh, kw), op.dilation, strict=True)]
    index, padding = layers.padded(node, op.pads, extents, op.stride)
    fields = {
        "padding": padding,
        "strideH": op.stride[0],
        "strideW": op.stride[1],
        "dilationHFactor": op.dilation[0],
        "dilationWFactor": op.dilation[1],
        "fusedActivationFunction": layers.activation(node),
    }
    if depthwise:  # output c * multiplier + m reads channel c, in both orders
        values = real.weights[:, 0].transpose(1, 2, 0)[None]
        constants = [layers.weights(node, values, real.scales, 3), layers.bias(node, real.whole_bias, real.steps)]
        layers.file.operator(
            "DEPTHWISE_CONV_2D",
            [index, *constants],
            layers.declare(node.output),
            "DepthwiseConv2DOptions",
            depthMultiplier=outputs // inputs,
            **fields,
        )
        return
    values = real.weights.transpose(0, 2, 3, 1)
    constants = [layers.weights(node, values, real.scales, 0), layers.bias(node, real.whole_bias, real.steps)]
    layers.file.operator("CONV_2D", [index, *constants], layers.declare(node.output), "Conv2DOptions", **fields)


def _fc(layers: Layers, node: QuantNode) -> None:
    real, shape = real_weights(layers.graph, node), layers.graph.shape(node.inputs[0])
    values = real.weights.reshape(len(real.bias), -1)
    if len(shape) == 4:
        values = values.reshape(-1, *shape[1:]).transpose(0, 2, 3, 1).reshape(len(values), -1)
    constants = [layers.weights(node, values, real.scales, 0), layers.bias(node, real.whole_bias, real.steps)]
    layers.file.operator(
        "FULLY_CONNECTED",
        [*layers.sources(node), *constants],
        layers.declare(node.output),
        "FullyConnectedOptions",
        fusedActivationFunction=layers.activation(node),
    )


def _affine(layers: Layers, node: QuantNode) -> None:
    """A depthwise convolution of 1x1, of images."""
    real, shape = real_weights(layers.graph, node), layers.graph.shape(node.inputs[0])
    if len(shape) != 4:
        raise NoTfliteForm("it scales the elements of a vector")
    values = real.weights.reshape(1, 1, 1, -1)
    _depthwise(layers, node, layers.index[node.inputs[0]], values, real.scales, real.whole_bias, real.steps, (1, 1))


def _depthwise(layers: Layers, node: QuantNode, index: int, values, scales, bias, steps, stride) -> None:
    constants = [layers.weights(node, values, scales, 3), layers.bias(node, bias, steps)]
    layers.file.operator(
        "DEPTHWISE_CONV_2D",
        [index, *constants],
        layers.declare(node.output),
        "DepthwiseConv2DOptions",
        depthMultiplier=1,
        padding=layers.file.schema.Padding.VALID,
        strideH=stride[0],
        strideW=stride[1],
        dilationHFactor=1,
        dilationWFactor=1,
        fusedActivationFunction=layers.activation(node),
    )


def _pool(layers: Layers, node: QuantNode) -> None:
    op, shape = node.op, layers.graph.shape(node.inputs[0])
    schema, grid = layers.file.schema, int8_grid(layers.graph.type(node.inputs[0]))
    fields = {"strideH": op.stride[0], "strideW": op.stride[1], "filterHeight": op.kernel[0], "filterWidth": op.kernel[1]}
    if op.mode == "Max":
        index, padding = layers.padded(node, op.pads, op.kernel, op.stride, lowest=True)
        made = layers.added(node.output, layers.graph.shape(node.output), grid)
        activation = layers.activation(node)
        layers.file.operator(
            "MAX_POOL_2D", [index], made, "Pool2DOptions", padding=padding, fusedActivationFunction=activation, **fields
        )
        layers.finish(node, made, grid)
        return
    counts = op.window_counts(shape[2:])
    if (counts == counts.flat[0]).all():  # weights of 1 round once, whatever the scale of the result
        channels, count = shape[1], int(counts.flat[0])
        scale = layers.graph.type(node.inputs[0]).scale
        index = layers.index[node.inputs[0]]
        if any(op.pads):
            full = (shape[0], channels, shape[2] + op.pads[0] + op.pads[2], shape[3] + op.pads[1] + op.pads[3])
            index = layers.pad(index, node, op.pads, full)
        values = np.ones((1, *op.kernel, channels), np.int8)
        scales = np.full(channels, 1 / count)
        _depthwise(layers, node, index, values, scales, np.zeros(channels, np.int64), scales * scale, op.stride)
        return
    index, padding = layers.padded(node, op.pads, op.kernel, op.stride)
    if padding != schema.Padding.SAME:
        raise NoTfliteForm("its mean leaves out pads other than those of SAME")
    made = layers.added(f"{node.output}/mean", layers.graph.shape(node.output), grid)
    activation = layers.activation(node)
    layers.file.operator(
        "AVERAGE_POOL_2D", [index], made, "Pool2DOptions", padding=padding, fusedActivationFunction=activation, **fields
    )
    layers.finish(node, made, grid)


def _elemwise(layers: Layers, node: QuantNode) -> None:
    op = node.op
    weights, shifts = op.coefficients(len(node.inputs))
    code = {"Sum": "ADD", "Prod": "MUL", "Max": "MAXIMUM", "Min": "MINIMUM"}.get(op.operation)
    if code is None or len(node.inputs) != 2 or any(shifts) or (set(weights) != {1.0} and op.operation != "Prod"):
        raise NoTfliteForm(
            f"{op.operation} of {len(node.inputs)} tensors with weights {list(weights)} and shifts {list(shifts)}"
        )
    activation = layers.activation(node)
    if code in ("ADD", "MUL"):
        options = {"ADD": "AddOptions", "MUL": "MulOptions"}[code]
        layers.file.operator(
            code, layers.sources(node), layers.declare(node.output), options, fusedActivationFunction=activation
        )
        return
    if activation != layers.file.schema.ActivationFunctionType.NONE:
        raise NoTfliteForm(f"{op.operation} with an activation")
    grid = int8_grid(layers.graph.type(node.output))
    layers.file.operator(code, layers.in_grid(node, grid), layers.declare(node.output), "MaximumMinimumOptions")


def _concat(layers: Layers, node: QuantNode) -> None:
    """Of channels; TFLite wants one grid for all."""
    grid = int8_grid(layers.graph.type(node.output))
    layers.file.operator(
        "CONCATENATION",
        layers.in_grid(node, grid),
        layers.declare(node.output),
        "ConcatenationOptions",
        axis=3 if len(layers.graph.shape(node.output)) == 4 else 1,
        fusedActivationFunction=layers.activation(node),
    )


def _function(layers: Layers, node: QuantNode) -> None:
    """A function of single values, in the grid that TFLite demands of it; then in that of the result."""
    function, (source,) = node.op.function, layers.sources(node)
    wanted, made = int8_grid(layers.graph.type(node.output)), partial(layers.in_demanded_grid, node)
    if isinstance(function, Clip):
        if layers.activation(node) != layers.file.schema.ActivationFunctionType.NONE:
            raise NoTfliteForm("its limits are not those of its integers")
        made("QUANTIZE", wanted, [source], "QuantizeOptions")
    elif function == FUNCTIONS["Logistic"]():
        made("LOGISTIC", PROBABILITIES, [source])
    elif function == Tanh():
        made("TANH", _SIGNED_UNITS, [source])
    elif function == HardSwish():
        made("HARD_SWISH", wanted, [source], "HardSwishOptions")
    elif function == FUNCTIONS["Swish"]():
        gate = layers.added(f"{node.output}/logistic", layers.graph.shape(node.output), PROBABILITIES)
        layers.file.operator("LOGISTIC", [source], gate)
        made("MUL", wanted, [source, gate], "MulOptions")
    elif isinstance(function, LeakyRectifier) and function == LeakyRectifier(function.slope):
        made("LEAKY_RELU", wanted, [source], "LeakyReluOptions", alpha=float(function.slope))
    elif isinstance(function, (Gelu, GeluTanh)):
        made("GELU", wanted, [source], "GeluOptions", approximate=isinstance(function, GeluTanh))
    else:
        raise NoTfliteForm(f"the function {function}")


def _softmax(layers: Layers, node: QuantNode) -> None:
    """Over the channels."""
    if node.op.log or node.op.group_size:
        raise NoTfliteForm("a Softmax of groups, or its logarithm")
    layers.in_demanded_grid(node, "SOFTMAX", PROBABILITIES, layers.sources(node), "SoftmaxOptions", beta=1.0)


def _resize(layers: Layers, node: QuantNode) -> None:
    op, file = node.op, layers.file
    size = file.constant(f"{node.name}/size", np.array(op.size, np.int32))
    code, options = (
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")
        if op.mode == "Nearest"
        else ("RESIZE_BILINEAR", "ResizeBilinearOptions")
    )
    bilinear = op.mode != "Nearest"
    grid = int8_grid(layers.graph.type(node.inputs[0]))
    made = layers.added(node.output, layers.graph.shape(node.output), grid)
    file.operator(
        code,
        [*layers.sources(node), size],
        made,
        options,
        alignCorners=bilinear and op.coordinates == "AlignCorners",
        halfPixelCenters=bilinear and op.coordinates == "HalfPixel",
    )
    layers.finish(node, made, grid)


def _deconv(layers: Layers, node: QuantNode) -> None:
    """Uncropped, then a slice where pads crop it."""
    op, real, file = node.op, real_weights(layers.graph, node), layers.file
    outputs, _, kh, kw = real.weights.shape
    if op.groups != 1 or op.dilation != (1, 1):
        raise NoTfliteForm("a transposed convolution of groups, or a dilated one")
    shape, out = layers.graph.shape(node.inputs[0]), layers.graph.shape(node.output)
    whole = [(n - 1) * s + k for n, s, k in zip(shape[2:], op.stride, (kh, kw), strict=True)]
    if op.pads[0] < 0 or op.pads[1] < 0 or any(a + o > w for a, o, w in zip(op.pads[:2], out[2:], whole, strict=True)):
        raise NoTfliteForm("its pads are negative")
    values = real.weights.transpose(0, 2, 3, 1)
    activation, grid = layers.activation(node), int8_grid(layers.graph.type(node.output))
    target = file.constant(f"{node.name}/shape", np.array([1, *whole, outputs], np.int32))
    cropped = tuple(whole) != tuple(out[2:])
    made = layers.added(f"{node.output}/whole", (1, outputs, *whole), grid) if cropped else layers.declare(node.output)
    weights = layers.weights(node, values, real.scales, 0)
    file.operator(
        "TRANSPOSE_CONV",
        [target, weights, layers.index[node.inputs[0]], layers.bias(node, real.whole_bias, real.steps)],
        made,
        "TransposeConvOptions",
        padding=file.schema.Padding.VALID,
        strideH=op.stride[0],
        strideW=op.stride[1],
        fusedActivationFunction=activation,
    )
    if cropped:
        begin = file.constant(f"{node.name}/begin", np.array([0, op.pads[0], op.pads[1], 0], np.int32))
        size = file.constant(f"{node.name}/size", np.array([1, *out[2:], outputs], np.int32))
        file.operator("SLICE", [made, begin, size], layers.declare(node.output), "SliceOptions")


def _reshape(layers: Layers, node: QuantNode) -> None:
    """Between maps and vectors by way of the order of the network."""
    shape, out = layers.graph.shape(node.inputs[0]), layers.graph.shape(node.output)
    kind, (index,) = layers.graph.type(node.inputs[0]), layers.sources(node)
    grid, file = int8_grid(kind), layers.file
    if len(shape) == 4 and np.prod(shape[2:]) > 1 and shape[1] > 1:
        moved = file.tensor(f"{node.name}/nchw", tuple(shape), np.int8, grid)
        file.operator(
            "TRANSPOSE", [index, file.constant(f"{node.name}/perm", np.array([0, 3, 1, 2]))], moved, "TransposeOptions"
        )
        index = moved
    back = len(out) == 4 and np.prod(out[2:]) > 1 and out[1] > 1
    target = tuple(out) if back else channels_last(out)
    made = file.tensor(f"{node.output}/nchw" if back else node.output, target, np.int8, grid)
    values = np.array(target, np.int32)
    file.operator("RESHAPE", [index, file.constant(f"{node.name}/shape", values)], made, "ReshapeOptions", newShape=values)
    if back:
        last = layers.added(node.output, out, grid)
        file.operator("TRANSPOSE", [made, file.constant(f"{node.name}/back", np.array([0, 2, 3, 1]))], last, "TransposeOptions")
        made = last
    layers.finish(node, made, grid)


def _transpose(layers: Layers, node: QuantNode) -> None:
    """The permutation of the network's axes, as one of the file's axes."""
    file, rank = layers.file, len(node.op.perm)
    axes = channels_last(tuple(range(rank)))
    perm = np.array([axes.index(node.op.perm[axis]) for axis in axes])
    grid = int8_grid(layers.graph.type(node.inputs[0]))
    made = layers.added(node.output, layers.graph.shape(node.output), grid)
    file.operator("TRANSPOSE", [*layers.sources(node), file.constant(f"{node.name}/perm", perm)], made, "TransposeOptions")
    layers.finish(node, made, grid)


def _select(layers: Layers, node: QuantNode) -> None:
    """A slice with steps where the positions of every axis are evenly spaced, else a GATHER for each axis of which some are taken."""
    file, (index,), grid = layers.file, layers.sources(node), int8_grid(layers.graph.type(node.inputs[0]))
    shape, rank = list(layers.graph.shape(node.inputs[0])), len(node.op.indices) + 1
    taken = [None, *node.op.indices]
    order = channels_last(tuple(range(rank)))
    whole = [np.arange(size) if one is None else np.array(one) for one, size in zip(taken, shape, strict=True)]
    steps = [_step(one) for one in whole]
    if all(steps):
        ends = [int(one[-1]) + 1 for one in whole]
        bounds = zip(("begin", "end", "steps"), ([int(one[0]) for one in whole], ends, steps), strict=True)
        limits = [file.constant(f"{node.name}/{name}", np.array(values)[list(order)]) for name, values in bounds]
        made = layers.added(node.output, layers.graph.shape(node.output), grid)
        file.operator("STRIDED_SLICE", [index, *limits], made, "StridedSliceOptions")
        return layers.finish(node, made, grid)
    for axis, positions in enumerate(taken):
        if positions is None:
            continue
        shape[axis] = len(positions)
        made = layers.added(f"{node.output}/axis_{axis}", tuple(shape), grid)
        wanted = file.constant(f"{node.name}/positions_{axis}", np.array(positions))
        file.operator("GATHER", [index, wanted], made, "GatherOptions", axis=order.index(axis))
        index = made
    return layers.finish(node, index, grid)


def _step(positions: np.ndarray) -> int:
    """The distance of evenly spaced rising positions; 0 for others."""
    steps = set(np.diff(positions).tolist())
    return 1 if not steps else max(steps.pop(), 0) if len(steps) == 1 else 0


def _padding(layers: Layers, node: QuantNode) -> None:
    op = node.op
    if min(op.pads) < 0 or getattr(op, "fill", 0):
        raise NoTfliteForm("it crops, or fills with another number than 0")
    made = layers.pad(layers.index[node.inputs[0]], node, op.pads, layers.graph.shape(node.output))
    layers.finish(node, made, int8_grid(layers.graph.type(node.inputs[0])))


def _same(layers: Layers, node: QuantNode) -> None:
    """The input itself, or in another grid; real numbers that a Softmax reads stay integers."""
    if layers.graph.type(node.output).is_float:
        if not all(reader.op.kind == "Softmax" for reader in layers.graph.consumers(node.output)):
            raise NoTfliteForm("it leads to layers in floating point")
        layers.index[node.output] = layers.index[node.inputs[0]]
        return
    if layers.activation(node) != layers.file.schema.ActivationFunctionType.NONE:
        raise NoTfliteForm("its limits are not those of its integers")
    layers.finish(node, layers.index[node.inputs[0]], int8_grid(layers.graph.type(node.inputs[0])))


LOWERINGS: dict[str, Lowering] = {
    "Activation": _function,
    "Affine": _affine,
    "Concat": _concat,
    "Conv": _conv,
    "Convert": _same,
    "Deconv": _deconv,
    "ElemWise": _elemwise,
    "Fc": _fc,
    "Identity": _same,
    "IndexSelect": _select,
    "Padding": _padding,
    "Pool": _pool,
    "Reshape": _reshape,
    "Resize": _resize,
    "Softmax": _softmax,
    "Transpose": _transpose,
}
"""How layers are written, by operator kind."""
