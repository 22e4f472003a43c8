"""Fully connected layer."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import exact_float, matmul_sums
from n2d2py.contracts.cpp import KernelFacts, Layer, LayerCode, cpp, epilogue, pack, scratch, scratch_of, select
from n2d2py.contracts.ini.convolution import REMAP, remap_outputs
from n2d2py.contracts.ini.fillers import filler_keys
from n2d2py.contracts.ini.keys import ACTIVATED, NB_OUTPUTS, WINDOW_KEYS, read_activation
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.contracts.ini.trained import with_trained_weights
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.quantizer import LayerTypes, quantizer
from n2d2py.contracts.quant.weighted import WeightedQuantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, Shape, channels, elements, height, width
from n2d2py.ini import TRAINING, Key, Kind
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.operators.concat import Concat
from n2d2py.operators.normalize.op import SMALLEST_SQUARE
from n2d2py.operators.reshape import Reshape


@register
class Fc(Op):
    """y[o] = bias[o] + sum over k of w[o, k] * x[k], x flattened in C, H, W order.

    Parameters: "weights" (O, K), "bias" (O, always present after loading).
    """

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, features = node.params["weights"].shape
        if elements(inputs[0]) != features:
            size = f"{elements(inputs[0])} elements ({'x'.join(map(str, inputs[0][1:]))})"
            what = f"has weights for {features} inputs, but its input has {size}"
            raise self.error("E204", node, what, "check the layer before it")
        return [(inputs[0][0], outputs)]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(node.params["weights"].size)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(len(inputs[0]), -1)
        return [x @ node.params["weights"].astype(x.dtype).T + node.params["bias"].astype(x.dtype)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        x = inputs[0].reshape(len(inputs[0]), -1)
        acc = matmul_sums(x, node.params["weights"], node.bound)
        acc = acc + node.params["bias"].astype(exact_float(node.bound))
        return [node.requantize(acc, graph.type(node.output))]


# ---- INI -----------------------------------------------------------------------------------------
def _flatten_inputs(context: LayerContext) -> str:
    """Return one input unchanged; several inputs flattened one by one, then concatenated in order."""
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
        REMAP,
        Key("Normalize", Kind.BOOL, False, "1: the weights of each output are divided by their L2 norm"),
        Key("DropConnect", Kind.FLOAT, 1.0, "training", ignored=TRAINING),
    ),
    doc="Fully connected layer. Its input is flattened in C, H, W order.",
)
def _build(context: LayerContext) -> None:
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
    context.add(Fc(), [_flatten_inputs(context)], remap_outputs(context, weights, bias), read_activation(values))


# ---- integers ------------------------------------------------------------------------------------
@quantizer("Fc")
class FcQuantizer(WeightedQuantizer):
    """Weights of each output have the shape of the input."""

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        return None if types.input_shape is None else (*types.input_shape[1:], 1, 1)[:3]


# ---- C++ -----------------------------------------------------------------------------------------
# Fully connected: weights reordered from CHW to HWC, the order of memory.
@scratch("Fc")
def scratch_need(layer: Layer) -> ScratchNeed | None:
    """Return the workspace for the input as a window."""
    return scratch_of(KernelFacts.of(layer, "fullyConnected", layer.values("weights")))


@cpp("Fc")
def lower(layer: Layer) -> LayerCode:
    """Return the C++ of a fully connected layer with weights (O, C * H * W)."""
    shape, weights = layer.requiring_whole_input().input_shape, layer.values("weights")
    cube = weights.reshape(len(weights), channels(shape), height(shape), width(shape)).transpose(0, 2, 3, 1)
    selection = select(KernelFacts.of(layer, "fullyConnected", cube.reshape(len(weights), -1)))
    packed = pack(layer, selection, cube)
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    title = f"fully connected, {weights.shape[1]} to {weights.shape[0]}"
    config = layer.config(title, types, {**packed.facts, "Serial": 0}, selection)
    return layer.code("fullyconnected", layer.call("fullyConnected", config, constants=packed.arguments), selection=selection)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("Fc")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    x = node.inputs[0]
    if len(writer.graph.shape(x)) > 2:
        x = writer.emit("Flatten", [x], axis=1)
    writer.emit("Gemm", [x, writer.weights(node), writer.bias(node)], output, transB=1)
