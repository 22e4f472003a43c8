"""The floating-point arithmetic of the units, in float32 and float64 arrays.

fp32 values are float32 arrays, fp17 values (1 sign, 6 exponent, 10 mantissa bits) are float64 arrays. Results are
rounded to nearest even; below the smallest normal number they become zero, beyond the largest they become the largest.
"""

from __future__ import annotations

import numpy as np

Numbers = np.ndarray | np.floating
"""An array, or one number of its type."""

_SMALLEST = np.float32(2.0**-126)
_LARGEST = np.finfo(np.float32).max
_LARGEST_HALF = np.float32(65504)
_SMALLEST17, LARGEST17 = 2.0**-30, 2.0**31 * (2 - 2.0**-10)


def half_to_single(x: np.ndarray) -> np.ndarray:
    """float16 to float32 as in hardware: infinities become the largest number, the bits of a NaN stay the low ones."""
    wide = x.astype(np.float32)
    wide = np.where(np.isinf(wide), np.copysign(_LARGEST, wide), wide)
    nan = np.isnan(wide)
    if not nan.any():
        return wide
    bits = np.ascontiguousarray(x, np.float16).view(np.uint16).astype(np.uint32)
    return np.where(nan, (bits & 0x8000) << 16 | 0x7F800000 | bits & 0x3FF, wide.view(np.uint32)).view(np.float32)


def single_to_half(x: np.ndarray) -> np.ndarray:
    """float32 to float16, subnormal results kept, overflow to 65504; a NaN keeps its low bits."""
    nan = np.isnan(x)
    if not nan.any():
        return np.clip(x, -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16)
    half = np.clip(np.where(nan, np.float32(0), x), -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    kept = (bits >> 16 & 0x8000 | 0x7C00 | bits & 0x3FF).astype(np.uint16)
    return np.where(nan, kept, half.view(np.uint16)).view(np.float16)


def bits_to_single(bits: int) -> np.float32:
    """Return the float32 with these bits (an int32 field of a descriptor)."""
    return np.array([bits & 0xFFFFFFFF], np.uint32).view(np.float32)[0]


def bits_to_half(bits: int) -> np.float16:
    """Return the float16 with the low 16 of these bits."""
    return np.array([bits & 0xFFFF], np.uint16).view(np.float16)[0]


def _settle(x: Numbers) -> np.ndarray:
    """Subnormal numbers to zero, infinities to the largest number."""
    x = np.where(np.abs(x) < _SMALLEST, np.copysign(np.float32(0), x), x)
    return np.where(np.isinf(x), np.copysign(_LARGEST, x), x)


def add(a: Numbers, b: Numbers) -> np.ndarray:
    """Return a + b; a sum of zero has the sign of the operand of larger magnitude, of `a` when they are equal; NaNs pass."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = _settle(a + b)
    return _nan_of(a, b, np.where(total == 0, np.copysign(np.float32(0), np.where(np.abs(a) >= np.abs(b), a, b)), total))


def multiply(a: Numbers, b: Numbers) -> np.ndarray:
    """Return a * b; NaNs pass."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return _nan_of(a, b, _settle(a * b))


def _nan_of(a: Numbers, b: Numbers, result: np.ndarray) -> np.ndarray:
    """Return `result`, but the NaN of `a`, else of `b`, bit by bit, where there is one."""
    if not np.isnan(result).any():
        return result
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, result))


def unequal(a: Numbers, b: Numbers) -> np.ndarray:
    """Return the number with the bits 1 where the bits of a and b differ, +0 if they are the same."""
    one, two = (np.ascontiguousarray(x, np.float32).view(np.uint32) for x in np.broadcast_arrays(a, b))
    return (one != two).astype(np.uint32).view(np.float32)


def _greater(a: Numbers, b: Numbers) -> np.ndarray:
    return (a > b) | ((a == b) & ~np.signbit(a) & np.signbit(b))


def maximum(a: Numbers, b: Numbers) -> np.ndarray:
    """Return the larger; +0 is larger than -0; a NaN wins."""
    return np.where(np.isnan(a) | (_greater(a, b) & ~np.isnan(b)), a, b)


def minimum(a: Numbers, b: Numbers) -> np.ndarray:
    """Return the smaller; -0 is smaller than +0; a NaN wins."""
    return np.where(np.isnan(a) | (~_greater(a, b) & ~np.isnan(b)), a, b)


def relu(x: Numbers) -> np.ndarray:
    """x where its sign bit is clear, else +0."""
    return np.where(np.signbit(x) & ~np.isnan(x), np.float32(0), x)


def fp17(x: Numbers) -> np.ndarray:
    """float64 `x` rounded to fp17; what is below the smallest normal number after rounding becomes 0."""
    x = np.asarray(x, np.float64)
    mantissa, exponent = np.frexp(x)
    rounded = np.ldexp(np.rint(mantissa * 2048), exponent - 11)
    rounded = np.where(np.abs(rounded) < _SMALLEST17, np.copysign(0.0, x), rounded)
    return np.clip(rounded, -LARGEST17, LARGEST17)


def single_to_fp17(x: Numbers) -> np.ndarray:
    """float32 to fp17; numbers that round up to the smallest normal number in steps of 2^-40 become it, lower ones 0."""
    x = np.asarray(x, np.float64)
    low = np.rint(x * 2.0**40) * 2.0**-40
    low = np.where(np.abs(low) >= _SMALLEST17, low, np.copysign(0.0, x))
    return np.where(np.abs(x) < _SMALLEST17, low, fp17(x))


def half_to_fp17(x: np.ndarray) -> np.ndarray:
    """float16 to fp17 (float64 values); infinities become the largest number."""
    wide = x.astype(np.float64)
    return np.where(np.isinf(wide), np.copysign(LARGEST17, wide), wide)


def fp17_add(a: Numbers, b: Numbers) -> np.ndarray:
    """Return a + b in fp17; the sign of a zero as in `add`."""
    total = fp17(a + b)
    return np.where(total == 0, np.copysign(0.0, np.where(np.abs(a) >= np.abs(b), a, b)), total)


def fp17_multiply(a: Numbers, b: Numbers) -> np.ndarray:
    """Return a * b in fp17."""
    return fp17(a * b)


def fp17_to_half(x: np.ndarray) -> np.ndarray:
    """fp17 to float16, subnormal results kept, overflow to 65504."""
    return np.clip(x, -65504.0, 65504.0).astype(np.float16)
