"""Sums of fp16 convolutions: fast in float64, or bit by bit as the multipliers and accumulators form them.

Exact: the products of up to 64 channels at one kernel position are aligned to the largest exponent in steps of four
bits. Each product is a carry-save pair of Booth partial products; an aligned pair is cut, not rounded. The sum goes
into an accumulator of 39 significant bits and is rounded, ties away from zero, then to fp32 in the same way.
"""

from __future__ import annotations

import numpy as np

from n2d2py_nvdla.model.window import ConvolutionShape

_BLOCK = 1 << 19
"""Products that are formed at once in exact mode."""

_SIGNS = {4: 0xFAAAB000, 8: 0xFFAAAB00, 12: 0xFFFAAAB0, 16: 0xFFFFAAAB, 20: 0xFFFFFAAB, 24: 0xFFFFFFAB, 28: 0xFFFFFFFB}
"""Constant that completes the sign extension of the partial products, by shift."""


def accumulate(
    x: np.ndarray, weights: np.ndarray, geometry: ConvolutionShape, exact: bool, rows: int, group: int
) -> np.ndarray:
    """(K, H, W) in float32 of padded float16 `x` (C, H', W') and `weights` (K, C, R, S).

    `rows`: for images, the kernel rows that are multiplied together with all columns and channels; 0 for features,
    where `group` channels of one kernel position are.
    """
    k, _c, r, s = weights.shape
    h, w = geometry.size
    if not exact:
        wide, matrix = _wide(x), _wide(weights)
        total = np.zeros((k, h * w))
        for row in range(r):
            for column in range(s):
                total += np.ascontiguousarray(matrix[:, :, row, column]) @ _tap(wide, geometry, row, column)
        return total.reshape(k, h, w).astype(np.float32)
    total = np.zeros((k, h * w))
    for columns, part in _atoms(x, weights, geometry, rows, group):
        total = _add39(total, _products(columns, part))
    single = _round_away(total, np.zeros_like(total), 24).astype(np.float32)
    invalid = np.isnan(x).any() or np.isnan(weights).any()
    if invalid:
        fast = accumulate(x, weights, geometry, False, rows, group)
        return np.where(np.isnan(fast), fast, single.reshape(k, h, w))
    return single.reshape(k, h, w)


def _wide(x: np.ndarray) -> np.ndarray:
    """float64; hardware knows no infinity, 2^16 has its place."""
    return np.where(np.isinf(x), np.copysign(65536.0, x.astype(np.float64)), x.astype(np.float64))


def _tap(x: np.ndarray, geometry: ConvolutionShape, row: int, column: int) -> np.ndarray:
    (h, w), (sy, sx), (dy, dx) = geometry.size, geometry.stride, geometry.dilation
    y, z = row * dy, column * dx
    return x[:, y : y + (h - 1) * sy + 1 : sy, z : z + (w - 1) * sx + 1 : sx].reshape(len(x), -1)


def _atoms(x: np.ndarray, weights: np.ndarray, geometry: ConvolutionShape, rows: int, group: int):
    """(columns (N, P), weights (K, N)) of what is multiplied in one step, in the hardware's order."""
    _k, c, r, s = weights.shape
    if rows:
        for first in range(0, r, rows):
            taps = [(row, column) for row in range(first, min(first + rows, r)) for column in range(s)]
            columns = np.concatenate([_tap(x, geometry, *tap) for tap in taps])
            part = np.concatenate([weights[:, :, row, column] for row, column in taps], axis=1)
            for low in range(0, len(columns), group if rows == 1 else len(columns)):
                high = low + group if rows == 1 else len(columns)
                yield columns[low:high], part[:, low:high]
        return
    for low in range(0, c, group):
        for row in range(r):
            for column in range(s):
                yield _tap(x[low : low + group], geometry, row, column), weights[:, low : low + group, row, column]


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sign, mantissa shifted by the low two bits of the exponent, the rest of the exponent; of float16."""
    bits = np.ascontiguousarray(x).view(np.uint16).astype(np.uint32)
    exponent = (bits >> 10) & 31
    mantissa = (bits & 1023) | np.where(exponent > 0, np.uint32(1024), np.uint32(0))
    return bits >> 15, mantissa << np.where(exponent > 0, exponent & 3, 1), exponent >> 2


def _products(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sum over N of weights (K, N) times columns (N, P) as one step of the multipliers gives it; float64, exact."""
    n, p = columns.shape
    result = np.empty((len(weights), p))
    step_k = max(1, min(len(weights), _BLOCK // max(n, 1)))
    step_p = max(1, _BLOCK // (step_k * n))
    data_parts, weight_parts = _split(columns), _split(weights)
    for k in range(0, len(weights), step_k):
        for q in range(0, p, step_p):
            result[k : k + step_k, q : q + step_p] = _block(
                [part[None, :, q : q + step_p] for part in data_parts], [part[k : k + step_k, :, None] for part in weight_parts]
            )
    return result


def _block(data: list[np.ndarray], weight: list[np.ndarray]) -> np.ndarray:
    used = (data[1] != 0) & (weight[1] != 0)
    exponent = np.where(used, data[2] + weight[2], 0).astype(np.int64)
    largest = exponent.max(axis=1, keepdims=True)
    shift = (largest - exponent) * 4
    negative = (data[0] ^ weight[0]) != 0
    magnitude = data[1].astype(np.int64) * weight[1]
    total = np.where(used & (shift == 0), np.where(negative, -magnitude, magnitude), 0)
    aligned = np.nonzero(used & (shift > 0) & (shift < 32))
    if len(aligned[0]):
        shape = used.shape
        total[aligned] = _aligned(
            np.broadcast_to(weight[1], shape)[aligned],
            np.broadcast_to(data[1], shape)[aligned],
            negative[aligned],
            shift[aligned],
        )
    return np.ldexp(total.sum(axis=1).astype(np.float64), (4 * largest[:, 0] - 50).astype(np.int64))


def _aligned(multiplier: np.ndarray, multiplicand: np.ndarray, negative: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return the products shifted right as carry-save pairs; int64."""
    d = multiplicand.astype(np.uint32)
    flip = np.where(negative, np.uint32(7), np.uint32(0))
    positive_mark, mask = np.uint32(0x10000), np.uint32(0xFFFF)
    choices = np.stack(
        [
            np.broadcast_to(positive_mark, d.shape),
            d | positive_mark,
            d | positive_mark,
            (d << 1) | positive_mark,
            ~(d << 1) & mask,
            ~d & mask,
            ~d & mask,
            np.broadcast_to(positive_mark, d.shape),
        ]
    )
    recoded = multiplier.astype(np.uint32) << 1
    parts, inverted = [], []
    index = np.arange(len(d))
    for i in range(8):
        code = ((recoded >> (2 * i)) & 7) ^ flip
        parts.append(choices[code, index])
        inverted.append(((code >= 4) & (code <= 6)).astype(np.uint32))
    low = [parts[0], *((parts[i] << (2 * i)) | (inverted[i - 1] << (2 * i - 2)) for i in (1, 2, 3)), inverted[3] << 6]
    high = [parts[4] << 8, *((parts[i] << (2 * i)) | (inverted[i - 1] << (2 * i - 2)) for i in (5, 6, 7)), inverted[7] << 14]
    one, two = _carry_save([*_carry_save(low), *_carry_save(high)])
    shift = shift.astype(np.uint32)
    signs = np.zeros(32, np.uint32)
    for at, value in _SIGNS.items():
        signs[at] = value
    return ((one >> shift) + (two >> shift) + signs[shift]).view(np.int32).astype(np.int64)


def _carry_save(words: list[np.ndarray]) -> list[np.ndarray]:
    """Two words with the sum of all of `words`, modulo 2^32, as a tree of three-to-two adders gives them."""
    while len(words) >= 3:
        a, b, c = words[:3]
        words = [a ^ b ^ c, ((a & b) | (b & c) | (a & c)) << 1, *words[3:]]
    return words


def _add39(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a + b rounded to 39 significant bits, ties away from zero; float64 values."""
    total = a + b
    part = total - a
    rest = (a - (total - part)) + (b - part)
    return _round_away(total, rest, 39)


def _round_away(x: np.ndarray, rest: np.ndarray, bits: int) -> np.ndarray:
    """x + rest (rest below the last bit of x) rounded to `bits` significant bits, ties away from zero."""
    mantissa, exponent = np.frexp(x)
    scaled = np.ldexp(np.abs(mantissa), bits)
    whole = np.floor(scaled)
    fraction = scaled - whole
    up = (fraction > 0.5) | ((fraction == 0.5) & (rest * np.sign(x) >= 0))
    return np.copysign(np.ldexp(whole + up, exponent - bits), x)
