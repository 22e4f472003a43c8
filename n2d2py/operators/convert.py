"""Conversion of the number type: integers to floating point and back, or between integers."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import make_rescale
from n2d2py.contracts.cpp import Layer, LayerCode, converting_epilogue, cpp
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.forming import activation_clamp, integer_layer, peak, rescaled_layer
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, QuantGraph, QuantNode, Real, Rescaled, requantized
from n2d2py.memory.access import memory_access, pointwise


@register
class Convert(Op):
    """y represents the same real numbers as x in another number type.

    With scales s and zero points z, in the floating-point type of y, else float32:

        integer to floating point   y = float(x - z_x) * float(s_x)
        floating point to integer   y = clamp(rint(float32(x) * float32(1 / s_y))) + z_y, ties to even; NaN counts as 0
        integer to integer          y = clamp(rescale(x - z_x)) + z_y by the rescale of the layer

    Attributes:
        to_float: the result is floating point.
    """

    to_float: bool = False
    mixes_types = True

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0]]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        x, source, target = inputs[0], graph.type(node.inputs[0]), graph.type(node.output)
        if target.is_float:
            if source.is_float:
                return [x.astype(target.dtype)]
            exact = (x.astype(np.int64) - source.zero_point).astype(target.dtype)
            with np.errstate(over="ignore"):  # the lowest float of a mask may become minus infinity
                return [exact * target.dtype.type(source.scale)]
        values = np.where(np.isnan(x), 0, x) if source.is_float else x.astype(np.int64) - source.zero_point
        return [requantized(values, node.rescaling, node.limits, target)]


@onnx_emitter("Convert")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Identity", node.inputs, output)


memory_access("Convert")(pointwise)


@quantizer("Convert")
class ConvertQuantizer(Quantizer):
    """To floating point: no constants. From it: factor 1 / s_y in float32. Between integers: factor s_x / s_y."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if y.is_float:
            return integer_layer(node, Real(), None)
        if x.is_float:
            rescale, _ = make_rescale("Floating-point", np.array([1 / y.scale]))
            return integer_layer(node, Rescaled(), activation_clamp(node, y), rescale)
        return rescaled_layer(node, types, np.array([x.scale / y.scale]), peak(x))

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Return no constants: real numbers stay unchanged."""
        return {}


@cpp("Convert")
def _lower(layer: Layer) -> LayerCode:
    layer = layer.pointwise()
    types = {**layer.planes, "Epilogue": converting_epilogue(layer)}
    config = layer.config(f"{layer.inputs[0].name} to {layer.output.name}", types, {"Serial": layer.serial})
    return layer.code("copy", layer.call("copy", config))
