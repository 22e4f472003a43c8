"""Colour transformations as in OpenCV: channel order, gray, single channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from n2d2py.data.transformations import colorspaces as spaces
from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, transformation
from n2d2py.data.transformations.colorspaces import bgr
from n2d2py.ini import Kind, parameter

_SPACES = {
    "HSV": (spaces.hsv, spaces.hsv_to_bgr),
    "HLS": (spaces.hls, spaces.hls_to_bgr),
    "YCrCb": (spaces.ycrcb, spaces.ycrcb_to_bgr),
    "CIELab": (spaces.lab, spaces.lab_to_bgr),
    "CIELuv": (spaces.luv, spaces.luv_to_bgr),
}
_PARTS = {"Hue": (spaces.hsv, 0), "Saturation": (spaces.hsv, 1), "Value": (spaces.hsv, 2)}
_LUMAS = {"Y": (spaces.ycrcb, 0), "Cb": (spaces.ycrcb, 2), "Cr": (spaces.ycrcb, 1)}
_COLOURS = ("Blue", "Green", "Red")
_CHANNELS = (*_COLOURS, *_PARTS, "Gray", *_LUMAS)


def gray(image: np.ndarray) -> np.ndarray:
    """Return 0.114 B + 0.587 G + 0.299 R, (H, W, 1); bytes with 15-bit coefficients."""
    if image.shape[2] == 1:
        return image
    blue, green, red = np.moveaxis(bgr(image), 2, 0)
    if image.dtype.kind == "f":
        weights = (np.float32(0.114), np.float32(0.587), np.float32(0.299))
        return (blue * weights[0] + green * weights[1] + red * weights[2])[:, :, None]
    if image.dtype.kind != "u":
        raise Inapplicable(f"gray is not defined on {image.dtype} images", "give unsigned integers")
    wide = blue.astype(np.int64) * 3735 + green.astype(np.int64) * 19235
    return ((wide + red.astype(np.int64) * 9798 + 16384) >> 15).astype(image.dtype)[:, :, None]


def _reverse_channels(image: np.ndarray) -> np.ndarray:
    return bgr(image)[:, :, ::-1]


def _make_conversions() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return the conversion of each name; images are blue, green, red unless the name says otherwise."""
    conversions = {"BGR": bgr, "RGB": _reverse_channels, "RGB_to_BGR": _reverse_channels}
    for space, (to, back) in _SPACES.items():
        conversions[space] = to
        conversions[f"RGB_to_{space}"] = lambda image, to=to: to(_reverse_channels(image))
        conversions[f"{space}_to_BGR"] = back
        conversions[f"{space}_to_RGB"] = lambda image, back=back: back(image)[:, :, ::-1]
    return conversions


_CONVERSIONS = _make_conversions()


@transformation("ColorSpace", doc="Convert the color space.")
class ColorSpace(Transformation):
    """Conversion to another colour space; BGR and RGB also accept gray and BGRA images."""

    space: str = parameter(
        "ColorSpace",
        Kind.ENUM,
        doc="Color space of the result. The image is BGR unless the name says otherwise.",
        choices=tuple(_CONVERSIONS),
    )

    @property
    def order(self) -> Literal["RGB", "BGR", ""]:
        """Channel order of the result; "" for other color spaces."""
        return "RGB" if self.space.endswith("RGB") else "BGR" if self.space.endswith("BGR") else ""

    def apply(self, image: np.ndarray) -> np.ndarray:
        return _CONVERSIONS[self.space](image)

    def map_range(self, bounds: Range) -> Range:
        return bounds if _CONVERSIONS[self.space] in (bgr, _reverse_channels) else (0.0, 255.0)


@transformation("ChannelExtraction", doc="Extract one channel of a color image.")
class ChannelExtraction(Transformation):
    """One channel (H, W, 1) of an image in the order blue, green, red, or a mix of its colours."""

    channel: str = parameter(
        "CSChannel",
        Kind.ENUM,
        doc="Channel of a BGR image. For other images, Blue, Green and Red select the first, second and third channel.",
        choices=_CHANNELS,
    )

    def apply(self, image: np.ndarray) -> np.ndarray:
        if self.channel == "Gray":
            return gray(image)
        if self.channel in _COLOURS:
            index = _COLOURS.index(self.channel)
            source = image if index < image.shape[2] > 1 else bgr(image)
        else:
            convert, index = {**_PARTS, **_LUMAS}[self.channel]
            source = convert(image)
        return source[:, :, index : index + 1]

    def map_range(self, bounds: Range) -> Range:
        if self.channel == "Hue":
            return 0.0, 180.0
        return bounds if self.channel in (*_COLOURS, "Gray") else (0.0, 255.0)
