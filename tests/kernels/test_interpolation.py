"""Functions of 16-bit integers: C++ gives Python's integers for all 65,536 inputs, within one step of the function."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernel_cases import S16
from support.kernel_interpolation import FUNCTIONS, layer

from n2d2py.arithmetic.interpolated import interpolate, nearest_defined
from n2d2py.graph.forms import Interpolated
from n2d2py.operators.functions import HardSigmoid


@pytest.mark.parametrize("function", FUNCTIONS, ids=repr)
def test_within_one_step_of_the_function(function):
    node, x, y = layer(function, S16, S16)
    stored = np.arange(x.qmin, x.qmax + 1)
    with np.errstate(all="ignore"):
        real = nearest_defined(function(stored * x.scale))
    knots = FUNCTIONS[function][2]
    assert isinstance(node.form, Interpolated) == (knots > 0), node.form
    if knots:
        assert node.form.knots.size - 1 == knots
        found = interpolate(node.form.knots, stored + 2**15, y.qmin, y.qmax)
        off = np.abs(found - np.clip(real / y.scale, y.qmin, y.qmax)).max()
        assert off <= (0.75 if function != HardSigmoid() else 0.92), off
    else:
        assert np.abs(node.form.table - np.clip(np.rint(real / y.scale), y.qmin, y.qmax)).max() <= 1  # of float32 inputs


def test_lines_by_hand():
    """Two knots 256 inputs apart with 5 bits of fraction: 10 and 20, a quarter of the way and half of it."""
    knots = np.zeros(257, np.int32)
    knots[1:3] = 10 * 32, 20 * 32
    assert interpolate(knots, np.array([256, 256 + 64, 256 + 128, 512]), 0, 19).tolist() == [10, 13, 15, 19]


def test_what_is_not_a_number_gets_its_neighbour():
    nan = np.nan
    assert nearest_defined(np.array([nan, 1, nan, nan, 4, nan])).tolist() == [1, 1, 1, 4, 4, 4]
    assert nearest_defined(np.array([nan])) is None
