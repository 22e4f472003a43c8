"""Products of bytes that are summed in 16 bits, as `vpmaddubsw` does: for which weights that is exact.

Inputs are bytes from 0 to 255 (signed ones + 128). A word holds four of them, and the products of its inputs 0 and 1 go to one place
of 16 bits, those of 2 and 3 to another. The sums of a place are exact where its weights of one sign add up to at most 128:
255 * 128 < 2^15 < 255 * 129.
"""

from __future__ import annotations

import numpy as np

PLACE_LIMIT = 128
"""What the weights of one sign of a place may add up to."""


def largest_place(weights: np.ndarray, words: int) -> np.ndarray:
    """For each output, the largest sum of the weights of one sign in one place of `words` words (1 or 2), int64.

    `weights` are integers (O, K) in the order of the kernel; words are taken from the first on.
    """
    rows, each = weights.astype(np.int64), 4 * words
    padded = np.zeros((len(rows), -(-rows.shape[1] // each) * each), np.int64)
    padded[:, : rows.shape[1]] = rows
    places = padded.reshape(len(rows), -1, words, 2, 2)
    return np.maximum(*(np.maximum(sign * places, 0).sum(axis=(2, 4)).max(axis=(1, 2)) for sign in (-1, 1)))
