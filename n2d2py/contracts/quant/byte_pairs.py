"""Exact integer arithmetic for the sum or product of two 8-bit tensors in a pre-quantized network.

The file defines the result in float32: (scale_0 (q_0 - zero_0) + scale_1 (q_1 - zero_1)) / step, rounded, or the product.
TFLite's kernels round three times instead. The integer form is round((m_0 (q_0 - zero_0) + m_1 (q_1 - zero_1) + offset) /
2^shift), or round((q_0 - zero_0) (q_1 - zero_1) factor). Constants near the real ones are tried until all pairs, at most
65,536, agree. The form needs no division, and a convolution can apply the sum in its epilogue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, NumType, Rescale, StepRescale
from n2d2py.contracts.quant.file_rounding import sum_results

_BITS = (20, 21, 22, 23)
"""Candidate widths of the larger multiplier. With fewer bits some pairs disagree; more do not fit."""
_SEARCH_DISTANCE = 12
"""Search distance from the real ratios, in units of the last place."""
_CANDIDATES = sorted(
    ((a, b) for a in range(-_SEARCH_DISTANCE, _SEARCH_DISTANCE + 1) for b in range(-_SEARCH_DISTANCE, _SEARCH_DISTANCE + 1)),
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
    if (np.abs(nearest).sum() + 2 * _SEARCH_DISTANCE) * 256 >= _LIMIT:
        return None
    # Multipliers are at most _FAR + 1 / 2 away from the real ones, so that results of other pairs than these cannot change.
    close = np.abs(np.abs(pairs.sums(ratios) - pairs.wanted) - 0.5) * unit <= (_SEARCH_DISTANCE + 1) * reach.sum()
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
    for move in sorted(range(-_SEARCH_DISTANCE, _SEARCH_DISTANCE + 1), key=abs):
        rescale = FloatRescale(np.array([nearest + move * np.spacing(nearest)]))
        if pairs.all_agree(products, rescale):
            return ByteForm(np.ones(2, np.int32), np.zeros(1, np.int32), rescale, int(np.abs(products).max()))
    return None
