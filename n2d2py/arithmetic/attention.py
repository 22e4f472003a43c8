"""Softmax and normalisation of lines in integers. Normative for `kernels/n2d2/integer_softmax.hpp` and `integer_norm.hpp`.

Softmax of a line q, scale s, largest element m, with d = m - q >= 0:

    e = fine[d]                                                  inputs of 8 bits
    e = (coarse[d >> 8] * fine[d & 255] + 2^14) >> 15            inputs of 16 bits
    y = rint(float32(e) * (float32(1 / s_y) / float32(sum of e)))                    Floating-point rescale, ties to even
    y = (e * floor(numerator / sum of e) + 2^31) >> 32, numerator = round(2^32 / s_y)    the other modes, 64 bits

fine[d] = round(2^15 exp(-s d)), coarse[d] = round(2^15 exp(-256 s d)). The zero point of y is added, then it is clamped.
Where a mask says that an element does not count, it is not looked at for m, and its e is 0.

Normalisation of a line of n elements q (zero point z), d = q - z:

    a = n d - sum of d                          n times what an element is away from the mean; without mean: n d
    v = sum of (n d^2) - (sum of d)^2 + E       n^2 times the variance, E = round(n^2 epsilon / s^2) >= 1; without mean: n sum of d^2 + E
    k = floor((62 - bits of v) / 2), root = floor(sqrt(v 4^k)), inverse = floor(2^61 / root)
    t = (a * inverse + 2^(h - 1)) >> h, h = 61 - k - F      a / sqrt(v) with F bits behind the point
    acc = gain t + offset

a is below 2^31, v below 2^62 and inverse at most 2^31, so all of it fits 64 bits.
"""

from __future__ import annotations

import numpy as np

ONE = 2**15
"""What 1 is among the powers."""
LONGEST_LINE = 2**14
"""Elements of a line that is normalised."""
_FIXED = 32


def exponentials(scale: float, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(fine, coarse) for inputs of `bits` bits and this scale."""
    steps = np.arange(256)
    fine = np.rint(ONE * np.exp(-scale * steps)).astype(np.int32)
    coarse = np.rint(ONE * np.exp(-256 * scale * steps[: 256 if bits > 8 else 1])).astype(np.int32)
    return fine, coarse


def mask_bits(mask: np.ndarray) -> np.ndarray:
    """A mask (lines, size), bool, as bits: (lines, ceil(size / 8)), uint8, element i is bit i % 8 of byte i // 8."""
    return np.packbits(mask, axis=1, bitorder="little")


def taken_of(bits: np.ndarray, size: int) -> np.ndarray:
    """The mask (lines, size), bool, of `mask_bits`."""
    return np.unpackbits(bits, axis=1, count=size, bitorder="little").astype(bool)


def powers_of(x: np.ndarray, fine: np.ndarray, coarse: np.ndarray, taken: np.ndarray | None = None) -> np.ndarray:
    """e (int64) of lines along the last axis; `taken`: the elements that count, bool, broadcast to x."""
    if taken is not None:
        x = np.where(taken, x, np.where(taken, x, np.iinfo(x.dtype).min).max(-1, keepdims=True))
    below = x.max(-1, keepdims=True).astype(np.int64) - x
    powers = fine.astype(np.int64)[below & 255]
    if coarse.size > 1:
        powers = (coarse.astype(np.int64)[below >> 8] * powers + ONE // 2) >> 15
    return powers if taken is None else np.where(taken, powers, 0)


def shares(powers: np.ndarray, factor: np.float32 | None, numerator: int, low: int, high: int) -> np.ndarray:
    """Powers divided by the sum of their line, in steps of the output, clamped; `factor` is 1 / s_y where they are floating point."""
    total = powers.sum(-1, keepdims=True)
    if factor is None:
        return np.clip((powers * (numerator // total) + 2 ** (_FIXED - 1)) >> _FIXED, low, high)
    steps = powers.astype(np.float32) * (np.float32(factor) / total.astype(np.float32))
    return np.clip(np.rint(steps).astype(np.int64), low, high)


def _roots(squares: np.ndarray) -> np.ndarray:
    """floor(sqrt(v)) of 0 <= v < 2^62, int64."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root


def inverse_roots(v: np.ndarray, fraction: int) -> tuple[np.ndarray, np.ndarray]:
    """(inverse, h) of 1 <= v < 2^62."""
    bits = np.zeros_like(v)
    for bit in range(62):
        bits += v >= 1 << bit
    k = (62 - bits) // 2
    return 2**61 // _roots(v << (2 * k)), 61 - k - fraction


def normalized(away: np.ndarray, centred: bool, epsilon: int, fraction: int) -> np.ndarray:
    """t (int64) of lines along the last axis, of elements without their zero point."""
    d, count = away.astype(np.int64), away.shape[-1]
    total = d.sum(-1, keepdims=True) if centred else np.zeros((*d.shape[:-1], 1), np.int64)
    v = count * np.square(d).sum(-1, keepdims=True) - total * total + epsilon
    inverse, shift = inverse_roots(v, fraction)
    return ((count * d - total) * inverse + (np.int64(1) << (shift - 1))) >> shift
