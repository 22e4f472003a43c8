"""Layers that compute each value from the one at its place: an activation function alone; a gain and shift per channel, of a
BatchNorm or of constants, that no other layer absorbed; added constants such as positional embeddings."""

from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.interpolated import fit_knots, interpolate, nearest_defined
from n2d2py.contracts.cpp import Layer, LayerCode, copy, cpp, epilogue, pack, table, vectors
from n2d2py.contracts.facets import OnnxWriter, Op, WeightedOp, onnx_emitter, register
from n2d2py.contracts.functions import Clip, FunctionRow, HardSwish, LeakyRectifier, Step
from n2d2py.contracts.ini import ACTIVATED, NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini, read_activation
from n2d2py.contracts.quant import quantizer as quant
from n2d2py.contracts.quant.file_rounding import hard_swish, multiplied
from n2d2py.errors import N2D2Error
from n2d2py.graph import TWICE, Interpolated, Node, QuantGraph, QuantNode, Table, forms
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, pointwise
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.reshape import Identity

# ---- a gain and shift per channel ---------------------------------------------------------------


@register
class Affine(WeightedOp):
    """y[c] = weights[c] * x[c] + bias[c], broadcast over the positions. Parameters: "weights", "bias" (C)."""

    macs_per_output = 1

    def sums(self, x: np.ndarray, node, dtype: np.dtype, zero_point: int) -> np.ndarray:
        return x.astype(dtype, copy=False) * node.params["weights"].astype(dtype).reshape(-1, *(1,) * (x.ndim - 2))


def uniform_gain(count: int, gain: float, shift: float = 0.0) -> dict[str, np.ndarray]:
    """Return the parameters of an Affine with one gain and shift for all `count` channels."""
    return {"weights": np.full(count, gain, np.float32), "bias": np.full(count, shift, np.float32)}


@ini("Scaling", NB_OUTPUTS, Key("Factor", Kind.FLOAT, doc="Factor of every value."), doc="Multiply all values by a factor.")
def _from_ini(context: LayerContext) -> None:
    tensor = context.concat_inputs()
    context.add(Affine(), [tensor], uniform_gain(context.require_channels(tensor), context.values["Factor"]))


@onnx_emitter("Affine")
def _emit_affine(writer: OnnxWriter, node: Node, output: str) -> None:
    emit_gain_and_shift(writer, node, node.params["weights"], node.params["bias"], output)


def emit_gain_and_shift(writer: OnnxWriter, node: Node, gain: np.ndarray, shift: np.ndarray, output: str) -> None:
    """Add ONNX nodes that multiply the input of a node by a gain and add a shift, (C) each."""
    shape = writer.graph.shape(node.inputs[0])
    scaled = writer.emit("Mul", [node.inputs[0], writer.per_channel(gain, shape)])
    writer.emit("Add", [scaled, writer.per_channel(shift, shape)], output)


memory_access("Affine", "Activation")(pointwise)


_SHIFT_BITS = 12
"""Fractional bits, in steps of the input, to which shifts of pre-quantized networks are rounded."""


@quant.quantizer("Affine")
class AffineQuantizer(quant.WeightedQuantizer):
    """A scale for each channel."""

    per_output = True
    real_factors = True

    def has_file_weights(self, node: Node) -> bool:
        return node.rounding == TWICE and "weight_scales" in node.params

    def file_weights(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Return signs times a power of two, with the gains as scales: shifts then are integers in small steps."""
        if self.has_file_weights(node):
            return super().file_weights(node)
        weights, unit = node.params["weights"].astype(np.float64), 2.0**_SHIFT_BITS
        scales = np.where(weights == 0, 1.0, np.abs(weights) / unit)
        return (np.sign(weights) * unit).astype(np.int16), scales.astype(np.float32)


@cpp("Affine")
def _lower_affine(layer: Layer) -> LayerCode:
    layer, selection = layer.pointwise(), vectors(layer)
    packed = pack(layer, selection, layer.values("weights"))
    types = {**layer.planes, **packed.types, "Epilogue": epilogue(layer, selection)}
    config = layer.config("gain and shift per channel", types, {"Serial": layer.serial}, selection)
    return layer.code("affine", layer.call("affine", config, constants=packed.arguments), selection=selection)


# ---- added constants ----------------------------------------------------------------------------


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
def _emit_add_constants(writer: OnnxWriter, node: Node, output: str) -> None:
    constants, (_, size) = node.params["constants"], writer.graph.shape(output)
    rows = size // len(constants)
    source = node.inputs[0] if rows == 1 else writer.emit("Reshape", [node.inputs[0], writer.constant([0, rows, -1])])
    added = writer.emit("Add", [source, writer.exact(constants.reshape(1, -1))], output if rows == 1 else None)
    if rows > 1:
        writer.emit("Reshape", [added, writer.constant([0, -1])], output)


@quant.quantizer("AddConstants")
class AddConstantsQuantizer(quant.Quantizer):
    """Constants have the bit width of the network; 16 if the result has 16 bits and 8 would spoil them, as a token 100 times
    the others. The multipliers have 14 bits; 22 with one 16-bit tensor, 26 with two. Their unit is a power of two."""

    def quantize(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        x, step = types.inputs[0], types.output.scale
        constants = node.params["constants"].astype(np.float64)
        largest = float(np.abs(constants).max(initial=0))
        kind, wide = (kind.with_scale(largest / kind.qmax or x.scale) for kind in (NumType(types.options.bits), NumType(16)))
        lost = np.square(kind.dequantize(kind.quantize(constants)) - constants).mean()
        if types.output.bits == 16 and lost > _MAX_8_BIT_ERROR * np.median(np.square(constants)):
            kind = wide
        precise = 14 if not types.wide else 22 if kind.bits == 8 else 26
        (multiplier, other), unit = quant.common_multipliers(np.array([x.scale, kind.scale]) / step, precise)
        bound = abs(multiplier) * quant.peak(x) + abs(other) * kind.qmax
        dtype = np.int32 if bound < 2**31 else np.int64
        form = forms.Shifted(np.array([multiplier], dtype), np.array([other], dtype), kind.quantize(constants))
        return quant.rescaled_layer(node, types, np.array([unit]), bound, form)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        form, step = node.form_as(forms.Shifted), node.rescaling.effective()[0] * graph.type(node.output).scale
        return {"constants": (form.stored * (form.constant_multiplier[0] * step)).astype(np.float32)}


@cpp("AddConstants")
def _lower_add_constants(layer: Layer) -> LayerCode:
    if not layer.integer:
        constants = layer.array("constants", layer.values("constants").astype(layer.output.dtype), layer.output.cpp)
        config = layer.config("constants added", layer.planes, {"Constants": len(layer.values("constants"))})
        return layer.code("add_constants", layer.call("addConstants", config, constants=(constants,)))
    layer, selection, total = layer.requiring_whole_input(), vectors(layer), layer.sum_type()
    weight, other = (int(layer.values(role)[0]) for role in ("multiplier", "constant_multiplier"))
    functions = {"weight": weight, "constantWeight": other, "zero": layer.inputs[0].zero_point}
    factors = layer.constants("factors_of_terms", total, functions)
    types = {**layer.planes, "Sum": total, "Terms": factors, "Epilogue": epilogue(layer, selection)}
    values = layer.values("stored")
    config = layer.config("constants added", types, {"Constants": len(values)}, selection)
    stored = layer.array("constants", values, f"std::{values.dtype.name}_t")
    return layer.code("add_constants", layer.call("addShifted", config, constants=(stored,)), selection=selection)


# ---- activation functions -----------------------------------------------------------------------


@register
class Activation(Op):
    """y = function(x), element-wise."""

    function: FunctionRow

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self.function(inputs[0])]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        kind = graph.type(node.inputs[0])
        if isinstance(node.form, Interpolated):
            output, lowest = graph.type(node.output), -(2 ** (kind.bits - 1)) if kind.signed else 0
            result = interpolate(node.form.knots, inputs[0].astype(np.int64) - lowest, output.qmin, output.qmax)
            return [result.astype(output.dtype)]
        return [node.form_as(Table).table[inputs[0].astype(np.int64) - kind.qmin].astype(graph.type(node.output).dtype)]


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
    sides = {"Binary": (0.0, maximum), "BinaryInverted": (maximum, 0.0), "ToZero": (0.0, None), "ToZeroInverted": (None, 0.0)}
    return Step(threshold, *sides[operation])


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


_TOLERANCES = (0.75, 1.5)
"""Largest errors of interpolated results in output steps, 0.5 of them by rounding. The second is used if no knots meet the
first. Errors of 1.5 steps cost 16-bit networks with SiLU up to 3 dB."""


@quant.quantizer("Activation")
class ActivationQuantizer(quant.Quantizer):
    """table[q - qmin] = quantized f(s_x (q - zero point)) for every stored input q; knots for interpolation if inputs have 16
    bits. If f is undefined at q, the value at the nearest q with a defined one is used."""

    def quantize(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if x.bits > 8 and isinstance(node.op.function, Clip):  # a Sum with one operand and a clamped output
            return quant.quantize_layer(replace(node, op=ElemWise("Sum"), activation=node.op.function), types)
        first = x.qmin if x.bits == 8 else -(2**15) if x.signed else 0
        stored = np.arange(first, x.qmax + (2 if x.bits > 8 else 1))
        with np.errstate(all="ignore"):
            values = _defined(node, node.op.function(x.dequantize(stored).astype(np.float64)))
        clamp = quant.activation_clamp(node, y)
        if x.bits > 8:
            steps = values / y.scale + y.zero_point
            for tolerance in _TOLERANCES:
                knots = fit_knots(steps, y.qmin, y.qmax, tolerance)
                if knots is not None:
                    return quant.integer_layer(node, Interpolated(knots), clamp)
            reason = "as interpolation in 4096 entries would be off by more than 1.5 steps"
            log.notice("%s: 16-bit %s uses a table of 65536 entries, %s", node.name, node.op.function.kind, reason)
            values = values[x.qmin - first : -1]
        return quant.integer_layer(node, Table(y.quantize(values)), clamp)

    def prequantized(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        """Return a table of the function and the activation after it, rounded as in TFLite's kernels for TFLite files."""
        x, y = types.inputs[0], types.output
        if node.rounding == TWICE and node.activation is None and isinstance(node.op.function, _IN_FILES):
            return quant.integer_layer(node, Table(_tflite_table(node.op.function, x, y)), (y.qmin, y.qmax))
        stored = np.arange(x.qmin, x.qmax + 1)
        with np.errstate(over="ignore"):
            values = node.op.function((stored - x.zero_point).astype(np.float32) * np.float32(x.scale))
        values = _defined(node, values if node.activation is None else node.activation(values))
        return quant.integer_layer(node, Table(y.quantize_linear(values)), (y.qmin, y.qmax))


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


def _defined(node: Node, values: np.ndarray) -> np.ndarray:
    """Return the values, with the nearest number for NaN."""
    result = nearest_defined(values)
    if result is None:
        what = f"layer '{node.name}' ({node.op.function.kind}) gives NaN for all of its inputs"
        raise N2D2Error("E504", what, where=node.location, remedy="check the weights and the input range")
    return result


@cpp("Activation")
def lower(layer: Layer) -> LayerCode:
    layer, node, kind = layer.pointwise(), layer.node, layer.inputs[0]
    if not layer.integer:
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
        values, before = layer.values("table"), kind.qmin + (2 ** (kind.bits - 1) if kind.signed else 0)
        values = np.pad(values, (before, 2**kind.bits - before - values.size), "edge")  # for all stored integers
        kernel, array = "lookup", layer.array("table", values, layer.output.cpp)
        text, selection = f"{function} by table", table(layer)
    config = layer.config(text, types, constants, selection)
    return layer.code("lookup", layer.call(kernel, config, constants=(array,)), selection=selection)


@onnx_emitter("Activation")
def _emit_activation(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.apply(node.op.function, node.inputs[0], output)
