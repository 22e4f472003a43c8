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
    """For each output, the largest sum of the weights of one sign in one place of `words` words, int64.

    `weights` are integers (O, K) in the order of the kernel; words are taken from the first on.
    """
    count, each = weights.shape[1], 4 * words
    most = max(int(weights.max(initial=0)), -int(weights.min(initial=0)))
    padded = np.zeros((len(weights), -(-count // each) * each), np.int16 if 2 * words * most < 2**15 else np.int32)
    padded[:, :count] = weights
    found = np.zeros(len(weights), np.int64)
    for sign in (-1, 1):
        parts = np.maximum(sign * padded, 0)
        pairs = (parts[:, ::2] + parts[:, 1::2]).reshape(len(weights), -1, words, 2)
        sums = pairs[:, :, 0]
        for word in range(1, words):
            sums = sums + pairs[:, :, word]
        found = np.maximum(found, sums.max(axis=(1, 2)))
    return found
