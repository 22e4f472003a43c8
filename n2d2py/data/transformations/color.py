"""Colour transformations: channel order and gray in NumPy, other colour spaces by OpenCV."""

from typing import Literal

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, require_image, transformation
from n2d2py.ini import Kind, parameter

_ORDERS = {"BGR": False, "RGB": True, "RGB_to_BGR": True}
"""True where the channels are reversed."""

_CODES = {
    name: code
    for space, short in {"HSV": "HSV", "HLS": "HLS", "YCrCb": "YCrCb", "CIELab": "Lab", "CIELuv": "Luv"}.items()
    for name, code in (
        (space, f"BGR2{short}"),
        (f"RGB_to_{space}", f"RGB2{short}"),
        (f"{space}_to_BGR", f"{short}2BGR"),
        (f"{space}_to_RGB", f"{short}2RGB"),
    )
}
"""Conversions of OpenCV, without COLOR_, by ColorSpace."""

_COLOURS = ("Blue", "Green", "Red")
_PARTS = {
    "Hue": ("BGR2HSV", 0),
    "Saturation": ("BGR2HSV", 1),
    "Value": ("BGR2HSV", 2),
    "Y": ("BGR2YCrCb", 0),
    "Cb": ("BGR2YCrCb", 2),
    "Cr": ("BGR2YCrCb", 1),
}
_CHANNELS = (*_COLOURS, "Hue", "Saturation", "Value", "Gray", "Y", "Cb", "Cr")


def bgr(image: np.ndarray) -> np.ndarray:
    """Return a gray, BGR or BGRA image as BGR. Raises Inapplicable for another number of channels."""
    channels = image.shape[2]
    if channels == 1:
        return np.repeat(image, 3, axis=2)
    if channels not in (3, 4):
        raise Inapplicable(f"the image has {channels} channels, not 1, 3 or 4", "give gray or colour images")
    return image[:, :, :3]


def gray(image: np.ndarray) -> np.ndarray:
    """Return 0.114 B + 0.587 G + 0.299 R, (H, W, 1); bytes with 15-bit coefficients, as OpenCV."""
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


def convert(image: np.ndarray, code: str) -> np.ndarray:
    """Return an 8-bit image of 1, 3 or 4 channels converted by OpenCV; `code`: as "BGR2HSV"."""
    import cv2

    require_image(image, in_bytes=True)
    return cv2.cvtColor(np.ascontiguousarray(bgr(image)), getattr(cv2, f"COLOR_{code}"))


@transformation("ColorSpace", doc="Convert the color space. Others than BGR and RGB require OpenCV.")
class ColorSpace(Transformation):
    """Conversion to another colour space; BGR and RGB also accept gray and BGRA images."""

    space: str = parameter("ColorSpace", Kind.ENUM, doc="X: from BGR. X_to_Y: from X to Y.", choices=(*_ORDERS, *_CODES))

    @property
    def needs_opencv(self) -> bool:
        return self.space in _CODES

    @property
    def order(self) -> Literal["RGB", "BGR", ""]:
        """Channel order of the result; "" for other color spaces."""
        return "RGB" if self.space.endswith("RGB") else "BGR" if self.space.endswith("BGR") else ""

    def apply(self, image: np.ndarray) -> np.ndarray:
        if self.space in _CODES:
            return convert(image, _CODES[self.space])
        return bgr(image)[:, :, ::-1] if _ORDERS[self.space] else bgr(image)

    def map_range(self, bounds: Range) -> Range:
        return bounds if self.space in _ORDERS else (0.0, 255.0)


@transformation(
    "ChannelExtraction", doc="Extract one channel of a color image. Hue, Saturation, Value, Y, Cb and Cr require OpenCV."
)
class ChannelExtraction(Transformation):
    """One channel (H, W, 1) of an image in the order blue, green, red, or a mix of its colours."""

    channel: str = parameter("CSChannel", Kind.ENUM, doc="Channel. Blue, Green, Red: the first to third.", choices=_CHANNELS)

    @property
    def needs_opencv(self) -> bool:
        return self.channel in _PARTS

    def apply(self, image: np.ndarray) -> np.ndarray:
        if self.channel == "Gray":
            return gray(image)
        if self.channel in _PARTS:
            code, index = _PARTS[self.channel]
            source = convert(image, code)
        else:
            index = _COLOURS.index(self.channel)
            source = image if index < image.shape[2] > 1 else bgr(image)
        return source[:, :, index : index + 1]

    def map_range(self, bounds: Range) -> Range:
        if self.channel == "Hue":
            return 0.0, 180.0
        return bounds if self.channel in (*_COLOURS, "Gray") else (0.0, 255.0)
