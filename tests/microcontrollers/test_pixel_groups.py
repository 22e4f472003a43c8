"""Groups of taps of the kernels of RV32: within 16 bits, as cheap as any."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from n2d2py.exports.cpp.forms.pixels import _SIZES, group_sizes

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
