"""Per-channel energy normalization of mel bands in integers, as `librosa.pcen`; `kernels/n2d2/audio/pcen.hpp` computes it too.

S is the energy of a band of samples in -1 to 1, times 2^31; L is log2(S), both with F fraction bits in S and 16 in L.

    1. S = 2^L                                 0 for silence
    2. M = M + (b (S - M) >> 24)               M is 1 before the first frame, b in 2^-24
    3. x = 2^(L - gain log2(M + eps))          in 2^-16; the product is rounded to nearest
    4. feature = (x + bias)^power - bias^power in 1/4096, below 4096; powers by log2 and 2^

log2 and 2^ are interpolated between 33 values. F depends on the size of the transform, so that no S exceeds 2^62.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.micro_frontend import log2_fixed

POWER_TABLE = np.rint(2.0 ** (np.arange(33) / 32 + 24)).astype(np.int64)
"""2^x for x from 0 to 1 in 2^-24."""

SILENCE = -(1 << 24)
"""The L of a band without energy: 2^L is 0 in every step."""

_ONE, _TOP = 1 << 16, (1 << 28) - 16


@dataclass(frozen=True)
class EnergyNormalization:
    """Parameters: F `bits`; smoothing b in 2^-24, epsilon in 2^-F, gain, bias and power in 2^-16."""

    bits: int
    smoothing: int
    epsilon: int
    gain: int
    bias: int
    power: int

    @staticmethod
    def of(fft: int, frames: float, eps: float, gain: float, bias: float, power: float) -> EnergyNormalization:
        """Return the integers of librosa's parameters; `frames` is the time constant in frames."""
        bits = 33 - 2 * (fft.bit_length() - 1)
        smoothing = 2 / (math.sqrt(1 + 4 * frames**2) + 1)  # (sqrt(1 + 4 t^2) - 1) / (2 t^2) without cancellation
        rounded = (round(value * _ONE) for value in (gain, bias, power))
        return EnergyNormalization(bits, max(round(smoothing * 2**24), 1), max(round(eps * 2**bits), 1), *rounded)

    @property
    def least(self) -> int:
        """bias^power in 2^-16."""
        return int(self._compressed(np.zeros(1, np.int64))[0])

    def apply(self, logarithms: np.ndarray) -> np.ndarray:
        """Return the features (n, mels) of logarithms L (n, mels), of frames that follow each other."""
        energies, above = power_of_two(logarithms), self.bits << 16
        smooth, levels = np.full(logarithms.shape[1], 1 << self.bits), np.empty_like(logarithms)
        for row, energy in enumerate(energies):
            less = energy - smooth
            smooth = smooth + (less >> 24) * self.smoothing + ((less & (1 << 24) - 1) * self.smoothing >> 24)
            levels[row] = log2_fixed((smooth + self.epsilon).astype(np.uint64)) - above
        x = power_of_two(logarithms - above - (levels * self.gain + _ONE // 2 >> 16) + (16 << 16))
        return np.minimum(self._compressed(x) - self.least, _TOP) + 8 >> 4

    def _compressed(self, x: np.ndarray) -> np.ndarray:
        """(x + bias)^power, in 2^-16."""
        whole = x + self.bias
        logs = log2_fixed(np.maximum(whole, 1).astype(np.uint64)) - (16 << 16)
        return np.where(whole > 0, power_of_two((logs * self.power + _ONE // 2 >> 16) + (16 << 16)), 0)


def power_of_two(x: np.ndarray) -> np.ndarray:
    """Return 2^x of numbers in 1/65536, rounded down; below 2^62."""
    x = np.minimum(x, (62 << 16) - 1)
    whole, entry, rest = x >> 16, x >> 11 & 31, x & 2047
    low = POWER_TABLE[entry]
    value = low + ((POWER_TABLE[entry + 1] - low) * rest >> 11)
    return np.where(whole >= 24, value << np.maximum(whole - 24, 0), value >> np.clip(24 - whole, 0, 63))
