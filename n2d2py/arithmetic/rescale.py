"""Rescaling of accumulators to the next tensor's integers: one definition per mode.

All modes map an integer accumulator `acc` to the integer nearest to ``acc * factor``:

=================  ==========================================================================
Floating-point     rint(float32(acc) * float32(factor)), ties to even
Fixed-point32/16   (acc * m + 2^(p-1)) >> p, m of at most 31/15 bits, p <= 50, 64-bit product
Fixed-point-p32    the same with p = 32, the high word of the product, where factors are below 0.5; else Fixed-point32
Single-shift       (acc + 2^(p-1)) >> p, factor approximated by 2^-p
Double-shift       (acc * (2^(b-a) + 1) + 2^(b-1)) >> b, factor approximated by 2^-a + 2^-b
=================  ==========================================================================

`>>` is the arithmetic shift (rounds towards minus infinity), so ties of the fixed-point modes go
up. The result is then clamped. `kernels/n2d2/rescale.hpp` holds the same definitions in C++.

Pre-quantized networks need three more:

=================  ==========================================================================
FractionRescale    rint((float32(acc) + float32(fraction)) * float32(factor)), ties to even, for biases that are not integers
StepRescale        rint(float32(real) / float32(step)), ties to even, what QuantizeLinear does to a real number
DoublingRescale    (acc * m + 2^30) >> 31, the saturating rounding doubling high multiply of gemmlowp, then a shift by s that
                   rounds ties away from 0: what TFLite's kernels do; or rounded once, (acc * m + 2^(30+s)) >> (31+s)
=================  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

RESCALING_MODES = tuple(
    "Floating-point Fixed-point Fixed-point16 Fixed-point32 Fixed-point-p32 Single-shift Double-shift".split()
)
MAX_SHIFT = 50
_EXACT = 2**24
"""Every integer up to this magnitude is a float32 number."""
_MOST_FACTOR = float(np.finfo(np.float32).max)
_HIGH_WORD = 32


@dataclass(frozen=True, eq=False)
class Rescale:
    """acc -> integer near acc * factor; one factor for all outputs or one per output channel."""

    @property
    def count(self) -> int:
        """1, or the number of output channels."""
        return next((value.size for value in self._arrays.values()), 1)

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {one.name: value for one in fields(self) if isinstance(value := getattr(self, one.name), np.ndarray)}

    def only(self, index: int) -> Rescale:
        """Return the rescale of output `index` alone."""
        return self.part(index, index + 1)

    def part(self, first: int, stop: int) -> Rescale:
        """Return the rescale of the outputs [first, stop)."""
        return self if self.count == 1 else replace(self, **{name: v[first:stop] for name, v in self._arrays.items()})

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        """Return clamp(rescaled acc, low, high) in int64, or in int32 where that holds it; `axis` is the channel axis of `acc`.

        `acc` holds exact integers, in an integer or a floating-point type.
        """
        raise NotImplementedError

    def real(self, acc: np.ndarray, axis: int = 1) -> np.ndarray:
        """Return acc times the factors in float32, neither rounded nor clamped."""
        return acc.astype(np.float32) * _along(self.effective().astype(np.float32), acc, axis)

    def effective(self) -> np.ndarray:
        """Return the factors that the integer formula really applies, float64 of length `count`."""
        raise NotImplementedError


def _along(values: np.ndarray, acc: np.ndarray, axis: int) -> np.ndarray:
    if values.size == 1:
        return values.reshape(())
    shape = [1] * acc.ndim
    shape[axis] = values.size
    return values.reshape(shape)


def _shifted(acc: np.ndarray, multipliers: np.ndarray, shifts: np.ndarray, low: int, high: int, axis: int) -> np.ndarray:
    """Return (acc * multiplier + 2^(shift - 1)) >> shift, clamped."""
    multiplier, shift = (_along(values.astype(np.int64), acc, axis) for values in (multipliers, shifts))
    return np.clip((acc.astype(np.int64) * multiplier + ((np.int64(1) << shift) >> 1)) >> shift, low, high)


def _rounded(real: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return float32 numbers, which this overwrites, clamped and rounded to even, int32 or int64."""
    real = np.asarray(real)
    np.clip(real, np.float32(low), np.float32(high), out=real)
    exact = max(-low, high) <= _EXACT
    rounded = np.asarray(np.rint(real, out=real).astype(np.int32 if exact else np.int64))
    return rounded if exact else np.clip(rounded, low, high, out=rounded)  # float32 may round the limits outwards


@dataclass(frozen=True, eq=False)
class _SingleRescale(Rescale):
    """Factors, and further numbers, in float32."""

    factors: np.ndarray

    def __post_init__(self) -> None:
        for one in fields(self):
            single = np.minimum(np.atleast_1d(getattr(self, one.name)), _MOST_FACTOR).astype(np.float32)
            object.__setattr__(self, one.name, single)

    def effective(self) -> np.ndarray:
        return self.factors.astype(np.float64)


@dataclass(frozen=True, eq=False)
class FloatRescale(_SingleRescale):
    """rint(float32(acc) * factor), factor float32; int32 to float32 rounds to nearest even too."""

    @np.errstate(over="ignore")  # an infinity is clamped
    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        return _rounded(acc.astype(np.float32, copy=False) * _along(self.factors, acc, axis), low, high)


@dataclass(frozen=True, eq=False)
class FractionRescale(_SingleRescale):
    """rint((float32(acc) + fraction) * factor), per output: the fraction that its integer bias leaves."""

    fractions: np.ndarray

    @np.errstate(over="ignore")  # an infinity is clamped
    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        moved = acc.astype(np.float32) + _along(self.fractions, acc, axis)
        return _rounded(moved * _along(self.factors, acc, axis), low, high)


@dataclass(frozen=True, eq=False)
class StepRescale(Rescale):
    """rint(real / step) of float32 numbers instead of integer sums."""

    step: np.float32

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        return _rounded(acc.astype(np.float32) / np.float32(self.step), low, high)

    def effective(self) -> np.ndarray:
        return 1 / np.array([self.step], np.float64)


@dataclass(frozen=True, eq=False)
class FixedPointRescale(Rescale):
    """(acc * multiplier + 2^(shift-1)) >> shift in 64 bits; one shift, a multiplier per output."""

    multipliers: np.ndarray
    shift: int
    bits: int

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        return _shifted(acc, self.multipliers, np.array([self.shift]), low, high, axis)

    def effective(self) -> np.ndarray:
        return self.multipliers.astype(np.float64) * 2.0**-self.shift


@dataclass(frozen=True, eq=False)
class DoublingRescale(Rescale):
    """acc * m / 2^(31 + s), per output: MultiplyByQuantizedMultiplier of TFLite.

    `multipliers`: m, 0 to 2^31 - 1. `shifts`: s, -31 to 31; acc is shifted to the left by -s where that is positive, which
    must not leave 32 bits. `twice`: whether the product is rounded before it is shifted; else once, ties up.
    """

    multipliers: np.ndarray
    shifts: np.ndarray
    twice: bool = True

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        multipliers, shifts = (_along(v.astype(np.int64), acc, axis) for v in (self.multipliers, self.shifts))
        product, right = (acc.astype(np.int64) << np.maximum(-shifts, 0)) * multipliers, np.maximum(shifts, 0)
        if self.twice:
            doubled = (product + (1 << 30)) >> 31
            away = np.where(right > 0, doubled >> 63, 0)
            return np.clip((doubled + away + ((np.int64(1) << right) >> 1)) >> right, low, high)
        return np.clip((product + (np.int64(1) << 30 + right)) >> 31 + right, low, high)

    def effective(self) -> np.ndarray:
        return np.ldexp(self.multipliers.astype(np.float64), -31 - self.shifts)


@dataclass(frozen=True, eq=False)
class ShiftRescale(Rescale):
    """(acc * (2^(second-first) + 1) + 2^(second-1)) >> second; without `first`: (acc + 2^(s-1)) >> s."""

    second: np.ndarray
    first: np.ndarray | None = None

    @property
    def multipliers(self) -> np.ndarray:
        """Factor of the accumulator before the shift by `second`."""
        if self.first is None:
            return np.ones(self.second.size, np.int64)
        return (np.int64(1) << (self.second - self.first).astype(np.int64)) + 1

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        return _shifted(acc, self.multipliers, self.second, low, high, axis)

    def effective(self) -> np.ndarray:
        factors = 2.0 ** -self.second.astype(np.float64)
        return factors if self.first is None else factors + 2.0 ** -self.first.astype(np.float64)


def _fixed_point(factors: np.ndarray, bits: int, acc_bits: int) -> FixedPointRescale | None:
    """Return the finest shift for which every multiplier fits `bits` bits and every product 62 bits."""
    largest = float(np.max(np.abs(factors)))
    limit = min(2**bits - 1, 2 ** (63 - acc_bits) - 1)
    for shift in range(MAX_SHIFT, -1, -1):
        if np.rint(largest * 2.0**shift) <= limit:
            return FixedPointRescale(np.rint(factors * 2.0**shift).astype(np.int64), shift, bits)
    return None


def _high_word(factors: np.ndarray, acc_bits: int) -> FixedPointRescale | None:
    """Return p = 32, the high word of a product of words, if the multipliers fit 31 bits; else None.

    Small factors have few bits, but the result is wrong by |acc| * 2^-33 at most, a quarter for the largest 32-bit sum.
    """
    if float(np.rint(np.max(factors) * 2.0**_HIGH_WORD)) >= 2**31 or acc_bits > 32:
        return None
    return FixedPointRescale(np.rint(factors * 2.0**_HIGH_WORD).astype(np.int64), _HIGH_WORD, 31)


def _double_shift(factors: np.ndarray, acc_bits: int) -> ShiftRescale:
    """Return the smallest 2^-a + 2^-b, a <= b, that is not below the factor."""
    widest = 62 - acc_bits
    best_first, best_second = np.zeros((2, factors.size), np.int64)
    best_error = np.full(factors.size, np.inf)
    for first in range(MAX_SHIFT):
        for second in range(first, min(first + widest, MAX_SHIFT) + 1):
            error = 2.0**-first + 2.0**-second - factors
            better = (error >= 0) & (error < best_error)
            best_first[better], best_second[better] = first, second
            best_error[better] = error[better]
    return ShiftRescale(best_second, best_first)


def make_rescale(mode: str, factors: np.ndarray, acc_bits: int = 32) -> tuple[Rescale, bool]:
    """Return the rescale of `mode` nearest to the real `factors` (> 0, length 1 or outputs).

    `acc_bits` bounds the accumulators: |acc| < 2^(acc_bits-1). Returns the rescale and whether another mode is taken:
    Fixed-point16 for a shift mode with a factor above 1, Fixed-point32 beyond 15 bits, Floating-point beyond these.
    """
    factors = np.atleast_1d(np.asarray(factors, np.float64))
    if mode == "Floating-point":
        return FloatRescale(factors), False
    if mode == "Double-shift" and np.max(factors) <= 1.0:
        return _double_shift(factors, acc_bits), False
    if mode == "Single-shift" and np.max(factors) <= 1.0:
        # the smallest 2^-p that is not below the factor; the weights take up what it is too large
        return ShiftRescale(np.clip(np.floor(-np.log2(factors)), 0, MAX_SHIFT).astype(np.int64)), False
    bits = 15 if mode in ("Fixed-point16", "Single-shift", "Double-shift") else 31
    wanted = mode.startswith("Fixed-point")
    if mode == "Fixed-point-p32" and (high := _high_word(factors, acc_bits)) is not None:
        return high, False
    rescale = _fixed_point(factors, bits, acc_bits)
    if rescale is not None:
        return rescale, not wanted
    if bits == 15:
        rescale = _fixed_point(factors, 31, acc_bits)
    return (rescale if rescale is not None else FloatRescale(factors)), True
