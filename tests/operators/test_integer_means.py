"""Means of integers are cut off towards zero, as in C++."""

from __future__ import annotations

import numpy as np

from n2d2py.operators.arrays.reduce import _mean


def test_means_of_integers_are_cut_off_towards_zero():
    rows = np.array([[a, b, c] for a in range(-4, 5) for b in (-1, 0, 3) for c in (0, 1)], np.int32)
    assert _mean(rows).tolist() == [int(sum(row) / 3) for row in rows.tolist()]
