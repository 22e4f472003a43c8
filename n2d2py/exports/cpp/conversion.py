"""Conversion of sounds, frames of a camera and samples of a sensor in C++, with precomputed tables."""

from collections.abc import Callable

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.micro_frontend import LOG_TABLE, correction_bits, gain_table, snr_shift
from n2d2py.arithmetic.pcen import POWER_TABLE
from n2d2py.arithmetic.power_spectrum import Complex, rotations, spare_bits, stage_twiddles, twiddles
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.graph import PixelMap

_BITS = 24
"""Of the magnitude of features."""


def _table(name: str, values: np.ndarray) -> tuple[str, str, str]:
    """Return a constant array of the kernel: name of its accessor, C++ type of an element, values as literals.

    Integers have the smallest type that holds them; unsigned words are words.
    """
    types = (("uint16_t", np.uint16), ("int16_t", np.int16), ("int32_t", np.int32))
    low, high = values.min(), values.max()
    fits = (text for text, dtype in types if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max)
    kind = "uint32_t" if values.dtype == np.uint32 else next(fits)
    return name, f"std::{kind}", ", ".join(map(str, values.ravel().tolist()))


class AudioView:
    """The conversion of sounds to an input of `shape` (C, H, W) or (F,), stored as `kind`, as the templates see it.

    Attributes:
        frames: frames of the input, and their order in it.
        value: stored value of `feature`, in C++; "" for float inputs.
        thresholds: smallest feature of each stored value but the lowest, and one that no feature reaches, as literals.
    """

    stem, header = "audio", "n2d2/audio/input.hpp"

    def __init__(self, source: AudioSource, shape: tuple[int, ...], kind: NumType):
        self.source, self.frames = source, source.frames_of(shape)
        self.value, self.thresholds = "", ""
        if kind.is_float:
            return
        factor = round(float(source.step) / kind.scale * 2**32)
        stored = f"n2d2::audioStored<Value, {kind.qmin}, {kind.qmax}>(feature, {factor}LL, "
        if kind.bits > 8:
            bias, reals = (kind.zero_point << 32) + (1 << 31), f"{source.step:.9e}f, {np.float32(kind.scale):.9e}f"
            self.value = f"{stored}{bias}LL, {reals}, {kind.zero_point})"
            return
        thresholds = least_features(source.real, kind, np.arange(kind.qmin + 1, kind.qmax + 1), _BITS)
        steps = enumerate(thresholds, kind.qmin + 1)
        bias = min(((step << 32) - int(t - 1) * factor for step, t in steps if t > 1 - 2**_BITS), default=kind.qmax << 32) - 1
        self.value = f"{stored}{bias}LL, thresholds)"
        self.thresholds = ", ".join(map(str, [*thresholds.tolist(), 2**31 - 1]))

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
    def tables(self) -> list[tuple[str, str, str]]:
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
        return [_table(name, values) for name, values in arrays.items()]


def _words(x: Complex) -> np.ndarray:
    """Return complex numbers as words, the real part in the low 16 bits."""
    real, imaginary = x.real.astype(np.int64), x.imag.astype(np.int64)
    return (real & 0xFFFF | (imaginary & 0xFFFF) << 16).astype(np.uint32)


def least_features(real: Callable[[np.ndarray], np.ndarray], kind: NumType, stored: np.ndarray, bits: int) -> np.ndarray:
    """Return the smallest feature of each stored value, by bisection of features of `bits` bits and a sign; `real` rises."""
    low, high = np.full(stored.shape, -(2**bits)), np.full(stored.shape, 2**bits)
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = kind.quantize(real(middle)) >= stored
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


class FrameView:
    """The conversion of frames to an input of `shape` (C, H, W), stored as `kind`, as the templates see it.

    Attributes:
        resize, crop: as the kernel takes them: 0 where there is none.
        blue_first: whether channels are blue, green, red.
        words: of the state, 4 bytes each.
        tables: those of `byte_tables`.
    """

    stem, header = "frame", "n2d2/frame/input.hpp"

    def __init__(self, source: FrameSource, pixels: PixelMap, shape: tuple[int, ...], kind: NumType):
        self.source, self.blue_first = source, pixels.order == (2, 1, 0)
        self.format, self.weights = f"Frame{source.format.capitalize()}", f"Frame{source.filter.capitalize()}"
        self.resize = (source.resize[0], source.resize[1] if len(source.resize) == 2 else 0) if source.resize else (0, 0)
        self.crop = (source.crop[0], source.crop[1]) if source.crop else (0, 0)
        self.words = (2 if source.filter == "antialias" else 1) * shape[2] * shape[0] + 11
        self.tables = byte_tables(pixels, np.arange(256), kind)


def byte_tables(pixels: PixelMap, values: np.ndarray, kind: NumType) -> tuple[str, ...]:
    """C++ literals of the stored values of all bytes, for each channel, or once for all; () if a byte is stored unchanged.

    `values` (256,): the number that each byte is.
    """
    stored = kind.quantize(pixels.real(np.tile(values, (len(pixels.factors), 1))))
    same = len(np.unique(stored, axis=0)) == 1
    plain = same and stored.dtype == np.uint8 and np.array_equal(stored[0], np.arange(256))
    rows = ((f"{one:.9e}f" if kind.is_float else str(one) for one in row.tolist()) for row in (stored[:1] if same else stored))
    return () if plain else tuple(map(", ".join, rows))


class SensorView:
    """The conversion of samples to an input of `shape` (C, H, W) or (F,), stored as `kind`, as the templates see it.

    Attributes:
        frames: samples of a window, and their order in the input.
        literals: factor and offset of each axis as float literals.
        lowest: the stored value of the sample -32768 of each axis; () for 16-bit and float inputs.
        thresholds: for each axis and stored value but the lowest one, the largest sample below it.
        words: 4-byte words of the state: the input itself is the window.
    """

    stem, header, words = "sensor", "n2d2/sensor.hpp", 0

    def __init__(self, source: SensorSource, shape: tuple[int, ...], kind: NumType):
        self.source, self.frames = source, source.frames_of(shape)
        self.literals = [(f"{factor:.9e}f", f"{offset:.9e}f") for factor, offset in source.factors.T.tolist()]
        self.lowest, self.thresholds = (), ()
        if kind.is_float or kind.bits > 8:
            return

        def real(samples: np.ndarray) -> np.ndarray:
            return source.real(samples.T).T

        edges = np.broadcast_to(np.arange(kind.qmin + 1, kind.qmax + 1), (source.axes, kind.qmax - kind.qmin))
        below = np.clip(least_features(real, kind, edges, 15) - 1, -32768, 32767)
        lowest = kind.quantize(real(np.full((source.axes, 1), -32768)))
        self.lowest, self.thresholds = tuple(lowest.ravel().tolist()), tuple(below.ravel().tolist())
