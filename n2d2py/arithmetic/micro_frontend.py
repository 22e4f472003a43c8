"""TFLite Micro's audio front end in its integers, with a 16-bit Fourier transform; `kernels/n2d2/audio/input.hpp` computes them
too.

r(x) is (x + 2^14) >> 15, N the size of the transform, whose results wrap around in 16 bits.

    1. v = (sample window) >> 12 << j            window in 1/4096; j: the largest with |v| < 2^15
    2. X = Fourier transform of v / N            each stage of 2 or 4 parts multiplies by r(32767 / parts) before; products are
    rounded by r
    3. s = sqrt(sum(weight |X|^2)) >> j          of each mel band, weights in 1/4096; the root is rounded to nearest

With an estimate e of the noise in each band, 0 at the start of a sound:

    4. e = (t s 2^10 + (2^14 - t) e) >> 14       t = 409, of odd bands 983
    5. s = max((s 2^10 - min(e, s 2^10)) >> 10, 819 s >> 14)
    6. g = gain(e)                               2^21 (e / 2^(10 - b) + 80)^-0.95, at most 32767; b = log2 N - 6
    7. x = s g >> 9 - b                          in 2^-12
    8. p = x < 2^13 ? x^2 >> 20 : (x >> 6) - 64
    9. feature = 64 ln(p 2^b), 0 for p = 0

The gain is interpolated by a parabola between each two powers of two.
"""

import numpy as np

from n2d2py.arithmetic.fixed_scale import between
from n2d2py.arithmetic.power_spectrum import Complex, Rounding, divided, rounded, squares, transform, twiddles

LOG_TABLE = np.rint(np.log2(1 + np.arange(33) / 32) * 65536).astype(np.int64)
"""log2 between 1 and 2 in 1/65536; values between two entries are interpolated."""

NOISE_BITS, SMOOTHING, REMAINING = 10, (409, 983), 819
LOG_FACTOR = round(64 * np.log(2) * 1024)
_GAIN_BITS, _OFFSET, _STRENGTH, _SNR_BITS = 21, 80.0, 0.95, 12


def correction_bits(fft: int) -> int:
    """Return the b of the formula."""
    return fft.bit_length() - 1 - 6


def snr_shift(fft: int) -> int:
    """Return the number of bits that the product of level and gain loses."""
    return _GAIN_BITS - correction_bits(fft) - _SNR_BITS


def gain_table(fft: int) -> np.ndarray:
    """Return the gains at 0 and 1, then for 2^1 to 2^31 the gain and two coefficients of the parabola after it."""

    def gain(estimate: int) -> int:
        real = 2.0**_GAIN_BITS * (estimate / 2.0 ** (NOISE_BITS - correction_bits(fft)) + _OFFSET) ** -_STRENGTH
        return min(int(real + 0.5), 32767)

    rows = [gain(0), gain(1)]
    for low in (1 << bits for bits in range(1, 32)):
        first, middle, last = gain(low), gain(low + low // 2), gain(min(2 * low, 2**32 - 1))
        slope = 4 * (middle - first) - (last - first)
        rows += [first, slope, last - first - slope]
    return np.array(rows)


def adapt(levels: np.ndarray, fft: int) -> np.ndarray:
    """Return the features (n, mels) of the levels (n, mels) of frames that follow each other."""
    table, bits = gain_table(fft), correction_bits(fft)
    smoothing = np.array(SMOOTHING)[np.arange(levels.shape[1]) % 2]
    estimate, features = np.zeros(levels.shape[1], np.int64), np.empty(levels.shape, np.int64)
    for row, level in enumerate(levels.astype(np.int64)):
        scaled = level << NOISE_BITS
        estimate = scaled * smoothing + estimate * ((1 << 14) - smoothing) >> 14
        left = np.maximum(scaled - np.minimum(estimate, scaled) >> NOISE_BITS, level * REMAINING >> 14)
        x = left * _gain(estimate, table) >> snr_shift(fft)
        shrunk = np.where(x < 2 << _SNR_BITS, x * x >> 20, (x >> 6) - 64)
        features[row] = _logarithm(shrunk << bits if bits > 0 else shrunk >> -bits)
    return features


def square_root(values: np.ndarray) -> np.ndarray:
    """Return square roots of whole numbers, uint64, rounded to nearest."""
    root = np.minimum(np.sqrt(values.astype(np.float64)), 2.0**32 - 1).astype(np.uint64)
    root -= root * root > values
    above = np.minimum(root + np.uint64(1), np.uint64(2**32 - 1))
    root = np.where(above * above <= values, above, root)
    return root + (values - root * root > root)


def powers(samples: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute steps 1 and 2: powers (n, N/2 + 1), uint64, of frames (n, N), and the j of each frame (n, 1)."""
    half = window.shape[0] // 2
    values = samples * window >> 12
    shifts = np.maximum(15 - np.frexp(abs(values).max(1, keepdims=True))[1].astype(np.int64), 0)
    values = values << shifts
    made = rounded(transform(values[:, ::2] + 1j * values[:, 1::2], _Wrapping()) * 16383)
    index = np.arange(1, half // 2 + 1)
    low, high = made[:, index], np.conj(made[:, half - index])
    turned = _wrapped(rounded((low - high) * twiddles(index + half // 2, 2 * half)))
    result = np.zeros((len(samples), half + 1), np.int64)
    result[:, index] = squares(divided(low + high + turned, 1))
    result[:, half - index] = squares(divided((low + high - turned).conj(), 1))
    return result.astype(np.uint64), shifts


def _wrapped(x: Complex) -> Complex:
    low = (part.astype(np.int64).astype(np.int16) for part in (x.real, x.imag))
    return next(low) + 1j * next(low)


class _Wrapping(Rounding):
    def first(self, x: Complex, parts: int) -> Complex:
        return rounded(x * (32767 // parts))

    def turned(self, x: Complex, twiddles: Complex) -> Complex:
        scaled = self.first(x, 4)
        scaled[:, :, 1:] = rounded(scaled[:, :, 1:] * twiddles[1:])
        return scaled

    def stored(self, x: Complex) -> Complex:
        return _wrapped(x)


def _gain(estimate: np.ndarray, table: np.ndarray) -> np.ndarray:
    bits = np.frexp(np.maximum(estimate, 1).astype(np.float64))[1].astype(np.int64)  # 1 for 1, 2 for 2 and 3
    rest = np.where(bits < 11, estimate << np.maximum(11 - bits, 0), estimate >> np.maximum(bits - 11, 0)) & 1023
    shift = np.where(estimate < 2, 0, 3 * bits - 4)
    first, slope, bend = table[shift], table[shift + 1], table[shift + 2]
    curve = ((bend * rest >> 5) + (slope << 5)) * rest + (1 << 14) >> 15
    return np.where(estimate < 2, table[np.minimum(estimate, 1)], first + curve)


def log2_fixed(values: np.ndarray) -> np.ndarray:
    """Return log2 in 1/65536 of whole numbers, uint64; the result for 0 is undefined."""
    bits = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    bits -= (values >> bits.astype(np.uint64)) == 0  # float64 may have rounded up to a power of two
    fraction = ((values << (63 - bits).astype(np.uint64)) >> np.uint64(47)).astype(np.int64) & 65535
    return (bits << 16) + between(LOG_TABLE, fraction, 11)


def _logarithm(values: np.ndarray) -> np.ndarray:
    logs = log2_fixed(np.maximum(values, 1).astype(np.uint64))
    return logs * LOG_FACTOR + (1 << 25) >> 26
