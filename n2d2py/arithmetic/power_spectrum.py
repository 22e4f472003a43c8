"""Power spectra of frames of 16-bit samples with one exponent a frame; `kernels/n2d2/audio/spectrum.hpp` computes them too.

N is the size of the transform, high(a, b) is a * b + 2^31 >> 32.

    1. v = (s * window + 2^(15 - k)) >> 16 - k    window in 2^-14; k: the larger, at most 15, of the largest with s << k in 16 bits, and
                                                  the largest with s << k + 1 - d in 16 bits, where d are the bits that the window
                                                  spares in each block of 32 samples: window << d <= 2^14
    2. Z = Fourier transform of pairs of v        each stage after the first one halves its numbers, and in the first t of these stages
                                                  again the sums of two
    3. P = |a|^2 + |b|^2 + 2 w                    a = Z[n], b = Z[N/2 - n], and of N/2 - n with -w instead of w;
                                                  w = high(|b|^2 - |a|^2, sin) + high(2 Im(a b), cos) of 2 pi n / N in 2^-31
    4. shift = k - t
    5. the energy of a band: u + (sum(P) >> 1) - v - d    u = sum(weight P >> 16) of its first slope, d bins and v of its second one,
                                                  whose P are in the sum; weights in 2^-15. At least 1, or 0 for E = 0

t is the least with E / 4^t < 10^9, where E is the energy of Z after the first stage: it bounds every later number, and the sum of all
P. What roundings add to the energy of a bin is 1 in the mean: d and the roundings of u and v take it off.

A transform takes two values as a complex number, (v[2n], v[2n + 1]). Numbers are complex128 with whole parts, which is exact. The
first stage adds two parts or four, each other one four, which it turns before.
"""

from dataclasses import dataclass

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


BLOCK = 32
"""Samples that are scaled by the largest value of the window in them."""

_MOST_ENERGY = 1e9


def later_stages(size: int) -> int:
    """Return the number of stages after the first one: each halves the transform."""
    return (size.bit_length() - 3) // 2


def rotations(size: int) -> np.ndarray:
    """Return sin and cos of 2 pi n / N (N / 4, 2) for n from 1 on, in 2^-31."""
    angle = 2 * np.pi * np.arange(1, size // 4 + 1)[:, None] / size
    return np.minimum(np.rint(np.concatenate([np.sin(angle), np.cos(angle)], 1) * 2.0**31), 2**31 - 1).astype(np.int64)


def headroom(x: np.ndarray, bits: int) -> np.ndarray:
    """Return the largest j with -2^bits <= x << j < 2^bits for each row (n, 1); `bits` for rows of zeros."""
    return bits - np.frexp((x ^ (x >> 63)).max(1, keepdims=True))[1].astype(np.int64)


def spare_bits(window: np.ndarray) -> np.ndarray:
    """Return the largest d with window << d <= 2^14 in each block (N / BLOCK,); 15 for zeros."""
    return 15 - np.frexp(window.reshape(-1, BLOCK).max(1))[1].astype(np.int64)


def powers(samples: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return powers (n, N/2 + 1), spectra times 2^(shift - 3/2 - stages) squared, of frames (n, N), shifts, E > 0 (n, 1)."""
    blocks = headroom(samples.reshape(-1, BLOCK), 15).reshape(len(samples), -1)
    spared = (blocks + spare_bits(window)).min(1, keepdims=True) - 1
    shifts, half = np.minimum(np.maximum(blocks.min(1, keepdims=True), spared), 15), len(window) // 2
    values = samples * window + (1 << 15 - shifts) >> 16 - shifts
    rounding = _Halving(np.zeros(len(samples)), np.zeros(len(samples), np.int64))
    made = transform(values[:, ::2] + 1j * values[:, 1::2], rounding)
    index, (sines, cosines) = np.arange(1, half // 2 + 1), rotations(2 * half).T
    low, high = made[:, index], made[:, half - index]
    a, b = squares(low), squares(high)
    part = (b - a) * sines + 2**31 >> 32
    part += 2 * (low * high).imag.astype(np.int64) * cosines + 2**31 >> 32
    result = np.zeros((len(samples), half + 1), np.int64)
    result[:, half - index], result[:, index] = a + b - 2 * part, a + b + 2 * part
    return result, shifts - rounding.halvings[:, None], rounding.energy[:, None] > 0


def band_energies(powers: np.ndarray, slopes: np.ndarray, rising: np.ndarray, bands: int) -> np.ndarray:
    """Compute step 5: energies (n, bands) of bins with the slope and weight (N/2 + 1,) of each; without the least one."""
    among = slopes[:, None] == np.arange(bands + 1)
    up = (powers * rising >> 16) @ among
    down = (powers @ among >> 1) - among.sum(0) - up
    return up[:, :-1] + down[:, 1:]


@dataclass
class _Halving(Rounding):
    """Rounding of step 2, of frames (n,): `energy` of the numbers so far, `halvings` of sums so far."""

    energy: np.ndarray
    halvings: np.ndarray

    def first(self, x: Complex, parts: int) -> Complex:
        self.energy = parts * squares(x).sum(1)
        return x

    def turned(self, x: Complex, twiddles: Complex) -> Complex:
        turned = rounded(x * twiddles, 16)
        turned[:, :, 0] = divided(x[:, :, 0] + 1 + 1j, 1)
        self._halves = self.energy >= _MOST_ENERGY
        self.energy = np.where(self._halves, self.energy // 4, self.energy)
        self.halvings = self.halvings + self._halves
        return turned

    def halved(self, x: Complex) -> Complex:
        return np.where(self._halves[:, None, None], divided(x, 1), x)
