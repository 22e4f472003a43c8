"""Softmax and normalization of rows in integers. Normative for `kernels/n2d2/integer_softmax.hpp` and `integer_norm.hpp`.

Softmax of a row q, scale s, largest element m, with d = m - q >= 0:

    e = powers[d], powers[d] = round(2^15 exp(-s d))                 8-bit inputs
    e = ((p(x & 65535) >> (x >> 16)) + 1) >> 1                       16-bit inputs, near 2^15 exp(-s d), with
        x = min(min(d, limit) * multiplier >> shift, 17 * 2^16)      octaves below m, 16 fractional bits, and
        p(f) = 2^16 - (f (45423 - (f (15701 - (f (3496 - (f 450 >> 16)) >> 16)) >> 16)) >> 16), near 2^(16 - f / 2^16)
    y = rint(float32(e) * (float32(1 / s_y) / float32(sum of e)))                    Floating-point rescale, ties to even
    y = (e * floor(numerator / sum of e) + 2^31) >> 32, numerator = round(2^32 / s_y)    the other modes, 64 bits

multiplier = round(2^(16 + shift) s / ln 2); from `limit` on e is 0; limit * multiplier is below 2^31. The zero point of y is
added, then it is clamped. Where a mask says that an element does not count, it does not count for m, and its e is 0.

Normalization of a row of n elements q (zero point z), d = q - z:

    a = n d - sum of d                          n times what an element is away from the mean; without mean: n d
    v = sum of (n d^2) - (sum of d)^2 + E       n^2 times the variance, E = round(n^2 epsilon / s^2) >= 1; without mean: n sum
    of d^2 + E
    k = floor((62 - bits of v) / 2), root = floor(sqrt(v 4^k)), inverse = floor(2^61 / root)
    t = (a * inverse + 2^(h - 1)) >> h, h = 61 - k - F      a / sqrt(v) with F fractional bits
    acc = gain t + offset

a is below 2^31, v below 2^62 and inverse at most 2^31, so all of it fits 64 bits.
"""

import numpy as np

ONE = 2**15
"""The power that stands for 1."""
LONGEST_LINE = 2**14
"""Elements of a line that is normalised."""
_FIXED = 32
_POINT, _LAST_OCTAVE = 16, 17
"""Fractional bits of octaves; the octaves for which e is computed: from 17 on it is 0."""
POLYNOMIAL = (450, 3496, 15701, 45423)
"""2^-f for f in 0..1, in 2^-16, the highest power first, of alternating signs: within 3 * 10^-5, after rounding."""


def exponentials(scale: float, bits: int) -> np.ndarray:
    """Return the parameters of e for this scale: for bytes the table (256), uint16; else (multiplier, shift, limit), int32."""
    if bits <= 8:
        return np.rint(ONE * np.exp(-scale * np.arange(256))).astype(np.uint16)
    octaves = min(scale / np.log(2), _LAST_OCTAVE)
    limit = int(min(np.ceil(_LAST_OCTAVE / octaves), 65535)) if octaves > 0 else 65535
    shift = next(bits for bits in range(30, -1, -1) if round(octaves * 2.0 ** (_POINT + bits)) * limit < 2**31)
    return np.array([round(octaves * 2.0 ** (_POINT + shift)), shift, limit], np.int32)


def _computed_powers(below: np.ndarray, powers: np.ndarray) -> np.ndarray:
    multiplier, shift, limit = powers.tolist()
    x = np.minimum(np.minimum(below, limit) * multiplier >> shift, _LAST_OCTAVE << _POINT)
    f, p = x & (2**_POINT - 1), np.int64(0)
    for factor in POLYNOMIAL:
        p = factor - (f * p >> _POINT)
    return (((2**16 - (f * p >> _POINT)) >> (x >> _POINT)) + 1) >> 1


def mask_bits(mask: np.ndarray) -> np.ndarray:
    """Return a mask (lines, size), bool, as bits: (lines, ceil(size / 8)), uint8, element i is bit i % 8 of byte i // 8."""
    return np.packbits(mask, axis=1, bitorder="little")


def taken_of(bits: np.ndarray, size: int) -> np.ndarray:
    """Return the mask (lines, size), bool, of `mask_bits`."""
    return np.unpackbits(bits, axis=1, count=size, bitorder="little").astype(bool)


def powers_of(x: np.ndarray, powers: np.ndarray, used: np.ndarray | None = None) -> np.ndarray:
    """Return e (int64) of lines along the last axis, with `exponentials`; `used`: bools of the elements that count."""
    if used is not None:
        x = np.where(used, x, np.where(used, x, np.iinfo(x.dtype).min).max(-1, keepdims=True))
    below = x.max(-1, keepdims=True).astype(np.int64) - x
    result = powers.astype(np.int64)[below] if powers.dtype == np.uint16 else _computed_powers(below, powers)
    return result if used is None else np.where(used, result, 0)


def shares(powers: np.ndarray, factor: np.float32 | None, numerator: int, low: int, high: int) -> np.ndarray:
    """Return the powers divided by the sum of their line, in steps of the output; `factor`: 1 / s_y of floats."""
    total = powers.sum(-1, keepdims=True)
    if factor is None:
        return np.clip((powers * (numerator // total) + 2 ** (_FIXED - 1)) >> _FIXED, low, high)
    steps = powers.astype(np.float32) * (np.float32(factor) / total.astype(np.float32))
    return np.clip(np.rint(steps).astype(np.int64), low, high)


def _roots(squares: np.ndarray) -> np.ndarray:
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root


def inverse_roots(v: np.ndarray, fraction: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (inverse, h) of 1 <= v < 2^62."""
    bits = np.zeros_like(v)
    for bit in range(62):
        bits += v >= 1 << bit
    k = (62 - bits) // 2
    return 2**61 // _roots(v << (2 * k)), 61 - k - fraction


def normalized(away: np.ndarray, centred: bool, epsilon: int, fraction: int) -> np.ndarray:
    """Return t (int64) of lines along the last axis, of elements without their zero point."""
    d, count = away.astype(np.int64), away.shape[-1]
    total = d.sum(-1, keepdims=True) if centred else np.zeros((*d.shape[:-1], 1), np.int64)
    v = count * np.square(d).sum(-1, keepdims=True) - total * total + epsilon
    inverse, shift = inverse_roots(v, fraction)
    return ((count * d - total) * inverse + (np.int64(1) << (shift - 1))) >> shift
