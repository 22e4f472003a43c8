"""NaN, infinities, both zeros, the ends of the types: kernels of every instruction set against the normative arithmetic."""

import numpy as np
import pytest
from support.kernel_builds import TARGETS, X86, check_build, on_builds
from support.kernel_cases import S16
from support.kernel_interpolation import FUNCTIONS, layer
from support.kernel_numbers import edge_cases

from n2d2py.arithmetic import NumType, plain_type
from n2d2py.arithmetic.interpolated import interpolate, nearest_defined
from n2d2py.contracts.functions import HardSigmoid
from n2d2py.graph.forms import Interpolated


def test_stored_values_by_hand():
    """5 / 0.5 - 3 = 7; NaN counts as 0, which the zero point stands for; infinities saturate."""
    real = np.array([5, np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    for kind in (np.float32, np.float64):
        assert NumType(8, scale=0.5, zero_point=-3).quantize(real.astype(kind)).tolist() == [7, -3, 127, -127, -3, -3]
    assert NumType(8, False, scale=0.5).quantize_linear(real).tolist() == [10, 0, 255, 0, 0, 0]
    assert plain_type("int16").quantize(real).tolist() == [5, 0, 32767, -32768, 0, 0]


@on_builds(
    {"-O0,-fsanitize=undefined,-fno-sanitize-recover=all": 1},
    f"g++|clang++ -O2 {X86}",
    "-O1 emulated-avx512|emulated-avxvnni",
    f"-O2 {'|'.join(sorted(TARGETS))}",
)
def test_edges(tmp_path, build, every):
    check_build(edge_cases(3), tmp_path, build)


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
