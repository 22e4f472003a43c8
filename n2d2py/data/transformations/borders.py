"""Image borders (OpenCV's border types under N2D2's names), and interpolation between pixels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from n2d2py.data.transformations.base import Inapplicable
from n2d2py.ini import Key, Kind

_PAD_MODES: dict[str, Literal["edge", "symmetric", "wrap", "reflect"]] = {
    "ReplicateBorder": "edge",
    "ReflectBorder": "symmetric",
    "WrapBorder": "wrap",
    "MinusOneReflectBorder": "reflect",
}
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
        Inapplicable: if `value` has neither one value nor one per channel.
    """
    top, bottom, left, right = pads
    if not any(pads):
        return image
    height, width, channels = image.shape
    if border in ("ConstantBorder", "MeanBorder"):
        fill = (
            _constant(image, value)
            if border == "ConstantBorder"
            else saturate_cast(image.mean((0, 1), np.float64), image.dtype)
        )
        result = np.empty((height + top + bottom, width + left + right, channels), image.dtype)
        result[:] = fill
        result[top : top + height, left : left + width] = image
        return result
    return np.pad(image, ((top, bottom), (left, right), (0, 0)), _PAD_MODES[border])


def crop_or_pad(image: np.ndarray, pads: tuple[int, int, int, int], border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """Return the image enlarged by (top, bottom, left, right) pixels, or cropped for negative values."""
    cut = [max(0, -pad) for pad in pads]
    height, width = image.shape[:2]
    image = image[cut[0] : height - cut[1], cut[2] : width - cut[3]]
    top, bottom, left, right = (max(0, pad) for pad in pads)
    return add_border(image, (top, bottom, left, right), border, value)


def _constant(image: np.ndarray, value: tuple[float, ...]) -> np.ndarray:
    channels = image.shape[2]
    if len(value) not in (0, 1, channels):
        raise Inapplicable(f"BorderValue has {len(value)} values for {channels} channels", "give one value, or one per channel")
    return saturate_cast(np.resize(np.array(value or (0.0,)), channels), image.dtype)


def saturate_cast(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return reals in a type: integers rounded to even and clipped."""
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def sample(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """Return the image (H, W, C) at real positions `rows` and `columns` (h, w), bilinear, as (h, w, C) in its type.

    The centre of the first pixel is at 0; outside is the border. Integers are rounded to even.

    Raises:
        Inapplicable: if `value` has neither one value nor one per channel.
    """
    first_row, first_column = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, across = (rows - first_row)[:, :, None], (columns - first_column)[:, :, None]
    top, left = max(0, -int(first_row.min())), max(0, -int(first_column.min()))
    bottom = max(0, int(first_row.max()) + 2 - image.shape[0])
    right = max(0, int(first_column.max()) + 2 - image.shape[1])
    wide = add_border(image, (top, bottom, left, right), border, value)
    row, column = first_row + top, first_column + left
    upper = wide[row, column] * (1 - across) + wide[row, column + 1] * across
    lower = wide[row + 1, column] * (1 - across) + wide[row + 1, column + 1] * across
    return saturate_cast(upper * (1 - down) + lower * down, image.dtype)


def sample_labels(labels: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the labels (H, W) of the pixels nearest to real positions `rows` and `columns`, as (h, w); -1 outside of the
    image."""
    height, width = labels.shape
    row, column = np.rint(rows).astype(np.int64), np.rint(columns).astype(np.int64)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return np.where(inside, labels[row.clip(0, height - 1), column.clip(0, width - 1)], -1)
