"""The range of real numbers that the integers of a tensor cover: symmetric about zero, or any interval that holds zero.

A function such as SiLU or HardSwish gives few and small negative numbers. In a symmetric range nearly half of the integers
then stand for nothing; an interval with a zero point uses them all. The interval is the one with the least expected error,
and where only functions of single values read the tensor, with the least error of their results: what a function maps to
nearly the same number may be clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.quant.observe.histogram import BINS, Histogram

Function = Callable[[np.ndarray], np.ndarray]

ZERO_POINT_GAIN = 0.8
"""A zero point is taken where the squared error is at most this share of that without one."""

_GROUP = 8
"""Bins of a histogram taken together: 2,048 on each side of zero."""
_SHARES = np.geomspace(1.0, 1.0 / 32, 48)
"""Limits that are tried first, as shares of the largest value on their side."""
_FINE = 13
_ROUNDS = 3


@dataclass(frozen=True)
class Counts:
    """The values of a tensor, counted: `x` (K) real numbers, `p` (K) how often each occurs; extremes `low` <= 0 <= `high`.

    `readers`: the functions of single values that read the tensor; empty where others do.
    """

    x: np.ndarray
    p: np.ndarray
    low: float
    high: float
    readers: Sequence[Function] = ()

    @staticmethod
    def of(histogram: Histogram, readers: Sequence[Function] = ()) -> Counts:
        """The middles of the non-empty bins of a histogram, with zeros unchanged."""
        step = histogram.limit / BINS * _GROUP
        middles = (np.arange(BINS // _GROUP) + 0.5) * step
        up, down = (c.reshape(-1, _GROUP).sum(axis=1) for c in (histogram.positive, histogram.negative))
        x = np.concatenate([-middles[::-1], [0.0], middles])
        p = np.concatenate([down[::-1], [histogram.zeros], up]).astype(np.float64)
        used = p > 0
        low, high = min(histogram.minimum, 0.0), max(histogram.maximum, 0.0)
        return Counts(np.clip(x[used], low, high), p[used], low, high, tuple(readers))

    @cached_property
    def _results(self) -> list[np.ndarray]:
        """Result of each reader for `x`: the same for every type that is tried."""
        with np.errstate(all="ignore"):
            return [function(self.x) for function in self.readers]

    def error(self, kind: NumType) -> float:
        """Sum of the squared errors that integers of this type make, at the tensor or at the functions that read it."""
        held = np.clip(np.rint(self.x / kind.scale), kind.qmin - kind.zero_point, kind.qmax - kind.zero_point) * kind.scale
        if not self.readers:
            return float(np.dot(self.p, np.square(self.x - held)))
        with np.errstate(all="ignore"):
            lost = sum(np.square(np.nan_to_num(y - f(held))) for f, y in zip(self.readers, self._results, strict=True))
        return float(np.dot(self.p, lost))


def interval_type(bits: int, low: float, high: float) -> NumType:
    """Unsigned integers over [low, high], low <= 0 <= high and not both 0; zero is one of them exactly.

    The scale is (high - low) / (2^bits - 1), enlarged where the rounded zero point would leave less on one side.
    """
    kind = NumType(bits, signed=False)
    zero = int(np.clip(np.rint(-low * kind.qmax / (high - low)), 0, kind.qmax))
    scale = max(-low / zero if zero else 0.0, high / (kind.qmax - zero) if zero < kind.qmax else 0.0)
    return NumType(bits, signed=False, scale=float(scale), zero_point=zero)


def least_error_interval(counts: Counts, bits: int) -> NumType:
    """The unsigned type, with zero point, of the least error: limits on both sides are tried in turn."""
    limits = [counts.low, counts.high]

    def kind_of(side: int, limit: float) -> NumType:
        low, high = (limit, limits[1]) if side == 0 else (limits[0], limit)
        return interval_type(bits, low, high)

    def best(side: int, candidates: np.ndarray) -> float:
        return float(candidates[int(np.argmin([counts.error(kind_of(side, limit)) for limit in candidates]))])

    for round_ in range(_ROUNDS):
        for side in (0, 1) if -counts.low > counts.high else (1, 0):
            end = (counts.low, counts.high)[side]
            if end == 0:
                continue
            if round_ == 0:
                other = limits[1 - side] != 0
                limits[side] = best(side, end * np.append(_SHARES, 0.0) if other else end * _SHARES)
            else:
                around = limits[side] * np.linspace(0.85, 1.15, _FINE)
                limits[side] = best(side, np.sign(end) * np.minimum(np.abs(around), abs(end)))
    return kind_of(1, limits[1])


def least_error_reach(counts: Counts, kind: NumType) -> float:
    """The reach, the largest number of a type without zero point, of the least error."""
    reach = max(-counts.low, counts.high)

    def best(candidates: np.ndarray) -> float:
        return float(candidates[int(np.argmin([counts.error(kind.with_scale(c / kind.qmax)) for c in candidates]))])

    first = best(reach * _SHARES)
    return best(np.minimum(first * np.linspace(0.9, 1.1, 2 * _FINE - 1), reach))
