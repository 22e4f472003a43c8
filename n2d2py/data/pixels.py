"""Map of a byte by the pipeline of the data, found by running it on images of one colour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph.inputs import PixelMap

_GRAY = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in a gray value."""


def find_pixels(run: Callable[[np.ndarray], np.ndarray], like: np.ndarray) -> PixelMap | None:
    """The affine map from bytes to values, where `run` has one for each channel.

    Args:
        run: makes real values (C, H, W) of an image (h, w, c) of bytes, colours in the order blue, green, red.
        like: a decoded image.
    """
    if like.dtype != np.uint8 or like.ndim != 3 or like.shape[2] not in (1, 3):
        return None

    def values(colour: tuple[int, int, int]) -> np.ndarray | None:
        """The channels of an image of one colour (red, green, blue); None where they differ from place to place."""
        picture = np.zeros_like(like)
        picture[:] = colour[::-1] if like.shape[2] == 3 else colour[0]
        made = run(picture)
        if (
            made.ndim != 3
            or made.shape[0] not in (1, 3)
            or np.ptp(made, axis=(1, 2)).max() > 1e-4 * max(1.0, np.abs(made).max())
        ):
            return None
        return made.mean(axis=(1, 2), dtype=np.float64)

    try:
        black, half, white = (values((level, level, level)) for level in (0, 102, 255))
        colours = [values((255, 0, 0)), values((0, 255, 0)), values((0, 0, 255))] if like.shape[2] == 3 else []
    except N2D2Error:
        return None
    if black is None or half is None or white is None:
        return None
    reach = white - black
    if not np.allclose(half - black, 0.4 * reach, rtol=0, atol=1e-3 * np.abs(reach).max()) or not reach.all():
        return None
    order = tuple(range(len(reach)))
    if colours:
        shares = np.array([(one - black) / reach if one is not None else np.full(len(reach), np.nan) for one in colours]).T
        order = tuple(int(share.argmax()) for share in np.nan_to_num(shares))
        expected = np.eye(3)[list(order)] if len(reach) == 3 else np.array([_GRAY])
        if not np.allclose(shares, expected, rtol=0, atol=0.01):
            return None
    return PixelMap(tuple((reach / 255).tolist()), tuple(black.tolist()), order if len(reach) == 3 else (0,))
