"""The floating-point arithmetic of the units against exact fractions, with infinities, NaNs, subnormals and ties."""

from fractions import Fraction

import numpy as np
import pytest

from n2d2py_nvdla.model import floats

SINGLE, SEVENTEEN, HALF = (8, 23), (6, 10), (5, 10)
"""(exponent bits, mantissa bits)."""


def parts(bits: int, kind: tuple[int, int]) -> tuple[int, int, int]:
    expo, mant = kind
    return bits >> (expo + mant) & 1, bits >> mant & ((1 << expo) - 1), bits & ((1 << mant) - 1)


def is_nan(bits: int, kind: tuple[int, int]) -> bool:
    _, expo, mant = parts(bits, kind)
    return expo == (1 << kind[0]) - 1 and mant != 0


def value(bits: int, kind: tuple[int, int], subnormals: bool = False) -> Fraction:
    """The magnitude's exact value with its sign; a subnormal number is 0 unless wanted."""
    sign, expo, mant = parts(bits, kind)
    bias = (1 << kind[0] - 1) - 1
    if expo == 0:
        size = Fraction(mant, 1 << kind[1]) * Fraction(2) ** (1 - bias) if subnormals else Fraction(0)
    else:
        size = (1 + Fraction(mant, 1 << kind[1])) * Fraction(2) ** (expo - bias)
    return -size if sign else size


def packed(x: Fraction, sign: int, kind: tuple[int, int], subnormals: bool = False) -> int:
    """The nearest number, ties to even; beyond the largest it is the largest, below the smallest normal one 0 or subnormal."""
    expo, mant = kind
    bias = (1 << expo - 1) - 1
    top = sign << (expo + mant)
    size = abs(x)
    if size == 0:
        return top
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= size < Fraction(2) ** power
    step = max(power, 1 - bias) if subnormals else power
    scaled = size / Fraction(2) ** step * (1 << mant)
    whole = int(scaled)
    rest = scaled - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
    if whole >> mant > 1:
        whole, step = whole >> 1, step + 1
    field = step + bias if whole >> mant else 0
    if field >= (1 << expo) - 1:
        return top | ((1 << expo) - 2) << mant | (1 << mant) - 1
    if field <= 0 and not (subnormals and field == 0):
        return top
    return top | field << mant | whole & ((1 << mant) - 1)


def added(a: int, b: int, kind: tuple[int, int]) -> int:
    for one in (a, b):
        if is_nan(one, kind):
            return one
    x, y = value(a, kind), value(b, kind)
    size = sum(kind)
    sign = (a if abs(x) >= abs(y) else b) >> size & 1
    total = x + y
    if abs(total) < Fraction(2) ** (2 - (1 << kind[0] - 1)):  # before rounding
        return sign << size
    return packed(total, sign, kind)


def multiplied(a: int, b: int, kind: tuple[int, int]) -> int:
    for one in (a, b):
        if is_nan(one, kind):
            return one
    return packed(value(a, kind) * value(b, kind), (a ^ b) >> sum(kind) & 1, kind)


def singles(random: np.random.Generator, count: int) -> np.ndarray:
    """float32 bits as the units hold them: no infinities, no subnormals; close exponents, zeros and NaNs are frequent."""
    sign, expo = random.integers(0, 2, count), random.choice([0, 1, 100, 120, 126, 127, 128, 129, 150, 152, 253, 254], count)
    mant = random.choice([0, 1, 0x400000, 0x7FFFFF, 0x7FFFFE, 0x555555], count) ^ (
        random.integers(0, 2, count) * random.integers(0, 1 << 23, count)
    )
    bits = sign << 31 | expo << 23 | np.where(expo == 0, 0, mant)
    nan = random.integers(0, 12, count) == 0
    return np.where(nan, sign << 31 | 0x7F800000 | random.integers(1, 1024, count), bits).astype(np.uint32)


def test_single_precision():
    random = np.random.default_rng(1)
    a, b = singles(random, 1500), singles(random, 1500)
    x, y = a.view(np.float32), b.view(np.float32)
    for function, wanted in ((floats.add, added), (floats.multiply, multiplied)):
        found = np.asarray(function(x, y), np.float32).view(np.uint32)
        for i in range(len(a)):
            expected = wanted(int(a[i]), int(b[i]), SINGLE)
            exact = abs(value(int(a[i]), SINGLE) * value(int(b[i]), SINGLE))
            if wanted is multiplied and Fraction(2) ** -127 < exact < Fraction(2) ** -126:
                continue  # within the last step below the smallest normal number NumPy rounds in wider steps
            assert found[i] == expected, (function.__name__, hex(a[i]), hex(b[i]), hex(found[i]), hex(expected))


def halves(random: np.random.Generator, count: int) -> np.ndarray:
    return random.integers(0, 1 << 16, count).astype(np.uint16)


def test_halves_become_singles_and_back():
    bits = np.arange(1 << 16, dtype=np.uint16)
    single = floats.half_to_single(bits.view(np.float16))
    found = np.asarray(single, np.float32).view(np.uint32)
    for half in range(0, 1 << 16, 13):
        sign, expo, mant = parts(half, HALF)
        if expo == 31:
            wanted = sign << 31 | (0x7F800000 | mant if mant else 0x7F7FFFFF)
        else:
            wanted = packed(value(half, HALF, True), sign, SINGLE)
        assert found[half] == wanted, hex(half)
    back = floats.single_to_half(single).view(np.uint16)
    infinite = (bits & 0x7FFF) == 0x7C00
    assert np.array_equal(back[~infinite], bits[~infinite])
    assert set(back[infinite].tolist()) == {0x7BFF, 0xFBFF}


def test_singles_become_halves():
    random = np.random.default_rng(2)
    bits = (
        random.integers(0, 2, 3000) << 31
        | random.integers(95, 150, 3000) << 23
        | random.choice([0, 0x1000, 0x3000, 0x7FF000, 1], 3000)
        | random.integers(0, 2, 3000) * random.integers(0, 1 << 23, 3000)
    )
    found = floats.single_to_half(bits.astype(np.uint32).view(np.float32)).view(np.uint16)
    for one, half in zip(bits.tolist(), found.tolist(), strict=True):
        assert half == packed(value(one, SINGLE), one >> 31, HALF, True), hex(one)


def seventeen(bits: int) -> float:
    return float(value(bits, SEVENTEEN))


@pytest.mark.parametrize("function, wanted", [(floats.fp17_add, added), (floats.fp17_multiply, multiplied)])
def test_seventeen_bits(function, wanted):
    random = np.random.default_rng(3)
    a = (
        random.integers(0, 2, 2000) << 16
        | random.choice([0, 1, 2, 16, 30, 31, 32, 41, 60, 61, 62], 2000) << 10
        | random.integers(0, 1024, 2000)
    )
    b = (
        random.integers(0, 2, 2000) << 16
        | random.choice([0, 1, 2, 16, 30, 31, 32, 41, 60, 61, 62], 2000) << 10
        | random.integers(0, 1024, 2000)
    )
    for one in (a, b):
        one[(one >> 10 & 63) == 0] &= 0x10000
    x, y = (np.array([np.copysign(seventeen(int(one)), -1.0 if one >> 16 & 1 else 1.0) for one in values]) for values in (a, b))
    found = function(x, y)
    for i in range(len(a)):
        expected = wanted(int(a[i]), int(b[i]), SEVENTEEN)
        assert found[i] == seventeen(expected) and np.signbit(found[i]) == bool(expected >> 16), (
            hex(a[i]),
            hex(b[i]),
            found[i],
        )


def test_singles_become_seventeen_bits():
    """Below the smallest normal number in steps of 2^-40: what reaches it becomes it, what does not becomes 0."""
    smallest = Fraction(2) ** -30
    random = np.random.default_rng(4)
    bits = (
        random.integers(0, 2, 3000) << 31
        | random.integers(94, 162, 3000) << 23
        | random.choice([0, 0x7FF000, 0x7FFFFF, 0x1000], 3000) ^ random.integers(0, 2, 3000) * random.integers(0, 1 << 23, 3000)
    )
    found = floats.single_to_fp17(bits.astype(np.uint32).view(np.float32))
    for one, real in zip(bits.tolist(), found.tolist(), strict=True):
        exact, sign = value(one, SINGLE), one >> 31
        if abs(exact) < smallest:
            scaled = abs(exact) * 2**40
            low = int(scaled) + (
                scaled - int(scaled) > Fraction(1, 2) or (scaled - int(scaled) == Fraction(1, 2) and int(scaled) & 1)
            )
            wanted = float(smallest) if low >= 1024 else 0.0
        else:
            wanted = abs(seventeen(packed(exact, 0, SEVENTEEN)))
        assert abs(real) == wanted and np.signbit(real) == bool(sign), hex(one)


def test_order_and_equality():
    special = np.array([0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800001, 0xFF800002, 0x7F7FFFFF], np.uint32)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(special, special))
    x, y = a.view(np.float32), b.view(np.float32)
    unequal = floats.unequal(x, y).view(np.uint32)
    assert np.array_equal(unequal, (a != b).astype(np.uint32))
    for function, larger in ((floats.maximum, True), (floats.minimum, False)):
        found = function(x, y).view(np.uint32)
        for i in range(len(a)):
            one, two = int(a[i]), int(b[i])
            if is_nan(one, SINGLE) or is_nan(two, SINGLE):
                wanted = one if is_nan(one, SINGLE) else two
            else:
                order = sorted((one, two), key=lambda bits: (value(bits, SINGLE), bits >> 31 == 0))
                wanted = order[1] if larger else order[0]
            assert found[i] == wanted, (function.__name__, hex(one), hex(two))
