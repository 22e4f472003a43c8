"""Scales of quantized constants, followed through what exporters do to them before a layer reads them."""

from __future__ import annotations

import numpy as np

MOVES = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "Concat", "Slice", "Gather", "Expand")
"""Operators that only move the values of a constant."""


def weight_scales(grid: np.ndarray, outputs: int) -> np.ndarray | None:
    """The scale (1) of all weights or those of each output (outputs), from a scale for each weight.

    Weights of a transposed convolution have the outputs of one group on an axis: their scales repeat. None where
    the scales are no such ones; whether they fit is checked when the weights become integers.
    """
    if not grid.size:
        return None
    if (grid == grid.flat[0]).all():
        return grid.reshape(-1)[:1].astype(np.float32)
    for axis in range(grid.ndim):
        rows = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)
        if (rows == rows[:, :1]).all() and outputs % len(rows) == 0:
            return np.tile(rows[:, 0], outputs // len(rows)).astype(np.float32)
    return None
