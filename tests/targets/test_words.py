"""Word accuracy: least errors of an alignment, by hand and against a search of all alignments."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from n2d2py.targets.detections import Words


@pytest.mark.parametrize(
    "found, spoken, errors",
    [
        ((), (), (0, 0, 0)),
        ((1, 2), (), (0, 0, 2)),
        ((), (1, 2), (0, 2, 0)),
        ((1, 2, 3), (1, 2, 3), (0, 0, 0)),
        ((1, 4, 3), (1, 2, 3), (1, 0, 0)),
        ((1, 3), (1, 2, 3), (0, 1, 0)),
        ((1, 2, 2, 3), (1, 2, 3), (0, 0, 1)),
        ((2, 3, 1), (1, 2, 3), (0, 1, 1)),
        (tuple(b"sitting"), tuple(b"kitten"), (2, 0, 1)),
    ],
)
def test_by_hand(found, spoken, errors):
    assert Words((found,), (spoken,)).errors == errors


def least(found: tuple[int, ...], spoken: tuple[int, ...]) -> int:
    """The least number of errors, by recursion."""

    @cache
    def rest(i: int, j: int) -> int:
        if i == len(found) or j == len(spoken):
            return len(found) - i + len(spoken) - j
        return min(rest(i + 1, j) + 1, rest(i, j + 1) + 1, rest(i + 1, j + 1) + (found[i] != spoken[j]))

    return rest(0, 0)


def test_random_sequences():
    """Over several recordings; the errors explain the difference of the lengths."""
    rng = np.random.default_rng(1)
    pairs = [[tuple(rng.integers(0, 3, rng.integers(0, 9)).tolist()) for _ in range(2)] for _ in range(200)]
    words = Words(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
    wrong, missing, extra = words.errors
    assert wrong + missing + extra == sum(least(*each) for each in pairs)
    assert extra - missing == sum(len(a) - len(b) for a, b in pairs) and min(wrong, missing, extra) > 0
    assert words.percent == 100 * (1 - (wrong + missing + extra) / words.count)
    assert Words(((1,),), ((),)).percent is None and words.of(np.array([3])).spoken == (pairs[3][1],)
