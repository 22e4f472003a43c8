"""Frames of a camera to the bytes of a network's input, in integers: the definition that `kernels/n2d2/frame` computes too.

A frame is the bytes of its lines in a source format. The chain is: pixels -> red, green, blue or gray -> one resize, of which a
window is computed. All of it is separable. For an output position o of an axis with `size` source pixels that become `target`:

    weight(s) of the source pixel s, a whole number    (axis_weights)
    across = (256 * sum(weight * byte) + S / 2) / S            S = sum(weight), divisions round down
    byte   = (sum(weight * across) + 128 * S) / (256 * S)      along the lines after that
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.errors import N2D2Error

FORMATS = ("rgb", "bgr", "rgba", "gray", "rgb565", "rgb565be", "yuyv")
"""Bytes of a pixel in memory: of rgb565 a 16-bit word, low byte first (rgb565be: high byte first); of yuyv, which has two pixels
in four bytes, BT.601 with values 16 to 235."""

FILTERS = ("nearest", "bilinear", "area", "antialias")
"""Of the resize: the pixel at the position, two pixels a side (OpenCV's INTER_LINEAR), the mean of the covered area (INTER_AREA), a
triangle that widens as the frame shrinks (Pillow's and torchvision's bilinear)."""

LARGEST = 16384
"""Pixels of a side."""

_WORDS = {"rgb565": "<u2", "rgb565be": ">u2"}
_TO_YUV = np.array([[16829, 33039, 6416], [-9714, -19071, 28784], [28784, -24103, -4681]])
"""BT.601 in 1/65536, for bytes: Y less 16, U and V less 128."""


@dataclass(frozen=True)
class Axis:
    """One side of a resize: source pixels [start, start + size) become `target`, of which those from `first` on are computed."""

    start: int
    size: int
    target: int
    first: int

    def to_source(self, positions: np.ndarray, steps: int) -> np.ndarray:
        """Positions in the source of those in the result, int64 in 1 / `steps` pixel, rounded to nearest."""
        return self.start * steps + ((positions + self.first * steps) * self.size + self.target // 2) // self.target


@dataclass(frozen=True)
class FrameSource:
    """Frames that an application gives to a network, and their way to the size of its input.

    Attributes:
        format: one of FORMATS.
        filter: one of FILTERS.
        resize: (N,) for the shorter side, (width, height), or () for the size of the input.
        crop: (width, height) of the centre: after the resize, or without one before that to the size of the input; () for all.
    """

    format: str
    filter: str = "bilinear"
    resize: tuple[int, ...] = ()
    crop: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The frames, for messages."""
        return f"{self.format} frames ({self.filter})"

    def line_bytes(self, width: int) -> int:
        """Bytes of a line of `width` pixels."""
        if self.format == "yuyv":
            return (width + 1) // 2 * 4
        return {"gray": 1, "rgba": 4, **dict.fromkeys(_WORDS, 2)}.get(self.format, 3) * width

    def measured_size(self, wide: int, high: int) -> tuple[int, int]:
        """Width and height of the frames whose conversion to an input wide x high is measured: 320x240, or as much as it takes."""
        least = self.crop or (wide, high)
        return max(320, 2 * least[0]), max(240, 2 * least[1])

    def axes(self, width: int, height: int, wide: int, high: int, name: str = "") -> tuple[Axis, Axis]:
        """Columns and rows from a frame width x height to an input wide x high.

        Raises:
            N2D2Error: E407 the frame is smaller than the crop, or a side exceeds 16384 pixels.
        """
        sizes, inputs = (width, height), (wide, high)
        targets = inputs
        if self.resize:
            targets = tuple(self.resize) if len(self.resize) == 2 else shorter_side(width, height, self.resize[0])
        parts = inputs if self.resize else self.crop or sizes
        if any(whole < part for whole, part in zip(targets if self.resize else sizes, parts, strict=True)):
            what = f"image {name} is {width}x{height}, smaller than the crop {parts[0]}x{parts[1]}"
            raise N2D2Error("E407", what, remedy="give a smaller -crop, or -resize")
        if not all(1 <= one <= LARGEST for one in (*sizes, *targets)):
            raise N2D2Error("E407", f"image {name} is {width}x{height}, larger than {LARGEST} pixels", remedy="scale it down")
        if self.resize:
            columns, rows = (Axis(0, s, t, _centre(t, part)) for s, t, part in zip(sizes, targets, parts, strict=True))
        else:
            columns, rows = (Axis(_centre(s, part), part, t, 0) for s, t, part in zip(sizes, targets, parts, strict=True))
        return columns, rows

    def convert(self, lines: np.ndarray, width: int, shape: tuple[int, int, int], name: str = "") -> np.ndarray:
        """Bytes (H, W, C) of an input of `shape` (C, H, W), red, green, blue or gray, of a frame's lines (height, bytes).

        Raises:
            N2D2Error: E407, as `axes`.
        """
        pixels = decode(lines, width, self.format)
        if shape[0] == 1:
            pixels = luminance(pixels)
        columns, rows = self.axes(width, len(lines), shape[2], shape[1], name)
        made = resize(pixels, columns, shape[2], rows, shape[1], self.filter)
        return np.broadcast_to(made, (*made.shape[:2], shape[0]))


def shorter_side(width: int, height: int, size: int) -> tuple[int, int]:
    """Width and height of an image whose shorter side becomes `size`; the longer one is rounded down."""
    short, long = min(width, height), max(width, height)
    longer = size * long // short
    return (size, longer) if width <= height else (longer, size)


def _centre(whole: int, part: int) -> int:
    """Margin before the centre; half of an odd one is rounded to even."""
    return round((whole - part) / 2)


def luminance(pixels: np.ndarray) -> np.ndarray:
    """Gray bytes (H, W, 1) of red, green, blue: 0.299 R + 0.587 G + 0.114 B in 1/32768; gray ones are unchanged."""
    if pixels.shape[2] == 1:
        return pixels
    return ((pixels.astype(np.int64) @ [9798, 19235, 3735] + 16384) >> 15).astype(np.uint8)[:, :, None]


def encode(pixels: np.ndarray, form: str) -> np.ndarray:
    """The lines (H, bytes) that a camera of a format gives for pixels (H, W, 3) of red, green, blue."""
    if form in _WORDS:
        red, green, blue = np.moveaxis(pixels.astype(np.uint16), 2, 0)
        words = (red >> 3) << 11 | (green >> 2) << 5 | blue >> 3
        return words.astype(_WORDS[form]).view(np.uint8)
    if form == "gray":
        return luminance(pixels)[:, :, 0]
    if form == "rgba":
        return np.pad(pixels, ((0, 0), (0, 0), (0, 1)), constant_values=255).reshape(len(pixels), -1)
    if form != "yuyv":
        return np.ascontiguousarray(pixels[:, :, :: -1 if form == "bgr" else 1]).reshape(len(pixels), -1)
    padded = np.pad(pixels, ((0, 0), (0, pixels.shape[1] % 2), (0, 0)), mode="edge").astype(np.int64)
    luma = 16 + ((padded @ _TO_YUV[0] + 32768) >> 16)
    pairs = padded[:, ::2] + padded[:, 1::2]
    chroma = np.clip(128 + ((pairs @ _TO_YUV[1:].T + 65536) >> 17), 0, 255)
    return np.stack([luma[:, ::2], chroma[..., 0], luma[:, 1::2], chroma[..., 1]], 2).astype(np.uint8).reshape(len(pixels), -1)


def decode(lines: np.ndarray, width: int, form: str) -> np.ndarray:
    """Pixels (H, W, 3) of red, green, blue, or gray ones (H, W, 1), of lines (H, bytes) of uint8; bytes after them are ignored."""
    if form in _WORDS:
        words = np.ascontiguousarray(lines[:, : 2 * width]).view(_WORDS[form]).astype(np.int64)
        five = np.stack([words >> 11, words & 31], 2)
        red, blue = np.moveaxis(five << 3 | five >> 2, 2, 0)
        green = words >> 5 & 63
        return np.stack([red, green << 2 | green >> 4, blue], 2).astype(np.uint8)
    if form == "yuyv":
        values = lines[:, : (width + 1) // 2 * 4].reshape(len(lines), -1, 4).astype(np.int64)
        luma = 76309 * (values[..., ::2].reshape(len(lines), -1)[:, :width] - 16) + 32768
        u, v = (np.repeat(values[..., at] - 128, 2, axis=1)[:, :width] for at in (1, 3))
        colours = [luma + 104597 * v, luma - 53279 * v - 25675 * u, luma + 132201 * u]
        return np.clip(np.stack(colours, 2) >> 16, 0, 255).astype(np.uint8)
    count = {"gray": 1, "rgba": 4}.get(form, 3)
    pixels = lines[:, : count * width].reshape(len(lines), width, count)
    return pixels[:, :, 2::-1] if form == "bgr" else pixels[:, :, :3]


def axis_weights(axis: Axis, count: int, filter: str) -> np.ndarray:
    """Weights (count, size) of the source pixels of an axis for its output positions; the sum of each row is below 65536."""
    at, source = np.arange(axis.first, axis.first + count)[:, None], np.arange(axis.size)
    size, target = axis.size, axis.target
    if filter == "nearest":
        return (source == (2 * at + 1) * size // (2 * target)).astype(np.int64)
    if filter == "area":
        return np.maximum(np.minimum((source + 1) * target, (at + 1) * size) - np.maximum(source * target, at * size), 0)
    half = 2 * (max(size, target) if filter == "antialias" else target)
    shift = max(int(half * half // (2 * target) + half).bit_length() - 16, 0)
    return np.maximum(half - abs((2 * source + 1) * target - (2 * at + 1) * size), 0) >> shift


def resize(pixels: np.ndarray, columns: Axis, wide: int, rows: Axis, high: int, filter: str) -> np.ndarray:
    """Bytes (high, wide, C) of bytes (H, W, C). The products are exact in floating point: 24 bits across, 32 bits down."""
    across, down = axis_weights(columns, wide, filter), axis_weights(rows, high, filter)
    used, lines = across.any(axis=0).nonzero()[0], down.any(axis=0).nonzero()[0]
    region = pixels[rows.start + lines][:, columns.start + used].transpose(0, 2, 1).astype(np.float32, order="C")
    total = across.sum(axis=1)
    sums = region.reshape(-1, len(used)) @ across[:, used].T.astype(np.float32)
    values = (256 * sums.astype(np.int64) + total // 2) // total
    sums = down[:, lines].astype(np.float64) @ values.reshape(len(lines), -1).astype(np.float64)
    total = down.sum(axis=1)[:, None]
    made = ((sums.astype(np.int64) + 128 * total) // (256 * total)).astype(np.uint8)
    return np.ascontiguousarray(made.reshape(high, -1, wide).transpose(0, 2, 1))
