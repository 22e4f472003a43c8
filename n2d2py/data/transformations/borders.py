"""Image borders: OpenCV's border types under N2D2's names."""

from __future__ import annotations

from typing import Literal

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, saturate_cast
from n2d2py.ini import Key, Kind

_PAD_MODES: dict[str, Literal["edge", "symmetric", "wrap", "reflect"]] = {
    "ReplicateBorder": "edge",
    "ReflectBorder": "symmetric",
    "WrapBorder": "wrap",
    "MinusOneReflectBorder": "reflect",
}
OPENCV_BORDERS = {
    "ReplicateBorder": "BORDER_REPLICATE",
    "ReflectBorder": "BORDER_REFLECT",
    "WrapBorder": "BORDER_WRAP",
    "MinusOneReflectBorder": "BORDER_REFLECT_101",
}
"""Border types of OpenCV, other than BORDER_CONSTANT."""

BORDERS = ("ConstantBorder", *_PAD_MODES, "MeanBorder")
BORDER_KEYS = (
    Key("BorderType", Kind.ENUM, "MinusOneReflectBorder", "Extrapolation beyond the image border.", BORDERS),
    Key("BorderValue", Kind.FLOATS, (), "Values of ConstantBorder: one value, or one per channel. Default: 0."),
)


def add_border(image: np.ndarray, pads: tuple[int, int, int, int], border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """Return the image (H, W, C) enlarged by (top, bottom, left, right) >= 0 pixels.

    For pixels abcd: Replicate aaa|abcd, Reflect cba|abcd, MinusOneReflect dcb|abcd, Wrap bcd|abcd; Constant is `value`, Mean
    the mean of each channel (integers: rounded to even).

    Raises:
        Inapplicable: as `border_values`.
    """
    top, bottom, left, right = pads
    if not any(pads):
        return image
    if border in _PAD_MODES:
        return np.pad(image, ((top, bottom), (left, right), (0, 0)), _PAD_MODES[border])
    height, width, channels = image.shape
    result = np.empty((height + top + bottom, width + left + right, channels), image.dtype)
    result[:] = border_values(image, border, value)
    result[top : top + height, left : left + width] = image
    return result


def border_values(image: np.ndarray, border: str, value: tuple[float, ...]) -> np.ndarray:
    """Return the value of each channel (C,) in a ConstantBorder or MeanBorder, in the type of the image (H, W, C).

    Raises:
        Inapplicable: if `value` has neither one value nor one per channel.
    """
    channels = image.shape[2]
    if border == "MeanBorder":
        return saturate_cast(image.mean((0, 1), np.float64), image.dtype)
    if len(value) not in (0, 1, channels):
        raise Inapplicable(f"BorderValue has {len(value)} values for {channels} channels", "give one value, or one per channel")
    return saturate_cast(np.resize(np.array(value or (0.0,)), channels), image.dtype)


def crop_or_pad(image: np.ndarray, pads: tuple[int, int, int, int], border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """Return the image enlarged by (top, bottom, left, right) pixels, or cropped for negative values."""
    cut = [max(0, -pad) for pad in pads]
    height, width = image.shape[:2]
    image = image[cut[0] : height - cut[1], cut[2] : width - cut[3]]
    top, bottom, left, right = (max(0, pad) for pad in pads)
    return add_border(image, (top, bottom, left, right), border, value)
