"""Per-channel gain and shift: a BatchNorm, or a Mul and Add of constants, that no other layer absorbed."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import exact_float
from n2d2py.contracts.cpp import Layer, LayerCode, cpp, epilogue, pack, vectors
from n2d2py.contracts.ini import NB_OUTPUTS, LayerContext, ini
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.quantizer import quantizer
from n2d2py.contracts.quant.weighted import WeightedQuantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import TWICE, Node
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, pointwise


@register
class Affine(Op):
    """y[c] = weights[c] * x[c] + bias[c], broadcast over the positions. Parameters: "weights", "bias" (C)."""

    macs_per_output = 1

    @staticmethod
    def _apply(x: np.ndarray, node, dtype: np.dtype) -> np.ndarray:
        shape = (1, -1) + (1,) * (x.ndim - 2)
        weights, bias = (node.params[role].astype(dtype).reshape(shape) for role in ("weights", "bias"))
        return x.astype(dtype) * weights + bias

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._apply(inputs[0], node, inputs[0].dtype)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        acc = self._apply(inputs[0], node, exact_float(node.bound))
        return [node.requantize(acc, graph.type(node.output))]


def uniform_gain(count: int, gain: float, shift: float = 0.0) -> dict[str, np.ndarray]:
    """Return the parameters of an Affine with one gain and shift for all `count` channels."""
    return {"weights": np.full(count, gain, np.float32), "bias": np.full(count, shift, np.float32)}


@ini("Scaling", NB_OUTPUTS, Key("Factor", Kind.FLOAT, doc="Factor of every value."), doc="Multiply all values by a factor.")
def _from_ini(context: LayerContext) -> None:
    tensor = context.concat_inputs()
    context.add(Affine(), [tensor], uniform_gain(context.require_channels(tensor), context.values["Factor"]))


@onnx_emitter("Affine")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    emit_gain_and_shift(writer, node, node.params["weights"], node.params["bias"], output)


def emit_gain_and_shift(writer: OnnxWriter, node: Node, gain: np.ndarray, shift: np.ndarray, output: str) -> None:
    """Add ONNX nodes that multiply the input of a node by a gain and add a shift, (C) each."""
    shape = writer.graph.shape(node.inputs[0])
    scaled = writer.emit("Mul", [node.inputs[0], writer.per_channel(gain, shape)])
    writer.emit("Add", [scaled, writer.per_channel(shift, shape)], output)


memory_access("Affine")(pointwise)


_SHIFT_BITS = 12
"""Fractional bits, in steps of the input, to which shifts of pre-quantized networks are rounded."""


@quantizer("Affine")
class AffineQuantizer(WeightedQuantizer):
    """A scale for each channel."""

    per_output = True
    real_factors = True

    def has_file_weights(self, node: Node) -> bool:
        return node.rounding == TWICE and "weight_scales" in node.params

    def file_weights(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Return signs times a power of two, with the gains as scales: shifts then are integers in small steps. Gains of a
        .tflite file are its integers."""
        if self.has_file_weights(node):
            return super().file_weights(node)
        weights, unit = node.params["weights"].astype(np.float64), 2.0**_SHIFT_BITS
        return (np.sign(weights) * unit).astype(np.int16), np.where(weights == 0, 1.0, np.abs(weights) / unit).astype(
            np.float32
        )


@cpp("Affine")
def _lower(layer: Layer) -> LayerCode:
    layer, selection = layer.pointwise(), vectors(layer)
    packed = pack(layer, selection, layer.values("weights"))
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    config = layer.config("gain and shift per channel", types, {"Serial": layer.serial}, selection)
    return layer.code("affine", layer.call("affine", config, constants=packed.arguments), selection=selection)
