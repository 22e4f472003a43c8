"""Conversion of frames of a camera in C++: `kernels/n2d2/frame` with a table of stored values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.frame import FrameSource
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
    """Return the conversion to an input of `shape` (C, H, W), stored as `kind`."""
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
