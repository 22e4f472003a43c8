"""The rescaling modes against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, FloatRescale, ShiftRescale, make_rescale

LOW, HIGH = -127, 127


def clamp(value: int) -> int:
    return max(LOW, min(HIGH, value))


def test_float_rounds_ties_to_even():
    acc = np.array([1, 3, 5, -1, -3, -5, 7], np.int64)
    assert FloatRescale([0.5]).apply(acc, LOW, HIGH).tolist() == [0, 2, 2, 0, -2, -2, 4]


def test_fixed_point_ties_go_up():
    acc = np.array([1, 3, -1, -3, -5], np.int64)
    rescale = FixedPointRescale(np.array([1]), 1, 31)
    assert rescale.apply(acc, LOW, HIGH).tolist() == [1, 2, 0, -1, -2]


def test_fixed_point_without_shift_is_a_product():
    rescale = FixedPointRescale(np.array([3]), 0, 15)
    assert rescale.apply(np.array([-5, 4]), LOW, HIGH).tolist() == [-15, 12]


def test_float_converts_large_accumulators_like_a_cast():
    acc = np.array([2**24 + 1, 2**24 + 3, -(2**31) + 1], np.int64)
    factor = np.float32(2.0**-20)
    expected = [int(np.rint(np.float32(a) * factor)) for a in acc]
    assert FloatRescale([factor]).apply(acc, -3000, 3000).tolist() == expected


@every("mode", ["Fixed-point16", "Fixed-point32", "Fixed-point-p32", "Single-shift", "Double-shift"])
@every("seed", [0, 1])
def test_integer_modes_are_exact_rational_arithmetic(mode, seed):
    generator = np.random.default_rng(seed)
    factors = 10.0 ** generator.uniform(-6, -0.1, 8)
    rescale, replaced = make_rescale(mode, factors)
    assert not replaced
    acc = generator.integers(-(2**31) + 1, 2**31, (50, 8))
    result = rescale.apply(acc, LOW, HIGH)
    for channel in range(8):
        if isinstance(rescale, FixedPointRescale):
            m, shift = int(rescale.multipliers[channel]), rescale.shift
        else:
            m, shift = int(rescale.multipliers[channel]), int(rescale.second[channel])
        for row in range(50):
            exact = Fraction(int(acc[row, channel]) * m, 2**shift) + (Fraction(1, 2) if shift else 0)
            assert result[row, channel] == clamp(exact.numerator // exact.denominator)


def test_the_high_word_is_taken_where_the_multipliers_fit():
    factors = np.array([0.4999, 0.001, 1e-9])
    rescale, replaced = make_rescale("Fixed-point-p32", factors)
    assert isinstance(rescale, FixedPointRescale) and rescale.shift == 32 and not replaced
    assert rescale.multipliers.tolist() == [round(factor * 2**32) for factor in factors]
    acc = np.array([2**31 - 1, -(2**31) + 1])
    wrong = np.abs(acc[:, None] * rescale.effective() - acc[:, None] * factors)
    assert wrong.max() <= 0.25
    general, replaced = make_rescale("Fixed-point-p32", np.array([0.5, 0.001]))  # 2^31 is no multiplier
    expected, _ = make_rescale("Fixed-point32", np.array([0.5, 0.001]))
    assert isinstance(general, FixedPointRescale) and isinstance(expected, FixedPointRescale) and not replaced
    assert (general.shift, general.multipliers.tolist()) == (expected.shift, expected.multipliers.tolist())


@pytest.mark.parametrize("mode, tolerance", [("Fixed-point16", 2.0**-9), ("Fixed-point32", 2.0**-20)])
def test_fixed_point_factor_is_near(mode, tolerance):
    factors = np.array([0.013, 0.004, 0.9])
    rescale, _ = make_rescale(mode, factors)
    assert np.max(np.abs(rescale.effective() / factors - 1)) < tolerance


def test_shifts_are_never_below_the_factor():
    factors = np.array([0.3, 0.25, 0.01, 1.0, 0.74])
    single, _ = make_rescale("Single-shift", factors)
    double, _ = make_rescale("Double-shift", factors)
    assert (single.effective() >= factors).all() and (single.effective() < 2 * factors).all()
    assert (double.effective() >= factors).all() and (double.effective() <= 1.34 * factors).all()
    assert single.effective().tolist() == [0.5, 0.25, 2.0**-6, 1.0, 1.0]


def test_factor_above_one_leaves_the_shift_modes():
    rescale, replaced = make_rescale("Single-shift", np.array([1.5]))
    assert replaced and isinstance(rescale, FixedPointRescale) and rescale.bits == 15
    rescale, replaced = make_rescale("Fixed-point16", np.array([1e6]))
    assert replaced and rescale.effective()[0] == pytest.approx(1e6)


def test_products_stay_within_63_bits():
    rescale, _ = make_rescale("Fixed-point32", np.array([0.9999]), acc_bits=45)
    assert int(np.max(rescale.multipliers)) < 2**18
    shift = ShiftRescale(np.array([40]), np.array([10]))
    assert shift.apply(np.array([2**31 - 1]), LOW, HIGH).tolist() == [127]


def multiplied(x: int, multiplier: int, exponent: int) -> int:
    """MultiplyByQuantizedMultiplier of TFLite, from the definitions of gemmlowp: quotients are truncated."""
    product = x * 2 ** max(exponent, 0) * multiplier
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    high = abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)
    right = max(-exponent, 0)
    mask = 2**right - 1
    return (high >> right) + int((high & mask) > (mask >> 1) + (high < 0))


@every("exponent", [3, 0, -1, -2, -7, -12, -31])
def test_doubling_is_gemmlowps(exponent):
    generator = np.random.default_rng(exponent + 40)
    near = np.arange(-(2**9), 2**9) * 2 ** min(max(-exponent - 1, 0), 17)  # ties
    acc = np.concatenate([near, generator.integers(-(2**27), 2**27, 500), [2**27, -(2**27)]])
    for multiplier in (2**30, 2**31 - 1, *map(int, generator.integers(2**30, 2**31, 3))):
        rescale = DoublingRescale(np.array([multiplier]), np.array([-exponent]))
        expected = [multiplied(int(x), multiplier, exponent) for x in acc]
        assert rescale.apply(acc, -(2**31), 2**31 - 1).tolist() == expected
        once = DoublingRescale(np.array([multiplier]), np.array([-exponent]), twice=False)
        exact = [Fraction(int(x) * multiplier, 2 ** (31 - exponent)) + Fraction(1, 2) for x in acc]
        assert once.apply(acc, -(2**31), 2**31 - 1).tolist() == [one.numerator // one.denominator for one in exact]


def test_doubling_rounds_ties_away_from_zero():
    rescale = DoublingRescale(np.array([2**30]), np.array([1]))  # a quarter
    acc = np.array([-10, -6, -3, -2, -1, 0, 1, 2, 3, 6, 10])
    assert rescale.apply(acc, -127, 127).tolist() == [-3, -2, -1, -1, 0, 0, 1, 1, 1, 2, 3]
    assert rescale.effective().tolist() == [0.25]
