"""Quantized network with the arithmetic of LiteRT's kernels: the XNNPACK delegate, which runs int8 models by default, or the reference.

The rules of XNNPACK's kernels, for stored integers q of scale s and zero point z, all scales in float32:

=====================  ==============================================================================================
weighted layers        rint(float32(acc) * (s_x s_w / s_y)), ties to even, then + z_y; acc holds no zero point of the result
ADD, SUB               (m_1 (q_1 - z_1) + m_2 (q_2 - z_2) + 2^(p-1)) >> p, m_i = rint(2^p s_i / s_y), p = 20 - exponent of
                       the larger ratio, so that the larger m_i has 21 bits
MUL                    as weighted layers, by s_1 s_2 / s_y
QUANTIZE (int8)        (rint(256 s_x / s_y) (q - z_x) + 128) >> 8, + z_y; also for concatenation inputs of another scale
RESIZE_BILINEAR        (sum of q times weights that add up to 2^22, + 2^21) >> 22
LEAKY_RELU             (m (q - z_x) + 128) >> 8, + z_y, m = rint(256 s_x / s_y), times the slope below 0
LOGISTIC, TANH         a table; Swish is LOGISTIC, then MUL
=====================  ==============================================================================================

All integers from -128 on are used. Operators that XNNPACK does not have run in LiteRT's built-in kernels; what these compute is
not described here, and may be a step off.

The reference kernels are also those of TFLite Micro. Convolutions, means and QUANTIZE multiply by m / 2^31 and shift, with a
rounding each (`DoublingRescale`). Fully connected layers round once. Element-wise sums and products are rounded several times by
the kernels, here once, from float32. They may be one step off, as may functions that the kernels compute in fixed point.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, NumType, StepRescale
from n2d2py.contracts.functions import FUNCTIONS, Clip, FunctionRow, LeakyRectifier, Tanh
from n2d2py.contracts.quant.file_rounding import doubling, mean_rescale, multiplied
from n2d2py.contracts.quant.quantizer import QUANTIZERS, WeightedQuantizer, peak
from n2d2py.exports.model_file import real_weights
from n2d2py.exports.tflite.file import PROBABILITIES, SIGNED_UNITS, Grid, int8_grid
from n2d2py.graph import Aligned, Custom, Dequantized, QuantGraph, QuantNode, Rescaled, Table, Weighted
from n2d2py.operators.resize import Resize

_BITS = 31
"""Multiplier width of the rescale type."""
_QUANTIZE_SHIFT = 8
_RESIZE_SHIFT = 22
_SUM_BITS = 20
_SEARCH_ULPS = (0, 1, -1, 2, -2, 3, -3, 4, -4)
"""Search range of a float32 scale, in units of the last place."""


def with_xnnpack(graph: QuantGraph) -> QuantGraph:
    """Return the network with integer layers that compute XNNPACK's results."""
    tensors = {name: replace(one, type=_full_range(one.type)) for name, one in graph.tensors.items()}
    result = replace(graph, tensors=tensors)
    result.nodes = [_layer(graph, result, node) for node in graph.nodes]
    return result


def layer_factors(scales: np.ndarray, x: NumType, y: NumType) -> np.ndarray:
    """Return s_x s_w / s_y as XNNPACK computes it, float32, for float32 weight `scales`."""
    return np.float32(x.scale) * scales.astype(np.float32) / np.float32(y.scale)


def weight_scales(scales: np.ndarray, factors: np.ndarray, x: NumType, y: NumType) -> np.ndarray:
    """Return float32 scales near `scales` (in units of the last place) for which XNNPACK's factors equal `factors`."""
    near = scales.astype(np.float32)
    adjusted, open_ = near.copy(), np.ones(near.shape, bool)
    wanted = np.broadcast_to(factors.astype(np.float32), near.shape)
    for distance in _SEARCH_ULPS:
        tried = (near.view(np.int32) + np.int32(distance)).view(np.float32)
        fits = open_ & (layer_factors(tried, x, y) == wanted)
        adjusted[fits], open_ = tried[fits], open_ & ~fits
    return adjusted


def _full_range(kind: NumType) -> NumType:
    plain = kind.is_float or kind.plain or not kind.signed or kind.bits != 8 or (kind.least, kind.most) != (None, None)
    return kind if plain else replace(kind, full=True)


def _layer(before: QuantGraph, after: QuantGraph, node: QuantNode) -> QuantNode:
    kinds = [after.type(name) for name in (*node.inputs, *node.outputs)]
    if not after.is_integer(node) or any(kind.plain or kind.bits != 8 for kind in kinds):
        return node
    if node.clamp is not None:
        low, high = node.clamp
        kind = before.type(node.output)
        node = replace(node, clamp=(after.type(node.output).qmin if low == kind.qmin else low, high))
    if isinstance(node.form, Weighted):
        return _weighted(before, after, node)
    rule = _RULES.get(node.op.kind)
    return node if rule is None else rule(after, node)


def _weighted(before: QuantGraph, after: QuantGraph, node: QuantNode) -> QuantNode:
    x, y, real = after.type(node.inputs[0]), after.type(node.output), real_weights(before, node)
    scales = weight_scales(real.scales, node.rescaling.effective(), x, y)
    bias, sums = real.whole_bias, real.weights.reshape(len(real.bias), -1).astype(np.int64)
    quantizer = QUANTIZERS[node.op.kind]
    if x.zero_point and isinstance(quantizer, WeightedQuantizer) and quantizer.zero_point_in_bias:
        bias = bias - x.zero_point * sums.sum(axis=1)
    bound = int((np.abs(sums).sum(axis=1) * peak(x) + np.abs(real.whole_bias)).max(initial=0))
    bound = max(bound, int((np.abs(sums).sum(axis=1) * max(x.qmax, -x.qmin) + np.abs(bias)).max(initial=0)), node.bound)
    form = Weighted(real.weights, bias.astype(np.int32 if bound < 2**31 else np.int64))
    return replace(node, form=form, rescale=FloatRescale(layer_factors(scales, x, y)), bound=bound, zero_in_bias=False)


def _element_wise(graph: QuantGraph, node: QuantNode) -> QuantNode:
    kinds, y = [graph.type(name) for name in node.inputs], np.float32(graph.type(node.output).scale)
    scales = [np.float32(kind.scale) for kind in kinds]
    weights, shifts = node.op.coefficients(len(kinds))
    if len(kinds) != 2 or any(shifts):
        return node
    if node.op.operation == "Prod":
        form, bound = Aligned(np.ones(2, np.int32), np.zeros(1, np.int32)), peak(kinds[0]) * peak(kinds[1])
        return replace(node, form=form, rescale=FloatRescale(np.array([scales[0] * scales[1] / y])), bound=bound)
    if node.op.operation != "Sum" or set(map(abs, weights)) != {1.0}:
        return node
    ratios = np.array([scale / y for scale in scales], np.float32)
    shift = _SUM_BITS - int(np.frexp(ratios.max())[1] - 1)
    multipliers = np.rint(np.ldexp(ratios, shift)).astype(np.int64) * np.array(weights).astype(np.int64)
    bound = sum(abs(int(m)) * peak(kind) for m, kind in zip(multipliers, kinds, strict=True))
    wide = np.int32 if bound < 2**31 else np.int64
    form = Aligned(multipliers.astype(wide), np.zeros(1, wide))
    return replace(node, form=form, rescale=FixedPointRescale(np.array([1]), shift, _BITS), bound=bound)


def _concat(graph: QuantGraph, node: QuantNode) -> QuantNode:
    """Return a concatenation whose inputs are requantized to the result's scale, each by its own factor."""
    y, kinds = graph.type(node.output), [graph.type(name) for name in node.inputs]
    if all(int8_grid(kind) == int8_grid(y) for kind in kinds) and not isinstance(node.form, Rescaled):
        return node
    multipliers = np.array([_quantize_multiplier(_scale_ratio(kind, y)) for kind in kinds])
    bound = max(map(peak, kinds))
    form = node.form if node.params else Rescaled()  # constants of a Concat are in the grid of the result
    return replace(node, form=form, rescale=FixedPointRescale(multipliers, _QUANTIZE_SHIFT, _BITS), bound=bound)


def _scale_ratio(x: NumType, y: NumType) -> float:
    return float(np.float64(np.float32(x.scale)) / np.float64(np.float32(y.scale)))


def _quantize_multiplier(factor: float) -> int:
    return int(np.rint(np.float32(1 << _QUANTIZE_SHIFT) * np.float32(factor)))


class _Resize(Resize):
    """A Resize with 11-bit weights on each axis."""

    def integer_weights(self, size: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        unit = 2 ** (_RESIZE_SHIFT // 2)
        seconds = (np.rint(self.taps(n, m)[2] * unit).astype(np.int64) for n, m in zip(size, self.size, strict=True))
        lines, columns = (np.stack([unit - second, second]) for second in seconds)
        return lines, columns


def _resize(graph: QuantGraph, node: QuantNode) -> QuantNode:
    if node.op.mode == "Nearest":
        return node
    op = _Resize(node.op.size, node.op.mode, node.op.coordinates)
    return replace(node, op=op, rescale=FixedPointRescale(np.array([1]), _RESIZE_SHIFT, _BITS))


def _mean(graph: QuantGraph, node: QuantNode) -> QuantNode:
    """Return the mean over windows of equal size, rounded once from float32."""
    if node.op.mode != "Average" or node.rescaling.count != 1:
        return node
    x, y, count = graph.type(node.inputs[0]), graph.type(node.output), node.op.kernel[0] * node.op.kernel[1]
    if any(node.op.pads) and not node.op.count_pad:
        return node
    factor = np.array([_scale_ratio(x, y) / count])
    return replace(node, form=Rescaled(), rescale=FloatRescale(factor), bound=count * peak(x))


Rounding = Callable[[np.ndarray, float], np.ndarray]
"""Function that multiplies acc (int64) by a factor and rounds to integers."""


def function_table(graph: QuantGraph, node: QuantNode, requantized: Rounding, multiplied: Rounding) -> QuantNode:
    """Return a function of bytes as a lookup table.

    Args:
        requantized: rounding of QUANTIZE and LEAKY_RELU.
        multiplied: rounding of MUL.
    """
    x, y = graph.type(node.inputs[0]), graph.type(node.output)
    away, function = np.arange(x.qmin, x.qmax + 1) - x.zero_point, node.op.function
    if isinstance(function, Clip):
        values = requantized(away, _scale_ratio(x, y))
    elif isinstance(function, LeakyRectifier) and function == LeakyRectifier(function.slope):
        ratio = _scale_ratio(x, y)
        values = np.where(away < 0, requantized(away, ratio * float(np.float32(function.slope))), requantized(away, ratio))
    elif function == FUNCTIONS["Swish"]():
        gate = _table_values(FUNCTIONS["Logistic"](), x, _UNITS)
        values = multiplied(away * (gate - _UNITS.zero_point), _scale_ratio(x, y) * _UNITS.scale)
    elif function in _FIXED_RESULTS:
        kind = _FIXED_RESULTS[function]
        values = _table_values(function, x, kind) - kind.zero_point
        values = values if int8_grid(kind) == int8_grid(y) else requantized(values, _scale_ratio(kind, y))
    else:  # extended to the lowest integer
        values = np.rint(function(np.float64(x.scale) * away) / y.scale).astype(np.int64)
    return replace(node, form=Table(np.clip(values + y.zero_point, *node.limits).astype(y.dtype)))


def _int8(grid: Grid) -> NumType:
    assert grid is not None
    return NumType(8, scale=float(grid[0]), zero_point=grid[1], full=True)


_UNITS = _int8(PROBABILITIES)
_FIXED_RESULTS: dict[FunctionRow, NumType] = {FUNCTIONS["Logistic"](): _UNITS, Tanh(): _int8(SIGNED_UNITS)}
"""Functions with a fixed result type."""


def _table_values(function: FunctionRow, x: NumType, kind: NumType) -> np.ndarray:
    real = np.float32(x.scale) * (np.arange(x.qmin, x.qmax + 1) - x.zero_point).astype(np.float32)
    return kind.quantize_linear(function(real)).astype(np.int64)


def _requantize(acc: np.ndarray, factor: float) -> np.ndarray:
    return (acc * _quantize_multiplier(factor) + (1 << _QUANTIZE_SHIFT - 1)) >> _QUANTIZE_SHIFT


def _multiply(acc: np.ndarray, factor: float) -> np.ndarray:
    return np.rint(acc.astype(np.float32) * np.float32(factor)).astype(np.int64)


_RULES: dict[str, Callable[[QuantGraph, QuantNode], QuantNode]] = {
    "Activation": partial(function_table, requantized=_requantize, multiplied=_multiply),
    **dict.fromkeys(("Concat", "Convert", "Identity"), _concat),
    "ElemWise": _element_wise,
    "Pool": _mean,
    "Resize": _resize,
}


def with_reference(graph: QuantGraph) -> QuantGraph:
    """Return the network with integer layers that compute the results of the reference kernels, or are one step off."""
    result = with_xnnpack(graph)
    result.nodes = [_reference_layer(result, node) if result.is_integer(node) else node for node in result.nodes]
    return result


def _reference_layer(graph: QuantGraph, node: QuantNode) -> QuantNode:
    kinds, y = [graph.type(name) for name in node.inputs], graph.type(node.output)
    if any(kind.plain or kind.bits != 8 for kind in (*kinds, y)):
        return node
    op, is_float, factors = node.op, isinstance(node.rescale, FloatRescale), None
    if (op.kind == "ArrayMatMul" and is_float) or (isinstance(node.form, Weighted) and op.kind != "Fc"):
        factors = node.rescaling.effective()
    elif op.kind == "Pool" and op.mode == "Average" and node.rescaling.count == 1 and isinstance(node.form, Rescaled):
        return _reference_mean(graph, node)
    elif op.kind == "Activation":
        return function_table(graph, node, multiplied, multiplied)
    elif op.kind in ("Concat", "Convert", "Identity") and isinstance(node.form, Rescaled | Custom):
        factors = np.array([_scale_ratio(kind, y) for kind in kinds])
    elif op.kind == "ElemWise" and op.operation == "Prod" and len(kinds) == 2:
        factors = np.array([np.float64(kinds[0].scale) * np.float64(kinds[1].scale) / np.float64(y.scale)])
    elif op.kind == "ElemWise" and op.operation == "Sum" and not is_float:
        weights, shifts = node.op.coefficients(len(kinds))
        if not any(shifts):
            scales = np.array([np.float32(kind.scale) * np.float32(w) for kind, w in zip(kinds, weights, strict=True)])
            return replace(node, form=Dequantized(scales), rescale=StepRescale(np.float32(y.scale)))
    return node if factors is None else replace(node, rescale=doubling(factors))


def _reference_mean(graph: QuantGraph, node: QuantNode) -> QuantNode:
    """Apply MEAN to whole images, else a depthwise convolution with weights of 1; AVERAGE_POOL_2D divides."""
    x, y, shape = graph.type(node.inputs[0]), graph.type(node.output), graph.shape(node.inputs[0])
    count, ratio = node.op.kernel[0] * node.op.kernel[1], np.float64(x.scale) / np.float64(y.scale)
    if tuple(node.op.kernel) == tuple(shape[2:]) and not any(node.op.pads):
        rescale = mean_rescale(float(ratio), count)
    elif int8_grid(x) != int8_grid(y):
        rescale = doubling(np.array([ratio / count]))
    else:
        return node
    return replace(node, form=Rescaled(), rescale=rescale, bound=count * peak(x))
