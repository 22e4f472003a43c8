"""Formats of the pixels in a camera's frame, one per row of FORMATS; C++ twin: `kernels/n2d2/frame/format.hpp`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

_TO_YUV = np.array([[16829, 33039, 6416], [-9714, -19071, 28784], [28784, -24103, -4681]])
"""BT.601 in 1/65536, for bytes: Y less 16, U and V less 128."""


@dataclass(frozen=True)
class PixelFormat(ABC):
    """Pixels in memory. A frame is an array (rows, bytes) of uint8.

    `v4l2`: name in the Linux header videodev2.h, after V4L2_PIX_FMT_. `family`: of formats that one structure reads. `bytes`:
    of a `group` of pixels next to each other. `rows`: of memory, for one row of pixels. `least`: pixels of the smallest side.
    """

    v4l2: str
    family: ClassVar[str]
    bytes: ClassVar[int] = 1
    group: ClassVar[int] = 1
    rows: ClassVar[int] = 1
    least: ClassVar[int] = 1

    def line_bytes(self, width: int) -> int:
        """Return the bytes of a row of `width` pixels."""
        return (width + self.group - 1) // self.group * self.bytes

    @property
    def row_bytes_text(self) -> str:
        """`line_bytes` as an expression of C."""
        groups = "width" if self.group == 1 else f"(width + {self.group - 1}) / {self.group}"
        return f"{groups} * {self.bytes}" if self.bytes > 1 else groups

    def memory_rows(self, height: int) -> int:
        """Return the number of rows of memory of a frame of `height` rows of pixels."""
        return height

    def height(self, rows: int) -> int:
        """Return the number of rows of pixels in so many rows of memory."""
        return rows

    @abstractmethod
    def encode(self, pixels: np.ndarray) -> np.ndarray:
        """Return the frame that a camera gives for pixels (H, W, 3) of red, green, blue."""

    @abstractmethod
    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        """Return the pixels (H, W, 3), red first, or gray ones (H, W, 1), of a frame; bytes after a row are ignored."""


@dataclass(frozen=True)
class _Bytes(PixelFormat):
    bytes: int  # type: ignore[misc]
    red: int = 0
    family = "bytes"

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        colors = pixels[:, :, ::-1] if self.red else pixels
        filled = np.pad(colors, ((0, 0), (0, 0), (0, self.bytes - 3)), constant_values=255)
        return np.ascontiguousarray(filled).reshape(len(pixels), -1)

    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        pixels = lines[:, : self.bytes * width].reshape(len(lines), width, self.bytes)
        return pixels[:, :, 2::-1] if self.red else pixels[:, :, :3]


class _Gray(PixelFormat):
    family = "gray"

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        return luminance(pixels)[:, :, 0]

    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        return lines[:, :width, None]


@dataclass(frozen=True)
class _Words(PixelFormat):
    """16-bit words of 5 bits red, 6 green, 5 blue; `high`: position of their high byte."""

    high: int
    family = "words"
    bytes = 2

    @property
    def _type(self) -> str:
        return "<u2" if self.high else ">u2"

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        red, green, blue = np.moveaxis(pixels.astype(np.uint16), 2, 0)
        return ((red >> 3) << 11 | (green >> 2) << 5 | blue >> 3).astype(self._type).view(np.uint8)

    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        words = np.ascontiguousarray(lines[:, : 2 * width]).view(self._type).astype(np.int64)
        five = np.stack([words >> 11, words & 31], 2)
        red, blue = np.moveaxis(five << 3 | five >> 2, 2, 0)
        green = words >> 5 & 63
        return np.stack([red, green << 2 | green >> 4, blue], 2).astype(np.uint8)


@dataclass(frozen=True)
class _Yuv(PixelFormat):
    """Two pixels in four bytes: two values of Y, the first at `luma`, and U, V between them."""

    luma: int
    family = "yuv"
    bytes = 4
    group = 2

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        luma, chroma = _to_yuv(pixels)
        pairs = np.empty((len(pixels), luma.shape[1], 2), np.uint8)
        pairs[:, :, self.luma], pairs[:, :, 1 - self.luma] = luma, chroma
        return pairs.reshape(len(pixels), -1)

    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        values = lines[:, : self.line_bytes(width)].reshape(len(lines), -1, 2)
        return _from_yuv(values[:, :, self.luma], values[:, :, 1 - self.luma], width)


@dataclass(frozen=True)
class _SemiPlanar(PixelFormat):
    """Rows of Y, then rows of pairs of U and V, U at `u`: each pair for two by two pixels."""

    u: int
    family = "semi_planar"
    bytes = 2
    group = 2
    rows = 2

    def memory_rows(self, height: int) -> int:
        return height + (height + 1) // 2

    def height(self, rows: int) -> int:
        return rows * 2 // 3

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        luma, chroma = _to_yuv(np.pad(pixels, ((0, len(pixels) % 2), (0, 0), (0, 0)), mode="edge"))
        pairs = (chroma[::2] + chroma[1::2] + 1 >> 1).reshape(-1, luma.shape[1] // 2, 2)
        planes = luma[: len(pixels)], pairs[:, :, :: -1 if self.u else 1].reshape(len(pairs), -1)
        return np.concatenate(planes).astype(np.uint8)

    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        height, even = self.height(len(lines)), self.line_bytes(width)
        pairs = lines[height:, :even].reshape(-1, even // 2, 2)[:, :, :: -1 if self.u else 1]
        return _from_yuv(lines[:height, :even], np.repeat(pairs.reshape(-1, even), 2, axis=0)[:height], width)


@dataclass(frozen=True)
class _Bayer(PixelFormat):
    """One color for each pixel, in squares of two by two; red is in row `red_y` and column `red_x` of a square.

    A missing color is the mean of the two or four nearest pixels that have it, rounded half up. Rows and columns beyond the
    edge mirror those next to it.
    """

    red_y: int
    red_x: int
    family = "bayer"
    rows = 3
    least = 2

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        y, x = np.indices(pixels.shape[:2])
        color = (y + self.red_y & 1) + (x + self.red_x & 1)
        return np.take_along_axis(pixels, color[:, :, None], 2)[:, :, 0]

    def decode(self, lines: np.ndarray, width: int) -> np.ndarray:
        padded = np.pad(lines[:, :width].astype(np.int64), 1, mode="reflect")
        own, across, down = padded[1:-1, 1:-1], padded[1:-1, :-2] + padded[1:-1, 2:], padded[:-2, 1:-1] + padded[2:, 1:-1]
        corners = padded[:-2, :-2] + padded[:-2, 2:] + padded[2:, :-2] + padded[2:, 2:] + 2 >> 2
        y, x = np.indices(own.shape)
        row, column = y + self.red_y & 1 == 0, x + self.red_x & 1 == 0  # those of red
        green = np.where(row == column, across + down + 2 >> 2, own)
        right, above = across + 1 >> 1, down + 1 >> 1
        red = np.where(row, np.where(column, own, right), np.where(column, above, corners))
        blue = np.where(row, np.where(column, corners, above), np.where(column, right, own))
        return np.stack([red, green, blue], 2).astype(np.uint8)


FORMATS: dict[str, PixelFormat] = {
    "rgb": _Bytes("RGB24", 3),
    "bgr": _Bytes("BGR24", 3, 2),
    "rgba": _Bytes("RGBA32", 4),
    "gray": _Gray("GREY"),
    "rgb565": _Words("RGB565", 1),
    "rgb565be": _Words("RGB565X", 0),
    "yuyv": _Yuv("YUYV", 0),
    "uyvy": _Yuv("UYVY", 1),
    "nv12": _SemiPlanar("NV12", 0),
    "nv21": _SemiPlanar("NV21", 1),
    "rggb": _Bayer("SRGGB8", 0, 0),
    "grbg": _Bayer("SGRBG8", 0, 1),
    "gbrg": _Bayer("SGBRG8", 1, 0),
    "bggr": _Bayer("SBGGR8", 1, 1),
}
"""rgb565 is a 16-bit word, low byte first (rgb565be: high byte first). YUV is BT.601 with values 16 to 235."""


def luminance(pixels: np.ndarray) -> np.ndarray:
    """Return the gray bytes (H, W, 1) of red, green, blue: 0.299 R + 0.587 G + 0.114 B in 1/32768; gray ones are unchanged."""
    if pixels.shape[2] == 1:
        return pixels
    return ((pixels.astype(np.int64) @ [9798, 19235, 3735] + 16384) >> 15).astype(np.uint8)[:, :, None]


def _to_yuv(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Y (H, even W), and U, V of each pair of pixels next to each other, of the same shape."""
    padded = np.pad(pixels, ((0, 0), (0, pixels.shape[1] % 2), (0, 0)), mode="edge").astype(np.int64)
    pairs = padded[:, ::2] + padded[:, 1::2]
    chroma = np.clip(128 + ((pairs @ _TO_YUV[1:].T + 65536) >> 17), 0, 255)
    return 16 + ((padded @ _TO_YUV[0] + 32768) >> 16), chroma.reshape(len(pixels), -1)


def _from_yuv(luma: np.ndarray, chroma: np.ndarray, width: int) -> np.ndarray:
    """Return the pixels (H, width, 3) of Y (H, even W) and of U, V of each pair of pixels, of the same shape."""
    y = 76309 * (luma[:, :width].astype(np.int64) - 16) + 32768
    u, v = (np.repeat(chroma[:, offset::2].astype(np.int64) - 128, 2, axis=1)[:, :width] for offset in (0, 1))
    colors = [y + 104597 * v, y - 53279 * v - 25675 * u, y + 132201 * u]
    return np.clip(np.stack(colors, 2) >> 16, 0, 255).astype(np.uint8)
