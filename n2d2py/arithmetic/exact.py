"""Exact sums of integer products, by floating-point matrix products whose exactness is proved.

A floating-point sum of integers is exact in any order, with or without fused multiply-add, as long
as no partial sum can leave the range in which every integer is representable: 2^24 for float32,
2^53 for float64. The bound is computed from the actual weights, so BLAS may be used.
"""

import hashlib
from collections.abc import Callable
from itertools import product

import numpy as np

from n2d2py.errors import InternalError


def round_up(size: int, multiple: int) -> int:
    """Return the smallest multiple that holds `size`."""
    return -(-size // multiple) * multiple


def exact_float(bound: int) -> np.dtype:
    """Return the narrowest float type that holds every integer up to `bound`; raise InternalError from 2^53 on."""
    if bound <= 2**24:
        return np.dtype(np.float32)
    if bound <= 2**53:
        return np.dtype(np.float64)
    raise InternalError(f"accumulator bound {bound} is beyond exact arithmetic")


def sliding_windows(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]) -> np.ndarray:
    """Return a view (N, C, OH, OW, KH, KW) of the windows of an already padded x (N, C, H, W)."""
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(x, extent, axis=(2, 3))
    return windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


_GATHERED = 1 << 20
"""Values of windows that are gathered at once."""
_CACHED = 1 << 16
"""Values of channels of a depthwise convolution that are worked on at once."""


def conv_sums(
    x: np.ndarray, weights: np.ndarray, stride: tuple[int, int], dilation: tuple[int, int], groups: int, dtype: np.dtype
) -> np.ndarray:
    """Return cross-correlation sums of an already padded x, accumulated in `dtype`.

    x (N, C, H, W), weights (O, C / groups, KH, KW) -> (N, O, OH, OW). Exact for integers with `exact_float` of a valid bound.
    """
    n, channels = x.shape[:2]
    outputs, per_group, kh, kw = weights.shape
    if per_group == 1 and outputs == channels:
        return _depthwise_sums(x.astype(dtype, copy=False), weights.astype(dtype, copy=False), stride, dilation)
    matrix = weights.astype(dtype, copy=False).reshape(groups, outputs // groups, per_group * kh * kw)
    windows = sliding_windows(x, (kh, kw), stride, dilation)
    oh, ow = windows.shape[2:4]
    sums = np.empty((n, outputs, oh, ow), dtype)
    rows = max(1, _GATHERED // max(1, channels * kh * kw * ow))
    for sample in range(n):
        for top in range(0, oh, rows):
            part = windows[sample, :, top : top + rows].transpose(0, 3, 4, 1, 2)
            columns = np.ascontiguousarray(part, dtype).reshape(groups, per_group * kh * kw, -1)
            sums[sample, :, top : top + rows] = np.matmul(matrix, columns).reshape(outputs, -1, ow)
    return sums


def _depthwise_sums(x: np.ndarray, weights: np.ndarray, stride: tuple[int, int], dilation: tuple[int, int]) -> np.ndarray:
    """Return `conv_sums` of weights (C, 1, KH, KW), some channels at a time.

    With strides of 1, lines are as long as those of x: all values that meet the same weight then lie one after the other.
    """
    n, channels, h, w = x.shape
    oh, ow = (
        (size - (k - 1) * d - 1) // s + 1 for size, k, d, s in zip((h, w), weights.shape[2:], dilation, stride, strict=True)
    )
    taps = [*product(*(range(0, k * d, d) for k, d in zip(weights.shape[2:], dilation, strict=True)))]
    whole = stride == (1, 1)
    pitch = w if whole else ow
    count, step = (oh - 1) * pitch + ow, max(1, _CACHED // (h * w))
    factors, result = weights.reshape(channels, -1), np.empty((n, channels, oh, ow), x.dtype)
    sums, scratch = np.empty((min(step, channels), oh * pitch), x.dtype), np.empty((min(step, channels), count), x.dtype)
    for sample, first in product(range(n), range(0, channels, step)):
        part = np.ascontiguousarray(x[sample, first : first + step])
        total, products = sums[: len(part), :count], scratch[: len(part)]
        for index, (top, left) in enumerate(taps):
            if whole:
                values = part.reshape(len(part), h * w)[:, top * w + left :][:, :count]
            else:
                values = part[:, top :: stride[0], left :: stride[1]][:, :oh, :ow].reshape(len(part), count)
            np.multiply(values, factors[first : first + step, index, None], out=products if index else total)
            if index:
                total += products
        result[sample, first : first + step] = sums[: len(part)].reshape(-1, oh, pitch)[..., :ow]
    return result


BLOCK = 1 << 18
"""Values that are worked on at once where temporaries would take many times the memory of a result."""


def by_lines(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Apply a function of rows (..., K) -> (..., K) to all rows of x, some at a time."""
    step = max(1, BLOCK // x.shape[-1])
    lines = x.reshape(-1, x.shape[-1])
    if len(lines) <= step:
        return function(x)
    return np.concatenate([function(lines[k : k + step]) for k in range(0, len(lines), step)]).reshape(x.shape)


# 8-bit multiplications summed in 16 bits, as `vpmaddubsw` does: for which weights that is exact.
#
# Inputs are bytes from 0 to 255 (signed ones + 128). A word holds four of them, and the products of its inputs 0 and 1 go to one place
# of a 16-bit lane, those of 2 and 3 to another. The sums of a lane are exact where its weights of one sign add up to at most 128:
# 255 * 128 < 2^15 < 255 * 129.

PLACE_LIMIT = 128
"""Largest sum of the weights of one sign in a lane."""


def largest_place(weights: np.ndarray, words: int) -> np.ndarray:
    """Return, for each output, the largest sum of the weights of one sign in one place of `words` words, int64.

    `weights` are integers (O, K) in the order of the kernel; words are taken from the first on.
    """
    count, each = weights.shape[1], 4 * words
    most = max(int(weights.max(initial=0)), -int(weights.min(initial=0)))
    padded = np.zeros((len(weights), round_up(count, each)), np.int16 if 2 * words * most < 2**15 else np.int32)
    padded[:, :count] = weights
    result = np.zeros(len(weights), np.int64)
    for sign in (-1, 1):
        parts = np.maximum(sign * padded, 0)
        pairs = (parts[:, ::2] + parts[:, 1::2]).reshape(len(weights), -1, words, 2)
        sums = pairs[:, :, 0]
        for word in range(1, words):
            sums = sums + pairs[:, :, word]
        result = np.maximum(result, sums.max(axis=(1, 2)))
    return result


LARGE = 4096
"""Bytes from which layers share an array of the same content."""


def digest(values: np.ndarray) -> bytes:
    """Return the BLAKE2b digest of the bytes of an array in C order."""
    return hashlib.blake2b(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data, digest_size=32).digest()
