"""Two-dimensional convolution (cross-correlation): dense, grouped, depthwise."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import conv_sums, exact_float
from n2d2py.contracts.cpp import KernelFacts, Layer, LayerCode, cpp, epilogue, pack, scratch, scratch_of, select, window
from n2d2py.contracts.ini.convolution import CONVOLUTION, CONVOLUTION_CONFIG, read_geometry, read_parameters
from n2d2py.contracts.ini.keys import read_activation, read_window, window_keys
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.contracts.operator import register
from n2d2py.contracts.quant.quantizer import LayerTypes, quantizer
from n2d2py.contracts.quant.weighted import WeightedQuantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.contracts.windows import GroupedKernel, output_extent, pad
from n2d2py.graph import Node, QuantGraph, QuantNode, Shape
from n2d2py.memory.access import Access, Window, memory_access
from n2d2py.memory.scratch import ScratchNeed


@register
class Conv(GroupedKernel):
    """y[o, i, j] = bias[o] + sum over c, u, v of w[o, c, u, v] * x[g(c), i*s - p + u*d, j*s - p + v*d].

    Parameters: "weights" (O, C / groups, KH, KW), "bias" (O, always present after loading). In a quantized network, `residual`
    adds a second input to y.

    Attributes:
        stride, dilation: (vertical, horizontal).
        pads: zeros added (top, left, bottom, right).
        groups: 1 dense, C depthwise.
    """

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, extent = self.outputs_and_extent(inputs[0], node)
        return [(inputs[0][0], outputs, *output_extent(inputs[0][2:], extent, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        per_output = int(np.prod(node.params["weights"].shape[1:]))
        return (per_output * output[1] + (len(inputs) > 1) * 2 * output[1]) * output[2] * output[3]

    def _sums(self, x: np.ndarray, node, fill: int, dtype: np.dtype) -> np.ndarray:
        return conv_sums(pad(x, self.pads, fill), node.params["weights"], self.stride, self.dilation, self.groups, dtype)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        sums = self._sums(x, node, 0, x.dtype)
        sums += node.params["bias"].astype(x.dtype).reshape(1, -1, 1, 1)
        return [sums]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        zero_point = graph.type(node.inputs[0]).zero_point
        dtype = exact_float(node.bound)
        acc = self._sums(inputs[0], node, zero_point, dtype)
        acc += node.params["bias"].astype(dtype).reshape(1, -1, 1, 1)
        added = node.residual
        if added is None:
            return [node.requantize(acc, graph.type(node.output))]
        kinds = graph.type(node.inputs[1]), graph.type(node.output)
        return [added.apply(node.requantize(acc, added.type), inputs[1], *kinds)]


# ---- INI -----------------------------------------------------------------------------------------
@ini(
    "Conv",
    *window_keys("SubSample", 1),
    base=CONVOLUTION,
    config=CONVOLUTION_CONFIG,
    doc="Convolution. A single value in KernelDims makes it one-dimensional.",
)
def _build(context: LayerContext) -> None:
    geometry = read_geometry(context)
    # every n-th output of a convolution of stride s is a convolution of stride s * n
    subsample = read_window(context.values, "SubSample", 1, line=1 if geometry.line else None)
    stride = (geometry.stride[0] * subsample[0], geometry.stride[1] * subsample[1])
    params, groups = read_parameters(context, geometry.kernel)
    op = Conv(stride, geometry.pads, geometry.dilation, groups)
    context.add(op, [context.concat_inputs()], params, read_activation(context.values))


# ---- integers ------------------------------------------------------------------------------------
@quantizer("Conv")
class ConvQuantizer(WeightedQuantizer):
    """Dense and grouped convolutions use 8-bit multiplication; depthwise ones do not."""

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        return None if node.op.is_depthwise(node) else node.params["weights"].shape[1:]


# ---- memory --------------------------------------------------------------------------------------
@memory_access("Conv")
def _conv_memory(node: QuantNode, graph: QuantGraph) -> Access:
    """Return the access of a convolution; the output may overwrite the residual."""
    lines, columns = node.params["weights"].shape[2:]
    op, aliases = node.op, 1 if len(node.inputs) > 1 else None
    return Window((int(lines), int(columns)), op.stride, op.pads, op.dilation, op.groups, aliases=aliases)


# ---- C++ -----------------------------------------------------------------------------------------
# Convolution: the dense and grouped kernel with OHWC weights, or the depthwise kernel with HWC weights.
def _kernel_facts(layer: Layer) -> KernelFacts:
    weights, groups = layer.values("weights"), layer.op.groups
    if layer.op.is_depthwise(layer.node):
        return KernelFacts.of(layer, "depthwise", weights[:, 0], groups)
    return KernelFacts.of(layer, "convolution", weights.transpose(0, 2, 3, 1), groups)


@scratch("Conv")
def scratch_need(layer: Layer) -> ScratchNeed | None:
    """Return the workspace: im2col windows and Winograd tiles of a dense convolution, constants of a depthwise one."""
    return scratch_of(_kernel_facts(layer))


@cpp("Conv")
def lower(layer: Layer) -> LayerCode:
    """Return the C++ of a convolution with weights (O, C / groups, KH, KW)."""
    op, weights, kind, facts = layer.op, layer.values("weights"), layer.inputs[0], _kernel_facts(layer)
    kernel, selection = facts.kernel, select(facts)
    packed = pack(layer, selection, facts.weights if facts.dense else facts.weights.transpose(1, 2, 0))
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    windows = window(weights.shape[2:], op.stride, op.pads, op.dilation)
    constants = {**windows, "Groups": op.groups, "InputZero": kind.zero_point, **packed.facts, "Serial": layer.serial}
    config = layer.config(f"{kernel} {weights.shape[2]} x {weights.shape[3]}", types, constants, selection)
    return layer.code(kernel, layer.call(kernel, config, constants=packed.arguments), selection=selection)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("Conv")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, kernel = node.op, list(node.params["weights"].shape[2:])
    x, pads = writer.padded(node.inputs[0], op.pads, None)
    windows = {"strides": list(op.stride), "pads": pads, "dilations": list(op.dilation), "group": op.groups}
    writer.emit("Conv", [x, writer.weights(node), writer.bias(node)], output, kernel_shape=kernel, **windows)
