"""exp, sigmoid and tanh in float32, made of rounded sums, products and quotients. Normative for `kernels/n2d2/float_functions.hpp`.

Equal on every machine and for every width of vectors. Largest errors in units of the last place, over all float32 numbers: exp
1.0, sigmoid 2.3, tanh 2.5; results below 2^-126 may be 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from n2d2py.arithmetic import functions as float64

_SHIFT = np.float32(12582912.0 + 127.0)
"""1.5 * 2^23 + 127: a sum with it is rounded to a whole number, whose last bits are those of the number plus 127."""
_SERIES = np.array([1.3951726723e-3, 8.3696041256e-3, 4.1666187346e-2, 1.6666512191e-1, 0.5], np.float32)
"""Of (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, the highest power first."""
_LOG2E, _LN2_HIGH, _LN2_LOW = np.array([1.44269504, 0.693359375, -2.12194440e-4], np.float32)


def _reduced(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (2^n, exp(r) - 1) of x = n log(2) + r; the power is 0 for n = -127, infinite for 128."""
    shifted = x * _LOG2E + _SHIFT
    whole = shifted - _SHIFT
    rest = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    series = np.full_like(rest, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series = series * rest + coefficient
    return (shifted.view(np.uint32) << np.uint32(23)).view(np.float32), rest + (rest * rest) * series


def exp(x: np.ndarray) -> np.ndarray:
    """Return e^x; 0 below 2^-126.5, infinite from 2^127.5 on."""
    with np.errstate(all="ignore"):
        power, less_one = _reduced(np.clip(x, np.float32(-88.03), np.float32(88.73)))
        return (1 + less_one) * power


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + e^-x)."""
    with np.errstate(all="ignore"):
        return 1 / (1 + exp(-x))


def tanh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent."""
    with np.errstate(all="ignore"):
        power, less_one = _reduced(np.maximum(np.float32(-2) * np.abs(x), np.float32(-25)))
        twice = less_one * power + (power - np.float32(1))
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
