"""Layers as ncnn layers, by operator kind: integers in convolutions and fully connected layers, floats elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

import numpy as np

from n2d2py.contracts import functions
from n2d2py.exports.model_file import NoForm, real_weights, write_network
from n2d2py.graph import QuantGraph, QuantNode, Shape, Weighted
from n2d2py.graph.shapes import axis_along
from n2d2py.registry import Registry
from n2d2py_ncnn.arithmetic import inverse_scales
from n2d2py_ncnn.file import NcnnNetwork, NetworkFile, Value, real_numbers, tagged_weights


@dataclass(frozen=True)
class NcnnStep:
    """A layer of a chain.

    Attributes:
        weights: its data in the .bin file.
        fused: type and parameters as activation of a convolution; None if it cannot be fused.
    """

    type: str
    parameters: Mapping[int, Value] = field(default_factory=dict)
    weights: tuple[bytes, ...] = ()
    fused: tuple[int, tuple[float, ...]] | None = None


_UNARY = {"Sqrt": 5, "Exp": 7, "Log": 8}
_PLAIN = {
    "Abs": NcnnStep("AbsVal"),
    "Logistic": NcnnStep("Sigmoid", fused=(4, ())),
    "Mish": NcnnStep("Mish", fused=(5, ())),
    "Softplus": NcnnStep("Softplus"),
    "Swish": NcnnStep("Swish"),
    **{name: NcnnStep("UnaryOp", {0: number}) for name, number in _UNARY.items()},
}
"""Functions without attributes."""


def clamp_layers(low: float, high: float) -> list[NcnnStep]:
    """Return the layers of min(max(x, low), high)."""
    if low == -inf and high == inf:
        return []
    if low == 0 and high == inf:
        return [NcnnStep("ReLU", fused=(1, ()))]
    limits: dict[int, Value] = {number: float(edge) for number, edge in enumerate((low, high)) if isfinite(edge)}
    return [NcnnStep("Clip", limits, fused=(3, (float(low), float(high))) if len(limits) == 2 else None)]


def limit_layers(graph: QuantGraph, node: QuantNode, saturates: bool) -> list[NcnnStep]:
    """Return the limits of an integer layer's results as layers.

    `saturates`: also limit to the ends of their type, since the consumers do not.
    """
    kind = graph.type(node.output)
    low, high = node.clamp or (kind.qmin, kind.qmax)
    above = saturates or high < kind.qmax
    below = saturates or low > kind.qmin or (not kind.signed and kind.zero_point == 0)
    return clamp_layers(
        kind.scale * (low - kind.zero_point) if below else -inf, kind.scale * (high - kind.zero_point) if above else inf
    )


def function_layers(function: functions.FunctionRow) -> list[NcnnStep]:
    """Return the layers of a function. Raise NoForm if ncnn does not have it."""
    if type(function) is functions.FUNCTIONS.get(function.kind) and function.kind in _PLAIN:
        return [_PLAIN[function.kind]]
    if isinstance(function, functions.Clip):
        return clamp_layers(function.low, function.high)
    if isinstance(function, functions.LeakyRectifier):
        slope = float(function.slope)
        return [NcnnStep("ReLU", {0: slope}, fused=(2, (slope,))), *clamp_layers(-inf, function.high)]
    if isinstance(function, functions.Tanh):
        return [*([] if function.alpha == 1 else [scale_layer(function.alpha)]), NcnnStep("TanH")]
    if isinstance(function, functions.HardSigmoid):
        return [NcnnStep("HardSigmoid", {0: float(function.gain), 1: float(function.shift)})]
    if isinstance(function, functions.HardSwish) and function.high == 1:
        gain, shift = float(function.gain), float(function.shift)
        return [NcnnStep("HardSwish", {0: gain, 1: shift}, fused=(6, (gain, shift)))]
    if isinstance(function, functions.Elu) and function.rate == 1:
        if function.gain == 1:
            return [NcnnStep("ELU", {0: float(function.alpha)})]
        return [NcnnStep("SELU", {0: float(function.alpha), 1: float(function.gain)})]
    if isinstance(function, (functions.Gelu, functions.GeluTanh)):
        return [NcnnStep("GELU", {0: int(isinstance(function, functions.GeluTanh))})]
    raise NoForm(f"the function {function}")


def scale_layer(factor: float) -> NcnnStep:
    """Return the layer of x * factor."""
    return NcnnStep("BinaryOp", {0: 2, 1: 1, 2: float(factor)})


def shift_layer(offset: float) -> NcnnStep:
    """Return the layer of x + offset."""
    return NcnnStep("BinaryOp", {0: 0, 1: 1, 2: float(offset)})


def rounding_layers(scale: float) -> list[NcnnStep]:
    """Return the layers that round to a multiple of `scale`, ties to even."""
    return [scale_layer(1 / scale), NcnnStep("UnaryOp", {0: 18}), scale_layer(scale)]


_LARGEST_HALF = 65504.0
_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM = 0, 2, 4, 5
_SYMMETRIC = "quantize the float model with n2d2py for this export"
_SCALES, _REQUANTIZED = 1, 101
"""Values of int8_scale_term: scales after the weights, and also one of the result."""


Constants = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Weights (O, ...), bias (O, float32), and the scales of integer weights (O, float64), None for real ones."""


def dims(shape: Shape) -> dict[int, int]:
    """Return the sizes of a blob as parameters of Input, Reshape and MemoryData: width, height, channels."""
    return dict(enumerate(shape[:0:-1]))


class NcnnLayers:
    """Writer of layers.

    Attributes:
        half: True for weights in half precision; `round_blobs`: the export parameter.
        blobs: blob of the file for each tensor of the network.
        stored: tensors whose blob has 8-bit integers.
        integer: layers that compute in 8-bit integers.
        real: weighted layers of an integer network that compute in floating point.
        halves: layers whose weights can be stored in half precision.
        rounded: blobs that are rounded to the scale of their tensor.
        unpacked: True if some layer is exact only without packed channels.
        network: what `write_model` makes of the file.
    """

    network: NcnnNetwork

    def __init__(self, graph: QuantGraph, file: NetworkFile, half: bool, round_blobs: bool):
        self.graph, self.file, self.half, self.round_blobs = graph, file, half, round_blobs
        self.blobs: dict[str, str] = {}
        self.stored: list[str] = []
        self.integer: list[str] = []
        self.real: list[str] = []
        self.halves = 0
        self.rounded = 0
        self.unpacked = False

    def input(self, name: str) -> None:
        if self.graph.type(name).plain:
            raise NoForm(self.graph.type(name).name, "make it a float input")
        self.blobs[name] = self.file.blob(name)
        self.file.layer("Input", name, [], [self.blobs[name]], dims(self.graph.shape(name)))

    def write(self, node: QuantNode) -> None:
        """Write a layer. Raise NoForm if ncnn cannot express it."""
        if node.op.kind not in LOWERINGS:
            raise NoForm(node.op.kind)
        for name in [*node.inputs, *node.outputs]:
            if self.graph.type(name).plain:
                raise NoForm(f"'{name}' has plain integers without a scale")
            if len(self.graph.shape(name)) not in (2, 3, 4):
                raise NoForm(f"'{name}' has {len(self.graph.shape(name))} axes")
        LOWERINGS[node.op.kind](self, node)

    def outputs(self) -> list[str]:
        """Return the blobs of the network's outputs, with the output names."""
        for name in self.graph.outputs:
            blob = self.blobs[name]
            if list(self.blobs.values()).count(blob) > 1:  # of another tensor
                self.blobs[name] = self.file.blob(name)
                self.file.layer("Noop", f"output_{name}", [blob], [self.blobs[name]])
        return [self.blobs[name] for name in self.graph.outputs]

    # ---- what all layers use --------------------------------------------------------------------
    def sources(self, node: QuantNode) -> list[str]:
        return [self.blobs[name] for name in node.inputs]

    def steps(self, node: QuantNode) -> list[NcnnStep]:
        """Return the layers that follow a layer: its activation, or its integer limits. Raise NoForm as `function_layers`."""
        if node.activation is not None:
            return function_layers(node.activation)
        if self.graph.type(node.output).is_float:
            return []
        kind, readers = self.graph.type(node.output), self.graph.consumers(node.output)
        real = not all(self.runs_in_integers(one) for one in readers)
        rounding = rounding_layers(kind.scale) if real and self.round_blobs and kind.bits == 8 else []
        self.rounded += bool(rounding)
        return [*limit_layers(self.graph, node, real), *rounding]

    def add(
        self, node: QuantNode, *layers: NcnnStep, inputs: Sequence[str] | None = None, steps: Sequence[NcnnStep] | None = None
    ) -> None:
        """Add a chain of layers whose result, after `steps` (by default those of the node), is that of the node; without any,
        add an alias."""
        every = [*layers, *(self.steps(node) if steps is None else steps)]
        current = list(self.sources(node) if inputs is None else inputs)
        for number, step in enumerate(every):
            suffix = f"_{step.type.lower()}"
            blob = self.file.blob(node.output + (suffix if number < len(every) - 1 else ""))
            name = node.name + (suffix if number else "")
            self.file.layer(step.type, name, current, [blob], step.parameters, step.weights)
            current = [blob]
        (self.blobs[node.output],) = current

    def add_before(self, node: QuantNode, kind: str, inputs: Sequence[str], parameters: Mapping[int, Value]) -> str:
        """Add a layer before the last of a node; return its blob."""
        blob = self.file.blob(f"{node.output}_{kind.lower()}")
        self.file.layer(kind, f"{node.name}_{kind.lower()}", inputs, [blob], parameters)
        return blob

    # ---- weighted layers ------------------------------------------------------------------------
    def runs_in_integers(self, node: QuantNode) -> bool:
        """True if ncnn computes this layer in 8-bit integers; then it rounds and limits its inputs.

        A grouped convolution has one scale for each group.
        """
        if node.op.kind not in ("Conv", "Fc") or not isinstance(node.form, Weighted):
            return False
        groups = getattr(node.op, "groups", 1)
        scales = real_weights(self.graph, node).scales
        return groups == 1 or len(scales) == 1 or bool((_by_group(scales, groups) == scales.reshape(groups, -1).T).all())

    def constants(self, node: QuantNode) -> Constants:
        """Return the constants of a weighted layer. Raise NoForm if ncnn does not have integers of this width."""
        if self.graph.is_float(node):
            if self.graph.bits > 0:
                self.real.append(node.name)
            weights, bias = node.params["weights"], node.params["bias"]
            return self.real_values(weights), bias.astype(np.float32), None
        if not isinstance(node.form, Weighted):
            raise NoForm(f"{node.op.kind} between integers and real numbers")
        real, kind = real_weights(self.graph, node), self.graph.type(node.inputs[0])
        if not self.runs_in_integers(node):
            self.real.append(node.name)
            return self.real_values(real.real_weights), real.real_bias, None
        if kind.bits != 8 or not kind.signed or kind.zero_point or kind.qmax != 127:
            text = f"{kind.name} with the zero point {kind.zero_point}" if kind.zero_point else f"{kind.name} up to {kind.qmax}"
            raise NoForm(f"it multiplies '{node.inputs[0]}', which is {text}", _SYMMETRIC)
        if real.weights.dtype != np.int8 or real.weights.min(initial=0) < -127:
            raise NoForm(f"its weights are {real.weights.dtype.name}", _SYMMETRIC)
        sums = np.abs(real.weights.reshape(len(real.bias), -1).astype(np.int64)).sum(axis=1)
        if 127 * int(sums.max(initial=0)) >= 2**31:
            raise NoForm("sums beyond 32 bits")
        self.integer.append(node.name)
        return real.weights, real.real_bias, np.broadcast_to(real.scales, len(real.bias))

    def real_values(self, weights: np.ndarray) -> np.ndarray:
        """Return weights as float32. Raise NoForm for weights beyond the range of requested half precision."""
        if self.half and np.abs(weights).max(initial=0) > _LARGEST_HALF:
            raise NoForm("a weight beyond 65504, in half precision", "leave out Fp16Storage")
        return weights.astype(np.float32)

    def requantizes(self, node: QuantNode) -> bool:
        """True if the result of a convolution stays in integers: its only consumers are integer convolutions."""
        readers = self.graph.consumers(node.output)
        return (
            node.output not in self.graph.outputs
            and bool(readers)
            and all(one.op.kind == "Conv" and self.runs_in_integers(one) for one in readers)
        )

    def add_weighted(self, node: QuantNode, kind: str, constants: Constants, parameters: dict[int, Value]) -> None:
        """Add a weighted layer; the first step after it becomes its activation."""
        weights, bias, scales = constants
        steps, groups = self.steps(node), getattr(node.op, "groups", 1)
        if steps and (fused := steps[0].fused) is not None:
            parameters[9], numbers = fused
            if numbers:
                parameters[10] = numbers
            steps = steps[1:]
        if scales is None:
            self.halves += 1
            stored = [tagged_weights(weights, "<f2" if self.half else "<f4"), real_numbers(bias)]
        else:
            requantized = node.op.kind == "Conv" and not steps and self.requantizes(node)
            self.unpacked |= groups > 1
            parameters[8] = _REQUANTIZED if requantized else _SCALES
            ends = [node.inputs[0], *([node.output] if requantized else [])]
            each = [
                _by_group(scales, groups) if groups > 1 else scales,
                *(np.array([self.graph.type(end).scale]) for end in ends),
            ]
            stored = [tagged_weights(weights, "i1"), real_numbers(bias), *(real_numbers(inverse_scales(one)) for one in each)]
            self.stored += ends[1:]
        self.add(node, NcnnStep(kind, parameters, tuple(stored)), steps=steps)


def _by_group(scales: np.ndarray, groups: int) -> np.ndarray:
    return scales.reshape(groups, -1)[:, 0]


LOWERINGS: Registry[Callable[[NcnnLayers, QuantNode], None]] = Registry("the ncnn form of")
"""Functions by operator kind that write a layer, or raise NoForm."""


@LOWERINGS.declare("Conv", "Deconv")
def _conv(layers: NcnnLayers, node: QuantNode) -> None:
    """Write a convolution, or a transposed one, which ncnn only has in floating point; it has horizontal parameters first."""
    op, transposed = node.op, node.op.kind == "Deconv"
    if len(node.inputs) > 1:
        raise NoForm("a convolution that adds its second input")
    if min(op.pads[:2] if transposed else op.pads) < 0:
        raise NoForm(f"its {'first ' * transposed}pads are negative")
    constants = weights, bias, _ = layers.constants(node)
    (high, wide), (dy, dx), (sy, sx) = weights.shape[2:], op.dilation, op.stride
    top, left, bottom, right = (max(pad, 0) for pad in op.pads)
    parameters: dict[int, Value] = {0: len(bias), 1: wide, 11: high, 2: dx, 12: dy, 3: sx, 13: sy, 5: 1, 6: weights.size}
    parameters |= {4: left, 14: top, 15: right, 16: bottom}
    if transposed:
        parameters |= {18: max(-op.pads[3], 0), 19: max(-op.pads[2], 0)}
    if op.groups > 1:
        parameters[7] = op.groups
    kind = f"{'Deconvolution' if transposed else 'Convolution'}{'DepthWise' * (op.groups > 1)}"
    layers.add_weighted(node, kind, constants, parameters)


@LOWERINGS.declare("Fc")
def _fc(layers: NcnnLayers, node: QuantNode) -> None:
    constants = weights, bias, _ = layers.constants(node)
    layers.add_weighted(node, "InnerProduct", constants, {0: len(bias), 1: 1, 2: weights.size})


@LOWERINGS.declare("Affine")
def _affine(layers: NcnnLayers, node: QuantNode) -> None:
    gains, bias, _ = layers.constants(node)
    layers.add(node, NcnnStep("Scale", {0: gains.size, 1: 1}, (real_numbers(gains), real_numbers(bias))))


@LOWERINGS.declare("Pool")
def _pool(layers: NcnnLayers, node: QuantNode) -> None:
    """Write a pool with explicit padding (mode 1), whose windows are the tool's."""
    op = node.op
    if min(op.pads) < 0:
        raise NoForm("its pads are negative")
    average = op.mode == "Average"
    top, left, bottom, right = op.pads
    sizes = {0: int(average), 1: op.kernel[1], 11: op.kernel[0], 2: op.stride[1], 12: op.stride[0], 5: 1}
    pads = {3: left, 13: top, 14: right, 15: bottom}
    layers.add(node, NcnnStep("Pooling", {**sizes, **pads, **({6: int(op.count_pad)} if average else {})}))


@LOWERINGS.declare("ElemWise")
def _elemwise(layers: NcnnLayers, node: QuantNode) -> None:
    op = node.op
    weights, shifts = op.coefficients(len(node.inputs))
    euclidean = op.operation == "EuclideanSum"
    code = {"Sum": _ADD, "EuclideanSum": _ADD, "Prod": _MULTIPLY, "Max": _MAXIMUM, "Min": _MINIMUM}.get(op.operation)
    if code is None or (euclidean and any(shifts)):
        raise NoForm(f"{op.operation} of tensors{' with shifts' if code else ''}")
    inputs = layers.sources(node)
    after: list[NcnnStep] = []
    if op.operation in ("Sum", "EuclideanSum"):
        inputs = [
            blob if weight == 1 else layers.add_before(node, "BinaryOp", [blob], scale_layer(weight).parameters)
            for blob, weight in zip(inputs, weights, strict=True)
        ]
        if sum(shifts):
            after = [shift_layer(sum(shifts))]
    if euclidean:
        inputs = [layers.add_before(node, "BinaryOp", [blob, blob], {0: _MULTIPLY}) for blob in inputs]
        after = function_layers(functions.Sqrt())
    if len(inputs) == 1:
        return layers.add(node, *after, inputs=inputs)
    current = inputs[0]
    for other in inputs[1:-1]:
        current = layers.add_before(node, "BinaryOp", [current, other], {0: code})
    return layers.add(node, NcnnStep("BinaryOp", {0: code}), *after, inputs=[current, inputs[-1]])


@LOWERINGS.declare("Concat")
def _concat(layers: NcnnLayers, node: QuantNode) -> None:
    op = node.op
    if op.slots or (op.rows > 1 and len(layers.graph.shape(node.output)) == 2):
        raise NoForm("a concatenation of rows or constants")
    layers.add(node, NcnnStep("Concat", {0: op.axis - 1}))


@LOWERINGS.declare("Activation")
def _function(layers: NcnnLayers, node: QuantNode) -> None:
    layers.add(node, *function_layers(node.op.function))


@LOWERINGS.declare("Softmax")
def _softmax(layers: NcnnLayers, node: QuantNode) -> None:
    shape = layers.graph.shape(node.output)
    axis = axis_along(shape, *node.op.rows(shape)[1:])
    if axis is None:
        raise NoForm("a Softmax of groups")
    log = [NcnnStep("UnaryOp", {0: 8})] if node.op.log else []
    layers.add(node, NcnnStep("Softmax", {0: axis - 1, 1: 1}), *log)


@LOWERINGS.declare("Resize")
def _resize(layers: NcnnLayers, node: QuantNode) -> None:
    op, shape = node.op, layers.graph.shape(node.inputs[0])
    if op.mode == "Nearest":
        for inputs, outputs in zip(shape[2:], op.size, strict=True):
            scale = np.float32(inputs) / np.float32(outputs)
            nearest = np.minimum((np.arange(outputs, dtype=np.float32) * scale).astype(np.int64), inputs - 1)
            if not np.array_equal(nearest, op.taps(inputs, outputs)[0]):
                raise NoForm(f"the nearest of {inputs} positions at {outputs}, which it rounds otherwise")
    elif op.coordinates == "Asymmetric":
        raise NoForm("asymmetric coordinates between positions")
    aligned = op.mode != "Nearest" and op.coordinates == "AlignCorners"
    layers.add(node, NcnnStep("Interp", {0: 1 if op.mode == "Nearest" else 2, 3: op.size[0], 4: op.size[1], 6: int(aligned)}))


@LOWERINGS.declare("Padding")
def _padding(layers: NcnnLayers, node: QuantNode) -> None:
    shape, pads = layers.graph.shape(node.inputs[0]), node.op.pads
    top, left, bottom, right = pads
    chained: list[NcnnStep] = []
    if min(pads) < 0:
        begins, ends = [max(-top, 0), max(-left, 0)], [shape[2] - max(-bottom, 0), shape[3] - max(-right, 0)]
        chained.append(NcnnStep("Crop", {9: begins, 10: ends, 11: [1, 2]}))
    if max(pads) > 0:
        chained.append(NcnnStep("Padding", {0: max(top, 0), 1: max(bottom, 0), 2: max(left, 0), 3: max(right, 0)}))
    layers.add(node, *chained)


@LOWERINGS.declare("Reshape")
def _reshape(layers: NcnnLayers, node: QuantNode) -> None:
    shape, out = layers.graph.shape(node.inputs[0]), layers.graph.shape(node.output)
    if tuple(shape) == tuple(out):
        return layers.add(node)
    if len(out) == 2:
        return layers.add(node, NcnnStep("Flatten"))
    return layers.add(node, NcnnStep("Reshape", dims(out)))


@LOWERINGS.declare("Transpose")
def _transpose(layers: NcnnLayers, node: QuantNode) -> None:
    if len(node.op.perm) != 4:
        raise NoForm(f"a transposition of {len(node.op.perm)} axes")
    names = "".join("NCHW"[axis] for axis in node.op.perm[:0:-1])
    if "N" in names:
        raise NoForm("it moves the batch axis")
    layers.add(node, NcnnStep("Permute", {0: ("WHC", "HWC", "WCH", "CWH", "HCW", "CHW").index(names)}))


@LOWERINGS.declare("IndexSelect")
def _select(layers: NcnnLayers, node: QuantNode) -> None:
    if not node.op.by_axes(layers.graph.shape(node.inputs[0])):
        raise NoForm("it takes elements of an array in another order")
    axes = [(axis, positions) for axis, positions in enumerate(node.op.indices) if positions is not None]
    if len(axes) == 1 and (groups := _shuffled_groups(node.op.indices[0], layers.graph.shape(node.inputs[0])[1])):
        return layers.add(node, NcnnStep("ShuffleChannel", {0: groups}))
    if any(tuple(positions) != tuple(range(positions[0], positions[0] + len(positions))) for _, positions in axes):
        raise NoForm("it takes positions that do not follow each other")
    begins, ends = [positions[0] for _, positions in axes], [positions[-1] + 1 for _, positions in axes]
    layers.add(node, *([NcnnStep("Crop", {9: begins, 10: ends, 11: [axis for axis, _ in axes]})] if axes else []))


def _shuffled_groups(positions: tuple[int, ...] | None, channels: int) -> int:
    if positions is None or len(positions) != channels:
        return 0
    groups = [count for count in range(2, channels) if channels % count == 0]
    return next((g for g in groups if np.array_equal(positions, np.arange(channels).reshape(g, -1).T.reshape(-1))), 0)


@LOWERINGS.declare("DepthToSpace")
def _shuffle(layers: NcnnLayers, node: QuantNode) -> None:
    layers.add(node, NcnnStep("PixelShuffle", {0: node.op.block, 1: int(not node.op.channels_first)}))


@LOWERINGS.declare("LRN")
def _lrn(layers: NcnnLayers, node: QuantNode) -> None:
    """Write LRN across channels; ncnn divides by the size."""
    op = node.op
    if op.size % 2 == 0:
        raise NoForm("a window of an even number of channels")
    layers.add(node, NcnnStep("LRN", {0: 0, 1: op.size, 2: float(op.alpha * op.size), 3: float(op.beta), 4: float(op.k)}))


@LOWERINGS.declare("Convert", "Identity")
def _reuse_input(layers: NcnnLayers, node: QuantNode) -> None:
    """Reuse the input, clamped to the limits: blobs between layers are floats."""
    layers.add(node)


def write_model(graph: QuantGraph, half: bool, round_blobs: bool) -> NcnnLayers:
    """Return the ncnn network; the parameters as in `NcnnLayers`. Raise E701 for every layer without ncnn form."""
    layers = NcnnLayers(graph, NetworkFile(), half, round_blobs)
    write_network(graph, "ncnn", layers.input, layers.write, layers.blobs, "")
    layers.network = layers.file.finish(layers.outputs())
    return layers
