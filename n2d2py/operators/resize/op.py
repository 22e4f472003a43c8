"""Resampling of images, nearest neighbour and bilinear, and of arrays by a table of rows and weights along an axis."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from n2d2py.arithmetic.exact import BLOCK
from n2d2py.contracts.cpp import Call, Expression, Layer, LayerCode, cpp, epilogue, moving_epilogue, vectors
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.ini import NB_OUTPUTS, LayerContext, ini
from n2d2py.contracts.quant import quantizer as quant
from n2d2py.contracts.quant.file_rounding import pool_rescale, stored_origin
from n2d2py.graph import INT8, Node, QuantGraph, QuantNode, Rescaled, Shape, StoredSums
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import Access, LineTable, Upsample, memory_access
from n2d2py.operators.arrays.base import AxisOp, kernel_call

_FILE_BITS = 10
"""`bits` of TFLite's kernel for int8."""
MAX_DIVISOR = 2**14
"""Largest divisor of an axis' integer weights, which 16 bits hold."""


@register
class Resize(Op):
    """The image resampled to `size`, channel by channel.

    Output position i of an axis with `n` inputs and `m` outputs has the input coordinate

        HalfPixel      (i + 1/2) n / m - 1/2
        AlignCorners   i (n - 1) / (m - 1), 0 if m = 1
        Asymmetric     i n / m

    clamped to [0, n - 1]. Nearest uses floor(i n / m) for any coordinates; Bilinear weights the two nearest positions of each
    axis by their distances.

    Attributes:
        size: (height, width) of the output.
        bits: bits after the binary point of the step between coordinates, as in TFLite's kernel; 0: exact.
    """

    size: tuple[int, int]
    mode: str = "Nearest"
    coordinates: str = "Asymmetric"
    bits: int = 0
    moves_values = True  # values or means of values, within the input's range

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        self.require_rank(inputs[0], 4, node)
        return [(*inputs[0][:2], *self.size)]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 4 * int(np.prod(output)) if self.mode == "Bilinear" else 0

    def taps(self, inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (first, second, fraction) of each output position of an axis: both input positions, int64, and the weight of
        the second, float64. Computed from exact ratios."""
        if self.mode == "Nearest":
            first = np.arange(outputs, dtype=np.int64) * inputs // outputs
            return first, first, np.zeros(outputs)
        first, rest, divisor = self._positions(inputs, outputs)
        return first, np.minimum(first + 1, inputs - 1), rest / divisor

    def _positions(self, inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Return (first, rest, divisor), int64: each position of an axis is first + rest / divisor."""
        i = np.arange(outputs, dtype=np.int64)
        if self.coordinates == "HalfPixel":
            numerator, divisor = (2 * i + 1) * inputs - outputs, 2 * outputs
        elif self.coordinates == "AlignCorners":
            numerator, divisor = i * (inputs - 1), max(1, outputs - 1)
        else:
            numerator, divisor = i * inputs, outputs
        if self.bits:
            divisor, corners = 2**self.bits, self.coordinates == "AlignCorners" and outputs > 1
            step = (divisor * (inputs - corners) + (outputs - corners) // 2) // (outputs - corners)
            numerator = i * step + ((step - divisor) // 2 if self.coordinates == "HalfPixel" else 0)
        numerator = np.clip(numerator, 0, (inputs - 1) * divisor)
        first, rest = np.divmod(numerator, divisor)
        common = np.gcd.reduce([*rest, divisor])
        return first, rest // common, divisor // common

    def integer_weights(self, size: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of rows and of columns of an input of `size`, (2, outputs) int64 each, of first and second
        position.

        Their unit is exact on each axis, or 2^-11 if that were finer than 1 / MAX_DIVISOR. The weights of a position sum to one
        divisor. Column weights have a factor for which float32 holds 1 / (product of both divisors) to 2^-25: ties then round
        correctly.
        """
        axes = [self._exact_weights(n, m) for n, m in zip(size, self.size, strict=True)]
        product = int(axes[0][:, 0].sum() * axes[1][:, 0].sum())
        most = MAX_DIVISOR // int(axes[1][:, 0].sum())
        products = (product * times for times in range(1, most + 1))
        fine = (each for each in products if abs(float(np.float32(1 / each)) * each - 1) < 2**-25)
        return axes[0], axes[1] * (next(fine, product) // product)

    def _exact_weights(self, inputs: int, outputs: int) -> np.ndarray:
        _, rest, divisor = self._positions(inputs, outputs)
        if divisor > MAX_DIVISOR:
            rest, divisor = np.rint(rest * (2**11 / divisor)).astype(np.int64), 2**11
        return np.stack([divisor - rest, rest])

    def _blend(self, x: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        (y0, y1, _), (x0, x1, _) = (self.taps(n, m) for n, m in zip(x.shape[2:], self.size, strict=True))
        wide = x[..., x0] * columns[0]
        wide += x[..., x1] * columns[1]
        result = wide[:, :, y0] * rows[0][:, None]
        result += wide[:, :, y1] * rows[1][:, None]
        return result

    def _by_channels(self, function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
        """Apply a function of channels (N, C, H, W) to all channels of x, some at a time."""
        step = max(1, BLOCK // (len(x) * self.size[0] * self.size[1]))
        return np.concatenate([function(x[:, k : k + step]) for k in range(0, x.shape[1], step)], axis=1)

    def _pick(self, x: np.ndarray) -> np.ndarray:
        (rows, _, _), (columns, _, _) = (self.taps(n, m) for n, m in zip(x.shape[2:], self.size, strict=True))
        return np.ascontiguousarray(x[:, :, rows][..., columns])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        if self.mode == "Nearest":
            return [self._pick(x)]
        fractions = [self.taps(n, m)[2] for n, m in zip(x.shape[2:], self.size, strict=True)]
        rows, columns = (np.stack([1 - f, f]).astype(x.dtype) for f in fractions)
        return [self._by_channels(lambda part: self._blend(part, rows, columns), x)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Bilinear: acc = sum of four (q - zero point) times both `integer_weights`, whose sum the rescale divides by."""
        x, kind = inputs[0], graph.type(node.output)
        if self.mode == "Nearest":
            return [np.clip(self._pick(x), *node.limits).astype(kind.dtype)]
        wide = np.int32 if node.bound < 2**31 else np.int64
        zero_point = graph.type(node.inputs[0]).zero_point
        if isinstance(node.form, StoredSums):
            zero_point = int(node.form.origin[0])
            kind = replace(kind, zero_point=zero_point)
        rows, columns = (weights.astype(wide) for weights in self.integer_weights(x.shape[2:]))

        def resample(part: np.ndarray) -> np.ndarray:
            return node.requantize(self._blend(np.subtract(part, zero_point, dtype=wide), rows, columns), kind)

        return [self._by_channels(resample, x)]


@quant.quantizer("Resize")
class ResizeQuantizer(quant.Quantizer):
    """Nearest: no arithmetic. Bilinear: acc = sum of (q - zero point) times integer weights; factor s_x / (sum of the weights s_y)."""

    def quantize(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        if node.op.mode == "Nearest":
            return quant.moved_layer(node, types)
        return quant.rescaled_layer(node, types, *_factor_and_bound(node, types))

    def prequantized(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        """Return the same form for the output type of the file; for TFLite files, the one of TFLite's kernel."""
        x, y = types.inputs[0], types.output
        if node.op.mode == "Nearest":
            return quant.moved_layer(node, types)
        if node.rounding == INT8 and types.follows_file(node) and (x.scale, x.zero_point) == (y.scale, y.zero_point):
            node = replace(node, op=replace(node.op, bits=_FILE_BITS))
            _, bound = _factor_and_bound(node, types)
            unit = bound // max(quant.peak(x), x.qmax, -x.qmin)
            form = StoredSums(np.array([stored_origin(node, x)], np.int32))
            return quant.integer_layer(node, form, quant.file_clamp(node, y), pool_rescale(np.array([unit])), 255 * unit)
        types.remark(node, "it interpolates between bytes without a sign, or between two scales")
        factor, bound = _factor_and_bound(node, types)
        rescale = quant.file_rescale(node, factor, bound, types.options.rescaling)
        return quant.integer_layer(node, Rescaled(), quant.file_clamp(node, y), rescale, bound)


def _factor_and_bound(node: Node, types: quant.LayerTypes) -> tuple[np.ndarray, int]:
    assert types.input_shape is not None
    x, y = types.inputs[0], types.output
    lines, columns = node.op.integer_weights(types.input_shape[2:])
    unit = int(lines[:, 0].sum() * columns[:, 0].sum())
    return np.array([np.float64(x.scale) / np.float64(y.scale) / unit]), max(quant.peak(x), x.qmax, -x.qmin) * unit


@memory_access("Resize")
def _resize(node: QuantNode, graph: QuantGraph) -> Access:
    op, shape = node.op, graph.shape(node.inputs[0])
    factors = [new // old for new, old in zip(op.size, shape[2:], strict=True)]
    if op.mode == "Nearest" and all(f * old == new for f, old, new in zip(factors, shape[2:], op.size, strict=True)):
        return Upsample((factors[0], factors[1]))
    taps = (np.stack(op.taps(old, new)[:2], 1) + (0, 1) for old, new in zip(shape[2:], op.size, strict=True))
    lines, columns = (tuple(map(tuple, each.tolist())) for each in taps)
    return LineTable((lines,), (columns,))


@cpp("Resize")
def lower(layer: Layer) -> LayerCode:
    op = layer.op
    title, order = f"{op.mode.lower()} resampling to {op.size[0]} x {op.size[1]}", {"Serial": layer.serial}
    if op.mode == "Nearest":
        config = layer.config(title, {**layer.planes, "Epilogue": moving_epilogue(layer, clamped=True)}, order)
        return layer.code("resize", layer.call("resizeNearest", config))
    selection, weight = vectors(layer), "std::int16_t" if layer.integer else layer.output.cpp
    stored = epilogue(layer, selection)
    types = {**layer.planes, "Weight": weight, "Sum": layer.sum_type(), "Epilogue": stored}
    config = layer.config(title, types, {**order, "Zero": layer.input_zero}, selection)
    size = layer.input_shape[2:]
    weights = op.integer_weights(size) if layer.integer else (None, None)
    axes = [
        _axis_struct(layer, role, op.taps(before, after), exact, weight)
        for role, before, after, exact in zip(("lines", "columns"), size, op.size, weights, strict=True)
    ]
    call = Call("n2d2::resizeBilinear", (config,), ("in0", "out", "lines", "columns"), tuple(axes))
    return layer.code("resize", call, selection=selection)


def _axis_struct(layer: Layer, role: str, taps: tuple[np.ndarray, ...], exact: np.ndarray | None, weight: str) -> Expression:
    first, second, fraction = taps
    weights = np.stack([1 - fraction, fraction]) if exact is None else exact
    parts = ("first", first, "std::uint16_t"), ("second", second, "std::uint16_t"), ("weights", weights, weight)
    arrays = [layer.array(f"{role}_{name}", values, ctype) for name, values, ctype in parts]
    return Expression(f"const n2d2::ResizeAxis<{weight}> {role} = {{{{{{}}, {{}}, {{}}}}}};", tuple(arrays))


@ini(
    "Resize",
    NB_OUTPUTS,
    Key("OutputWidth", Kind.UINT, doc="Width of the result.", minimum=1),
    Key("OutputHeight", Kind.UINT, doc="Height of the result.", minimum=1),
    Key(
        "Mode",
        Kind.ENUM,
        doc="NearestNeighbor. Bilinear: half-pixel centers, as OpenCV. BilinearTF: as TensorFlow 1.",
        choices=("Bilinear", "BilinearTF", "NearestNeighbor"),
    ),
    config=(
        Key(
            "AlignCorners",
            Kind.BOOL,
            True,
            "BilinearTF. 1: align the corners of input and output. 0: align the top left edges of their first pixels.",
        ),
    ),
    doc="Resize feature maps.",
)
def _build(context: LayerContext) -> None:
    values = context.values
    context.as_images()
    size = (values["OutputHeight"], values["OutputWidth"])
    tensor = context.concat_inputs()
    context.require_channels(tensor)
    if values["Mode"] == "NearestNeighbor":
        op = Resize(size)
    elif values["Mode"] == "Bilinear":
        op = Resize(size, "Bilinear", "HalfPixel")
    else:
        op = Resize(size, "Bilinear", "AlignCorners" if values["AlignCorners"] else "Asymmetric")
    context.add(op, [tensor])


@onnx_emitter("Resize")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, axes = node.op, [node.op.taps(n, m) for n, m in zip(writer.graph.shape(node.inputs[0])[2:], node.op.size, strict=True)]
    if op.mode == "Nearest":  # by positions, independent of rounded scales
        rows, columns = (writer.constant(first) for first, _, _ in axes)
        writer.emit("Gather", [writer.emit("Gather", [node.inputs[0], rows], axis=2), columns], output, axis=3)
        return
    rows, columns = (
        writer.constant(
            _interpolation_matrix(size, np.stack([first, second], 1), np.stack([1 - fraction, fraction], 1)),
            f"{node.name}_weights",
        )
        for size, (first, second, fraction) in zip(writer.graph.shape(node.inputs[0])[2:], axes, strict=True)
    )
    across = writer.emit("MatMul", [node.inputs[0], writer.emit("Transpose", [columns], perm=[1, 0])])
    writer.emit("MatMul", [rows, across], output)


def _interpolation_matrix(inputs: int, positions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (outputs, inputs), independent of the runtime's rounding, for positions and weights (outputs, taps)."""
    matrix = np.zeros((len(positions), inputs))
    np.add.at(matrix, (np.arange(len(positions))[:, None], positions), weights)
    return matrix


# ---- arrays -------------------------------------------------------------------------------------
@register
class ArrayInterpolate(AxisOp):
    """y[o, j, i] = sum over t of weights[j][t] * x[o, positions[j][t], i] for x (outer, size, inner)."""

    positions: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]

    def output_dims(self) -> Shape:
        return self.outer, len(self.positions), self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * len(self.positions[0])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        (x,) = self.operands(inputs, node)
        wide = x.astype(np.float64)
        total = np.zeros((len(x), self.outer, len(self.positions), self.inner))
        weights = np.asarray(self.weights, x.dtype).astype(np.float64)
        for tap in range(len(self.positions[0])):
            lines = [line[tap] for line in self.positions]
            total += wide[:, :, lines] * weights[:, tap][None, None, :, None]
        return self.as_output(total, inputs)


@cpp("ArrayInterpolate")
def _lower_interpolate(layer: Layer) -> LayerCode:
    op = layer.op
    positions = layer.array("positions", np.array(op.positions), "std::int32_t")
    weights = layer.array("weights", np.array(op.weights).astype(layer.output.dtype), layer.output.cpp)
    sizes = (op.outer, op.size, op.inner, len(op.positions), len(op.positions[0]))
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", positions, weights)
    return kernel_call(layer, "array_norm", "arrayInterpolate", sizes, operands)


@onnx_emitter("ArrayInterpolate")
def _emit_interpolate(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    (x,) = writer.operands(node)
    matrix = _interpolation_matrix(op.size, np.array(op.positions), np.array(op.weights))
    writer.flat(writer.emit("MatMul", [writer.constant(matrix[None, None]), x]), output)
