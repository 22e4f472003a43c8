"""Fourier transforms of real 16-bit values in integers; `kernels/n2d2/audio/fourier.hpp` computes them too.

Two values are a complex number, (v[2n], v[2n + 1]). Numbers are complex128 with whole parts, which is exact. The first stage adds two
parts or four, each other one four, which it turns before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Complex = NDArray[np.complex128]


class Rounding:
    """Scaling and rounding of the stages of a transform: none, and no twiddles."""

    def first(self, x: Complex, parts: int) -> Complex:
        """Return the numbers (n, N/2) that the first stage adds, so many at a time."""
        return x

    def turned(self, x: Complex, twiddles: Complex) -> Complex:
        """Return the numbers (n, groups, 4, size) that another stage adds; twiddles are (4, size), the first four 32767."""
        return x

    def halved(self, x: Complex) -> Complex:
        """Return the sums of two numbers in such a stage."""
        return x

    def stored(self, x: Complex) -> Complex:
        """Return the results of a stage."""
        return x


def divided(x: Complex, bits: int) -> Complex:
    """Return complex numbers / 2^bits, both parts rounded down."""
    return np.floor(x.real / 2.0**bits) + 1j * np.floor(x.imag / 2.0**bits)


def rounded(x: Complex, bits: int = 15) -> Complex:
    """Return complex numbers / 2^bits, both parts rounded to nearest, halves up."""
    return divided(x + 2.0 ** (bits - 1) * (1 + 1j), bits)


def squares(x: Complex) -> np.ndarray:
    """Return the squared magnitudes of complex numbers, int64."""
    return (x.real**2 + x.imag**2).astype(np.int64)


def twiddles(at: np.ndarray, size: int) -> Complex:
    """Return exp(-2 pi i at / size) in 1/32767."""
    exact: Complex = 32767 * np.exp(-2j * np.pi * at / size)
    return np.rint(exact.real) + 1j * np.rint(exact.imag)


def stage_twiddles(size: int) -> Complex:
    """Return the twiddles of all stages of a transform of `size` real values: of two turns those of the parts 1, 2, 3."""
    made, part = [], 2 if (size // 2).bit_length() % 2 == 0 else 4
    while 4 * part <= size // 2:
        made.append(twiddles(np.arange(part).reshape(-1, 1, 2) * np.array([[2], [1], [3]]), 4 * part).ravel())
        part *= 4
    return np.concatenate(made)


def transform(x: Complex, rounding: Rounding) -> Complex:
    """Return the transform of complex numbers (n, N/2)."""
    count, half = x.shape
    order = np.zeros(1, np.int64)
    while len(order) < half:
        order = np.concatenate([2 * order, 2 * order + 1])
    size = 2 if half.bit_length() % 2 == 0 else 4
    x = rounding.first(x[:, order], size).reshape(count, -1, size)
    if size == 2:
        x = np.stack([x[..., 0] + x[..., 1], x[..., 0] - x[..., 1]], 2)
    else:
        x = _added(np.moveaxis(x[..., None], 2, 0), Rounding())
    while True:
        x = rounding.stored(x.reshape(count, half))
        if size == half:
            return x
        at = np.arange(size) * np.array([[0], [2], [1], [3]])
        turned = rounding.turned(x.reshape(count, -1, 4, size), twiddles(at, 4 * size))
        x, size = _added(np.moveaxis(turned, 2, 0), rounding), 4 * size


def _added(parts: Complex, rounding: Rounding) -> Complex:
    """Return four sums (n, groups, 4, size) of the parts (4, n, groups, size)."""
    a, c, b, d = parts
    even, odd, across, apart = map(rounding.halved, (a + c, b + d, a - c, b - d))
    return np.stack([even + odd, across - 1j * apart, even - odd, across + 1j * apart], 2)
