"""Stored values of a tensor in fixed point, for post-processing: the definition that `kernels/n2d2/fixed_scale.hpp` computes
too.

With `value` a stored integer less its zero point:

    fixed(value) = (value * multiplier + 2^(shift - 1)) >> shift          of integers, in 64 bits
    fixed(value) = floor(value * factor + 0.5)                           of floating point, in float64
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.numtype import NumType

ONE = 65536
"""The score 1."""

LOGIT = 2048
"""Steps of a logit; it is held within -16 to 16."""

SIGMOID = np.rint(ONE / (1 + np.exp(-np.arange(257) / 16))).astype(np.int64)
"""The logistic function at 0, 1/16, ..., 16 in 1/65536; of negative logits it is 1 less that."""

POWERS = np.rint(ONE * 2 ** (np.arange(257) / 256)).astype(np.int64)
"""2^(i / 256) in 1/65536."""


@dataclass(frozen=True)
class FixedScale:
    """The conversion of a tensor's stored values to fixed point.

    `zero_point`: 0 of floating point. `multiplier`, `shift`: of integers. `factor`: of floating point.
    """

    zero_point: int = 0
    multiplier: int = 0
    shift: int = 0
    factor: float = 0.0

    @staticmethod
    def of(kind: NumType, steps: float) -> FixedScale:
        """Return the conversion of stored values of `kind`, of at most 16 bits or floating point, to 1 / `steps`."""
        if kind.is_float:
            return FixedScale(factor=steps)
        scale = kind.scale * steps
        shift = int(np.clip(30 - np.frexp(scale)[1], 1, 40))
        return FixedScale(kind.zero_point, min(round(np.ldexp(scale, shift)), 2**46), shift)

    def fixed(self, values: np.ndarray, low: int, high: int) -> np.ndarray:
        """Return fixed point (int64) of values less their zero point, held within [low, high]; NaN is `low`."""
        if values.dtype.kind != "f":
            return np.clip((values * self.multiplier + (1 << self.shift >> 1)) >> self.shift, low, high)
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.floor(values.astype(np.float64) * self.factor + 0.5)
        return np.where(steps >= low, np.minimum(steps, high), low).astype(np.int64)

    def of_stored(self, stored: np.ndarray, limit: int) -> np.ndarray:
        """Return fixed point (int64) of stored values, held within -limit to limit."""
        return self.fixed(signed(stored, self.zero_point), -limit, limit)


def signed(values: np.ndarray, zero_point: int) -> np.ndarray:
    """Return the stored integers less their zero point, int64; floating point unchanged."""
    return values if values.dtype.kind == "f" else values.astype(np.int64) - zero_point


def between(table: np.ndarray, position: np.ndarray, bits: int) -> np.ndarray:
    """Return the entries of a table at positions in 2^-bits, on a line between two neighbors, rounded."""
    entry, rest, one = position >> bits, position & (1 << bits) - 1, 1 << bits
    return table[entry] * (one - rest) + table[entry + 1] * rest + one // 2 >> bits


def logistic(logits: np.ndarray) -> np.ndarray:
    """Return the logistic function in 1/65536 of logits in 1/2048 within -16 to 16, by the table `SIGMOID`."""
    above = between(SIGMOID, np.minimum(abs(logits), 16 * LOGIT - 1), 7)
    return np.where(logits < 0, ONE - above, above)
