"""Conversion to network inputs in C++: frames of a camera by `kernels/n2d2/frame` with a table of stored values, sounds by
`kernels/n2d2/audio` with precomputed tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource, InputFrames
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.micro_frontend import LOG_TABLE, correction_bits, gain_table, snr_shift
from n2d2py.graph.inputs import PixelMap


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
        """Return the table of integers in the smallest type that holds them."""
        types = (("std::uint16_t", np.uint16), ("std::int16_t", np.int16), ("std::int32_t", np.int32))
        low, high = values.min(), values.max()
        kind = next(text for text, dtype in types if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max)
        kind = "std::uint32_t" if name == "logarithm" else kind
        result = "std::uint32_t" if name in ("weight", "logarithm") else "std::int32_t"
        return AudioTable(name, kind, result, ", ".join(map(str, values.ravel().tolist())))


@dataclass(frozen=True)
class AudioView:
    """The conversion as the templates see it.

    Attributes:
        source: the audio front end.
        frames: frames of the input, and their order in it.
        thresholds: smallest feature of each stored value but the lowest, as literals; "" for 16-bit and float inputs.
    """

    source: AudioSource
    frames: InputFrames
    thresholds: str

    stem = "audio"
    header = "n2d2/audio/input.hpp"

    @property
    def words(self) -> int:
        """Number of 4-byte words of the state."""
        return self.source.fft + 2 + self.source.mels * (2 if self.source.adapts else 1) + 1 + (self.source.window + 1) // 2

    @property
    def constants(self) -> dict[str, int]:
        """Integers of the kernel's configuration."""
        source = self.source
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
        }

    @property
    def tables(self) -> Iterable[AudioTable]:
        source = self.source
        used = source.weights > 0
        first, last = used.argmax(1), used.shape[1] - used[:, ::-1].argmax(1)
        weights = np.concatenate([row[a:b] for row, a, b in zip(source.weights, first, last, strict=True)])
        arrays = {
            "window": source.window_table,
            "turn": source.turns,
            "offset": source.offsets,
            "first": first,
            "count": last - first,
            "weight": weights,
            "logarithm": LOG_TABLE,
            "cosine": source.cosines[0] if source.kind == "mfcc" else np.zeros(1, np.int64),
            "gain": gain_table(source.fft) if source.adapts else np.zeros(1, np.int64),
        }
        return [AudioTable.of(name, values) for name, values in arrays.items()]


def audio_view(source: AudioSource, shape: tuple[int, ...], kind: NumType) -> AudioView:
    """Return the conversion to an input of `shape` (C, H, W) or (F,), stored as `kind`."""
    thresholds = "" if kind.is_float or kind.bits > 8 else ", ".join(map(str, _thresholds(source, kind).tolist()))
    return AudioView(source, source.frames_of(shape), thresholds)


def _thresholds(source: AudioSource, kind: NumType) -> np.ndarray:
    """Return the smallest feature of each stored value above the lowest, by bisection; features have fewer than 25 bits."""
    wanted = np.arange(kind.qmin + 1, kind.qmax + 1)
    low, high = np.full(wanted.shape, -(2**24)), np.full(wanted.shape, 2**24)
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = kind.quantize(source.real(middle)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high
