"""Products of bytes that the kernels sum in 16 bits (`ByteTile` in `kernels/n2d2/x86`): for which layers that is exact."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import PLACE_LIMIT, NumType, largest_place


def byte_sums(weights: np.ndarray, inputs: NumType) -> int:
    """How many words' products of a place 16 bits hold: 2, 1, or 0 where not even those of one word.

    `weights` are integers (O, K) in the kernel's order.
    """
    if inputs.is_float or inputs.bits != 8:
        return 0
    return next((words for words in (2, 1) if largest_place(weights, words).max() <= PLACE_LIMIT), 0)


def explained(sums: int) -> str:
    """The clause of the report."""
    return ("sums of two products may exceed 16 bits", "sums of two products fit 16 bits", "sums of four products fit 16 bits")[
        sums
    ]
