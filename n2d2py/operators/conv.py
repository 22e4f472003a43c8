"""Layers with weights: convolution (cross-correlation) and transposed convolution, both dense, grouped or depthwise, and fully
connected layers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import conv_sums
from n2d2py.contracts.cpp import Call, KernelFacts, Layer, LayerCode, cpp, epilogue, pack, scratch, scratch_of, select, window
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, OpNode, Pads, WeightedOp, onnx_emitter, output_extent, pad, register
from n2d2py.contracts.ini import LayerContext, convolution, ini
from n2d2py.contracts.ini.keys import ACTIVATED, NB_OUTPUTS, WINDOW_KEYS, read_activation, read_window, window_keys
from n2d2py.contracts.ini.trained import with_trained_weights
from n2d2py.contracts.ini.weights import filler_keys
from n2d2py.contracts.quant.quantizer import LayerTypes, WeightedQuantizer, quantizer
from n2d2py.graph import Node, QuantGraph, QuantNode, Shape, channels, dims_text, elements, height, width
from n2d2py.ini import TRAINING, Key, Kind
from n2d2py.memory.access import Access, LineTable, Ranges, Window, memory_access
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.operators.concat import Concat
from n2d2py.operators.normalize.op import SMALLEST_SQUARE
from n2d2py.operators.reshape import Reshape


@dataclass(frozen=True)
class GroupedKernel(WeightedOp):
    """An operator with "weights" (O, C / groups, KH, KW). Pairs are (vertical, horizontal). `groups`: 1 dense, C depthwise."""

    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def outputs_and_extent(self, shape: Shape, node: OpNode) -> tuple[int, tuple[int, int]]:
        """Return the number of outputs, and height and width of the dilated kernel; E201 or E202 if they do not fit `shape`."""
        self.require_rank(shape, 4, node)
        outputs, per_group, *size = node.params["weights"].shape
        if per_group * self.groups != shape[1] or outputs % self.groups:
            weights = f"weights for {outputs} outputs and {per_group} channels in each of {self.groups} groups"
            what = f"has {weights}, but its input has {shape[1]} channels"
            raise self.error("E202", node, what, "correct NbOutputs, the groups or the layer before it")
        height, width = ((k - 1) * d + 1 for k, d in zip(size, self.dilation, strict=True))
        return outputs, (height, width)

    def is_depthwise(self, node: OpNode) -> bool:
        """True if each output reads only its own channel."""
        outputs, per_group = node.params["weights"].shape[:2]
        return per_group == 1 and outputs == self.groups


@register
class Conv(GroupedKernel):
    """y[o, i, j] = bias[o] + sum over c, u, v of w[o, c, u, v] * x[g(c), i*s - p + u*d, j*s - p + v*d].

    Parameters: "weights" (O, C / groups, KH, KW), "bias" (O). `pads` are zeros. In a quantized network, `residual` adds a
    second input to y.
    """

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, extent = self.outputs_and_extent(inputs[0], node)
        return [(inputs[0][0], outputs, *output_extent(inputs[0][2:], extent, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        per_output = int(np.prod(node.params["weights"].shape[1:]))
        return (per_output * output[1] + (len(inputs) > 1) * 2 * output[1]) * output[2] * output[3]

    def sums(self, x: np.ndarray, node, dtype: np.dtype, zero_point: int) -> np.ndarray:
        """Pad with the zero point, which the bias absorbs."""
        return conv_sums(pad(x, self.pads, zero_point), node.params["weights"], self.stride, self.dilation, self.groups, dtype)


@ini(
    "Conv",
    *window_keys("SubSample", 1),
    base=convolution.CONVOLUTION,
    config=convolution.CONVOLUTION_CONFIG,
    doc="Convolution. A single value in KernelDims makes it one-dimensional.",
)
def _build_conv(context: LayerContext) -> None:
    geometry = convolution.read_geometry(context)
    # every n-th output of a convolution of stride s is a convolution of stride s * n
    subsample = read_window(context.values, "SubSample", 1, line=1 if geometry.line else None)
    stride = (geometry.stride[0] * subsample[0], geometry.stride[1] * subsample[1])
    params, groups = convolution.read_parameters(context, geometry.kernel)
    op = Conv(stride, geometry.pads, geometry.dilation, groups)
    context.add(op, [context.concat_inputs()], params, read_activation(context.values))


@quantizer("Conv")
class ConvQuantizer(WeightedQuantizer):
    """Dense and grouped convolutions use 8-bit multiplication; depthwise ones do not."""

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        return None if node.op.is_depthwise(node) else node.params["weights"].shape[1:]


@memory_access("Conv")
def _conv_memory(node: QuantNode, graph: QuantGraph) -> Access:
    (lines, columns), op = node.params["weights"].shape[2:], node.op
    aliases = 1 if len(node.inputs) > 1 else None  # the output may overwrite the residual
    return Window((int(lines), int(columns)), op.stride, op.pads, op.dilation, op.groups, aliases=aliases)


def _kernel_facts(layer: Layer) -> KernelFacts:
    """Return the dense and grouped kernel with OHWC weights, or the depthwise kernel with HWC weights."""
    weights, groups = layer.values("weights"), layer.op.groups
    if layer.op.is_depthwise(layer.node):
        return KernelFacts.of(layer, "depthwise", weights[:, 0], groups)
    return KernelFacts.of(layer, "convolution", weights.transpose(0, 2, 3, 1), groups)


@scratch("Conv")
def _scratch_conv(layer: Layer) -> ScratchNeed | None:
    return scratch_of(_kernel_facts(layer))


@cpp("Conv")
def _lower_conv(layer: Layer) -> LayerCode:
    op, weights, kind, facts = layer.op, layer.values("weights"), layer.inputs[0], _kernel_facts(layer)
    kernel, selection = facts.kernel, select(facts)
    packed = pack(layer, selection, facts.weights if facts.dense else facts.weights.transpose(1, 2, 0))
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    windows = window(weights.shape[2:], op.stride, op.pads, op.dilation)
    constants = {**windows, "Groups": op.groups, "InputZero": kind.zero_point, **packed.facts, "Serial": layer.serial}
    config = layer.config(f"{kernel} {weights.shape[2]} x {weights.shape[3]}", types, constants, selection)
    return layer.code(kernel, layer.call(kernel, config, constants=packed.arguments), selection=selection)


@onnx_emitter("Conv")
def _emit_conv(writer: OnnxWriter, node: Node, output: str) -> None:
    op, kernel = node.op, list(node.params["weights"].shape[2:])
    x, pads = writer.padded(node.inputs[0], op.pads, None)
    windows = {"strides": list(op.stride), "pads": pads, "dilations": list(op.dilation), "group": op.groups}
    writer.emit("Conv", [x, writer.weights(node), writer.bias(node)], output, kernel_shape=kernel, **windows)


# ---- transposed convolution ---------------------------------------------------------------------


def transposed_extent(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads, node: OpNode
) -> tuple[int, int]:
    """Return (size - 1) * stride + extent - pads for each axis, with the dilated kernel `extent`; E203 if no output is left."""
    height, width = ((n - 1) * s + e - p - q for n, s, e, p, q in zip(size, stride, extent, pads[:2], pads[2:], strict=True))
    if min(height, width) < 1:
        full = f"{width + pads[1] + pads[3]}x{height + pads[0] + pads[2]} (width x height)"
        raise node.op.error("E203", node, f"has a padding that removes the whole output of {full}", "reduce the padding")
    return height, width


@register
class Deconv(GroupedKernel):
    """y[o, i*s - p + u*d, j*s - p + v*d] = bias[o] + sum of w[o, c, u, v] * x[g(c), i, j].

    The sum runs over all i, j, u, v that contribute to the position, and over the input channels c of the group of o.
    Parameters: "weights" (O, C / groups, KH, KW), outputs first as in Conv; "bias" (O). `pads` are removed from the full
    result; negative values at the end add positions with only the bias.
    """

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, extent = self.outputs_and_extent(inputs[0], node)
        return [(inputs[0][0], outputs, *transposed_extent(inputs[0][2:], extent, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(node.params["weights"].shape)) * inputs[0][2] * inputs[0][3]

    def sums(self, x: np.ndarray, node, dtype: np.dtype, zero_point: int) -> np.ndarray:
        """Subtract the zero point: the bias cannot absorb it, since the number of contributing weights differs by position."""
        n, _channels, h, w = x.shape
        weights = node.params["weights"].astype(dtype)
        outputs, per_group, kh, kw = weights.shape
        (sy, sx), (dy, dx) = self.stride, self.dilation
        columns = x.astype(dtype).reshape(n, self.groups, per_group, h * w) - dtype.type(zero_point)
        height = (h - 1) * sy + (kh - 1) * dy + 1 + max(0, -self.pads[2])
        width = (w - 1) * sx + (kw - 1) * dx + 1 + max(0, -self.pads[3])
        full = np.zeros((n, outputs, height, width), dtype)
        for u in range(kh):
            for v in range(kw):
                matrix = weights[:, :, u, v].reshape(self.groups, outputs // self.groups, per_group)
                part = np.matmul(matrix, columns).reshape(n, outputs, h, w)
                full[:, :, u * dy : u * dy + (h - 1) * sy + 1 : sy, v * dx : v * dx + (w - 1) * sx + 1 : sx] += part
        top, left, bottom, right = (max(0, p) for p in self.pads)
        return np.ascontiguousarray(full[:, :, top : full.shape[2] - bottom, left : full.shape[3] - right])


@ini(
    "Deconv",
    base=convolution.CONVOLUTION,
    config=convolution.CONVOLUTION_CONFIG,
    doc="Transposed convolution. Its output size is (input - 1) * stride + kernel - 2 * padding along each axis.",
)
def _build_deconv(context: LayerContext) -> None:
    geometry = convolution.read_geometry(context)
    params, groups = convolution.read_parameters(context, geometry.kernel)
    op = Deconv(geometry.stride, geometry.pads, geometry.dilation, groups)
    context.add(op, [context.concat_inputs()], params, read_activation(context.values))


@quantizer("Deconv")
class DeconvQuantizer(WeightedQuantizer):
    """The kernel subtracts the zero point, since not every tap meets an input."""

    zero_point_in_bias = False


@memory_access("Deconv")
def _deconv_memory(node: QuantNode, graph: QuantGraph) -> Access:
    op, kernel, (outputs, inputs) = node.op, node.params["weights"].shape[2:], (node.output, node.inputs[0])
    axes = graph.shape(outputs)[2:], graph.shape(inputs)[2:], kernel, op.stride, op.pads[:2], op.dilation
    lines, columns = map(gathered_ranges, *axes)
    return LineTable((lines,), (columns,))


def gathered_ranges(outputs: int, inputs: int, kernel: int, stride: int, pad: int, dilation: int = 1) -> Ranges:
    """Return the inputs (position + pad - u * dilation) / stride over the taps u of a kernel for each output position."""
    ranges = []
    for position in range(outputs):
        taps = range(position + pad, position + pad - kernel * dilation, -dilation)
        inside = [place // stride for place in taps if place % stride == 0 and 0 <= place // stride < inputs]
        ranges.append((min(inside), max(inside) + 1) if inside else (0, 0))
    return tuple(ranges)


@scratch("Deconv")
def _scratch_deconv(layer: Layer) -> ScratchNeed | None:
    """Return the workspace for the windows of the phase with the most taps."""
    op, weights = layer.op, layer.values("weights")
    if op.is_depthwise(layer.node) or not _has_phases(layer):
        return None
    most = weights[:, :, : -(-weights.shape[2] // op.stride[0]), : -(-weights.shape[3] // op.stride[1])]
    return scratch_of(KernelFacts(layer, "convolution", most.transpose(0, 2, 3, 1), whole=False))


@cpp("Deconv")
def _lower_deconv(layer: Layer) -> LayerCode:
    """Return a convolution for each phase of the stride, or a kernel that gathers the inputs of each output."""
    op, weights = layer.op, layer.values("weights")
    depthwise = op.is_depthwise(layer.node)
    if not depthwise and _has_phases(layer):
        return _lower_phases(layer)
    packed = pack(layer, layer.portable, weights[:, 0].transpose(1, 2, 0) if depthwise else weights.transpose(0, 2, 3, 1))
    windows = window(weights.shape[2:], op.stride, op.pads, op.dilation)
    constants = {**windows, "Groups": op.groups, "Serial": layer.serial, "InputZero": layer.inputs[0].zero_point}
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer)}
    config = layer.config(f"transposed convolution {weights.shape[2]} x {weights.shape[3]}", types, constants)
    kernel = "deconvolutionDepthwise" if depthwise else "deconvolution"
    return layer.code("deconvolution", layer.call(kernel, config, constants=packed.arguments))


def _has_phases(layer: Layer) -> bool:
    """True if each phase is a convolution with its own output plane, with taps and outputs."""
    op, kernel, size = layer.op, layer.values("weights").shape[2:], layer.output_shape[2:]
    is_dense = op.groups == 1 and tuple(op.dilation) == (1, 1) and max(op.stride) > 1 and min(op.pads[:2]) >= 0
    is_covered = all(k >= s and n >= s for k, s, n in zip(kernel, op.stride, size, strict=True))
    in_any_order = not layer.serial and not layer.streamed and layer.whole_output
    return layer.integer and is_dense and is_covered and layer.inputs[0].zero_point == 0 and in_any_order


def _taps(kernel: int, stride: int, position: int) -> tuple[list[int], int]:
    """Return the kernel positions that contribute to an output `position` (pad included), in input order, and the pad."""
    taps = list(range(position % stride, kernel, stride))[::-1]
    return taps, len(taps) - 1 - position // stride


def _lower_phases(layer: Layer) -> LayerCode:
    op, weights = layer.op, layer.values("weights")
    (lines, columns), calls, selections = op.stride, list[Call](), []
    for y, x in ((y, x) for y in range(lines) for x in range(columns)):
        rows, top = _taps(weights.shape[2], lines, y + op.pads[0])
        pixels, left = _taps(weights.shape[3], columns, x + op.pads[1])
        part, number = weights[:, :, rows][:, :, :, pixels].transpose(0, 2, 3, 1), str(len(calls))
        selection = select(KernelFacts(layer, "convolution", part, whole=False))
        packed = pack(layer, selection, part, number)
        plane = f"n2d2::PhasePlane<{layer.output_plane}, {lines}, {columns}, {y}, {x}>"
        types = {**layer.planes, "Output": plane, **packed.types, "Epilogue": epilogue(layer, selection)}
        windows = window((len(rows), len(pixels)), (1, 1), (top, left), (1, 1))
        constants = {**windows, "Groups": 1, "InputZero": 0, **packed.facts, "Serial": 0}
        title = f"phase {y}, {x} of the transposed convolution {weights.shape[2]} x {weights.shape[3]}"
        config = layer.config(title, types, constants, selection, f"config{number}")
        calls.append(layer.call("convolution", config, constants=packed.arguments))
        selections.append(selection)
    best = [one for one in selections if one.kernel.name] or selections
    return layer.code("phases", *calls, selection=replace(best[-1], reason=selections[-1].reason))


@onnx_emitter("Deconv")
def _emit_deconv(writer: OnnxWriter, node: Node, output: str) -> None:
    """Add a ConvTranspose; its weights (inputs, outputs of a group, H, W) have an output axis for one group, or depthwise."""
    op = node.op
    outputs, per_group, kh, kw = node.params["weights"].shape
    by_group = outputs // op.groups

    def ordered(weights: np.ndarray) -> np.ndarray:
        grouped = weights.reshape(op.groups, by_group, per_group, kh, kw).transpose(0, 2, 1, 3, 4)
        return grouped.reshape(op.groups * per_group, by_group, kh, kw)

    added = [max(0, -p) for p in op.pads]
    if added[0] or added[1] or any(a >= s for a, s in zip(added[2:], op.stride, strict=True)):
        raise NoOnnxForm(f"the negative pads of layer {node.name} are too large for an ONNX ConvTranspose")
    axis = 1 if op.groups == 1 else 0 if by_group == per_group == 1 else None
    inputs = [node.inputs[0], writer.weights(node, ordered, axis), writer.bias(node)]
    windows = {"kernel_shape": [kh, kw], "strides": list(op.stride), "dilations": list(op.dilation), "group": op.groups}
    pads = {"pads": [max(0, p) for p in op.pads], "output_padding": added[2:]}
    writer.emit("ConvTranspose", inputs, output, **windows, **pads)


# ---- fully connected ----------------------------------------------------------------------------


@register
class Fc(WeightedOp):
    """y[o] = bias[o] + sum over k of w[o, k] * x[k], x flattened in C, H, W order. Parameters: "weights" (O, K), "bias" (O)."""

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, features = node.params["weights"].shape
        if elements(inputs[0]) != features:
            size = f"{elements(inputs[0])} elements ({dims_text(inputs[0][1:])})"
            what = f"has weights for {features} inputs, but its input has {size}"
            raise self.error("E204", node, what, "check the layer before it")
        return [(inputs[0][0], outputs)]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(node.params["weights"].size)

    def sums(self, x: np.ndarray, node, dtype: np.dtype, zero_point: int) -> np.ndarray:
        return x.reshape(len(x), -1).astype(dtype, copy=False) @ node.params["weights"].astype(dtype).T


def _flatten_inputs(context: LayerContext) -> str:
    if len(context.parents) == 1:
        return context.parents[0][1]
    flat = []
    for index, (_, tensor) in enumerate(context.parents):
        shape = context.graph.shape(tensor)
        if len(shape) > 2:
            tensor = context.add_helper(f"flatten{index}", Reshape((elements(shape),)), [tensor])
        flat.append(tensor)
    return context.add_helper("concat", Concat(), flat)


@ini(
    "Fc",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    *filler_keys("Weights"),
    *filler_keys("Bias"),
    base=with_trained_weights(ACTIVATED),
    config=(
        Key("NoBias", Kind.BOOL, False, "no bias"),
        Key("WeightsExportFormat", Kind.ENUM, "OC", "order of stored weights", ("OC", "CO")),
        convolution.REMAP,
        Key("Normalize", Kind.BOOL, False, "1: the weights of each output are divided by their L2 norm"),
        Key("DropConnect", Kind.FLOAT, 1.0, "training", ignored=TRAINING),
    ),
    doc="Fully connected layer. Its input is flattened in C, H, W order.",
)
def _build_fc(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    count = sum(elements(shape) for shape in context.shapes)
    by_input = values["WeightsExportFormat"] == "CO"
    weights = context.parameter("weights", (outputs, count), order=(1, 0) if by_input else ())
    if by_input:
        weights = weights.reshape(count, outputs).T.copy()
    if values["Normalize"]:
        if values["QWeight"]:
            raise values.fail("E124", "Normalize=1 is not supported with QWeight", "remove one of them", "Normalize")
        weights = weights / np.sqrt(np.square(weights).sum(1, keepdims=True) + np.float32(SMALLEST_SQUARE))
    bias = None if values["NoBias"] else context.parameter("biases", (outputs,))
    context.add(Fc(), [_flatten_inputs(context)], convolution.remap_outputs(context, weights, bias), read_activation(values))


@quantizer("Fc")
class FcQuantizer(WeightedQuantizer):
    """Weights of each output have the shape of the input."""

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        return None if types.input_shape is None else (*types.input_shape[1:], 1, 1)[:3]


@scratch("Fc")
def _scratch_fc(layer: Layer) -> ScratchNeed | None:
    return scratch_of(KernelFacts.of(layer, "fullyConnected", layer.values("weights")))


@cpp("Fc")
def _lower_fc(layer: Layer) -> LayerCode:
    """Reorder the weights from CHW to HWC, the order of memory."""
    shape, weights = layer.requiring_whole_input().input_shape, layer.values("weights")
    cube = weights.reshape(len(weights), channels(shape), height(shape), width(shape)).transpose(0, 2, 3, 1)
    selection = select(KernelFacts.of(layer, "fullyConnected", cube.reshape(len(weights), -1)))
    packed = pack(layer, selection, cube)
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    title = f"fully connected, {weights.shape[1]} to {weights.shape[0]}"
    config = layer.config(title, types, {**packed.facts, "Serial": 0}, selection)
    return layer.code("fullyconnected", layer.call("fullyConnected", config, constants=packed.arguments), selection=selection)


@onnx_emitter("Fc")
def _emit_fc(writer: OnnxWriter, node: Node, output: str) -> None:
    x = node.inputs[0]
    if len(writer.graph.shape(x)) > 2:
        x = writer.emit("Flatten", [x], axis=1)
    writer.emit("Gemm", [x, writer.weights(node), writer.bias(node)], output, transB=1)
