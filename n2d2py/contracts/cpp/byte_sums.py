"""8-bit products that kernels accumulate in 16 bits (`ByteTile` in `kernels/n2d2/x86`): exactness per layer."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType, largest_place

PRODUCT_TIMES = (1.0, 0.77, 0.64)
"""Relative time of an 8-bit multiplication of the x86 kernels where sums of 0, 2 and 4 products fit 16 bits (docs/lab/speed_kernels.md)."""
LONG = 8
"""Run length from which a 16-bit accumulator is kept from word to word, and widened when they are added up."""
_RUNS = (256, 128, 96, 64, 48, 32, 24, 16, 12, LONG)
_FEW = 4
_LARGEST = 2**15 - 1
_SOME = 16


def _largest_input(inputs: NumType, bounded: bool) -> int:
    """Return the largest kernel input, from 0: any byte, or the largest of the type."""
    return inputs.qmax + (128 if inputs.signed else 0) if bounded else 255


def _longest_run(weights: np.ndarray, most: int, runs: tuple[int, ...]) -> int:
    """Return the first of `runs` for which products of that many words of `weights` (rows, K) with inputs of 0 to `most` fit 16
    bits, or 0."""

    def fits(words: int) -> bool:
        # 8-bit weights seldom fit, which some rows show
        return all(most * int(largest_place(rows, words).max()) <= _LARGEST for rows in (weights[:_SOME], weights))

    return next((words for words in runs if fits(words)), 0)


def long_run(weights: np.ndarray, most: int) -> int:
    """Return the number of words whose products with inputs of 0 to `most` fit 16 bits in `weights` (rows, K): all of a row, or
    one of some numbers from LONG on; else 0."""
    every = -(-weights.shape[1] // 4)
    if every >= _FEW and not _longest_run(weights, most, (_FEW,)):
        return 0  # each of the runs holds whole runs of so many: seldom more than this is computed for 8-bit weights
    return _longest_run(weights, most, (every, *(words for words in _RUNS if words < every)))


def byte_sums(weights: np.ndarray, inputs: NumType, *, bounded: bool = False) -> int:
    """Return `long_run`, or 2, 1, or 0 if not even the products of one word fit.

    `weights` are integers (O, K) in the kernel's order. Inputs may be any byte; with `bounded`, any value of their type.
    """
    if inputs.is_float or inputs.bits != 8:
        return 0
    most = _largest_input(inputs, bounded)
    long = long_run(weights, most) if weights.shape[1] > 8 else 0
    return long or _longest_run(weights, most, (2, 1))


def describe_sums(sums: int) -> str:
    """Return the clause for the report."""
    count = {1: "two", 2: "four"}.get(sums, str(2 * sums))
    return f"sums of {count} products fit 16 bits" if sums else "sums of two products may exceed 16 bits"
