"""Quantizers of quantization-aware training in inference: SAT and LSQ, weights and activations.

A quantizer has a `Range` of steps: 1, 3, 7, 15, ... 255 are 1 to 8 bits. Sources: SAT, Jin et al., "Towards Efficient Training
for Neural Network Quantization" (2019), whose weights are those of DoReFa-Net; LSQ, Esser et al., "Learned Step Size
Quantization" (2019). Ties are rounded to even, as everywhere here.

Weights are integers times a scale. SAT's lie on one of three grids, of b bits:

==========  ==============================  ================  ===================================
odd         2 i - Range, i = 0 .. Range     scale 1 / Range   no zero; -1 and 1 for Range 1
symmetric   -h .. h, h = (Range - 1) / 2    scale 1 / h       -1 and 1 for Range 1
full        -2^(b-1) .. 2^(b-1) - 1         scale 2^-(b-1)    -1 and 1 for Range 1
==========  ==============================  ================  ===================================
"""

from math import sqrt

import numpy as np

RANGES = (1, 3, 7, 15, 31, 63, 127, 255)
GRIDS = ("odd", "symmetric", "full")
GRID_TOLERANCE = 1e-4
"""Distance of a stored value from its grid, of the largest magnitude, that the digits of a text file explain."""


def bits_of(steps: int) -> int:
    """Return the bits of a quantizer with so many steps."""
    return steps.bit_length()


def lsq_first_steps(weights: np.ndarray, count: int, steps: int) -> np.ndarray:
    """Return 2 mean |w| / sqrt(largest integer) of LSQ (https://arxiv.org/abs/1902.08153), (count); 1 where all weights are 0.

    weights: (O, ...); `count`: O, or 1 for all together; `steps`: of a quantizer of at least two bits.
    """
    first = 2 * np.abs(weights).reshape(count, -1).mean(axis=1) / np.sqrt(2 ** (bits_of(steps) - 1) - 1)
    return np.where(first > 0, first, 1.0)


def grid_top(steps: int, grid: str) -> int:
    """Return the integer that 1 is on a grid."""
    if steps == 1:
        return 1
    return {"odd": steps, "symmetric": (steps - 1) // 2, "full": 2 ** (bits_of(steps) - 1)}[grid]


def normalized(weights: np.ndarray) -> np.ndarray:
    """Return tanh(w) / max |tanh(w)| over the layer, float64; zeros for a layer of zeros."""
    bent = np.tanh(np.asarray(weights, np.float64))
    largest = np.abs(bent).max(initial=0.0)
    return bent / largest if largest > 0 else bent


def sat_weights(weights: np.ndarray, steps: int, grid: str) -> tuple[np.ndarray, float]:
    """Return (integers int32, scale) of a layer's real weights, without `sat_gain`."""
    real, top = normalized(weights), grid_top(steps, grid)
    if steps == 1:
        return np.where(real >= 0, 1, -1).astype(np.int32), 1.0
    if grid == "odd":
        integers = 2 * np.rint((real + 1) / 2 * steps) - steps
    else:
        integers = np.clip(np.rint(real * top), -top, top - 1 if grid == "full" else top)
    return integers.astype(np.int32), 1.0 / top


def sat_gain(integers: np.ndarray, scale: float, outputs: int) -> float:
    """Return the factor of weights with ApplyScaling=1: 1 / sqrt(outputs * their variance), or 1 if all are alike."""
    variance = float(np.var(integers.astype(np.float64) * scale))
    return 1.0 / sqrt(outputs * variance) if variance > 0 else 1.0


def lsq_weights(weights: np.ndarray, steps: int, step: np.ndarray) -> np.ndarray:
    """Return the integers int32 in -2^(b-1) .. 2^(b-1) - 1 of weights (O, ...), for one step or one for each output."""
    half = 2 ** (bits_of(steps) - 1)
    each = np.asarray(step, np.float64).reshape(-1, *(1,) * (weights.ndim - 1))
    return np.clip(np.rint(weights.astype(np.float64) / each), -half, half - 1).astype(np.int32)


def read_grid(values: np.ndarray, steps: int, expected: str) -> tuple[str, np.ndarray, float] | None:
    """Return (grid, integers int32, scale) of stored quantized weights, whose largest magnitude is an end of the grid.

    `expected` is taken where several grids fit. None where a value lies on no grid.
    """
    values = np.asarray(values, np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return None
    for grid in dict.fromkeys((expected, *GRIDS)):
        top = grid_top(steps, grid)
        if grid == "full" and steps > 1 and values.max() >= largest:
            top -= 1
        exact = values / largest * top
        integers = 2 * np.rint((exact + steps) / 2) - steps if grid == "odd" or steps == 1 else np.rint(exact)
        if np.abs(exact - integers).max() <= GRID_TOLERANCE * top and np.abs(integers).max() <= grid_top(steps, grid):
            return grid, integers.astype(np.int32), largest / top
    return None
