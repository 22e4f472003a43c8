"""Layers that only apply an activation function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.interpolated import fit_knots, interpolate, nearest_defined
from n2d2py.contracts.cpp import Layer, LayerCode, copy, cpp, table
from n2d2py.contracts.functions import Clip, FunctionRow, HardSwish, LeakyRectifier, Step
from n2d2py.contracts.ini import ACTIVATED, NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini, read_activation
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.file_rounding import hard_swish, multiplied
from n2d2py.contracts.quant.forming import activation_clamp, integer_layer
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, quantize_layer, quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import TWICE, Interpolated, Node, QuantNode, Table
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, pointwise
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.identity import Identity


@register
class Activation(Op):
    """y = function(x), element-wise."""

    function: FunctionRow

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self.function(inputs[0])]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Look q up in a table, or interpolate between knots."""
        kind = graph.type(node.inputs[0])
        if isinstance(node.form, Interpolated):
            output, lowest = graph.type(node.output), -(2 ** (kind.bits - 1)) if kind.signed else 0
            result = interpolate(node.form.knots, inputs[0].astype(np.int64) - lowest, output.qmin, output.qmax)
            return [result.astype(output.dtype)]
        return [node.form_as(Table).table[inputs[0].astype(np.int64) - kind.qmin].astype(graph.type(node.output).dtype)]


memory_access("Activation")(pointwise)


# ---- INI -----------------------------------------------------------------------------------------
_TANH = replace(next(key for key in ACTIVATED.keys if key.name == "ActivationFunction"), default="Tanh")


@ini(
    "Activation", NB_OUTPUTS, _TANH, base=ACTIVATED, doc="Activation function (default: Tanh). Several inputs are concatenated."
)
def _build(context: LayerContext) -> None:
    tensor = context.concat_inputs()
    context.require_channels(tensor)
    function = read_activation(context.values)
    context.add(Identity() if function is None else Activation(function), [tensor])


OPERATIONS = ("Binary", "BinaryInverted", "Truncate", "ToZero", "ToZeroInverted")


def threshold_function(operation: str, threshold: float, maximum: float) -> FunctionRow:
    """Return the function of a Threshold layer or transformation."""
    if operation == "Truncate":
        return Clip(high=threshold)
    below, above = {
        "Binary": (0.0, maximum),
        "BinaryInverted": (maximum, 0.0),
        "ToZero": (0.0, None),
        "ToZeroInverted": (None, 0.0),
    }[operation]
    return Step(threshold, below, above)


@ini(
    "Threshold",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("Threshold", Kind.FLOAT, doc="values above it are high"),
    config=(
        Key("Operation", Kind.ENUM, "Binary", "Result for high and low values.", OPERATIONS),
        Key("MaxValue", Kind.FLOAT, 1.0, "Result for high values (BinaryInverted: for low values)."),
    ),
    doc="Apply a threshold.",
)
def _threshold(context: LayerContext) -> None:
    values, tensor = context.values, context.concat_inputs()
    context.require_channels(tensor)
    context.add(Activation(threshold_function(values["Operation"], values["Threshold"], values["MaxValue"])), [tensor])


# ---- integers ------------------------------------------------------------------------------------
_TOLERANCES = (0.75, 1.5)
"""Largest errors of interpolated results in output steps, 0.5 of them by rounding. The second is used if no knots meet the
first. Errors of 1.5 steps cost 16-bit networks with SiLU up to 3 dB."""


@quantizer("Activation")
class ActivationQuantizer(Quantizer):
    """table[q - qmin] = quantized f(s_x (q - zero point)) for every stored input q; knots for interpolation if inputs have 16
    bits. If f is undefined at q, the value at the nearest q with a defined one is used."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if x.bits > 8 and isinstance(node.op.function, Clip):  # a Sum with one operand and a clamped output
            return quantize_layer(replace(node, op=ElemWise("Sum"), activation=node.op.function), types)
        first = x.qmin if x.bits == 8 else -(2**15) if x.signed else 0
        stored = np.arange(first, x.qmax + (2 if x.bits > 8 else 1))
        with np.errstate(all="ignore"):
            values = nearest_defined(node.op.function(x.dequantize(stored).astype(np.float64)))
        if values is None:
            raise _nan_error(node)
        clamp = activation_clamp(node, y)
        if x.bits > 8:
            steps = values / y.scale + y.zero_point
            for tolerance in _TOLERANCES:
                knots = fit_knots(steps, y.qmin, y.qmax, tolerance)
                if knots is not None:
                    return integer_layer(node, Interpolated(knots), clamp)
            reason = "as interpolation in 4096 entries would be off by more than 1.5 steps"
            log.notice("%s: 16-bit %s uses a table of 65536 entries, %s", node.name, node.op.function.kind, reason)
            values = values[x.qmin - first : -1]
        return integer_layer(node, Table(y.quantize(values)), clamp)

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """Return a table of the function and the activation after it, rounded as in TFLite's kernels for TFLite files."""
        x, y = types.inputs[0], types.output
        if node.rounding == TWICE and node.activation is None and isinstance(node.op.function, _IN_FILES):
            return integer_layer(node, Table(_tflite_table(node.op.function, x, y)), (y.qmin, y.qmax))
        stored = np.arange(x.qmin, x.qmax + 1)
        with np.errstate(over="ignore"):
            values = node.op.function((stored - x.zero_point).astype(np.float32) * np.float32(x.scale))
        values = nearest_defined(values if node.activation is None else node.activation(values))
        if values is None:
            raise _nan_error(node)
        return integer_layer(node, Table(y.quantize_linear(values)), (y.qmin, y.qmax))


_IN_FILES = (Clip, HardSwish, LeakyRectifier)
"""Functions with kernels of their own for the integers of .tflite files."""


def _tflite_table(function: FunctionRow, x: NumType, y: NumType) -> np.ndarray:
    """Return the outputs of TFLite's QUANTIZE, RELU, LEAKY_RELU or HARD_SWISH kernel for all stored integers of x."""
    away, ratio = np.arange(x.qmin, x.qmax + 1) - x.zero_point, np.float32(x.scale) / np.float32(y.scale)
    result, (low, high) = multiplied(away, float(ratio)), (y.qmin, y.qmax)
    if isinstance(function, LeakyRectifier):
        slope = np.float32(x.scale) * np.float32(function.slope) / np.float32(y.scale)
        result = np.where(away < 0, multiplied(away, float(slope)), result)
    elif isinstance(function, HardSwish):
        result = hard_swish(away, x, y)
    elif isinstance(function, Clip):
        low, high = map(int, y.quantize_linear(np.array([function.low, function.high], np.float64)))
    return np.clip(result + y.zero_point, low, high).astype(y.dtype)


def _nan_error(node: Node) -> N2D2Error:
    what = f"layer '{node.name}' ({node.op.function.kind}) gives NaN for all of its inputs"
    return N2D2Error("E504", what, where=node.location, remedy="check the weights and the input range")


# ---- C++ -----------------------------------------------------------------------------------------
# Integers: a table, or linear interpolation between knots. Floating point: the function itself.
def _extend_table(values: np.ndarray, kind: NumType) -> np.ndarray:
    """Extend a table to all values of the input's storage type; values outside its range get the nearest entry."""
    lowest = -(2 ** (kind.bits - 1)) if kind.signed else 0
    before = kind.qmin - lowest
    return np.pad(values, (before, 2**kind.bits - before - values.size), "edge")


@cpp("Activation")
def lower(layer: Layer) -> LayerCode:
    layer, node, kind = layer.pointwise(), layer.node, layer.inputs[0]
    if not layer.integer:
        if node.activation is not None:
            raise InternalError(f"{node.name}: an activation layer carries another activation")
        return copy(replace(layer, node=replace(node, activation=layer.op.function)))
    function, selection = layer.op.function.kind, layer.portable
    types = {**layer.planes, "Epilogue": f"n2d2::Moved<{layer.output.cpp}>"}
    constants: dict[str, int] = {"Serial": layer.serial}
    if layer.has("knots"):
        knots = layer.values("knots")
        kernel, array = "interpolated", layer.array("knots", knots, "std::int32_t")
        text = f"{function} by a table of {knots.size} knots"
        constants.update(Segments=knots.size - 1, Low=layer.output.qmin, High=layer.output.qmax)
    else:
        values = _extend_table(layer.values("table"), kind)
        if values.size != 2**kind.bits:
            raise InternalError(f"{node.name}: a table of {values.size} entries for {kind.name}")
        kernel, array = "lookup", layer.array("table", values, layer.output.cpp)
        text, selection = f"{function} by table", table(layer)
    config = layer.config(text, types, constants, selection)
    return layer.code("lookup", layer.call(kernel, config, constants=(array,)), selection=selection)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("Activation")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.apply(node.op.function, node.inputs[0], output)
