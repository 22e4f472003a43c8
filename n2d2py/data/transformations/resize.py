"""Bilinear resizing with half-pixel centres and no antialiasing, equal to OpenCV's INTER_LINEAR.

Output x reads the input at (x + 1/2) * in/out - 1/2, clamped to the image. On bytes, the arithmetic is bit-exact with OpenCV:
11-bit coefficients, horizontal sums shifted by 4, vertical products by 16, the sum rounded by 2. Other types are interpolated
in float32, integers then rounded to even; they differ from OpenCV by a few units of the sixth digit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from n2d2py.data.transformations.base import saturate_cast

_ONE = 2048


def resize_bilinear(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the image (H, W, C) at height x width, in its type."""
    if image.shape[:2] == (height, width):
        return image
    columns = _column_weights(image.shape[1], width)
    rows = _axis_weights(image.shape[0], height)
    if image.dtype == np.uint8:
        return _resize_bytes(image, rows, columns)
    result = _resize_float(image.astype(np.float32, copy=False), rows, columns)
    return result if image.dtype.kind == "f" else saturate_cast(result.astype(np.float64), image.dtype)


@lru_cache(maxsize=256)
def _axis_weights(size: int, target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each output position, the two input positions and the float32 weight of the second.

    Beyond the border both positions are the same pixel; see _column_weights.
    """
    scale = 1.0 / (target / size)
    position = ((np.arange(target) + 0.5) * scale - 0.5).astype(np.float32)
    first = np.floor(position).astype(np.int64)
    weight = position - first.astype(np.float32)
    return np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1), weight


def _column_weights(size: int, target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return _axis_weights with weight 0 beyond the border, as in OpenCV for columns.

    For rows, OpenCV keeps the weights: truncation then acts on two products, and the bytes differ.
    """
    left, right, weight = _axis_weights(size, target)
    return left, right, np.where(left == right, np.float32(0), weight)


def _fixed_point_weights(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    one = np.float32(_ONE)
    return (np.rint((1 - weight) * one).astype(np.int32), np.rint(weight * one).astype(np.int32))


def _resize_bytes(image: np.ndarray, rows: tuple, columns: tuple) -> np.ndarray:
    left, right, weight = columns
    at_left, at_right = (part[None, :, None] for part in _fixed_point_weights(weight))
    top, bottom, weight = rows
    at_top, at_bottom = (part[:, None, None] for part in _fixed_point_weights(weight))
    used, places = np.unique(np.concatenate([top, bottom]), return_inverse=True)
    values = image[used].astype(np.int32)
    across = (values[:, left] * at_left + values[:, right] * at_right) >> 4
    upper, lower = places[: len(top)], places[len(top) :]
    total = ((across[upper] * at_top) >> 16) + ((across[lower] * at_bottom) >> 16)
    return ((total + 2) >> 2).astype(np.uint8)


def _resize_float(image: np.ndarray, rows: tuple, columns: tuple) -> np.ndarray:
    left, right, weight = columns
    weight = weight[None, :, None]
    across = image[:, left] * (1 - weight) + image[:, right] * weight
    top, bottom, weight = rows
    weight = weight[:, None, None]
    return across[top] * (1 - weight) + across[bottom] * weight


def resize_labels(labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return labels (H, W) at height x width, from positions floor(i * before / after), as OpenCV's INTER_NEAREST."""
    rows, columns = (np.arange(after) * before // after for before, after in zip(labels.shape, (height, width), strict=True))
    return labels[np.ix_(rows, columns)]
