"""Exact integer sums by floating-point products, and functions of correctly rounded operations: near the C library's, within 32 bits."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType, conv_sums, exact, exact_float, functions
from n2d2py.arithmetic.attention import ONE, exponentials, powers_of
from n2d2py.errors import InternalError
from n2d2py.operators.conv import Fc


def reference_conv(x, w, stride, dilation, groups):
    n, _c, h, width = x.shape
    o, per, kh, kw = w.shape
    oh = (h - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    ow = (width - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((n, o, oh, ow), np.int64)
    for k in range(o):
        first = k // (o // groups) * per
        for i in range(oh):
            for j in range(ow):
                for u in range(kh):
                    for v in range(kw):
                        a = x[:, first : first + per, i * stride[0] + u * dilation[0], j * stride[1] + v * dilation[1]]
                        y[:, k, i, j] += (a.astype(np.int64) * w[k, :, u, v].astype(np.int64)).sum(axis=1)
    return y


@every(
    "channels, outputs, groups, kernel, stride, dilation",
    [
        (3, 4, 1, (3, 3), (1, 1), (1, 1)),
        (4, 4, 4, (3, 3), (2, 2), (1, 1)),
        (4, 8, 4, (3, 2), (1, 2), (1, 1)),
        (6, 4, 2, (1, 1), (1, 1), (1, 1)),
        (5, 7, 1, (1, 1), (2, 1), (1, 1)),
        (2, 3, 1, (2, 3), (1, 1), (2, 3)),
    ],
)
def test_conv_sums(channels, outputs, groups, kernel, stride, dilation):
    generator = np.random.default_rng(channels)
    x = generator.integers(0, 256, (2, channels, 9, 11)).astype(np.uint8)
    w = generator.integers(-127, 128, (outputs, channels // groups, *kernel)).astype(np.int8)
    result = conv_sums(x, w, stride, dilation, groups, np.dtype(np.float32))
    assert np.array_equal(result, reference_conv(x, w, stride, dilation, groups))
    with patch.object(exact, "_GATHERED", 1):  # windows gathered row by row
        assert np.array_equal(result, conv_sums(x, w, stride, dilation, groups, result.dtype))


def test_matmul_beyond_float32_is_exact():
    x = np.full((1, 4096), 255, np.uint8)
    w = np.full((2, 4096), 127, np.int8)
    w[1, 0] = 126
    bound = 4096 * 255 * 127
    assert bound > 2**24
    layer = SimpleNamespace(params={"weights": w})
    assert Fc().sums(x, layer, exact_float(bound), 0).tolist() == [[bound, bound - 255]]


def test_exact_float_limits():
    assert exact_float(2**24) == np.float32 and exact_float(2**24 + 1) == np.float64
    with pytest.raises(InternalError):
        exact_float(2**53 + 1)


def test_numtype_round_trip_and_limits():
    signed, unsigned = NumType(8, True, scale=0.5), NumType(8, False, scale=0.5)
    assert (signed.qmin, signed.qmax, unsigned.qmin, unsigned.qmax) == (-127, 127, 0, 255)
    assert signed.quantize(np.array([0.25, 0.75, -100.0, 1e9])).tolist() == [0, 2, -127, 127]
    assert unsigned.quantize(np.array([-1.0, 1.25])).tolist() == [0, 2]
    assert signed.dequantize(np.array([-127], np.int8)).tolist() == [-63.5]
    assert signed.cpp == "std::int8_t" and unsigned.dtype == np.uint8
    assert NumType(8, True, scale=2.0, zero_point=3).quantize(np.array([4.0])).tolist() == [5]


SCALES = (1e-12, 1e-6, 1e-5, 3.3e-4, 1e-3, 0.01, 0.1, 0.7, 1.0, 3.0, 100.0, 1e6)


@every("scale", SCALES)
def test_powers_of_16_bits_are_near_the_exact_ones(scale):
    powers = exponentials(scale, 16)
    multiplier, shift, limit = powers.tolist()
    below = np.arange(65536)
    found = powers_of((65535 - below)[None], powers)[0]
    assert powers.dtype == np.int32 and 0 <= shift <= 30 and 1 <= limit <= 65535 and multiplier * limit < 2**31
    assert found[0] == ONE
    np.testing.assert_allclose(found, ONE * np.exp(-scale * below), rtol=0, atol=1.5)
    assert limit == 65535 or not found[limit:].any()


@every("scale", SCALES)
def test_powers_of_bytes_are_the_nearest_integers(scale):
    found = powers_of(np.arange(255, -1, -1)[None], exponentials(scale, 8))[0]
    np.testing.assert_array_equal(found, np.rint(ONE * np.exp(-scale * np.arange(256))))


LIBRARY = {
    "exp": np.exp,
    "log": np.log,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 0.25, -0.25, 22.0, -22.0, 1e8, 1.6e6])


@every("name", LIBRARY)
def test_near_the_library(name):
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            rng.normal(size=20000) * 10.0 ** rng.integers(-8, 5, 20000),
            rng.uniform(-1, 1, 20000),
            np.arange(-200, 200) * (np.pi / 4),
            SPECIAL,
        ]
    )
    x = np.abs(x) + 1 if name == "acosh" else x
    if name in ("sin", "cos", "tan"):
        x = x[(np.abs(x) < 1e6) & (x != 0) | ~np.isfinite(x)]
    with np.errstate(all="ignore"):
        want, found = LIBRARY[name](x), getattr(functions, name)(x)
    assert np.array_equal(np.isnan(want), np.isnan(found))
    finite = np.isfinite(want)
    assert np.array_equal(want[~finite & ~np.isnan(want)], found[~finite & ~np.isnan(want)])
    assert (np.signbit(want) == np.signbit(found))[finite].all()
    error = np.abs(found[finite] - want[finite]) / np.maximum(np.abs(want[finite]), 1e-300)
    limit = 1e-13 if name in ("sin", "cos", "tan") else 4e-15  # next to a root, relative to the root's distance
    assert error.max() < limit, (x[finite][error.argmax()], error.max())


def test_angles_beyond_the_parts_of_pi_keep_their_period_in_float32():
    x = np.float32(10.0) ** np.arange(6, 9) * np.float32(1.37)
    for name in ("sin", "cos"):
        np.testing.assert_allclose(getattr(functions, name)(x), LIBRARY[name](x.astype(np.float64)), atol=1e-7)
