"""Transposed two-dimensional convolution: dense, grouped, depthwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import exact_float
from n2d2py.contracts.cpp import Call, KernelFacts, Layer, LayerCode, cpp, epilogue, pack, scratch, scratch_of, select, window
from n2d2py.contracts.ini.convolution import CONVOLUTION, CONVOLUTION_CONFIG, read_geometry, read_parameters
from n2d2py.contracts.ini.keys import read_activation
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.contracts.operator import OpNode, register
from n2d2py.contracts.quant.quantizer import quantizer
from n2d2py.contracts.quant.weighted import WeightedQuantizer
from n2d2py.contracts.reference import NoOnnxForm, OnnxWriter, onnx_emitter
from n2d2py.contracts.windows import GroupedKernel, Pads
from n2d2py.graph import Node, QuantGraph, QuantNode, Shape
from n2d2py.memory.access import Access, LineTable, Ranges, memory_access
from n2d2py.memory.scratch import ScratchNeed


def transposed_extent(
    size: Sequence[int], extent: Sequence[int], stride: Sequence[int], pads: Pads, node: OpNode
) -> tuple[int, int]:
    """Return (size - 1) * stride + extent - pads for each axis; `extent` is the dilated kernel.

    Raises:
        N2D2Error: E203 if the pads leave no output.
    """
    height, width = ((n - 1) * s + e - p - q for n, s, e, p, q in zip(size, stride, extent, pads[:2], pads[2:], strict=True))
    if min(height, width) < 1:
        full = f"{width + pads[1] + pads[3]}x{height + pads[0] + pads[2]} (width x height)"
        raise node.op.error("E203", node, f"has a padding that removes the whole output of {full}", "reduce the padding")
    return height, width


@register
class Deconv(GroupedKernel):
    """y[o, i*s - p + u*d, j*s - p + v*d] = bias[o] + sum of w[o, c, u, v] * x[g(c), i, j].

    The sum runs over all i, j, u, v that contribute to the position, and over the input channels c of the group of o.
    Parameters: "weights" (O, C / groups, KH, KW), outputs first as in Conv; "bias" (O, always present after loading).

    Attributes:
        stride, dilation: (vertical, horizontal).
        pads: lines and columns removed from the full result (top, left, bottom, right); negative values at the end add
            positions with only the bias.
        groups: 1 dense, C depthwise.
    """

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, extent = self.outputs_and_extent(inputs[0], node)
        return [(inputs[0][0], outputs, *transposed_extent(inputs[0][2:], extent, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(node.params["weights"].shape)) * inputs[0][2] * inputs[0][3]

    def _accumulate(self, x: np.ndarray, node, dtype: np.dtype) -> np.ndarray:
        """Return the result without bias, accumulated in `dtype`: each kernel position adds a strided image."""
        n, _channels, h, w = x.shape
        weights = node.params["weights"].astype(dtype)
        outputs, per_group, kh, kw = weights.shape
        (sy, sx), (dy, dx) = self.stride, self.dilation
        columns = x.astype(dtype).reshape(n, self.groups, per_group, h * w)
        height = (h - 1) * sy + (kh - 1) * dy + 1 + max(0, -self.pads[2])
        width = (w - 1) * sx + (kw - 1) * dx + 1 + max(0, -self.pads[3])
        full = np.zeros((n, outputs, height, width), dtype)
        for u in range(kh):
            for v in range(kw):
                matrix = weights[:, :, u, v].reshape(self.groups, outputs // self.groups, per_group)
                part = np.matmul(matrix, columns).reshape(n, outputs, h, w)
                full[:, :, u * dy : u * dy + (h - 1) * sy + 1 : sy, v * dx : v * dx + (w - 1) * sx + 1 : sx] += part
        top, left, bottom, right = (max(0, p) for p in self.pads)
        return full[:, :, top : full.shape[2] - bottom, left : full.shape[3] - right]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        return [self._accumulate(x, node, x.dtype) + node.params["bias"].astype(x.dtype).reshape(1, -1, 1, 1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute acc = bias + sum of w (x - zero point). The bias cannot absorb the zero point, as the number of contributing
        weights differs by position."""
        dtype = exact_float(node.bound)
        centred = inputs[0].astype(np.int64) - graph.type(node.inputs[0]).zero_point
        acc = self._accumulate(centred, node, dtype) + node.params["bias"].astype(dtype).reshape(1, -1, 1, 1)
        return [node.requantize(acc, graph.type(node.output))]


# ---- INI -----------------------------------------------------------------------------------------
@ini(
    "Deconv",
    base=CONVOLUTION,
    config=CONVOLUTION_CONFIG,
    doc="Transposed convolution. Its output size is (input - 1) * stride + kernel - 2 * padding along each axis.",
)
def _build(context: LayerContext) -> None:
    geometry = read_geometry(context)
    params, groups = read_parameters(context, geometry.kernel)
    op = Deconv(geometry.stride, geometry.pads, geometry.dilation, groups)
    context.add(op, [context.concat_inputs()], params, read_activation(context.values))


# ---- integers ------------------------------------------------------------------------------------
@quantizer("Deconv")
class DeconvQuantizer(WeightedQuantizer):
    """The kernel subtracts the zero point, since not every tap meets an input."""

    zero_point_in_bias = False


# ---- memory --------------------------------------------------------------------------------------
@memory_access("Deconv")
def _deconv_memory(node: QuantNode, graph: QuantGraph) -> Access:
    """Return the access: a position gathers from inputs (position + pad - u * dilation) / stride over the taps u of the kernel."""
    op, kernel = node.op, node.params["weights"].shape[2:]
    tables: list[Ranges] = []
    for outputs, inputs, k, s, p, d in zip(
        graph.shape(node.output)[2:], graph.shape(node.inputs[0])[2:], kernel, op.stride, op.pads[:2], op.dilation, strict=True
    ):
        ranges = []
        for position in range(outputs):
            reached = [(position + p - u * d) // s for u in range(k) if (position + p - u * d) % s == 0]
            inside = [index for index in reached if 0 <= index < inputs]
            ranges.append((min(inside), max(inside) + 1) if inside else (0, 0))
        tables.append(tuple(ranges))
    return LineTable((tables[0],), (tables[1],))


# ---- C++ -----------------------------------------------------------------------------------------
# Transposed convolution: a convolution for each phase of its stride, or a kernel that gathers the inputs of each output.
@scratch("Deconv")
def scratch_need(layer: Layer) -> ScratchNeed | None:
    """Return the workspace for the windows of the phase with the most taps."""
    op, weights = layer.op, layer.values("weights")
    if op.is_depthwise(layer.node) or not _has_phases(layer):
        return None
    most = weights[:, :, : -(-weights.shape[2] // op.stride[0]), : -(-weights.shape[3] // op.stride[1])]
    return scratch_of(KernelFacts(layer, "convolution", most.transpose(0, 2, 3, 1), whole=False))


@cpp("Deconv")
def lower(layer: Layer) -> LayerCode:
    """Return the C++ of a transposed convolution with weights (O, C / groups, KH, KW)."""
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
    """Return the kernel positions that contribute to an output `position` (pad included), in input order, and the pad of the
    convolution."""
    taps = list(range(position % stride, kernel, stride))[::-1]
    return taps, len(taps) - 1 - position // stride


def _lower_phases(layer: Layer) -> LayerCode:
    """Return a convolution for each phase (kernels/n2d2/phases.hpp)."""
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


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("Deconv")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """Add a ConvTranspose with weights (inputs, outputs of a group, H, W). Outputs have an axis there without groups, or with
    one output in each."""
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
