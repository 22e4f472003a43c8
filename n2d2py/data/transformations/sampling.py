"""Images read between their pixels."""

from __future__ import annotations

import numpy as np

from n2d2py.data.transformations.borders import add_border, saturated


def sample(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """The image (H, W, C) at real positions `rows` and `columns` (h, w), bilinear, (h, w, C) in its type.

    The centre of the first pixel is at 0; beyond the image is the border. Integers are rounded to even.

    Raises:
        Inapplicable: `value` has neither one value nor one per channel.
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
    return saturated(upper * (1 - down) + lower * down, image.dtype)


def sample_labels(labels: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Labels (H, W) of the pixels nearest to real positions `rows` and `columns` (h, w), (h, w); -1 beyond the image."""
    height, width = labels.shape
    row, column = np.rint(rows).astype(np.int64), np.rint(columns).astype(np.int64)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return np.where(inside, labels[row.clip(0, height - 1), column.clip(0, width - 1)], -1)


def resize_labels(labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Labels (H, W) at height x width: those at floor(i * before / after), as OpenCV's INTER_NEAREST takes them."""
    rows, columns = (np.arange(after) * before // after for before, after in zip(labels.shape, (height, width), strict=True))
    return labels[np.ix_(rows, columns)]
