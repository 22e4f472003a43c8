"""Exact integer sums by floating-point products."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType, conv_sums, exact_float, matmul_sums
from n2d2py.errors import InternalError


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


def test_matmul_beyond_float32_is_exact():
    x = np.full((1, 4096), 255, np.uint8)
    w = np.full((2, 4096), 127, np.int8)
    w[1, 0] = 126
    bound = 4096 * 255 * 127
    assert bound > 2**24
    assert matmul_sums(x, w, bound).tolist() == [[bound, bound - 255]]


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
