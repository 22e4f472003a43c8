"""What functions say of themselves holds for their values, over a grid that reaches beyond all their limits."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.operators.functions import FUNCTIONS, ChannelClip, Clip, Elu, HardSigmoid, HardSwish, LeakyRectifier, Step

GRID = np.concatenate([np.linspace(-60, 60, 4801), [-1e4, 1e4, -1e-6, 1e-6]])
WITH_ATTRIBUTES = [
    Clip(),
    Clip(0.0),
    Clip(-1.0, 1.0),
    Clip(0.5, 2.0),
    Clip(-2.0, -1.0),
    Clip(-np.inf, 3.0),
    ChannelClip(0.0, (1.0, 2.0)),
    ChannelClip(-0.5, (1.0, 2.0)),
    LeakyRectifier(0.1),
    LeakyRectifier(0.25, 3.0),
    LeakyRectifier(-0.5),
    Step(0.0),
    Step(0.5, 0.0, None),
    Step(-0.5, 0.0, None),
    Step(0.5, None, 1.0),
    Step(0.0, 0.25, 0.5),
    Step(0.0, -0.25, 0.5),
    Step(0.0, 0.25, -0.5),
    Elu(1.0),
    HardSigmoid(0.2, 0.5),
    HardSwish(),
]
PLAIN = [made() for made in (FUNCTIONS[name] for name in FUNCTIONS) if made not in {type(each) for each in WITH_ATTRIBUTES}]


def values(function) -> np.ndarray:
    """f over the grid, of both channels where it tells them apart; what is not defined left out."""
    x = GRID.reshape(1, 1, -1, 1).repeat(2, 1)
    found = function(x)
    assert found.shape == x.shape and found.dtype == x.dtype
    return found[~np.isnan(found)]


@every("function", [*WITH_ATTRIBUTES, *PLAIN], ids=str)
def test_never_negative(function):
    """A function that says so is; one that could is said to be, but for slopes that nobody has."""
    lowest = values(function).min()
    assert not function.nonnegative or lowest >= 0
    if lowest >= 0 and not isinstance(function, LeakyRectifier):
        assert function.nonnegative, lowest


@every("function", [*WITH_ATTRIBUTES, *PLAIN], ids=str)
def test_clamps(function):
    """A clamp gives values of its range as they are, and what is beyond the nearest limit."""
    x = GRID.reshape(1, 1, -1, 1).repeat(2, 1)
    found = function(x)
    if function.is_clamp:
        low, highs = function.low, np.array(getattr(function, "highs", [getattr(function, "high", 0)] * 2)).reshape(1, 2, 1, 1)
        np.testing.assert_array_equal(found, np.minimum(np.maximum(x, low), highs))
    else:
        inside = found[(found > found[~np.isnan(found)].min()) & (found < found[~np.isnan(found)].max())]
        assert isinstance(function, Step) or not np.isin(inside, GRID).all()


@pytest.mark.parametrize("function", [each for each in [*WITH_ATTRIBUTES, *PLAIN] if each.gate], ids=str)
def test_gates(function):
    """f(x) = x g(x), g being the functions of the gate one after the other."""
    x = GRID[np.abs(GRID) < 50]
    inner = x
    for each in function.gate:
        inner = each(inner)
    np.testing.assert_allclose(function(x), x * inner, rtol=1e-9, atol=1e-12)
