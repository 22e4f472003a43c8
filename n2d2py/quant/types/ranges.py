"""Search of the quantization range with the least error: symmetric, or asymmetric with a zero point.

SiLU, HardSwish and similar functions have few and small negative results. A symmetric range would waste nearly half of its
integers on them; an asymmetric range uses all. If only element-wise functions consume the tensor, the error is measured at
their results, so values in a flat part of the function may be clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import BINS, Histogram
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Node
from n2d2py.operators import Activation, ArrayRecurrent, Conv, Deconv

Function = Callable[[np.ndarray], np.ndarray]

_ZERO_POINT_GAIN = 0.8
"""A zero point is used if it reduces the squared error to at most this share."""

_GROUP = 8
"""Histogram bins merged into one: 2,048 remain on each side of zero."""
_CANDIDATES = np.geomspace(1.0, 1.0 / 32, 48)
"""Candidate limits of the first round, relative to the largest value on their side."""
_FINE_CANDIDATES = 13
_ROUNDS = 3


@dataclass(frozen=True)
class ValueCounts:
    """Histogram of a tensor as `x` (K) values with `p` (K) counts, extremes `low` <= 0 <= `high`.

    `readers`: the element-wise functions that consume the tensor; empty if any other layer does.
    """

    x: np.ndarray
    p: np.ndarray
    low: float
    high: float
    readers: Sequence[Function] = ()

    @staticmethod
    def from_histogram(histogram: Histogram, readers: Sequence[Function] = ()) -> ValueCounts:
        """Return the centers of the non-empty bins; zeros stay exactly 0."""
        step = histogram.limit / BINS * _GROUP
        middles = (np.arange(BINS // _GROUP) + 0.5) * step
        up, down = (c.reshape(-1, _GROUP).sum(axis=1) for c in (histogram.positive, histogram.negative))
        x = np.concatenate([-middles[::-1], [0.0], middles])
        p = np.concatenate([down[::-1], [histogram.zeros], up]).astype(np.float64)
        used = p > 0
        low, high = min(histogram.minimum, 0.0), max(histogram.maximum, 0.0)
        return ValueCounts(np.clip(x[used], low, high), p[used], low, high, tuple(readers))

    @cached_property
    def _results(self) -> list[np.ndarray]:
        """Result of each reader for `x`, computed once for all candidate types."""
        with np.errstate(all="ignore"):
            return [function(self.x) for function in self.readers]

    def error(self, kind: NumType) -> float:
        """Return the sum of squared quantization errors of a type, at the tensor or at the results of `readers`."""
        lowest, highest = kind.qmin - kind.zero_point, kind.qmax - kind.zero_point
        steps = self.x / kind.scale
        np.clip(np.rint(steps, out=steps), lowest, highest, out=steps)
        if not self.readers:
            return float(np.dot(self.p, np.square(self.x - steps * kind.scale)))
        values, index = np.arange(lowest, highest + 1) * kind.scale, (steps - lowest).astype(np.intp)
        with np.errstate(all="ignore"):
            lost = sum(np.square(np.nan_to_num(y - f(values)[index])) for f, y in zip(self.readers, self._results, strict=True))
        return float(np.dot(self.p, lost))


def may_have_zero_point(kind: NumType, readers: Iterable[Node], options: QuantOptions) -> bool:
    """True if a tensor of this symmetric type and with these consumers may have a zero point instead."""
    allowed = options.unsigned and options.zero_points and kind.signed and kind.bits == 8
    return allowed and not any(isinstance(node.op, Deconv) for node in readers)


def interval_type(bits: int, low: float, high: float) -> NumType:
    """Return the unsigned type over [low, high], low <= 0 <= high and not both 0; real 0 is an integer exactly.

    The scale is (high - low) / (2^bits - 1), enlarged where the rounded zero point would leave less on one side.
    """
    kind = NumType(bits, signed=False)
    zero = int(np.clip(np.rint(-low * kind.qmax / (high - low)), 0, kind.qmax))
    scale = max(-low / zero if zero else 0.0, high / (kind.qmax - zero) if zero < kind.qmax else 0.0)
    return NumType(bits, signed=False, scale=float(scale), zero_point=zero)


def finer_type(
    symmetric: NumType, low: float, high: float, readers: Iterable[Node], options: QuantOptions, share: float = _ZERO_POINT_GAIN
) -> NumType:
    """Return the type over [low, high] with a zero point if it is allowed and leaves less than `share` of the squared error."""
    if not may_have_zero_point(symmetric, readers, options):
        return symmetric
    shifted = interval_type(symmetric.bits, min(low, 0.0), max(high, 0.0))
    return shifted if shifted.scale**2 < share * symmetric.scale**2 else symmetric


def least_error_type(
    histogram: Histogram, symmetric: NumType, readers: Sequence[Node], options: QuantOptions, seen: tuple[float, float] | None
) -> NumType:
    """Return the 8-bit type with the least squared error over a histogram, with or without a zero point. An asymmetric range
    covers the interval `seen`; without it, values may be clipped."""
    if options.act_clipping != "MSE" or symmetric.bits != 8:
        return symmetric
    functions = [node.op.function for node in readers if isinstance(node.op, Activation)]
    counts = ValueCounts.from_histogram(histogram, functions if len(functions) == len(readers) and seen is None else ())
    if counts.readers:
        symmetric = symmetric.with_scale(least_error_threshold(counts, symmetric) / symmetric.qmax)
    if not may_have_zero_point(symmetric, readers, options):
        return symmetric
    low, high = least_error_interval(counts, symmetric.bits).interval
    low, high = (min(low, seen[0]), max(high, seen[1])) if seen is not None else (low, high)
    shifted = interval_type(symmetric.bits, low, high)
    return shifted if counts.error(shifted) < _ZERO_POINT_GAIN * counts.error(symmetric) else symmetric


def least_error_interval(counts: ValueCounts, bits: int) -> NumType:
    """Return the unsigned type with zero point and the least error. Both limits are searched in turn."""
    limits = [counts.low, counts.high]

    def type_with(side: int, limit: float) -> NumType:
        low, high = (limit, limits[1]) if side == 0 else (limits[0], limit)
        return interval_type(bits, low, high)

    def best(side: int, candidates: np.ndarray) -> float:
        return float(candidates[int(np.argmin([counts.error(type_with(side, limit)) for limit in candidates]))])

    for round_ in range(_ROUNDS):
        for side in (0, 1) if -counts.low > counts.high else (1, 0):
            end = (counts.low, counts.high)[side]
            if end == 0:
                continue
            if round_ == 0:
                other = limits[1 - side] != 0
                limits[side] = best(side, end * np.append(_CANDIDATES, 0.0) if other else end * _CANDIDATES)
            else:
                around = limits[side] * np.linspace(0.85, 1.15, _FINE_CANDIDATES)
                limits[side] = best(side, np.sign(end) * np.minimum(np.abs(around), abs(end)))
    return type_with(1, limits[1])


def least_error_threshold(counts: ValueCounts, kind: NumType) -> float:
    """Return the clipping threshold of a symmetric type with the least error."""
    largest = max(-counts.low, counts.high)

    def best(candidates: np.ndarray) -> float:
        return float(candidates[int(np.argmin([counts.error(kind.with_scale(c / kind.qmax)) for c in candidates]))])

    first = best(largest * _CANDIDATES)
    return best(np.minimum(first * np.linspace(0.9, 1.1, 2 * _FINE_CANDIDATES - 1), largest))


def channel_weights(reader: Node, channels: int) -> tuple[np.ndarray, bool]:
    """Return the weights (O, C, P), float64, by input channel, and whether the layer is dense; (1, C, P) of a depthwise one."""
    weights = reader.params["input_weights" if isinstance(reader.op, ArrayRecurrent) else "weights"].astype(np.float64)
    if isinstance(reader.op, Conv) and reader.op.groups > 1:
        return weights.reshape(1, channels, -1), False
    return weights.reshape(len(weights), channels, -1), True


def weight_error(weights: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the sum of squared errors (C) from rounding weights (O, C, P), divided by `factors` (C), to 8 bits by output."""
    scaled = weights / factors[:, None]
    steps = np.maximum(np.maximum(scaled.max(axis=(1, 2), keepdims=True), -scaled.min(axis=(1, 2), keepdims=True)), 1e-30)
    steps /= NumType(8).qmax
    rounded = scaled / steps
    np.rint(rounded, out=rounded)
    rounded *= steps
    scaled -= rounded
    scaled *= factors[:, None]
    return np.einsum("ocp,ocp->c", scaled, scaled)
