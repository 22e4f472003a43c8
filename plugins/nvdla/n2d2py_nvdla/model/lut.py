"""The two look-up tables of the SDP and the CDP: index, hit or miss, choice, interpolation.

Table LE has 65 entries, spaced exponentially or linearly, table LO 257, spaced linearly. Both are asked; priorities
choose where both answer or both miss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from n2d2py_nvdla.model import floats
from n2d2py_nvdla.model.integers import saturate, shift_signed


@dataclass
class Answer:
    """Result of one table: its value, and where the input lay below or above it."""

    value: np.ndarray
    below: np.ndarray
    above: np.ndarray


def _choose(exponential: Answer, linear: Answer, lut: np.void) -> np.ndarray:
    """Return the value that the priorities of `lut` choose, element by element."""
    le, lo = exponential, linear
    le_miss, lo_miss = le.below | le.above, lo.below | lo.above
    take_lo = np.where(
        le.below & lo.below,
        bool(lut["underflow_priority"]),
        np.where(
            le.above & lo.above,
            bool(lut["overflow_priority"]),
            np.where(le_miss == lo_miss, bool(lut["hybrid_priority"]), le_miss),
        ),
    )
    return np.where(take_lo, lo.value, le.value)


def look_up(answer: Callable[..., Answer], lut: np.void, bound: Callable[[int], int] = int) -> np.ndarray:
    """Return result of the two tables of `lut`, selected.

    Args:
        answer: of (table, start, end, whether the index is an exponent, offset or selection, slope below, slope above).
        bound: the number in a register that holds the start or the end of a table.
    """

    def side(name: str, exponential: bool) -> Answer:
        return answer(
            lut[f"{name}_table"],
            bound(lut[f"{name}_start"]),
            bound(lut[f"{name}_end"]),
            exponential,
            int(lut[f"{name}_offset"]["value"]),
            lut[f"{name}_underflow_slope"],
            lut[f"{name}_overflow_slope"],
        )

    return _choose(side("linear_exp", int(lut["method"]) == 0), side("linear_only", False), lut)


def _signed(value: int, bits: int) -> int:
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value


def _floor_log2(x: np.ndarray) -> np.ndarray:
    """floor(log2 x) for positive int64 below 2^53."""
    return np.frexp(np.maximum(x, 1).astype(np.float64))[1].astype(np.int64) - 1


@dataclass(frozen=True)
class Widths:
    """Bits of an integer unit: registers of bounds, fraction, extension by a slope, result; 2^lowest is the smallest
    lower bound of an exponential table that is not its start."""

    bounds: int
    fraction: int
    slope: int
    result: int
    lowest: int


SDP_WIDTHS, CDP_WIDTHS = Widths(32, 35, 32, 32, 1), Widths(38, 16, 56, 16, 0)


def lookup_integers(
    x: np.ndarray, lut: np.void, interpolate: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], widths: Widths
) -> np.ndarray:
    """`interpolate(y0, y1, fraction)` of both tables, chosen, for int64 `x`."""
    fraction_bits = widths.fraction

    def answer(
        table: np.ndarray, start: int, end: int, exponential: bool, number: int, below: np.void, above: np.void
    ) -> Answer:
        last = len(table) - 1
        table = table.astype(np.int64)
        gap = x - start
        positive = np.maximum(gap, 1)
        if exponential:
            exponent = _floor_log2(positive)
            index = exponent - number
            rest = positive - (np.int64(1) << exponent)
            fraction = np.where(
                exponent <= fraction_bits,
                rest << np.maximum(fraction_bits - exponent, 0),
                rest >> np.maximum(exponent - fraction_bits, 0),
            )
            under = (gap <= 0) | (index < 0)
        else:
            shift = max(number, 0)
            index = positive >> shift if number >= 0 else np.minimum(positive, 1 << 20) << min(-number, 40)
            rest = positive & ((1 << shift) - 1)
            fraction = rest << (fraction_bits - number) if number <= fraction_bits else rest >> (number - fraction_bits)
            under = gap <= 0
        over = ~under & (index >= last)
        index = np.clip(index, 0, last - 1)
        value = interpolate(table[index], table[index + 1], fraction)
        bias = 1 << number if exponential and number >= widths.lowest else 0
        value = np.where(under, table[0] + _slope(x - start - bias, below, widths.slope), value)
        value = np.where(over, table[last] + _slope(x - end, above, widths.slope), value)
        return Answer(saturate(value, widths.result), under, over)

    return look_up(answer, lut, lambda bits: _signed(bits, widths.bounds))


def _slope(gap: np.ndarray, slope: np.void, bits: int) -> np.ndarray:
    return shift_signed(gap * int(slope["scale"]), int(_signed(int(slope["shifter"]), 5)), bits)


def half_slope(slope: np.void) -> np.float64:
    """Return the fp16 slope of a table's extension."""
    return np.float64(floats.half_to_fp17(np.asarray(floats.bits_to_half(int(slope["scale"])))))


def lookup_sdp_floats(x: np.ndarray, lut: np.void) -> np.ndarray:
    """Return the SDP's table for float32 `x`: index in fp32, interpolation in fp17."""

    def answer(
        table: np.ndarray, start_bits: int, end_bits: int, exponential: bool, number: int, below: np.void, above: np.void
    ) -> Answer:
        last = len(table) - 1
        values = floats.half_to_fp17(table.view("<f2"))
        start, end = floats.bits_to_single(start_bits), floats.bits_to_single(end_bits)
        gap = floats.add(x, np.float32(-start)).astype(np.float64)
        under = ~(gap > 0)
        positive = np.where(under, 1.0, gap)
        if exponential:
            mantissa, exponent = np.frexp(positive)
            index = exponent - 1 - number
            fraction = mantissa * 2 - 1
            under = under | (index < 0)
        else:
            scaled = np.ldexp(positive, -number)
            index = np.floor(np.minimum(scaled, 2.0**20)).astype(np.int64)
            fraction = np.floor((scaled - np.floor(scaled)) * 2.0**35) / 2.0**35
        over = ~under & (index >= last)
        index = np.clip(index, 0, last - 1)
        value = floats.fp17_add(
            floats.fp17_multiply(floats.fp17(1 - fraction), values[index]),
            floats.fp17_multiply(floats.fp17(fraction), values[index + 1]),
        )
        bias = np.float32(2.0**number) if exponential else np.float32(0)
        for miss, bound, y, slope in (
            (under, floats.add(np.float32(start), bias), values[0], below),
            (over, np.float32(end), values[last], above),
        ):
            away = floats.single_to_fp17(floats.add(x, np.float32(-bound)))
            extended = floats.fp17_add(np.float64(y), floats.fp17_multiply(away, half_slope(slope)))
            value = np.where(miss, extended, value)
        return Answer(value, under, over)

    return look_up(answer, lut).astype(np.float32)
