"""The integer arithmetic of all units: saturation, and right shifts that round to nearest, ties away from zero."""

from __future__ import annotations

import numpy as np


def saturate(x: np.ndarray, bits: int) -> np.ndarray:
    """`x` cut to `bits` signed bits."""
    limit = 1 << (bits - 1)
    return np.clip(x, -limit, limit - 1)


def shift_right(x: np.ndarray, shift: int) -> np.ndarray:
    """x / 2^shift for int64 `x`, rounded to nearest, ties away from zero."""
    if shift <= 0:
        return x
    if shift > 63:
        return np.zeros_like(x)
    magnitude = np.abs(x).astype(np.uint64) + np.uint64(1 << (shift - 1))
    return np.sign(x) * (magnitude >> np.uint64(shift)).astype(np.int64)


def shift_signed(x: np.ndarray, shift: np.ndarray | int, bits: int) -> np.ndarray:
    """`shift_right`, to the left where `shift` is negative, saturated to `bits`."""
    shift = int(shift)
    if shift >= 0:
        return saturate(shift_right(x, shift), bits)
    limit = 1 << (bits - 1)
    room = limit >> -shift
    return np.where(x >= room, limit - 1, np.where(x < -room, -limit, np.clip(x, -room, room) << -shift))


def convert(x: np.ndarray, offset: int | np.ndarray, scale: int, shift: int, bits: int) -> np.ndarray:
    """Return the converter of several units: (x - offset) * scale / 2^shift, rounded and saturated."""
    return saturate(shift_right((x - offset) * scale, shift), bits)
