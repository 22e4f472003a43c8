"""Frames of a camera to the bytes of a network's input, in integers: the definition that `kernels/n2d2/frame` computes too.

A frame is rows of bytes in a source format. The chain is: pixels -> red, green, blue or gray -> one resize, of which a
window is computed. All of it is separable. For an output position o of an axis with `size` source pixels that become `target`:

    weight(s) of the source pixel s, a whole number    (axis_weights)
    across = (256 * sum(weight * byte) + S / 2) / S            S = sum(weight), divisions round down
    byte   = (sum(weight * across) + 128 * S) / (256 * S)      along the lines after that
"""

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic.pixel_formats import FORMATS, PixelFormat, luminance
from n2d2py.errors import N2D2Error
from n2d2py.ini import Key, Kind, option_error, read_choice, require_known

FILTERS = ("nearest", "bilinear", "area", "antialias")
"""Of the resize: the pixel at the position, two pixels a side (OpenCV's INTER_LINEAR), the mean of the covered area
(INTER_AREA), a triangle that widens as the frame shrinks (Pillow's and torchvision's bilinear)."""

LARGEST = 16384
"""Pixels of a side."""

FLIPS = ("horizontal", "vertical", "both")
"""Of a camera that is mirrored, upside down, or turned by half a turn."""

_KEYS = (
    Key("pad", Kind.UINT, -1, maximum=255),
    Key("round", Kind.ENUM, "", choices=("nearest", "down")),
    Key("flip", Kind.ENUM, "", choices=FLIPS),
)


@dataclass(frozen=True)
class Axis:
    """One side of a resize: source pixels [start, start + size) become `target`, of which those from `first` on are computed.

    Positions below 0, of a negative `first`, and from `target` on are beyond the image: they are filled.
    """

    start: int
    size: int
    target: int
    first: int

    def to_source(self, positions: np.ndarray, steps: int) -> np.ndarray:
        """Return the source positions of those in the result, int64 in 1 / `steps` pixel, rounded, within the source."""
        source = ((positions + self.first * steps) * self.size + self.target // 2) // self.target
        return self.start * steps + np.clip(source, 0, self.size * steps)


@dataclass(frozen=True)
class FrameSource:
    """Frames that an application gives to a network, and their way to the size of its input.

    Attributes:
        format: a name of FORMATS.
        filter: one of FILTERS.
        resize: (N,) for the shorter side, (width, height), or () for the size of the input.
        crop: (width, height) of the centre: after the resize, or without one before that to the size of the input; () for all.
        pad: the byte of the margins of a resize that keeps the aspect ratio, as large as the input allows; -1: the frame fills
            the input.
        rounding: of that size: "nearest" as the LetterBox of Ultralytics, or "down" as resize_with_pad of TensorFlow.
        flip: one of FLIPS, or "": how the frame is mirrored; the input is not.
    """

    format: str
    filter: str = "bilinear"
    resize: tuple[int, ...] = ()
    crop: tuple[int, ...] = ()
    pad: int = -1
    rounding: str = "nearest"
    flip: str = ""

    @property
    def layout(self) -> PixelFormat:
        """The format's pixels in memory."""
        return FORMATS[self.format]

    @property
    def flips(self) -> tuple[bool, bool]:
        """True for columns, and for rows, that are in reverse order."""
        return self.flip in ("horizontal", "both"), self.flip in ("vertical", "both")

    @property
    def text(self) -> str:
        """The frames, for messages."""
        more = "".join(f", {key} {value}" for key, value in (("pad", self.pad), ("flip", self.flip)) if value not in (-1, ""))
        return f"{self.format} frames ({self.filter}{more})"

    def measured_size(self, wide: int, high: int) -> tuple[int, int]:
        """Return the width and height of frames to measure the conversion to wide x high: 320x240, or what it takes."""
        least = self.crop or (wide, high)
        return max(320, 2 * least[0]), max(240, 2 * least[1])

    def axes(self, width: int, height: int, wide: int, high: int, name: str = "") -> tuple[Axis, Axis]:
        """Return the columns and rows from a frame width x height to an input wide x high.

        Raises E407 if the frame is smaller than the crop, or a side exceeds 16384 pixels.
        """
        sizes, inputs = (width, height), (wide, high)
        targets, least = inputs, self.layout.least
        possible = all(least <= one <= LARGEST for one in sizes)
        if self.resize and possible:
            targets = tuple(self.resize) if len(self.resize) == 2 else shorter_side(width, height, self.resize[0])
        parts = inputs if self.resize else self.crop or sizes
        if any(whole < part for whole, part in zip(targets if self.resize else sizes, parts, strict=True)):
            what = f"image {name} is {width}x{height}, smaller than the crop {parts[0]}x{parts[1]}"
            raise N2D2Error("E407", what, remedy="give a smaller -crop, or -resize")
        if not possible or not all(1 <= one <= LARGEST for one in targets):
            what = f"image {name} is {width}x{height}, but the sides of {self.format} have {least} to {LARGEST} pixels"
            raise N2D2Error("E407", what, remedy="give another image")
        if self.pad >= 0:
            columns, rows = (self._padded(sizes[i], sizes[1 - i], inputs[i], inputs[1 - i]) for i in (0, 1))
        elif self.resize:
            columns, rows = (Axis(0, s, t, _centre(t, part)) for s, t, part in zip(sizes, targets, parts, strict=True))
        else:
            columns, rows = (Axis(_centre(s, part), part, t, 0) for s, t, part in zip(sizes, targets, parts, strict=True))
        return columns, rows

    def _padded(self, size: int, other: int, whole: int, other_whole: int) -> Axis:
        """Return a side of an image that fills one of both sides of the input; `other`: the other side of both."""
        if whole * other <= other_whole * size:
            return Axis(0, size, whole, 0)
        scaled, rest = divmod(size * other_whole, other)
        if self.rounding == "down":
            return Axis(0, size, max(scaled, 1), -((whole * other - size * other_whole) // (2 * other)))
        target = max(scaled + (2 * rest + scaled % 2 > other), 1)  # half is rounded to even
        return Axis(0, size, target, -((whole - target) // 2))

    def mirror(self, pixels: np.ndarray) -> np.ndarray:
        """Return the pixels (H, W, ...) in the order in which the camera gives them, or back."""
        columns, rows = (-1 if flipped else 1 for flipped in self.flips)
        return pixels[::rows, ::columns]

    def frame(self, pixels: np.ndarray) -> np.ndarray:
        """Return the frame (rows, bytes) that the camera gives where pixels (H, W, 3) of red, green, blue are before it."""
        return self.layout.encode(self.mirror(pixels))

    def convert(self, lines: np.ndarray, width: int, shape: tuple[int, int, int], name: str = "") -> np.ndarray:
        """Return bytes (H, W, C) of an input of `shape` (C, H, W), red first or gray, of a frame (rows, bytes); raise E407."""
        columns, rows = self.axes(width, self.layout.height(len(lines)), shape[2], shape[1], name)
        pixels = self.layout.decode(lines, width)
        if shape[0] == 1:
            pixels = luminance(pixels)
        result = resize(pixels, columns, shape[2], rows, shape[1], self.filter, max(self.pad, 0))
        return np.broadcast_to(self.mirror(result), (*result.shape[:2], shape[0]))

    def to_frame(self, positions: np.ndarray, frame: tuple[int, int], shape: tuple[int, int], steps: int) -> np.ndarray:
        """Return points (n, 2) or boxes (n, 4; left, top, right, bottom) of an input in positions of the `frame`.

        Positions are in 1 / `steps` pixel, `shape` and `frame` are (width, height).
        """
        result = positions.copy()
        for index, (axis, whole, flipped) in enumerate(zip(self.axes(*frame, *shape), shape, self.flips, strict=True)):
            ends = positions[:, index::2]
            result[:, index::2] = axis.to_source(whole * steps - ends[:, ::-1] if flipped else ends, steps)
        return result


def read_frame(text: str, resize: tuple[int, ...] = (), crop: tuple[int, ...] = ()) -> FrameSource:
    """Return the source of `-input-format`: FORMAT, FORMAT:FILTER, and KEY=VALUE after a colon or a comma.

    Raises E003 for an unknown format, filter or key, or a value that is not possible; E007 for `pad` with a resize or a crop.
    """
    wrong = option_error("-input-format", text)
    form, colon, rest = text.partition(":")
    first, comma, words = rest.partition(",")
    name = "antialias" if resize else "bilinear"
    if colon and "=" not in first:
        name, text = first, f"{form}:{words}" if comma else form
    form, values = read_choice(text, dict.fromkeys(FORMATS, _KEYS), wrong)
    require_known("filter", name, FILTERS, wrong)
    if values["pad"] >= 0 and (resize or crop):
        raise N2D2Error("E007", "pad= excludes -resize and -crop", remedy="remove them: pad= resizes to the input")
    if values["round"] and values["pad"] < 0:
        raise wrong("round has no effect without pad", "give pad, or remove round")
    return FrameSource(form, name, resize, crop, values["pad"], values["round"] or "nearest", values["flip"])


def shorter_side(width: int, height: int, size: int) -> tuple[int, int]:
    """Return the width and height of an image whose shorter side becomes `size`; the longer one is rounded down."""
    short, long = min(width, height), max(width, height)
    longer = size * long // short
    return (size, longer) if width <= height else (longer, size)


def _centre(whole: int, part: int) -> int:
    """Return the margin before the centre; half of an odd one is rounded to even."""
    return round((whole - part) / 2)


def axis_weights(axis: Axis, count: int, filter: str) -> np.ndarray:
    """Return the weights (count, size) of the source pixels for each output position; each row sums to below 65536."""
    at, source = np.arange(axis.first, axis.first + count)[:, None], np.arange(axis.size)
    size, target = axis.size, axis.target
    if filter == "nearest":
        return (source == (2 * at + 1) * size // (2 * target)).astype(np.int64)
    if filter == "area":
        return np.maximum(np.minimum((source + 1) * target, (at + 1) * size) - np.maximum(source * target, at * size), 0)
    half = 2 * (max(size, target) if filter == "antialias" else target)
    shift = max(int(half * half // (2 * target) + half).bit_length() - 16, 0)
    return np.maximum(half - abs((2 * source + 1) * target - (2 * at + 1) * size), 0) >> shift


def resize(pixels: np.ndarray, columns: Axis, wide: int, rows: Axis, high: int, filter: str, fill: int = 0) -> np.ndarray:
    """Return bytes (high, wide, C) of bytes (H, W, C), `fill` beyond the image; sums are exact in 24 and 32 bits."""
    (x, inside), (y, within) = _inside(columns, wide), _inside(rows, high)
    across, down = axis_weights(x, inside.sum(), filter), axis_weights(y, within.sum(), filter)
    used, lines = across.any(axis=0).nonzero()[0], down.any(axis=0).nonzero()[0]
    region = pixels[rows.start + lines][:, columns.start + used].transpose(0, 2, 1).astype(np.float32, order="C")
    total = across.sum(axis=1)
    sums = region.reshape(-1, len(used)) @ across[:, used].T.astype(np.float32)
    values = (256 * sums.astype(np.int64) + total // 2) // total
    sums = down[:, lines].astype(np.float64) @ values.reshape(len(lines), -1).astype(np.float64)
    total = down.sum(axis=1)[:, None]
    result = ((sums.astype(np.int64) + 128 * total) // (256 * total)).astype(np.uint8)
    full = np.full((high, wide, pixels.shape[2]), fill, np.uint8)
    full[np.ix_(within, inside)] = result.reshape(len(down), -1, len(across)).transpose(0, 2, 1)
    return full


def _inside(axis: Axis, count: int) -> tuple[Axis, np.ndarray]:
    """Return the axis from its first position in the image on, and which of its `count` positions are in the image."""
    positions = axis.first + np.arange(count)
    return replace(axis, first=max(axis.first, 0)), (positions >= 0) & (positions < axis.target)
