"""exp, sigmoid and tanh in float32, made of rounded sums, products and quotients. Normative for `kernels/n2d2/float_functions.hpp`.

Equal on every machine and for every width of vectors. Largest errors in units of the last place, over all float32 numbers: exp
1.0, expm1 1.7, sigmoid 2.1, tanh 2.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from n2d2py.arithmetic import functions as float64

_SHIFT = np.float32(12582912.0)
"""1.5 * 2^23: a sum with it is rounded to a whole number, in its last bits."""
_SERIES = np.array([1.3951726723e-3, 8.3696041256e-3, 4.1666187346e-2, 1.6666512191e-1, 0.5], np.float32)
"""Of (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, the highest power first."""
_LOG2E, _LN2_HIGH, _LN2_LOW = np.array([1.44269504, 0.693359375, -2.12194440e-4], np.float32)


def _reduced(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (k modulo 2^32, exp(r) - 1) of x = k log(2) + r, x clamped to low .. high."""
    x = np.where(x < np.float32(low), np.float32(low), x)
    x = np.where(x > np.float32(high), np.float32(high), x)
    shifted = x * _LOG2E + _SHIFT
    whole = shifted - _SHIFT
    rest = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    series = np.full_like(rest, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series = series * rest + coefficient
    return shifted.view(np.uint32) - np.uint32(0x4B400000), rest + (rest * rest) * series


def _power(n: np.ndarray) -> np.ndarray:
    """Return 2^n for n of -126 to 127, modulo 2^32."""
    return ((n + np.uint32(127)) << np.uint32(23)).view(np.float32)


def exp(x: np.ndarray) -> np.ndarray:
    """Return e^x."""
    with np.errstate(all="ignore"):
        count, less_one = _reduced(x, -104.0, 89.0)
        half = ((count + np.uint32(256)) >> np.uint32(1)) - np.uint32(128)
        return (1 + less_one) * _power(half) * _power(count - half)


def expm1(x: np.ndarray) -> np.ndarray:
    """Return e^x - 1."""
    with np.errstate(all="ignore"):
        count, less_one = _reduced(x, -25.0, 89.0)
        half = _power(count - np.uint32(1))
        result = less_one * half + (half - np.float32(0.5))
        return result + result


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + e^-x)."""
    small = exp(-np.abs(x))
    return np.where(x >= 0, np.float32(1), small) / (1 + small)


def tanh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent."""
    size = np.abs(x)
    with np.errstate(all="ignore"):
        twice = expm1(-(size + size))
        return np.copysign(-twice / (2 + twice), x)


class Functions(NamedTuple):
    """The functions of one type."""

    exp: Callable[[np.ndarray], np.ndarray]
    sigmoid: Callable[[np.ndarray], np.ndarray]
    tanh: Callable[[np.ndarray], np.ndarray]


def functions_of(dtype: np.dtype) -> Functions:
    """Return the functions of arrays of float32 or float64, with results of the same type."""
    if dtype == np.float32:
        return Functions(exp, sigmoid, tanh)
    return Functions(float64.exp, float64.sigmoid, float64.tanh)
