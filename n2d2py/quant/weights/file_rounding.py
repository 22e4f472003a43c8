"""The integers of LiteRT's reference kernels, for networks from .tflite files.

Most kernels multiply an accumulator by m / 2^31, round, shift and round again (MultiplyByQuantizedMultiplier in
tensorflow/lite/kernels/internal); fully connected layers round the product of double precision once, ties away from 0; means of AVERAGE_POOL_2D
are those of stored integers, ties away from 0. `Node.rounding` names the rule of a layer.
"""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, NumType, Rescale
from n2d2py.graph import Node
from n2d2py.graph.node import INT8, ONCE, TWICE

_MOST_SUM = 2**30
_MOST_CONSTANT = 2**12
"""Results beyond are clamped to bytes."""
_LEFT = 20
"""Bits by which ADD and SUB shift their operands to the left."""
_MOVES = (0, 1, -1, 2, -2)
"""Distances from the nearest multiplier that are tried."""


def quantized_multiplier(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, s), int64, of float64 `factors`: m / 2^(31 + s) with 2^30 <= m < 2^31, m = 0 for factors below 2^-32 (QuantizeMultiplier)."""
    mantissa, exponent = np.frexp(np.asarray(factors, np.float64))
    multipliers, shifts = np.floor(mantissa * 2.0**31 + 0.5).astype(np.int64), -exponent.astype(np.int64)
    carried, tiny = multipliers == 2**31, shifts > 31
    return np.where(tiny, 0, np.where(carried, 2**30, multipliers)), np.where(tiny, 1, shifts - carried)


def doubling(factors: np.ndarray) -> DoublingRescale:
    """The rescale of the kernels that round twice, for float64 `factors` (O)."""
    return DoublingRescale(*quantized_multiplier(np.atleast_1d(factors)))


def multiplied(values: np.ndarray, factor: float) -> np.ndarray:
    """`values`, integers, times `factor` as the kernels that round twice do it, int64, not clamped."""
    return doubling(np.array([factor])).apply(np.asarray(values, np.int64), -(2**31), 2**31 - 1)


def sums_rescale(node: Node, factors: np.ndarray, bound: int, limits: tuple[int, int]) -> Rescale | None:
    """The rescale of the kernel of a layer's file; None where it has no rule, or none of the integers here gives the same.

    Args:
        node: the layer.
        factors: float64 (O), the product of the scales of the file.
        bound: the largest magnitude of an accumulator.
        limits: the least and the largest result, zero point not added.
    """
    if node.rounding not in (TWICE, ONCE):
        return None
    made = doubling(factors) if node.rounding == TWICE else _once(factors, limits)
    left = 0 if made is None else max(0, -int(made.shifts.min()))
    return made if bound << left < _MOST_SUM else None


def with_small_constants(
    node: Node, bias: np.ndarray, factors: np.ndarray, weighted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(bias int64, factors float64), (O) each, with which outputs that are not `weighted` have the same results.

    Scales of channels that training has switched off are tiny, so their biases are the largest numbers of a layer.
    """
    if node.rounding == TWICE:
        found = doubling(factors).apply(bias, -_MOST_CONSTANT, _MOST_CONSTANT, axis=0)
    else:
        found = np.clip(_away(bias * factors), -_MOST_CONSTANT, _MOST_CONSTANT).astype(np.int64)
    return np.where(weighted, bias, 8 * found), np.where(weighted, factors, 0.125)


def _away(values: np.ndarray) -> np.ndarray:
    """float64 values rounded, ties away from 0."""
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


def _once(factors: np.ndarray, limits: tuple[int, int]) -> DoublingRescale | None:
    """Rounds as the product of double precision with ties away from 0, for every accumulator: a step function is known from where it steps."""
    multipliers, shifts = quantized_multiplier(factors)
    levels, found = np.arange(limits[0] + 1, limits[1] + 1), np.zeros(factors.shape, bool)
    near = np.ceil((levels - 0.5) / factors[:, None]).astype(np.int64)[..., None] + np.arange(-2, 3)
    reached = _away(near * factors[:, None, None]) >= levels[:, None]
    first = np.take_along_axis(near, reached.argmax(axis=2)[..., None], 2)[..., 0]
    best = multipliers
    for move in _MOVES:
        rescale = DoublingRescale(multipliers + move, shifts, twice=False)
        above, below = (rescale.apply(first - step, -(2**31), 2**31 - 1, axis=0) for step in (0, 1))
        fits = ~found & (multipliers + move < 2**31) & np.all((above >= levels) & (below < levels), axis=1)
        best, found = np.where(fits, multipliers + move, best), found | fits
    return DoublingRescale(best, shifts, twice=False) if found.all() else None


def mean_rescale(ratio: float, count: int) -> DoublingRescale:
    """The rescale of MEAN of `count` values, which divides m (QuantizedMeanOrSum in tensorflow/lite/kernels/internal/reference/reduce.h)."""
    multipliers, shifts = quantized_multiplier(np.array([ratio]))
    power = min(count.bit_length() - 1, 31 - int(shifts[0]))
    return DoublingRescale((multipliers << power) // count, shifts + power)


def pool_rescale(counts: np.ndarray) -> FixedPointRescale | None:
    """1 / count of each of `counts`, for sums of stored bytes: a little more, so that ties go away from 0. None where it is not exact."""
    shift = 32 if counts.min() > 2 else 30
    multipliers = (np.int64(1) << shift) // counts + 1
    return FixedPointRescale(multipliers, shift, 31) if int(counts.max()) ** 2 * 2**8 < 1 << shift else None


def stored_origin(node: Node, kind: NumType) -> int:
    """The stored integer of `kind` that is 0 in the file of a mean of stored integers."""
    return 0 if (node.rounding == INT8) == kind.signed else -128 if kind.signed else 128


def sum_results(first: np.ndarray, second: np.ndarray, scales: tuple[np.float32, np.float32], step: np.float32) -> np.ndarray:
    """Results of ADD, int64, not clamped, of all pairs of `first` (N, 1) and `second` (1, M), integers less their zero points.

    Args:
        first, second: int64.
        scales: of the operands; the second is negative for SUB.
        step: the scale of the result.
    """
    most = 2 * max(float(abs(scale)) for scale in scales)
    a, b = (
        np.sign(scale).astype(np.int64) * multiplied(values.astype(np.int64) << _LEFT, float(abs(scale)) / most)
        for values, scale in zip((first, second), scales, strict=True)
    )
    return multiplied(a + b, most / (2.0**_LEFT * float(step)))
