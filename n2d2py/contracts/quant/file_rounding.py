"""The arithmetic of LiteRT's reference kernels, for networks from .tflite files.

Most kernels multiply an accumulator by m / 2^31, round, shift and round again (MultiplyByQuantizedMultiplier in
tensorflow/lite/kernels/internal). Fully connected layers round a product in double precision once, ties away from 0.
AVERAGE_POOL_2D and RESIZE_BILINEAR average stored integers, ties away from 0. `Node.rounding` names the rule of a layer.

`byte_form` computes the sum or product of two 8-bit tensors of any pre-quantized network exactly. A QDQ file defines the result
in float32: (scale_0 (q_0 - zero_0) + scale_1 (q_1 - zero_1)) / step, rounded, or the product. TFLite's kernels round three
times instead. The integer form is round((m_0 (q_0 - zero_0) + m_1 (q_1 - zero_1) + offset) / 2^shift), or round((q_0 - zero_0)
(q_1 - zero_1) factor). Constants near the real ones are tried until all pairs, at most 65,536, agree. The form needs no
division, and a convolution can apply the sum in its epilogue.
"""

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, FloatRescale, NumType, Rescale, StepRescale
from n2d2py.arithmetic.rescale import MAX_SHIFT
from n2d2py.graph import INT8, ONCE, TWICE, TWICE_UINT8, Node

_MOST_SUM = 2**30
_MOST_CONSTANT = 2**12
"""Magnitude beyond which a constant result is clamped to 8 bits."""
_LEFT_SHIFT = 20
"""Left shift of the operands of ADD and SUB, in bits."""
_SEARCH_DISTANCES = (0, 1, -1, 2, -2)
"""Search distances from the nearest multiplier."""


def quantized_multiplier(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (m, s), int64, of `factors` = m / 2^(31 + s), 2^30 <= m < 2^31; m = 0 below 2^-32 (QuantizeMultiplier)."""
    mantissa, exponent = np.frexp(np.asarray(factors, np.float64))
    multipliers, shifts = np.floor(mantissa * 2.0**31 + 0.5).astype(np.int64), -exponent.astype(np.int64)
    carried, tiny = multipliers == 2**31, shifts > 31
    return np.where(tiny, 0, np.where(carried, 2**30, multipliers)), np.where(tiny, 1, shifts - carried)


def doubling(factors: np.ndarray) -> DoublingRescale:
    """Return the rescale of kernels that round twice, for float64 `factors` (O)."""
    return DoublingRescale(*quantized_multiplier(np.atleast_1d(factors)))


def multiplied(values: np.ndarray, factor: float) -> np.ndarray:
    """Return the integers times `factor` as kernels that round twice compute it, int64, not clamped."""
    return doubling(np.array([factor])).apply(np.asarray(values, np.int64), -(2**31), 2**31 - 1)


def sums_rescale(node: Node, factors: np.ndarray, bound: int, limits: tuple[int, int]) -> Rescale | None:
    """Return the rescale of a layer's kernel in its file; None if the layer has no rule or no rescale here is equal.

    Args:
        factors: float64 (O), products of the scales of the file.
        bound: largest magnitude of an accumulator.
        limits: smallest and largest result, without zero point.
    """
    if node.rounding not in (TWICE, TWICE_UINT8, ONCE):
        return None
    rescale = _rescale_rounded_once(factors, limits) if node.rounding == ONCE else doubling(factors)
    left = 0 if rescale is None else max(0, -int(rescale.shifts.min()))
    return rescale if bound << left < _MOST_SUM else None


def with_small_constants(
    node: Node, bias: np.ndarray, factors: np.ndarray, weighted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (bias int64, factors float64), (O) each, that give outputs without nonzero weights the same results.

    Channels that training has switched off have tiny scales, which would make their biases the largest numbers of the layer.
    """
    if node.rounding == ONCE:
        constants = np.clip(_round_away(bias * factors), -_MOST_CONSTANT, _MOST_CONSTANT).astype(np.int64)
    else:
        constants = doubling(factors).apply(bias, -_MOST_CONSTANT, _MOST_CONSTANT, axis=0)
    return np.where(weighted, bias, 8 * constants), np.where(weighted, factors, 0.125)


def _round_away(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


def _rescale_rounded_once(factors: np.ndarray, limits: tuple[int, int]) -> DoublingRescale | None:
    """Return the rescale that rounds a double-precision product, ties away from 0, found from the accumulators of each step."""
    multipliers, shifts = quantized_multiplier(factors)
    levels, done = np.arange(limits[0] + 1, limits[1] + 1), np.zeros(factors.shape, bool)
    near = np.ceil((levels - 0.5) / factors[:, None]).astype(np.int64)[..., None] + np.arange(-2, 3)
    reached = _round_away(near * factors[:, None, None]) >= levels[:, None]
    first = np.take_along_axis(near, reached.argmax(axis=2)[..., None], 2)[..., 0]
    best = multipliers
    for move in _SEARCH_DISTANCES:
        rescale = DoublingRescale(multipliers + move, shifts, twice=False)
        above, below = (rescale.apply(first - step, -(2**31), 2**31 - 1, axis=0) for step in (0, 1))
        fits = ~done & (multipliers + move < 2**31) & np.all((above >= levels) & (below < levels), axis=1)
        best, done = np.where(fits, multipliers + move, best), done | fits
    return DoublingRescale(best, shifts, twice=False) if done.all() else None


def mean_rescale(ratio: float, count: int) -> DoublingRescale:
    """Return the rescale of MEAN over `count` values, which divides m (QuantizedMeanOrSum in
    tensorflow/lite/kernels/internal/reference/reduce.h)."""
    multipliers, shifts = quantized_multiplier(np.array([ratio]))
    power = min(count.bit_length() - 1, 31 - int(shifts[0]))
    return DoublingRescale((multipliers << power) // count, shifts + power)


def pool_rescale(counts: np.ndarray) -> FixedPointRescale | None:
    """Return 1 / count for `counts`, enlarged so that ties of sums of bytes round away from 0; None if inexact."""
    shift = max(32 if counts.min() > 2 else 30, (int(counts.max()) ** 2 * 2**8).bit_length())
    multipliers = (np.int64(1) << shift) // counts + 1
    return FixedPointRescale(multipliers, shift, 31) if shift <= MAX_SHIFT and multipliers.max() < 2**31 else None


def hard_swish(values: np.ndarray, x: NumType, y: NumType) -> np.ndarray:
    """Return the results of HARD_SWISH for integers minus the zero point, int64, not clamped: products of 16-bit integers
    (tensorflow/lite/kernels/internal/reference/hard_swish.h)."""
    fine = np.float32(x.scale) / np.float32(128)
    (factor, shift), (slope, lift) = (_short_multiplier(fine / scale) for scale in (np.float32(y.scale), np.float32(3 / 32768)))
    fine_values = values.astype(np.int64) << 7
    gate = _saturated(fine_values << max(0, -lift - 1))
    gate = _saturated(_doubling_product(gate, slope) << (lift < 0))
    gate = (_shifted_away(gate, max(0, lift)) + 2**15) >> 1
    product = gate * _doubling_product(fine_values, factor)
    return _shifted_away(np.sign(product) * (np.abs(product) >> 15), shift)


def _short_multiplier(factor: np.float32) -> tuple[int, int]:
    """Return (m, s) of a factor = m / 2^(15 + s), m of 15 bits."""
    multiplier, shift = (int(each) for each in quantized_multiplier(np.asarray(factor)))
    return min((multiplier + 2**15) >> 16, 2**15 - 1), shift


def _saturated(values: np.ndarray) -> np.ndarray:
    return np.clip(values, -(2**15), 2**15 - 1)


def _doubling_product(values: np.ndarray, multiplier: int) -> np.ndarray:
    """Return values m / 2^15, ties up (SaturatingRoundingDoublingHighMul)."""
    return (values * multiplier + 2**14) >> 15


def _shifted_away(values: np.ndarray, shift: int) -> np.ndarray:
    """Return values / 2^shift, ties away from 0 (RoundingDivideByPOT)."""
    return np.sign(values) * ((np.abs(values) + ((1 << shift) >> 1)) >> shift)


def stored_origin(node: Node, kind: NumType) -> int:
    """Return the stored integer of `kind` that is 0 in the file, for a mean of stored integers."""
    return 0 if (node.rounding == INT8) == kind.signed else -128 if kind.signed else 128


def sum_results(first: np.ndarray, second: np.ndarray, scales: tuple[np.float32, np.float32], step: np.float32) -> np.ndarray:
    """Return the results of ADD for all pairs of `first` (N, 1) and `second` (1, M), int64, integers minus zero points: int64,
    not clamped. `scales` are those of the operands, the second negative for SUB; `step` is that of the result."""
    most = 2 * max(float(abs(scale)) for scale in scales)
    a, b = (
        np.sign(scale).astype(np.int64) * multiplied(values.astype(np.int64) << _LEFT_SHIFT, float(abs(scale)) / most)
        for values, scale in zip((first, second), scales, strict=True)
    )
    return multiplied(a + b, most / (2.0**_LEFT_SHIFT * float(step)))


# ---- sums and products of two tensors ----------------------------------------------------------
_BITS = (20, 21, 22, 23)
"""Candidate widths of the larger multiplier. With fewer bits some pairs disagree; more do not fit."""
_PAIR_DISTANCE = 12
"""Search distance from the real ratios, in units of the last place."""
_CANDIDATES = sorted(
    ((a, b) for a in range(-_PAIR_DISTANCE, _PAIR_DISTANCE + 1) for b in range(-_PAIR_DISTANCE, _PAIR_DISTANCE + 1)),
    key=lambda move: (abs(move[0]) + abs(move[1]), move),
)
_LIMIT = 2**31


@dataclass(frozen=True, eq=False)
class ByteForm:
    """Constants of an exact sum or product: `multipliers` (2) and `offset` (1), int32, as in `graph.forms.Aligned`. `bound` is
    the largest magnitude of a partial sum, or of the product."""

    multipliers: np.ndarray
    offset: np.ndarray
    rescale: Rescale
    bound: int


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs of input integers minus zero point, `first` (N, 1) and `second` (1, M), and their expected results `wanted` (N,
    M) without zero point, clamped to `limits`. `fixed`: rescale in fixed point."""

    first: np.ndarray
    second: np.ndarray
    wanted: np.ndarray
    limits: tuple[int, int]
    fixed: bool = False

    def sums(self, factors: np.ndarray) -> np.ndarray:
        return self.first * factors[0] + self.second * factors[1]

    def all_agree(self, sums: np.ndarray, rescale: Rescale) -> bool:
        return np.array_equal(rescale.apply(sums.astype(np.int32), *self.limits), self.wanted)


def byte_form(
    operation: str,
    scales: np.ndarray,
    inputs: list[NumType],
    output: NumType,
    clamp: tuple[int, int],
    fixed: bool = False,
    tflite: bool = False,
) -> ByteForm | None:
    """Return the exact integer form of a Sum or Prod (`operation` of `ElemWise`) of two 8-bit tensors; None for other layers,
    or if no candidate is exact.

    Args:
        scales: (2), float32: factors of the inputs after subtraction of their zero points.
        output: number type of the result; its scale is the step.
        clamp: smallest and largest stored result.
        fixed: for a Sum: rescale by a shift of the high word of a product instead of floating point.
        tflite: for a Sum: the results are those of TFLite's kernels.
    """
    if operation not in ("Sum", "Prod") or len(inputs) != 2 or max(kind.bits for kind in inputs) > 8:
        return None
    ratios, step = np.asarray(scales, np.float64) / np.float64(np.float32(output.scale)), np.float32(output.scale)
    if not np.isfinite(ratios).all() or not ratios.all():
        return None
    first, second = (np.arange(kind.qmin, kind.qmax + 1) - kind.zero_point for kind in inputs)
    first, second = first[:, None], second[None, :]
    terms = first.astype(np.float32) * np.float32(scales[0]), second.astype(np.float32) * np.float32(scales[1])
    real = terms[0] + terms[1] if operation == "Sum" else terms[0] * terms[1]
    limits = (clamp[0] - output.zero_point, clamp[1] - output.zero_point)
    wanted = StepRescale(step).apply(real, *limits)
    if tflite:
        wanted = np.clip(sum_results(first, second, (np.float32(scales[0]), np.float32(scales[1])), step), *limits)
    pairs = _Pairs(first, second, wanted, limits, fixed)
    return _sum(pairs, ratios) if operation == "Sum" else _product(pairs, float(ratios[0] * np.float64(scales[1])))


def _sum(pairs: _Pairs, ratios: np.ndarray) -> ByteForm | None:
    for bits in _BITS:
        shift = bits - int(np.frexp(np.abs(ratios).max())[1])
        form = _shifted_sum(pairs, ratios, shift) if pairs.fixed < shift < 31 else None
        if form is not None:
            return form
    return None


def _shifted_sum(pairs: _Pairs, ratios: np.ndarray, shift: int) -> ByteForm | None:
    """Return the multipliers nearest to ratios * 2^shift for which some offset makes all pairs agree."""
    unit = 1 << shift
    nearest = np.rint(ratios * unit).astype(np.int64)
    reach = np.array([np.abs(pairs.first).max(), np.abs(pairs.second).max()])
    if (np.abs(nearest).sum() + 2 * _PAIR_DISTANCE) * 256 >= _LIMIT:
        return None
    # Multipliers are at most _FAR + 1 / 2 away from the real ones, so that results of other pairs than these cannot change.
    close = np.abs(np.abs(pairs.sums(ratios) - pairs.wanted) - 0.5) * unit <= (_PAIR_DISTANCE + 1) * reach.sum()
    x, y = (np.broadcast_to(each, close.shape)[close] for each in (pairs.first, pairs.second))
    wanted = pairs.wanted[close].astype(np.int64)
    above, below = wanted > pairs.limits[0], wanted < pairs.limits[1]
    rescale: Rescale = FloatRescale(np.array([1 / unit]))
    if pairs.fixed:
        rescale = FixedPointRescale(np.array([1 << 32 - shift]), 32, 31)
    half = unit >> 1
    for move in _CANDIDATES:
        multipliers = nearest + move
        away = wanted * unit - (x * multipliers[0] + y * multipliers[1])
        least, most = int((away[above] - half).max(initial=-unit)), int((away[below] + half).min(initial=unit))
        if least > most:
            continue
        offset = min(max(0, least + (most - least) // 4), most - (most - least) // 4)
        if pairs.all_agree(pairs.sums(multipliers) + offset, rescale):
            bound = int(np.abs(multipliers) @ reach) + abs(offset)
            return ByteForm(multipliers.astype(np.int32), np.array([offset], np.int32), rescale, bound)
    return None


def _product(pairs: _Pairs, factor: float) -> ByteForm | None:
    products, nearest = pairs.first * pairs.second, np.float32(factor)
    for move in sorted(range(-_PAIR_DISTANCE, _PAIR_DISTANCE + 1), key=abs):
        rescale = FloatRescale(np.array([nearest + move * np.spacing(nearest)]))
        if pairs.all_agree(products, rescale):
            return ByteForm(np.ones(2, np.int32), np.zeros(1, np.int32), rescale, int(np.abs(products).max()))
    return None
