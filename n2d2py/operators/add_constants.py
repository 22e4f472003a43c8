"""Addition of a constant to each element: positional embeddings, biases of an attention."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp import Layer, LayerCode, cpp, epilogue, vectors
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.forming import common_multipliers, peak, rescaled_layer
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, QuantGraph, QuantNode, forms

_MAX_8_BIT_ERROR = 1e-3
"""Constants have 16 bits if the mean squared error in 8 bits exceeds this multiple of their median square (30 dB)."""


@register
class AddConstants(Op):
    """y[i] = x[i] + constants[i mod C] of a vector (N). Parameter "constants" (C), C a divisor of N."""

    macs_per_output = 1

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0] + repeat_constants(node.params["constants"], inputs[0]).astype(inputs[0].dtype)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute acc = multiplier * (q - zero point) + constant_multiplier * stored, and requantize it."""
        form = node.form_as(forms.Shifted)
        acc = int(form.multiplier[0]) * (inputs[0].astype(np.int64) - graph.type(node.inputs[0]).zero_point)
        acc = acc + int(form.constant_multiplier[0]) * repeat_constants(form.stored, acc).astype(np.int64)
        return [node.requantize(acc, graph.type(node.output))]


def repeat_constants(constants: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the constants (C) repeated to the length of `values` (batch, N): (N)."""
    return np.tile(constants, values.shape[-1] // len(constants))


@onnx_emitter("AddConstants")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    constants, (_, size) = node.params["constants"], writer.graph.shape(output)
    rows = size // len(constants)
    source = node.inputs[0] if rows == 1 else writer.emit("Reshape", [node.inputs[0], writer.constant([0, rows, -1])])
    added = writer.emit("Add", [source, writer.exact(constants.reshape(1, -1))], output if rows == 1 else None)
    if rows > 1:
        writer.emit("Reshape", [added, writer.constant([0, -1])], output)


@quantizer("AddConstants")
class AddConstantsQuantizer(Quantizer):
    """Constants have the bit width of the network; 16 if the result has 16 bits and 8 would spoil them, as a token 100 times
    the others. The multipliers have 14 bits; 22 with one 16-bit tensor, 26 with two. Their unit is a power of two."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, step = types.inputs[0], types.output.scale
        constants = node.params["constants"].astype(np.float64)
        largest = float(np.abs(constants).max(initial=0))
        kind, wide = (kind.with_scale(largest / kind.qmax or x.scale) for kind in (NumType(types.options.bits), NumType(16)))
        lost = np.square(kind.dequantize(kind.quantize(constants)) - constants).mean()
        if types.output.bits == 16 and lost > _MAX_8_BIT_ERROR * np.median(np.square(constants)):
            kind = wide
        precise = 14 if not types.wide else 22 if kind.bits == 8 else 26
        (multiplier, other), unit = common_multipliers(np.array([x.scale, kind.scale]) / step, precise)
        bound = abs(multiplier) * peak(x) + abs(other) * kind.qmax
        dtype = np.int32 if bound < 2**31 else np.int64
        form = forms.Shifted(np.array([multiplier], dtype), np.array([other], dtype), kind.quantize(constants))
        return rescaled_layer(node, types, np.array([unit]), bound, form)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Return the constants as stored."""
        form, step = node.form_as(forms.Shifted), node.rescaling.effective()[0] * graph.type(node.output).scale
        return {"constants": (form.stored * (form.constant_multiplier[0] * step)).astype(np.float32)}


@cpp("AddConstants")
def _lower(layer: Layer) -> LayerCode:
    """Return the C++ of added constants, in floating point or in integers."""
    if not layer.integer:
        constants = layer.array("constants", layer.values("constants").astype(layer.output.dtype), layer.output.cpp)
        config = layer.config("constants added", layer.planes, {"Constants": len(layer.values("constants"))})
        return layer.code("add_constants", layer.call("addConstants", config, constants=(constants,)))
    layer, selection, total = layer.requiring_whole_input(), vectors(layer), layer.sum_type()
    functions = {
        "weight": int(layer.values("multiplier")[0]),
        "constantWeight": int(layer.values("constant_multiplier")[0]),
        "zero": layer.inputs[0].zero_point,
    }
    factors = layer.constants("factors_of_terms", total, functions)
    types = {**layer.planes, "Sum": total, "Terms": factors, "Epilogue": epilogue(layer, selection)}
    config = layer.config("constants added", types, {"Constants": len(layer.values("stored"))}, selection)
    values = layer.values("stored")
    stored = layer.array("constants", values, f"std::{values.dtype.name}_t")
    return layer.code("add_constants", layer.call("addShifted", config, constants=(stored,)), selection=selection)
