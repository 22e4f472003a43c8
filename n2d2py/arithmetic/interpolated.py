"""Functions of 16-bit integers: straight lines between the entries of a table. Normative for `kernels/n2d2/lookup.hpp`.

A table of 2^s + 1 knots cuts the 2^16 inputs into 2^s pieces of 2^k, k = 16 - s. A knot is the real result in steps of
the output, times 2^(13 - k). For the input u = 2^k i + r above the lowest one, the result is

    (knot[i] * (2^k - r) + knot[i + 1] * r + 2^12) >> 13

in 32 bits, held within the range of the output. Knots may lie beyond that range, up to 2^18 steps from 0: so a line that
leaves it is straight up to there.
"""

import numpy as np

INPUTS = 2**16
FRACTION = 13
_REACH = 2**18 - 1
SEGMENTS = (256, 512, 1024, 2048, 4096)
"""Sizes of tables, without the last knot. Where even the largest errs too much, every input has an entry."""


def interpolate(knots: np.ndarray, position: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return the results (int64), held within [low, high], for inputs counted from the lowest of the type, 0 .. 65535."""
    width = INPUTS // (knots.size - 1)
    piece, rest = np.divmod(np.asarray(position, np.int64), width)
    wide = knots.astype(np.int64)
    lines = (wide[piece] * (width - rest) + wide[piece + 1] * rest + 2 ** (FRACTION - 1)) >> FRACTION
    return np.clip(lines, low, high)


def nearest_defined(values: np.ndarray) -> np.ndarray | None:
    """Return `values` (flat), each NaN replaced by the nearest number, of two by the one before; None if all are NaN."""
    defined = np.flatnonzero(~np.isnan(values))
    if not defined.size:
        return None
    index = np.arange(values.size)
    after = np.minimum(np.searchsorted(defined, index), defined.size - 1)
    before = np.maximum(after - 1, 0)
    closer = np.abs(index - defined[before]) <= np.abs(index - defined[after])
    return values[np.where(closer, defined[before], defined[after])]


def fit_knots(steps: np.ndarray, low: int, high: int, within: float) -> np.ndarray | None:
    """Return the knots of the smallest table with no result farther than `within` steps from the function, of which the last
    rounding has 0.5; None if there is none.

    `steps`: the results for all 65,536 inputs and for the one beyond, real numbers in steps of the output, zero point
    added; [low, high] is the range of its type. A knot is either the function's value there, or that
    less a sixteenth of the second difference of its neighbours, which halves the error where a function bends evenly.
    """
    clipped = np.clip(np.asarray(steps, np.float64), -_REACH, _REACH)
    wanted, positions = np.clip(clipped[:-1], low, high), np.arange(INPUTS)
    for segments in SEGMENTS:
        width = INPUTS // segments
        at = clipped[::width]
        bend = np.zeros_like(at)
        bend[1:-1] = (at[2:] - at[1:-1]) - (at[1:-1] - at[:-2])
        for values in (at, np.clip(at - bend / 16, -_REACH, _REACH)):
            knots = np.rint(values * (2**FRACTION // width)).astype(np.int32)
            if np.abs(interpolate(knots, positions, low, high) - wanted).max() <= within:
                return knots
    return None
