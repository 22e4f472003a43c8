"""Conversions of the number type: rounding to integers in pre-quantized networks, to floating point and back."""

from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import NumType, make_rescale
from n2d2py.contracts.cpp import Layer, LayerCode, converting_epilogue, cpp
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.onnx.nodes import Builder, OnnxNode, Unsupported, add_elementwise, elementwise_input
from n2d2py.contracts.onnx.tensors import element_dtype
from n2d2py.contracts.quant import quantizer as quant
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode, Real, Rescaled, requantized
from n2d2py.memory.access import memory_access, pointwise
from n2d2py.operators.arrays.values import Arrays, onnx
from n2d2py.operators.concat import Concat
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.elemwise.op import dequantize_and_combine
from n2d2py.operators.pointwise import Activation
from n2d2py.operators.reshape import Identity, emit_identity
from n2d2py.operators.resize import Resize


@register
class Quantize(Op):
    """y = s (clamp(round(x / s) + z) - z): the real numbers after a QuantizeLinear and a DequantizeLinear.

    Quotients and products are float32, ties go to even. Integer networks have no such layer: the producer rounds to `type`.
    """

    type: NumType

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        centred = self.type.quantize_linear(inputs[0]).astype(inputs[0].dtype) - inputs[0].dtype.type(self.type.zero_point)
        with np.errstate(over="ignore"):
            return [centred * inputs[0].dtype.type(np.float32(self.type.scale))]


def is_quantized(graph: Graph) -> bool:
    """True if the model is pre-quantized."""
    return any(isinstance(node.op, Quantize) for node in graph.nodes)


def values_source(graph: Graph, tensor: str) -> str:
    """Return the tensor whose values `tensor` contains unchanged, in other positions; itself if a layer computes it."""
    node = graph.producer(tensor)
    while node is not None and _moves_values(node):
        tensor = node.inputs[0]
        node = graph.producer(tensor)
    return tensor


def grid_type(graph: Graph, tensor: str) -> NumType | None:
    """Return the integer type to which the values of `tensor` are rounded; else None."""
    source = values_source(graph, tensor)
    node = graph.producer(source)
    if node is None or node.activation is not None:
        return None
    if isinstance(node.op, Quantize):
        return node.op.type
    if isinstance(node.op, Concat) and node.op.concatenates_reals:
        grids = {grid_type(graph, name) for name in node.inputs}
        return grids.pop() if len(grids) == 1 else None
    return None


def _moves_values(node: Node) -> bool:
    """True if the layer outputs unchanged values of its first input, not means of them."""
    mean = isinstance(node.op, Resize) and node.op.mode != "Nearest"
    return node.activation is None and not mean and node.op.moves_values


# ---- ONNX import: QuantizeLinear, DequantizeLinear, and a Clip of the integers between them ------
_LOWEST, _HIGHEST = 2.0**-126, 2.0**126


def integer_type(dtype: np.dtype) -> tuple[int, bool] | None:
    """Return (bits, signed) of an integer type, including int2 and int4; None for other types.

    The name decides, since NumPy gives the types of ml_dtypes the kind "void".
    """
    name = dtype.name
    bits = name.removeprefix("u").removeprefix("int")
    return (int(bits), not name.startswith("u")) if bits.isdecimal() and "int" in name else None


def integer_limits(bits: int, signed: bool) -> tuple[int, int]:
    """Return the smallest and largest integer of so many bits."""
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def _scale(node: OnnxNode) -> np.ndarray:
    scale = node.constant(1, "scale").astype(np.float32)
    if not np.all((scale >= _LOWEST) & (scale <= _HIGHEST)):
        raise Unsupported("its scale is not a positive number", "quantize the model again")
    return scale


def _zero_point(node: OnnxNode, default: np.dtype) -> np.ndarray:
    return node.constant(2, "zero point") if node.has(2) else np.zeros((), default)


def _broadcast(values: np.ndarray, node: OnnxNode, shape: tuple[int, ...]) -> np.ndarray:
    """Return one value, or one for each position of the node's axis, in a shape that broadcasts to `shape`."""
    if block := node.attribute("block_size", 0):
        raise Unsupported(f"block quantization (block_size={block}) is not supported", "quantize per tensor or per channel")
    if values.size == 1:
        return values.reshape((1,) * len(shape))
    axis = node.axis_of(node.attribute("axis", 1), len(shape))
    if values.ndim != 1 or values.size != shape[axis]:
        raise Unsupported(f"it has {values.size} scales for an axis of {shape[axis]}", "quantize the model again")
    return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def _type(node: OnnxNode, default: np.dtype) -> NumType:
    """Return the type of an activation; int8 and uint8 are converted to the one whose zero point is nearer to 0."""
    scale, zero = _scale(node), _zero_point(node, default)
    if scale.size != 1 or zero.size != 1:
        raise Unsupported("activations quantized per channel are not supported", "quantize activations per tensor")
    width, signed = integer_type(zero.dtype) or (0, False)
    if not 0 < width <= 16:
        raise Unsupported(f"integers of type {zero.dtype.name} are not supported", "quantize activations to 2, 4, 8 or 16 bits")
    value = int(zero.astype(np.int32).item())
    if width < 8:  # stored in bytes, with a smaller range
        least, most = integer_limits(width, signed)
        return NumType(8, signed, scale=scale.item(), zero_point=value, full=signed, least=least, most=most)
    bits, half = width, 2 ** (width - 1)
    if (signed and value != 0) or (not signed and value == half):
        signed, value = not signed, value + (half if signed else -half)
    return NumType(bits, signed, scale=scale.item(), zero_point=value, full=signed)


def _offset(kind: NumType, stored: np.dtype) -> int:
    """Return by how much `_type` moved the integers of a type of the file."""
    return 0 if (stored.kind == "i") == kind.signed else 2 ** (kind.bits - 1) * (-1 if kind.signed else 1)


def dequantize_constant(builder: Builder, tensor: str, stored: float, dtype: np.dtype | None) -> float:
    """Return the real number of an integer next to the integers of an ONNX tensor; `dtype` None: of their type."""
    kind = grid_type(builder.graph, builder.names.get(tensor) or builder.arrays[tensor])
    if kind is None:
        raise Unsupported("its input is not the output of a QuantizeLinear", "quantize the model again")
    centred = int(stored) + _offset(kind, dtype or _stored_dtype(tensor, builder)) - kind.zero_point
    return float(np.float32(centred) * np.float32(kind.scale))


def _default_dtype(node: OnnxNode) -> np.dtype:
    element = node.attribute("output_dtype", 0)
    return element_dtype(element) if element else np.dtype(np.uint8)


def _stored_dtype(tensor: str, builder: Builder) -> np.dtype:
    """Return the integer type in the file: of a QuantizeLinear, possibly before layers that move its values, or of an input."""
    writer = builder.writers.get(tensor)
    while writer is not None and writer.op_type != "QuantizeLinear":
        tensor = writer.input[0]
        writer = builder.writers.get(tensor)
    if writer is not None:
        node = OnnxNode(writer, builder)
        return _zero_point(node, _default_dtype(node)).dtype
    return next((element_dtype(each.element_type) for each in builder.model.inputs if each.name == tensor), np.dtype(np.uint8))


def import_quantize(node: OnnxNode, builder: Builder) -> None:
    """Add a Quantize to the integers of the export, or quantize a constant."""
    if not node.is_constant(0):
        add_elementwise(node, builder, Quantize(_type(node, _default_dtype(node))))
        builder.integers.add(node.name)
        return
    values, zero = node.constant(0, "input"), _zero_point(node, _default_dtype(node))
    known = integer_type(zero.dtype)
    if known is None:
        raise Unsupported(f"integers of type {zero.dtype.name} are not supported", "quantize weights to 8 bits")
    least, most = integer_limits(*known)
    scale, offset = _broadcast(_scale(node), node, values.shape), _broadcast(zero.astype(np.int64), node, values.shape)
    stored = np.rint(values.astype(np.float32) / scale).astype(np.int64) + offset
    builder.constants[node.name] = np.clip(stored, least, most).astype(zero.dtype)


def import_dequantize(node: OnnxNode, builder: Builder) -> None:
    """Add nothing after a QuantizeLinear, a Quantize after an input, or dequantize a constant."""
    if node.is_constant(0):
        stored = node.constant(0, "input")
        if integer_type(stored.dtype) is None:
            raise Unsupported(f"integers of type {stored.dtype.name} are not supported", "quantize weights to 8 bits")
        scale = _broadcast(_scale(node), node, stored.shape)
        zero = _broadcast(_zero_point(node, stored.dtype).astype(np.int64), node, stored.shape)
        with np.errstate(over="ignore"):  # masks of the lowest float32
            builder.constants[node.name] = (stored.astype(np.int64) - zero).astype(np.float32) * scale
        builder.weight_scales[node.name] = np.broadcast_to(scale, stored.shape)
        return
    kind, tensor = _type(node, _stored_dtype(node.inputs[0], builder)), elementwise_input(node, builder)
    grid = grid_type(builder.graph, tensor)
    if grid is None and values_source(builder.graph, tensor) not in builder.graph.inputs:
        raise Unsupported("its input is not the output of a QuantizeLinear", "quantize the model again")
    if grid is None:
        add_elementwise(node, builder, Quantize(kind))
    elif kind in (grid, replace(grid, least=None, most=None)):
        add_elementwise(node, builder, Identity())
    else:
        reason = "its scale, zero point or type differs from that of the QuantizeLinear before it"
        raise Unsupported(reason, "quantize the model again")


@onnx("Clip")
def _clip(a: Arrays) -> None:
    if a.node.inputs[0] in a.builder.integers:
        _narrow(a.node, a.builder)
    elif not a.apply_function():
        x = a.value(0)
        for index, name, function in ((1, "min", "Max"), (2, "max", "Min")):
            if a.node.has(index):
                x = a.map(function, x, a.value(index))
            elif a.node.attribute(name) is not None:
                x = a.map(function, x, a.const(a.node.attribute(name), x))
        a.bind(x)


def _narrow(node: OnnxNode, builder: Builder) -> None:
    kind = grid_type(builder.graph, elementwise_input(node, builder))
    if kind is None:
        raise Unsupported("its input is not the output of a QuantizeLinear", "quantize the model again")
    limits = [node.optional_constant(index, what) for index, what in ((1, "lower limit"), (2, "upper limit"))]
    low, high = (None if limit is None else int(limit.item()) + _offset(kind, limit.dtype) for limit in limits)
    least = kind.qmin if low is None else max(low, kind.qmin)
    most = kind.qmax if high is None else min(high, kind.qmax)
    if least > most:
        raise Unsupported("no integer lies between its limits", "quantize the model again")
    narrower = kind if (least, most) == (kind.qmin, kind.qmax) else replace(kind, least=least, most=most)
    add_elementwise(node, builder, Quantize(narrower))


# QONNX: quantizers of any bit width as separate operators (Brevitas, FINN, hls4ml); github.com/fastmachinelearning/qonnx,
# docs/qonnx-custom-ops. Quant: y = s (clamp(round(x / s + z), limits of the bits) - z). BipolarQuant: y = s if x >= 0, else -s.
_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas")
_MAX_BITS = 16
"""Largest bit width of activations; constants may have 32."""


def _integer_range(node: OnnxNode) -> tuple[int, int, int, bool]:
    """Return (bits, smallest integer, largest integer, signed)."""
    widths = node.constant(3, "bit width").reshape(-1)
    if widths.size != 1 or float(widths[0]) != int(widths[0]) or not 1 <= int(widths[0]) <= 32:
        raise Unsupported(f"its bit width {widths.tolist()} is not supported", "give one whole number of bits")
    bits, signed = int(widths[0]), bool(node.attribute("signed", 1))
    mode = str(node.attribute("rounding_mode", "ROUND"))
    if mode.upper() not in ("ROUND", "HALF_EVEN"):
        raise Unsupported(f"rounding_mode={mode} is not supported", "round to the nearest integer, ties to even (ROUND)")
    low, high = integer_limits(bits, signed)
    if node.attribute("narrow", 0):
        low, high = (low + 1, high) if signed else (low, high - 1)
    if low >= high:
        raise Unsupported(f"{bits} bits leave a single integer", "use BipolarQuant for binary weights")
    return bits, low, high, signed


@onnx(*(f"{domain}::{name}" for domain in _DOMAINS for name in ("Quant", "IntQuant")))
def _quant(a: Arrays) -> None:
    node, builder = a.node, a.builder
    scale, zero = _scale(node), node.constant(2, "zero point").astype(np.float64)
    bits, low, high, signed = _integer_range(node)
    if not np.array_equal(zero, np.rint(zero)):
        raise Unsupported("its zero point is not a whole number", "quantize the model again")
    if node.is_constant(0):
        values = node.constant(0, "input")
        steps = np.rint(values.astype(np.float32) / scale + zero.astype(np.float32)).astype(np.float64)
        builder.constants[node.name] = ((np.clip(steps, low, high) - zero) * scale).astype(np.float32)
        builder.weight_scales[node.name] = np.broadcast_to(scale, values.shape)
        return
    if bits > _MAX_BITS:
        raise Unsupported(f"{bits}-bit activations are not supported", f"use {_MAX_BITS} or fewer")
    if scale.size != 1 or zero.size != 1:
        raise Unsupported("activations quantized per channel are not supported", "quantize activations per tensor")
    stored = 8 if bits <= 8 else 16
    value = int(zero.item())
    if not low <= value <= high:
        raise Unsupported(f"its zero point {value} is not a {bits}-bit integer", "quantize the model again")
    least, most = (None, None) if (low, high) == integer_limits(stored, signed) else (low, high)
    kind = NumType(stored, signed, scale=scale.item(), zero_point=value, full=signed, least=least, most=most)
    builder.layer(node, Quantize(kind), [node.tensor()])


@onnx(*(f"{domain}::BipolarQuant" for domain in _DOMAINS))
def _bipolar(a: Arrays) -> None:
    node, builder = a.node, a.builder
    if not node.is_constant(0):
        raise Unsupported("binary activations (signs) are not supported", "quantize activations to unsigned integers")
    scale, values = _scale(node), node.constant(0, "input")
    builder.constants[node.name] = (np.where(values >= 0, 1.0, -1.0) * scale).astype(np.float32)
    builder.weight_scales[node.name] = np.broadcast_to(scale, values.shape)


@onnx(*(f"{domain}::Trunc" for domain in _DOMAINS))
def _trunc(a: Arrays) -> None:
    raise Unsupported("it drops the lowest bits of its input, which is not supported", "put a Quant after the average pool")


@quant.quantizer("Quantize")
class QuantizeQuantizer(quant.Quantizer):
    """Calibrated networks have no Quantize."""

    def refuses(self, node: Node) -> str | None:
        return node.op.kind

    def prequantized(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        """Convert integers between two types: by a table, or from a wide type by rounding its real numbers again."""
        if types.inputs[0].bits == 8:
            return quant.prequantize_layer(replace(node, op=Activation(Clip())), types)
        return dequantize_and_combine(replace(node, op=ElemWise("Sum")), types)


memory_access("Quantize", "Convert")(pointwise)


@onnx_emitter("Quantize")
def _emit_quantize(writer: OnnxWriter, node: Node, output: str) -> None:
    """Add nodes that round and clamp. The reference only clamps to 16 bits, which may stand for a Relu."""
    kind, x = node.op.type, node.inputs[0]
    limits = [writer.constant((limit - kind.zero_point) * kind.scale) for limit in (kind.qmin, kind.qmax)]
    if kind.bits > 8:
        writer.emit("Clip", [x, *limits], output)
        return
    if kind.least is not None or kind.most is not None:
        x = writer.emit("Clip", [x, *limits])
    scale, zero = writer.constant(kind.scale), writer.exact(np.array(kind.zero_point, kind.dtype), "integer")
    writer.emit("DequantizeLinear", [writer.emit("QuantizeLinear", [x, scale, zero]), scale, zero], output)


# ---- between types ------------------------------------------------------------------------------


@register
class Convert(Op):
    """y represents the same real numbers as x in another number type.

    With scales s and zero points z, in the floating-point type of y, else float32:

        integer to floating point   y = float(x - z_x) * float(s_x)
        floating point to integer   y = clamp(rint(float32(x) * float32(1 / s_y))) + z_y, ties to even; NaN counts as 0
        integer to integer          y = clamp(rescale(x - z_x)) + z_y by the rescale of the layer
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


onnx_emitter("Convert")(emit_identity)


@quant.quantizer("Convert")
class ConvertQuantizer(quant.Quantizer):
    """To floating point: no constants. From it: factor 1 / s_y in float32. Between integers: factor s_x / s_y."""

    def quantize(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if y.is_float:
            return quant.integer_layer(node, Real(), None)
        if x.is_float:
            rescale, _ = make_rescale("Floating-point", np.array([1 / y.scale]))
            return quant.integer_layer(node, Rescaled(), quant.activation_clamp(node, y), rescale)
        return quant.rescaled_layer(node, types, np.array([x.scale / y.scale]), quant.peak(x))

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Return no constants: real numbers stay unchanged."""
        return {}


@cpp("Convert")
def _lower(layer: Layer) -> LayerCode:
    layer = layer.pointwise()
    types = {**layer.planes, "Epilogue": converting_epilogue(layer)}
    config = layer.config(f"{layer.inputs[0].name} to {layer.output.name}", types, {"Serial": layer.serial})
    return layer.code("copy", layer.call("copy", config))
