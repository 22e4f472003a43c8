"""8-bit products that the kernels sum in 16 bits (`ByteTile` in `kernels/n2d2/x86`): for which layers that is exact."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType, largest_place

PRODUCT_TIMES = (1.0, 0.77, 0.64)
"""Relative time of an 8-bit multiplication of AVX2 kernels where sums of 0, 2 and 4 products fit 16 bits (docs/lab/speed_kernels.md)."""
LONG = 8
"""From so many words on a 16-bit sum is kept from word to word, and widened when they are summed."""
_RUNS = (256, 128, 96, 64, 48, 32, 24, 16, 12, LONG)
_FEW = 4
_LARGEST = 2**15 - 1
_SOME = 16


def _most(inputs: NumType, bounded: bool) -> int:
    """The largest input of a kernel, from 0 on: any byte, or what the type holds."""
    return inputs.qmax + (128 if inputs.signed else 0) if bounded else 255


_SHORT = (6, 4, 3, 2)
"""Runs of words below _FEW."""


def _longest(weights: np.ndarray, most: int, runs: tuple[int, ...]) -> int:
    """The first of `runs` of words whose products with inputs of 0 to `most` fit 16 bits in each place of `weights` (rows, K), or 0."""

    def fits(words: int) -> bool:
        # 8-bit weights seldom fit, which some rows show
        return all(most * int(largest_place(rows, words).max()) <= _LARGEST for rows in (weights[:_SOME], weights))

    return next((words for words in runs if fits(words)), 0)


def long_run(weights: np.ndarray, most: int) -> int:
    """Number of words whose products with inputs of 0 to `most` 16 bits hold in each place of `weights` (rows, K), for words in runs of so
    many: all of a row, or one of some numbers from LONG on; 0 where they do not.
    """
    every = -(-weights.shape[1] // 4)
    if every >= _FEW and not _longest(weights, most, (_FEW,)):
        return 0  # each of the runs holds whole runs of so many: seldom more than this is computed for 8-bit weights
    return _longest(weights, most, (every, *(words for words in _RUNS if words < every)))


def short_run(weights: np.ndarray, most: int) -> int:
    """As `long_run`, also runs of fewer words down to 2."""
    return long_run(weights, most) or _longest(weights, most, _SHORT)


def byte_sums(weights: np.ndarray, inputs: NumType, *, bounded: bool = False) -> int:
    """As `long_run`, also 2, 1, or 0 where not even the products of one word fit.

    `weights` are integers (O, K) in the kernel's order. Inputs may be any byte; with `bounded` what their type holds.
    """
    if inputs.is_float or inputs.bits != 8:
        return 0
    most = _most(inputs, bounded)
    long = long_run(weights, most) if weights.shape[1] > 8 else 0
    return long or _longest(weights, most, (2, 1))


def nibble_sums(weights: np.ndarray, inputs: NumType, *, bounded: bool = False) -> int:
    """Number of words whose products of one output, all four of each word, 16 bits hold, in runs of so many; 0 below _FEW, or where the weights
    (O, K) do not fill words. The kernel is `NibbleTile`.
    """
    if inputs.bits != 8 or weights.shape[1] % 4:
        return 0
    pairs = np.zeros((len(weights), weights.shape[1] // 2, 4), np.int64)  # words of two inputs, in one place
    pairs[:, :, :2] = weights.reshape(len(weights), -1, 2)
    every = weights.shape[1] // 4
    runs = (every, *(words for words in (*_RUNS, _FEW) if words < every))
    return _longest(pairs.reshape(len(weights), -1), _most(inputs, bounded), tuple(2 * words for words in runs)) // 2


def explained(sums: int) -> str:
    """The clause of the report."""
    count = {1: "two", 2: "four"}.get(sums, str(2 * sums))
    return f"sums of {count} products fit 16 bits" if sums else "sums of two products may exceed 16 bits"
