"""Conversion to network inputs in C++: frames of a camera by `kernels/n2d2/frame` with a table of stored values, sounds by
`kernels/n2d2/audio` with precomputed tables, samples of a sensor by `kernels/n2d2/sensor.hpp`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.micro_frontend import LOG_TABLE, correction_bits, gain_table, snr_shift
from n2d2py.arithmetic.pcen import POWER_TABLE
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.arithmetic.stream import InputFrames
from n2d2py.graph.inputs import PixelMap

_BITS = 24
"""Of the magnitude of features."""


@dataclass(frozen=True)
class FrameView:
    """The conversion as the templates see it.

    Attributes:
        source: what is converted.
        resize, crop: as the kernel takes them: 0 where there is none.
        blue_first: whether channels are blue, green, red.
        words: of the state, 4 bytes each.
        tables: those of `byte_tables`.
    """

    source: FrameSource
    resize: tuple[int, int]
    crop: tuple[int, int]
    blue_first: bool
    words: int
    tables: tuple[str, ...]

    stem = "frame"
    header = "n2d2/frame/input.hpp"

    @property
    def format(self) -> str:
        return f"Frame{self.source.format.capitalize()}"

    @property
    def weights(self) -> str:
        return f"Frame{self.source.filter.capitalize()}"


def frame_view(source: FrameSource, pixels: PixelMap, shape: tuple[int, ...], kind: NumType) -> FrameView:
    """The conversion to an input of `shape` (C, H, W), stored as `kind`."""
    lines = 2 if source.filter == "antialias" else 1
    return FrameView(
        source,
        (source.resize[0], source.resize[1] if len(source.resize) == 2 else 0) if source.resize else (0, 0),
        (source.crop[0], source.crop[1]) if source.crop else (0, 0),
        pixels.order == (2, 1, 0),
        lines * shape[2] * shape[0] + 11,
        byte_tables(pixels, np.arange(256), kind),
    )


def byte_tables(pixels: PixelMap, values: np.ndarray, kind: NumType) -> tuple[str, ...]:
    """C++ literals of the stored values of all bytes, for each channel, or once for all; () if a byte is stored unchanged.

    `values` (256,): the number that each byte is.
    """
    stored = kind.quantize(pixels.real(np.tile(values, (len(pixels.factors), 1))))
    same = len(np.unique(stored, axis=0)) == 1
    plain = same and stored.dtype == np.uint8 and np.array_equal(stored[0], np.arange(256))
    return () if plain else tuple(_literals(row, kind) for row in (stored[:1] if same else stored))


def _literals(values: np.ndarray, kind: NumType) -> str:
    return ", ".join(f"{one:.9e}f" if kind.is_float else str(one) for one in values.tolist())


# ---- sounds --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AudioTable:
    """A constant array of the kernel: name of its accessor, C++ types of elements and result, values."""

    name: str
    type: str
    result: str
    values: str

    @staticmethod
    def of(name: str, values: np.ndarray) -> AudioTable:
        """Return the table of integers in the smallest type that holds them; unsigned words are words."""
        types = (("uint16_t", np.uint16), ("int16_t", np.int16), ("int32_t", np.int32))
        low, high = values.min(), values.max()
        fits = (text for text, dtype in types if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max)
        kind = "uint32_t" if values.dtype == np.uint32 else next(fits)
        result = f"const std::{kind}&" if name == "weight" else "std::uint32_t" if kind == "uint32_t" else "std::int32_t"
        return AudioTable(name, f"std::{kind}", result, ", ".join(map(str, values.ravel().tolist())))


@dataclass(frozen=True)
class AudioView:
    """The conversion as the templates see it.

    Attributes:
        source: the audio front end.
        frames: frames of the input, and their order in it.
        value: stored value of `feature`, in C++; "" for 16-bit and float inputs.
        thresholds: smallest feature of each stored value but the lowest, as literals.
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
        return source.fft + 3 + source.mels * of_a_band + (source.window + 1) // 2 + resampling + history

    @property
    def constants(self) -> dict[str, int]:
        """Integers of the kernel's configuration."""
        source, pcen = self.source, self.source.normalization
        energies = (
            {
                "EnergyBits": pcen.bits,
                "Smoothing": pcen.smoothing,
                "Epsilon": pcen.epsilon,
                "Gain": pcen.gain,
                "Bias": pcen.bias,
                "Power": pcen.power,
                "Least": pcen.least,
            }
            if pcen
            else {}
        )
        return {
            "Window": source.window,
            "WindowLast": source.window_last,
            "Hop": source.hop,
            "Size": source.fft,
            "Mels": source.mels,
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
        used = source.weights > 0
        first, last = used.argmax(1), used.shape[1] - used[:, ::-1].argmax(1)
        odd = (last - first) % 2  # bins are taken by pairs
        first, last = first - odd * (first > 0), last + odd * (first == 0)
        weights = np.concatenate([row[a:b] for row, a, b in zip(source.weights, first, last, strict=True)])
        arrays = {
            "window": source.window_pairs if source.adapts else source.window_table,
            "turn": source.turn_pairs if source.adapts else source.turns,
            "offset": source.offsets,
            "first": first,
            "pairs": (last - first) // 2,
            "weight": weights,
            "logarithm": LOG_TABLE.astype(np.uint32),
            "cosine": source.cosines[0] if source.kind == "mfcc" else np.zeros(1, np.int64),
            "tap": source.taps,
            "gain": gain_table(source.fft) if source.adapts else np.zeros(1, np.int64),
            **({"exponential": POWER_TABLE} if source.normalization else {}),
        }
        return [AudioTable.of(name, values) for name, values in arrays.items()]


def audio_view(source: AudioSource, shape: tuple[int, ...], kind: NumType) -> AudioView:
    """Return the conversion to an input of `shape` (C, H, W) or (F,), stored as `kind`."""
    frames = source.frames_of(shape)
    if kind.is_float or kind.bits > 8:
        return AudioView(source, frames, "", "")
    thresholds = least_features(source.real, kind, np.arange(kind.qmin + 1, kind.qmax + 1), _BITS)
    factor = round(float(source.step) / kind.scale * 2**32)
    steps = enumerate(thresholds, kind.qmin + 1)
    bias = min(((step << 32) - int(t - 1) * factor for step, t in steps if t > 1 - 2**_BITS), default=kind.qmax << 32) - 1
    value = f"n2d2::audioStored<Value, {kind.qmin}, {kind.qmax}>(feature, {factor}, {bias}LL, thresholds)"
    return AudioView(source, frames, value, ", ".join(map(str, thresholds.tolist())))


def least_features(real: Callable[[np.ndarray], np.ndarray], kind: NumType, stored: np.ndarray, bits: int) -> np.ndarray:
    """Return the smallest feature of each stored value, by bisection of features of `bits` bits and a sign; `real` rises."""
    low, high = np.full(stored.shape, -(2**bits)), np.full(stored.shape, 2**bits)
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = kind.quantize(real(middle)) >= stored
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


# ---- samples of a sensor -----------------------------------------------------------------------
@dataclass(frozen=True)
class SensorView:
    """The conversion as the templates see it.

    Attributes:
        source: the sensor.
        frames: samples of a window, and their order in the input.
        lowest: the stored value of the sample -32768 of each axis; () for 16-bit and float inputs.
        thresholds: for each axis and stored value but the lowest one, the largest sample below it.
    """

    source: SensorSource
    frames: InputFrames
    lowest: tuple[int, ...]
    thresholds: tuple[int, ...]

    stem = "sensor"
    header = "n2d2/sensor.hpp"
    words = 0
    """4-byte words of the state: the input itself is the window."""

    @property
    def literals(self) -> list[tuple[str, str]]:
        """Factor and offset of each axis as float literals."""
        return [(f"{factor:.9e}f", f"{offset:.9e}f") for factor, offset in self.source.factors.T.tolist()]


def sensor_view(source: SensorSource, shape: tuple[int, ...], kind: NumType) -> SensorView:
    """Return the conversion to an input of `shape` (C, H, W) or (F,), stored as `kind`."""
    frames = source.frames_of(shape)
    if kind.is_float or kind.bits > 8:
        return SensorView(source, frames, (), ())

    def real(samples: np.ndarray) -> np.ndarray:
        return source.real(samples.T).T

    edges = np.broadcast_to(np.arange(kind.qmin + 1, kind.qmax + 1), (source.axes, kind.qmax - kind.qmin))
    below = np.clip(least_features(real, kind, edges, 15) - 1, -32768, 32767)
    lowest = kind.quantize(real(np.full((source.axes, 1), -32768)))
    return SensorView(source, frames, tuple(lowest.ravel().tolist()), tuple(below.ravel().tolist()))
