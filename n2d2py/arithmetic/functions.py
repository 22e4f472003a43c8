"""exp, log, sin, atan and what follows from them, made of correctly rounded operations only.

Libraries differ in the last bit of these functions, so a layer that rounds their results to integers would not give
the same ones everywhere. These use additions, multiplications and divisions of float64 in one order, which
`kernels/n2d2/functions.hpp` repeats: equal on every machine, within 2e-15 of the true value (relative).
"""

from collections.abc import Callable
from functools import wraps
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_EXP = [1 / factorial(n) for n in range(14)]
"""1 / n!"""
_LOG = [2.0 / (2 * n + 1) for n in range(11)]
"""Of log(m) = s (2 + 2/3 s^2 + 2/5 s^4 + ...), s = (m - 1) / (m + 1)."""


def _real(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[ArrayLike], np.ndarray]:
    """Let a function take any array, as float64, without warnings; NaN stays NaN."""

    @wraps(function)
    def computed(x: ArrayLike) -> np.ndarray:
        values = np.asarray(x, np.float64)
        unknown = np.isnan(values)
        with np.errstate(all="ignore"):
            return np.where(unknown, values, function(np.where(unknown, 0.0, values)))

    return computed


def _polynomial(coefficients: list[float], x: np.ndarray) -> np.ndarray:
    result = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        result *= x
        result += c
    return result


@_real
def exp(x: np.ndarray) -> np.ndarray:
    """Return e^x."""
    bounded = np.clip(x, -745.5, 710.0)
    k = np.rint(bounded * _LOG2E)
    rest = (bounded - k * _LN2_HIGH) - k * _LN2_LOW
    half = np.trunc(k * 0.5)
    result = np.ldexp(np.ldexp(_polynomial(_EXP, rest), half.astype(np.int32)), (k - half).astype(np.int32))
    return np.where(x > 709.782712893384, np.inf, np.where(x < -745.2, 0.0, result))


@_real
def log(x: np.ndarray) -> np.ndarray:
    """Return the natural logarithm; NaN below 0, -inf at 0."""
    mantissa, exponent = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, mantissa + mantissa, mantissa)
    exponent = (exponent - low).astype(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    series = s * _polynomial(_LOG, s * s)
    result = exponent * _LN2_HIGH + (exponent * _LN2_LOW + series)
    result = np.where(x == 0, -np.inf, np.where(x == np.inf, np.inf, result))
    return np.where(x < 0, np.nan, result)


def power(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Return x^y; a negative x only with a whole y."""
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    with np.errstate(all="ignore"):
        whole = np.floor(y) == y
        size = exp(y * log(np.abs(x)))
        small = np.abs(y) <= 8
        count = np.where(small & whole, np.abs(y), 0.0)
        product = np.ones_like(size)
        for step in range(8):
            product = np.where(count > step, product * x, product)
        exact = np.where(y < 0, 1.0 / product, product)
        odd = whole & (np.abs(np.fmod(y, 2.0)) == 1.0)
        general = np.where(x < 0, np.where(whole, np.where(odd, -size, size), np.nan), size)
        general = np.where((y == 0.5) & (x >= 0), np.sqrt(np.maximum(x, 0.0)), general)
        general = np.where(x == 1.0, 1.0, general)
        return np.where(small & whole, exact, general)


@_real
def expm1(x: np.ndarray) -> np.ndarray:
    """Return e^x - 1, accurate near 0."""
    near = np.clip(x, -0.25, 0.25)
    series = near * _polynomial(_EXP[1:], near)
    return np.where(np.abs(x) <= 0.25, series, exp(x) - 1.0)


@_real
def log1p(x: np.ndarray) -> np.ndarray:
    """Return log(1 + x), accurate near 0."""
    near = np.clip(x, -0.25, 0.25)
    s = near / (2.0 + near)
    series = s * _polynomial(_LOG, s * s)
    return np.where(np.abs(x) <= 0.25, series, log(1.0 + x))


@_real
def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + e^-x)."""
    small = exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


@_real
def tanh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent."""
    twice = expm1(-(np.abs(x) + np.abs(x)))
    return np.copysign(-twice / (2.0 + twice), x)


@_real
def softplus(x: np.ndarray) -> np.ndarray:
    """Return log(1 + e^x)."""
    return np.maximum(x, 0.0) + log1p(exp(-np.abs(x)))


_ERF_TERMS = 60


@_real
def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function: e^(-x^2) times a series up to |x| = 3, a continued fraction beyond."""
    magnitude = np.abs(x)
    near = np.minimum(magnitude, 3.0)
    square = near * near
    total = np.full_like(near, 1.0)
    term = np.full_like(near, 1.0)
    for n in range(1, _ERF_TERMS):
        term = term * (square * (2.0 / (2 * n + 1)))
        total = total + term
    inner = ((near * total) * exp(-square)) * 1.1283791670955126
    far = np.clip(magnitude, 3.0, 7.0)
    tail = far
    for n in range(40, 0, -1):
        tail = far + (0.5 * n) / tail
    outer = 1.0 - exp(-(far * far)) / (tail * 1.772453850905516)
    return np.copysign(np.where(magnitude <= 3.0, inner, outer), x)


_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""Pi / 2 in parts: 33 bits, 33 bits, the rest, so that products with up to 20 bits are exact."""
_SINE = [(-1) ** n / factorial(2 * n + 1) for n in range(9)]
"""Of sin(x) / x, by powers of x^2."""
_COSINE = [(-1) ** n / factorial(2 * n) for n in range(10)]
_ARC = [(-1) ** n / (2 * n + 1) for n in range(14)]
"""Of atan(x) / x, by powers of x^2."""


def _turned(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (quarter 0 .. 3, sine, cosine) of what is left of x without whole quarters of a turn.

    Beyond 1.6 million the period is the float64 nearest to 2 pi.
    """
    near = np.where(np.abs(x) < 1.6e6, x, np.fmod(x, 6.283185307179586))
    k = np.rint(near * 0.6366197723675814)
    rest = ((near - k * _HALF_PI[0]) - k * _HALF_PI[1]) - k * _HALF_PI[2]
    square = rest * rest
    quarter = np.where(np.isnan(k), 0, k).astype(np.int64) & 3
    return quarter, rest * _polynomial(_SINE, square), _polynomial(_COSINE, square)


@_real
def sin(x: np.ndarray) -> np.ndarray:
    """Return the sine."""
    quarter, sine, cosine = _turned(x)
    value = np.where(quarter & 1, cosine, sine)
    return np.where(quarter & 2, -value, value)


@_real
def cos(x: np.ndarray) -> np.ndarray:
    """Return the cosine."""
    quarter, sine, cosine = _turned(x)
    value = np.where(quarter & 1, sine, cosine)
    return np.where((quarter + 1) & 2, -value, value)


@_real
def tan(x: np.ndarray) -> np.ndarray:
    """Return the tangent."""
    quarter, sine, cosine = _turned(x)
    return np.where(quarter & 1, -cosine / sine, sine / cosine)


@_real
def atan(x: np.ndarray) -> np.ndarray:
    """Return the inverse tangent: of 1 / x above 1, and of (sqrt(3) x - 1) / (sqrt(3) + x) above tan(pi / 12)."""
    magnitude = np.abs(x)
    above = magnitude > 1.0
    inner = np.where(above, 1.0 / magnitude, magnitude)
    wide = inner > 0.2679491924311227
    inner = np.where(wide, (1.7320508075688772 * inner - 1.0) / (1.7320508075688772 + inner), inner)
    value = inner * _polynomial(_ARC, inner * inner)
    value = np.where(wide, 0.5235987755982989 + value, value)
    value = np.where(above, 1.5707963267948966 - value, value)
    return np.copysign(value, x)


@_real
def asin(x: np.ndarray) -> np.ndarray:
    """Return the inverse sine; NaN beyond 1."""
    return atan(x / np.sqrt((1.0 - x) * (1.0 + x)))


@_real
def acos(x: np.ndarray) -> np.ndarray:
    """Return the inverse cosine; NaN beyond 1."""
    return 2.0 * atan(np.sqrt((1.0 - x) / (1.0 + x)))


@_real
def sinh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic sine."""
    magnitude = np.abs(x)
    less, half = expm1(np.minimum(magnitude, 22.0)), exp(0.5 * magnitude)
    value = np.where(magnitude <= 22.0, 0.5 * (less + less / (less + 1.0)), (0.5 * half) * half)
    return np.copysign(value, x)


@_real
def cosh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic cosine."""
    magnitude = np.abs(x)
    whole, half = exp(np.minimum(magnitude, 22.0)), exp(0.5 * magnitude)
    return np.where(magnitude <= 22.0, 0.5 * whole + 0.5 / whole, (0.5 * half) * half)


_LARGE, _LN2 = 1e8, 0.6931471805599453
"""Where the square of a number hides 1."""


@_real
def asinh(x: np.ndarray) -> np.ndarray:
    """Return the inverse hyperbolic sine."""
    magnitude = np.abs(x)
    near = np.minimum(magnitude, _LARGE)
    square = near * near
    value = np.where(magnitude <= _LARGE, log1p(near + square / (1.0 + np.sqrt(1.0 + square))), log(magnitude) + _LN2)
    return np.copysign(value, x)


@_real
def acosh(x: np.ndarray) -> np.ndarray:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    above = np.minimum(x, _LARGE) - 1.0
    return np.where(x <= _LARGE, log1p(above + np.sqrt(2.0 * above + above * above)), log(x) + _LN2)


@_real
def atanh(x: np.ndarray) -> np.ndarray:
    """Return the inverse hyperbolic tangent; NaN beyond 1."""
    magnitude = np.abs(x)
    value = 0.5 * log1p((magnitude + magnitude) / (1.0 - magnitude))
    return np.where(magnitude <= 1.0, np.copysign(value, x), np.nan)


def sequential_sum(values: np.ndarray) -> np.ndarray:
    """Return the sum over the last axis in float64 (integers: int64), from its first element to its last."""
    wide = np.asarray(values, np.float64 if values.dtype.kind == "f" else None)
    return np.add.accumulate(wide, axis=-1)[..., -1]


def lane_sum(values: np.ndarray) -> np.ndarray:
    """Return the sum over the last axis in float64: element i goes to lane i % 8; at the end the lanes are added in pairs."""
    count = values.shape[-1]
    lanes = np.zeros((*values.shape[:-1], 8))
    for first in range(0, count, 8):
        some = values[..., first : first + 8]
        lanes[..., : some.shape[-1]] += some
    fours = lanes[..., :4] + lanes[..., 4:]
    twos = fours[..., :2] + fours[..., 2:]
    return twos[..., 0] + twos[..., 1]
