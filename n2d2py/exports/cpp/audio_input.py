"""Conversion of sounds in C++: `kernels/n2d2/audio` with precomputed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.fourier import Complex, stage_twiddles, twiddles
from n2d2py.arithmetic.micro_frontend import LOG_TABLE, correction_bits, gain_table, snr_shift
from n2d2py.arithmetic.pcen import POWER_TABLE
from n2d2py.arithmetic.power_spectrum import rotations, spare_bits
from n2d2py.arithmetic.stream import InputFrames

_BITS = 24
"""Of the magnitude of features."""


@dataclass(frozen=True)
class AudioTable:
    """A constant array of the kernel: name of its accessor, C++ type of an element, values."""

    name: str
    type: str
    values: str

    @staticmethod
    def of(name: str, values: np.ndarray) -> AudioTable:
        """Return the table of integers in the smallest type that holds them; unsigned words are words."""
        types = (("uint16_t", np.uint16), ("int16_t", np.int16), ("int32_t", np.int32))
        low, high = values.min(), values.max()
        fits = (text for text, dtype in types if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max)
        kind = "uint32_t" if values.dtype == np.uint32 else next(fits)
        return AudioTable(name, f"std::{kind}", ", ".join(map(str, values.ravel().tolist())))


@dataclass(frozen=True)
class AudioView:
    """The conversion as the templates see it.

    Attributes:
        source: the audio front end.
        frames: frames of the input, and their order in it.
        value: stored value of `feature`, in C++; "" for float inputs.
        thresholds: smallest feature of each stored value but the lowest, and one that no feature reaches, as literals.
    """

    source: AudioSource
    frames: InputFrames
    value: str
    thresholds: str

    stem = "audio"
    header = "n2d2/audio/input.hpp"

    @property
    def words(self) -> int:
        """Number of 4-byte words of the state."""
        source = self.source
        resampling = 2 + 2 * source.reach + 1 if source.factor > 1 else 0
        history = self.frames.count * source.static_features if source.deltas else 0
        of_a_band = 3 if source.normalization else 2 if source.adapts else 1
        halves = 3 if source.adapts or source.removes_mean or source.emphasis else 2  # the transform, the samples, and scratch
        return 1 + source.fft // 2 * halves + source.mels * of_a_band + resampling + history

    @property
    def constants(self) -> dict[str, int]:
        """Integers of the kernel's configuration."""
        source, pcen = self.source, self.source.normalization
        names = ("smoothing", "epsilon", "gain", "bias", "power", "least")
        energies = {"EnergyBits": pcen.bits} | {name.capitalize(): getattr(pcen, name) for name in names} if pcen else {}
        return {
            "Window": source.window,
            "Hop": source.hop,
            "Size": source.fft,
            "Mels": source.mels,
            "FirstBin": int((source.slopes[0] >= 0).argmax()),
            "Coefficients": source.coefficients if source.kind == "mfcc" else 0,
            "CosineShift": source.cosines[1],
            "Frames": self.frames.count,
            "FrameMajor": int(self.frames.major),
            "RemovesMean": int(source.removes_mean),
            "Emphasis": source.emphasis,
            "Floor": source.floor,
            "Adapts": int(source.adapts),
            "CorrectionBits": correction_bits(source.fft),
            "SnrShift": snr_shift(source.fft),
            "Deltas": source.deltas,
            "DeltaWindow": source.delta_window,
            "Factor": source.factor,
            "Reach": source.reach,
            "Pcen": int(pcen is not None),
            **energies,
        }

    @property
    def tables(self) -> Iterable[AudioTable]:
        source = self.source
        slopes, rising = source.slopes
        window, half = np.pad(source.window_table, (0, source.fft - source.window)), source.fft // 2
        arrays = {
            "window": _words(window[::2] + 1j * window[1::2]),
            "turn": _words(np.conj(stage_twiddles(source.fft))),
            "rotation": _words(np.conj(twiddles(half + np.arange(half // 2 + 1), 2 * half)))
            if source.adapts
            else rotations(2 * half),
            **({} if source.adapts else {"room": 15 - spare_bits(window)}),
            "offset": source.offsets,
            "bins": np.bincount(slopes[slopes >= 0], minlength=source.mels + 1),
            "weight": rising[slopes >= 0],
            "logarithm": LOG_TABLE.astype(np.uint32),
            "cosine": source.cosines[0] if source.kind == "mfcc" else np.zeros(1, np.int64),
            "tap": source.taps,
            "gain": gain_table(source.fft) if source.adapts else np.zeros(1, np.int64),
            **({"exponential": POWER_TABLE} if source.normalization else {}),
        }
        return [AudioTable.of(name, values) for name, values in arrays.items()]


def _words(x: Complex) -> np.ndarray:
    """Return complex numbers as words, the real part in the low 16 bits."""
    real, imaginary = x.real.astype(np.int64), x.imag.astype(np.int64)
    return (real & 0xFFFF | (imaginary & 0xFFFF) << 16).astype(np.uint32)


def audio_view(source: AudioSource, shape: tuple[int, ...], kind: NumType) -> AudioView:
    """Return the conversion to an input of `shape` (C, H, W) or (F,), stored as `kind`."""
    frames = source.frames_of(shape)
    if kind.is_float:
        return AudioView(source, frames, "", "")
    factor = round(float(source.step) / kind.scale * 2**32)
    stored = f"n2d2::audioStored<Value, {kind.qmin}, {kind.qmax}>(feature, {factor}LL, "
    if kind.bits > 8:
        bias, reals = (kind.zero_point << 32) + (1 << 31), f"{source.step:.9e}f, {np.float32(kind.scale):.9e}f"
        return AudioView(source, frames, f"{stored}{bias}LL, {reals}, {kind.zero_point})", "")
    thresholds = least_features(source.real, kind, np.arange(kind.qmin + 1, kind.qmax + 1), _BITS)
    steps = enumerate(thresholds, kind.qmin + 1)
    bias = min(((step << 32) - int(t - 1) * factor for step, t in steps if t > 1 - 2**_BITS), default=kind.qmax << 32) - 1
    return AudioView(source, frames, f"{stored}{bias}LL, thresholds)", ", ".join(map(str, [*thresholds.tolist(), 2**31 - 1])))


def least_features(real: Callable[[np.ndarray], np.ndarray], kind: NumType, stored: np.ndarray, bits: int) -> np.ndarray:
    """Return the smallest feature of each stored value, by bisection of features of `bits` bits and a sign; `real` rises."""
    low, high = np.full(stored.shape, -(2**bits)), np.full(stored.shape, 2**bits)
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = kind.quantize(real(middle)) >= stored
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high
