"""The best choices of widths where there are more than are kept: thinned by bytes, the best of each part."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.quant import bit_search
from n2d2py.quant.bit_search import WidthChoice, front

KEPT = 7


def thinned(choices: dict[str, list[WidthChoice]]) -> list[tuple[int, float]]:
    """(bytes, error) of what is left: no other is smaller and as good; of each part of the range of bytes the best, and the smallest."""
    states = [(5, 0.0)]
    for options in choices.values():
        every = sorted((size + one.bytes, error + one.error) for size, error in states for one in options)
        states = [each for at, each in enumerate(every) if all(each[1] < other[1] for other in every[:at])]
        if len(states) > KEPT:
            low, high = states[0][0], states[-1][0]
            part = {(size - low) * KEPT // (high - low + 1): (size, error) for size, error in states}
            states = list(dict.fromkeys([states[0], *part.values()]))
    return states


@pytest.mark.parametrize("seed", range(12))
def test_of_many_choices_the_best_of_each_part_are_kept(seed, monkeypatch):
    monkeypatch.setattr(bit_search, "_STATES", KEPT)
    rng = np.random.default_rng(seed)
    choices = {
        name: [WidthChoice(bits, bits * int(size), float(error) / 4**bits) for bits in (8, 4, 2, 1)]
        for name, size, error in zip("abcdefg", rng.integers(1, 60, 7), rng.integers(1, 9, 7), strict=True)
    }
    found, wanted = front(choices, 5), thinned(choices)
    assert list(zip(found.bytes.tolist(), found.errors.tolist(), strict=True)) == wanted and len(wanted) > 4
    for place, (size, error) in enumerate(wanted):
        chosen = [next(one for one in choices[name] if one.bits == bits) for name, bits in found.widths(place).items()]
        assert 5 + sum(one.bytes for one in chosen) == size and sum(one.error for one in chosen) == pytest.approx(error)
        assert found.within(size) == place and found.within(size - 1) == (place - 1 if place else None)
