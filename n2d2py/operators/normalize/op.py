"""Normalization along rows of a tensor."""

from math import prod, sqrt

import numpy as np

from n2d2py.arithmetic.attention import LONGEST_LINE, normalized
from n2d2py.arithmetic.functions import lane_sum
from n2d2py.contracts.cpp import Argument, Layer, LayerCode, cpp, epilogue, vectors
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.ini import NB_OUTPUTS, LayerContext, ini
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, common_multipliers, quantizer, refusal, rescaled_layer
from n2d2py.graph import Node, QuantGraph, QuantNode, Shape, elements, in_memory_order, of_memory_order
from n2d2py.graph.forms import Normalized
from n2d2py.graph.shapes import axis_along
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, rows
from n2d2py.operators.arrays.base import kernel_call
from n2d2py.operators.arrays.reduce import reduce_axes
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx

SMALLEST_NORM = 1e-12
"""Smallest divisor; rows of zeros stay zero."""


@register
class Normalize(Op):
    """(x - mean) / (norm + added) of each row of `size` contiguous elements; mean 0 without `centred`.

    Images are channels-last in memory, which makes the channels of a position a row. The norm of the differences d is
    sqrt(mean(d^2) + epsilon) or, with `power` 1, mean(|d|); with `summed`, the sum replaces the mean. `part`: "" for the
    result, "mean" or "inverse" for only the mean or the inverse divisor of each row, (1, rows). Parameters "gain" and "shift"
    (size), both or neither, multiply and add to the result, each step rounded to the type of x.
    """

    size: int
    epsilon: float
    centred: bool = True
    part: str = ""
    added: float = 0.0
    power: int = 2
    summed: bool = False
    same_bits = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        count = elements(inputs[0])
        if count % self.size:
            raise self.error("E208", node, f"requires rows of {self.size} elements, but its input has {count} elements")
        return [(inputs[0][0], count // self.size) if self.part else inputs[0]]

    def channel_numbers(self, shape: Shape) -> np.ndarray:
        """Return the index in its row of each element of a tensor of `shape`."""
        return of_memory_order(np.tile(np.arange(self.size), elements(shape) // self.size)[None], shape)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 2 * elements(inputs[0])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = in_memory_order(inputs[0]).reshape(len(inputs[0]), -1, self.size)
        mean = (lane_sum(x) / self.size if self.centred else np.zeros(x.shape[:2])).astype(x.dtype)
        away = x - mean[..., None]
        wide = away.astype(np.float64)
        size = lane_sum(np.square(wide) if self.power == 2 else np.abs(wide)) / (1 if self.summed else self.size)
        inverse = 1.0 / ((np.sqrt(size + self.epsilon) if self.power == 2 else size) + self.added)
        if self.part:
            return [(mean if self.part == "mean" else inverse.astype(x.dtype))]
        result = away * inverse.astype(x.dtype)[..., None]
        if "gain" in node.params:
            result = result * node.params["gain"].astype(x.dtype) + node.params["shift"].astype(x.dtype)
        return [of_memory_order(result, inputs[0].shape)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute as specified in `arithmetic/attention.py`."""
        form, kind = node.form_as(Normalized), graph.type(node.inputs[0])
        away = in_memory_order(inputs[0]).reshape(len(inputs[0]), -1, self.size).astype(np.int64) - kind.zero_point
        rows = normalized(away, self.centred, int(form.epsilon[0]), int(form.fraction[0]))
        acc = rows * form.gains.astype(np.int64) + form.offsets.astype(np.int64)
        return [of_memory_order(node.requantize(acc, graph.type(node.output)), inputs[0].shape)]


def lp_normalize(size: int, power: int = 2) -> Normalize:
    """Return the operator that scales rows of `size` elements to an L1 or L2 norm of 1."""
    epsilon, added = (0.0, SMALLEST_NORM) if power == 1 else (SMALLEST_NORM**2, 0.0)
    return Normalize(size, epsilon, False, added=added, power=power, summed=True)


memory_access("Normalize")(rows)


SMALLEST_SQUARE = 1e-6
"""N2D2 adds it to a sum of squares before the root."""


@ini(
    "Normalize",
    NB_OUTPUTS,
    Key("Norm", Kind.ENUM, doc="Norm that becomes 1.", choices=("L1", "L2")),
    doc="Divide each position by its norm over the channels. L1: floating point only.",
)
def _from_ini(context: LayerContext) -> None:
    tensor = context.concat_inputs()
    size, is_l1 = context.require_channels(tensor), context.values["Norm"] == "L1"
    context.add(lp_normalize(size, 1) if is_l1 else Normalize(size, SMALLEST_SQUARE, False, summed=True), [tensor])


def _add_norm(a: Arrays, x: Value, outer: int, epsilon: float, part: str = "", centred: bool = True) -> Value:
    x = a.tensor(x)
    op = Normalize(x.size // outer, float(epsilon), centred, part)
    return a.add(op, [x], (outer,) if part else x.dims, label=part or "normed")


def _affine(a: Arrays, x: Value, scale: Value | None, shift: Value | None) -> Value:
    x = x if scale is None else a.map("Mul", x, scale)
    return x if shift is None else a.map("Add", x, shift)


@onnx("LayerNormalization", "RMSNormalization")
def _layer(a: Arrays) -> None:
    x = a.value(0)
    axis = a.node.axis_of(a.node.attribute("axis", -1), len(x.dims))
    outer, epsilon = prod(x.dims[:axis]), a.node.attribute("epsilon", 1e-5)
    centred = a.node.type == "LayerNormalization"
    result = _add_norm(a, x, outer, epsilon, centred=centred)
    a.bind(_affine(a, result, a.value(1) if a.node.has(1) else None, a.value(2) if a.node.has(2) and centred else None))
    dims = tuple(size if i < axis else 1 for i, size in enumerate(x.dims))
    for index, part in ((1, "mean"), (2, "inverse")):
        if a.is_output_used(index):
            a.bind(a.reshape(_add_norm(a, x, outer, epsilon, part), dims), index)


@onnx("InstanceNormalization", "GroupNormalization")
def _group(a: Arrays) -> None:
    x, groups = a.value(0), a.node.attribute("num_groups")
    if len(x.dims) < 2 + (groups is None):
        raise Unsupported("its input has no axes besides batch and channels")
    groups = x.dims[1] if groups is None else int(groups)
    each = a.node.divide(x.dims[1], "channels", groups, f"{groups} groups")
    result = _add_norm(a, x, x.dims[0] * groups, a.node.attribute("epsilon", 1e-5))
    scale, shift = a.value(1), a.value(2)
    shape = (x.dims[1], *(1,) * (len(x.dims) - 2))
    if scale.size == groups != x.dims[1]:
        spread = (a.expand(a.reshape(v, (groups, 1)), (groups, each)) for v in (scale, shift))
        scale, shift = (a.reshape(v, (x.dims[1],)) for v in spread)
    a.bind(_affine(a, result, a.reshape(scale, shape), a.reshape(shift, shape)))


@onnx("MeanVarianceNormalization")
def _mean_variance(a: Arrays) -> None:
    """Add (x - mean) / (deviation + 1e-9) over the axes."""
    x = a.value(0)
    axes = a.node.axes(len(x.dims)) or [a.node.axis_of(axis, len(x.dims)) for axis in (0, 2, 3)]
    for axis in axes:
        a.builder.guard_batch(a.node, 0, axis, "normalises over")
    away = a.map("Sub", x, reduce_axes(a, "Mean", x, axes))
    deviation = a.map("Sqrt", reduce_axes(a, "Mean", a.map("Mul", away, away), axes))
    a.bind(a.map("Div", away, a.map("Add", deviation, a.const(1e-9, x))))


@onnx("LpNormalization")
def _lp(a: Arrays) -> None:
    x = a.value(0)
    axis = a.node.axis_of(a.node.attribute("axis", -1), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "normalises over")
    if a.node.attribute("p", 2) not in (1, 2):
        raise Unsupported(f"p={a.node.attribute('p')} is not supported", "use p=1 or p=2")
    norm = reduce_axes(a, "L1" if a.node.attribute("p", 2) == 1 else "L2", x, [axis])
    zero = a.map("Equal", norm, a.const(0.0, norm), result="bool")
    safe = a.map("Where", zero, a.const(1.0, norm), norm, result="")
    a.bind(a.map("Where", zero, a.const(0.0, x), a.map("Div", x, safe), result=""))


@onnx("Hardmax")
def _hardmax(a: Arrays) -> None:
    x = a.value(0)
    flattens = a.node.opset < 13
    axis = a.node.axis_of(a.node.attribute("axis", 1 if flattens else -1), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "compares")
    lines = a.reshape(x, (prod(x.dims[:axis]), prod(x.dims[axis:]))) if flattens else x
    axis = 1 if flattens else axis
    best = reduce_axes(a, "ArgMax", lines, [axis], True, "int64")
    places = np.arange(lines.dims[axis]).reshape([-1 if i == axis else 1 for i in range(len(lines.dims))])
    hit = a.map("Equal", best, a.const(places), result="bool")
    a.bind(a.reshape(a.cast(hit, x.kind), x.dims))


_GAIN_BITS = 14
_FRACTION, _WIDE_FRACTION = 12, 16
"""Fractional bits of a normalized element, for 8-bit and for 16-bit results."""


@quantizer("Normalize")
class NormQuantizer(Quantizer):
    """Gains have 14 bits, or fewer if 32-bit accumulators require it. Their unit is a power of two: the rescale is exact in
    every mode.

    A node without parameters gets one gain and no offset.
    """

    def refuses(self, node: Node) -> str | None:
        if node.op.power == 1:
            return "a normalisation by the L1 norm"
        if node.op.part:
            return f"the {node.op.part} of a normalisation"
        return f"a normalisation of more than {LONGEST_LINE} elements" if node.op.size > LONGEST_LINE else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y, op = types.inputs[0], types.output, node.op
        root = sqrt(op.size) if op.summed else 1.0  # sum of squares instead of their mean
        gains = np.asarray(node.params.get("gain", np.ones(1)), np.float64) / (root * y.scale)
        shifts = np.asarray(node.params.get("shift", np.zeros(1)), np.float64) / y.scale
        # `added` moves into the root: equal for a row of zeros, negligible for rows of many steps
        epsilon = min(max(round(op.size**2 * (op.epsilon + op.added**2) / (root * x.scale) ** 2), 1), 2**60)
        fraction = _FRACTION if y.bits == 8 else _WIDE_FRACTION
        largest = int(sqrt(op.size) * 2**fraction) + 2
        bits = min(_GAIN_BITS, 30 - largest.bit_length()) if y.bits == 8 else _GAIN_BITS
        steps = gains * 2.0**-fraction if gains.any() else np.full(len(gains), 2.0**-fraction)
        multipliers, unit = common_multipliers(steps, bits)
        whole = np.array(multipliers if gains.any() else [0] * len(gains))
        offsets = np.array([round(shift / unit) for shift in shifts])
        bound = int(np.max(largest * np.abs(whole) + np.abs(offsets)))
        if bound >= 2**53:
            raise refusal(node, "a normalisation whose bias is beyond 53 bits of its gains")
        offsets, epsilons = offsets.astype(np.int32 if bound < 2**31 else np.int64), np.array([epsilon], np.int64)
        form = Normalized(whole.astype(np.int16), offsets, epsilons, np.array([fraction], np.int32))
        return rescaled_layer(node, types, np.array([unit]), bound, form)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        form, step = node.form_as(Normalized), node.rescaling.effective()[0] * graph.type(node.output).scale
        step_of_gain = step * (sqrt(node.op.size) if node.op.summed else 1.0)
        values = {"gain": form.gains * (step_of_gain * 2.0 ** int(form.fraction[0])), "shift": form.offsets * step}
        return {role: np.broadcast_to(each, node.op.size).astype(np.float32) for role, each in values.items()}

    def in_files(self, node: Node) -> bool:
        return False


@cpp("Normalize")
def _lower_norm(layer: Layer) -> LayerCode:
    op, rows = layer.op, elements(layer.input_shape) // layer.op.size
    layer = layer.requiring_whole_input()
    if layer.has("epsilon"):
        return _integer_norm(layer, rows)
    part = ("", "mean", "inverse").index(op.part)
    operands: list[Argument] = [f"n2d2::elements<{layer.input_planes[0]}>(in0)", repr(op.epsilon), repr(op.added)]
    for role in ("gain", "shift"):
        if layer.has(role):
            operands.append(layer.array(role, layer.values(role).astype(layer.output.dtype), layer.output.cpp))
        else:
            operands.append(f"static_cast<const {layer.output.cpp}*>(nullptr)")
    sizes = (rows, op.size, bool(op.centred), op.power, bool(op.summed), part, layer.has("gain"))
    return kernel_call(layer, "array_norm", "arrayNorm", sizes, operands)


def _integer_norm(layer: Layer, rows: int) -> LayerCode:
    op, selection, total = layer.op, vectors(layer), layer.sum_type()
    numbers = {"InputZero": layer.inputs[0].zero_point, "Fraction": int(layer.values("fraction")[0])}
    sizes = {"Outer": rows, "Size": op.size, "Centred": op.centred, **numbers}
    gains, offsets = layer.values("gains"), layer.values("offsets")
    constants: tuple[Argument, ...] = ()
    if offsets.any() or len(gains) > 1:
        constants = (layer.array("gains", gains, "std::int16_t"), layer.array("offsets", offsets, total))
    else:
        sizes["Gain"] = int(gains[0])
    epsilon = layer.constants("epsilon", "std::int64_t", {"epsilon": int(layer.values("epsilon")[0])})
    types = {**layer.planes, "Sum": total, "Epilogue": epilogue(layer, selection), "Epsilon": epsilon}
    config = layer.config(f"normalisation of {op.size} integers", types, sizes, selection)
    return layer.code("integer_norm", layer.call("integerNorm", config, constants=constants), selection=selection)


@onnx_emitter("Normalize")
def _norm(writer: OnnxWriter, node: Node, output: str) -> None:
    op, emit, shape = node.op, writer.emit, writer.graph.shape(node.output)
    if op.part:
        raise NoOnnxForm(f"the {op.part} of a normalisation has no ONNX form")
    channels = axis_along(shape, op.size, 1) == 1
    x = node.inputs[0] if channels else writer.array(node.inputs[0], (-1, op.size))
    axis, rank = (1, len(shape)) if channels else (2, 3)
    affine = [node.params[role] for role in ("gain", "shift") if role in node.params]
    if op.centred and not op.added and op.power == 2 and not op.summed and axis == rank - 1:
        affine = map(writer.constant, affine or [np.ones(op.size)])
        result = emit("LayerNormalization", [x, *affine], axis=-1, epsilon=op.epsilon)
    else:
        away = emit("Sub", [x, emit("ReduceMean", [x], axes=[axis])]) if op.centred else x
        if op.summed:
            divisor = emit("ReduceL1" if op.power == 1 else "ReduceSumSquare", [away], axes=[axis])
        else:
            powers = emit("Abs", [away]) if op.power == 1 else emit("Mul", [away, away])
            divisor = emit("ReduceMean", [powers], axes=[axis])
        if op.power == 2:
            divisor = emit("Sqrt", [emit("Add", [divisor, writer.constant(op.epsilon)])])
        if op.added:
            divisor = emit("Add", [divisor, writer.constant(op.added)])
        result, column = emit("Div", [away, divisor]), (-1, *(1,) * (rank - axis - 1))
        for function, values in zip(("Mul", "Add"), affine, strict=False):
            if function == "Mul" or values.any():
                result = emit(function, [result, writer.constant(values.reshape(column))])
    if not channels:
        writer.flat(result, output)
    else:
        writer.nodes[-1].output[0] = output
