"""Groups of taps of the kernels of RV32: within 16 bits, as cheap as any, and the stream says them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from n2d2py.exports.cpp.forms.pixels import _SIZES, group_sizes, pixel_stream

LIMIT = 255


def blocks(weights: np.ndarray) -> np.ndarray:
    """Weights (O, K) of even O and K as (O / 2, 2, K)."""
    return weights.reshape(len(weights) // 2, 2, -1)


def cheapest(rows: np.ndarray) -> int:
    """Instructions of the best groups of (2, K), by trying all."""
    reach = np.abs(rows)

    @cache
    def rest(at: int) -> int:
        if at == reach.shape[1]:
            return 0
        fits = [taps for taps in _SIZES if at + taps <= reach.shape[1] and reach[:, at : at + taps].sum(axis=1).max() <= LIMIT]
        return min(_SIZES[taps][1] + rest(at + taps) for taps in fits)

    return rest(0)


@pytest.mark.parametrize("inputs", [2, 4, 6, 10, 40])
@pytest.mark.parametrize("most", [20, 60, 127])
def test_groups(inputs, most):
    weights = np.random.default_rng(inputs).integers(-most, most, (12, inputs), endpoint=True)
    for rows, sizes in zip(blocks(weights), group_sizes(blocks(weights)), strict=True):
        ends = np.cumsum(sizes)
        assert ends[-1] == inputs and set(sizes) <= set(_SIZES)
        assert all(np.abs(part).sum(axis=1).max() <= LIMIT for part in np.split(rows, ends[:-1], axis=1))
        assert sum(_SIZES[taps][1] for taps in sizes) == cheapest(rows)


def test_stream():
    """Two blocks, the second of one output: biases, sizes and weights, multipliers; eleven groups are more than a word has."""
    weights = np.full((3, 45), 127)
    weights[0, ::2] = -127
    stream = pixel_stream(weights, np.array([5, -6, 7]), np.array([[200, 400, 600]])).tobytes()
    expected = b""
    for pair, biases, factors in (
        (weights[:2], (5, -6), (200, 400)),
        (np.stack([weights[2], weights[2] * 0]), (7, 0), (600, 0)),
    ):
        filled = np.concatenate([pair, np.zeros((2, 1), int)], axis=1)
        expected += np.array([bias - (1 << 15) * 23 for bias in biases], "<i4").tobytes()
        for begin, end in ((0, 20), (20, 40), (40, 46)):
            bits = sum(1 << (29 - 3 * i) for i in range((end - begin) // 2))
            expected += np.array([bits], "<u4").tobytes() + filled[:, begin:end].T.astype(np.int8).tobytes()
        expected += np.array(factors, "<i4").tobytes()
    assert stream == expected
