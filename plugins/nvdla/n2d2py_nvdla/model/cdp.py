"""CDP, the channel data processor: local response normalization by look-up tables.

y = x * f(sum of the squares of the neighbouring channels). Lanes of the last atom after the last channel are read as
the value that converts to 0, whatever lies in memory, and written like the others (nvdla/hw, cmod/cdp).
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import BYTES, FP16, INT8
from n2d2py_nvdla.model import floats
from n2d2py_nvdla.model.formats import DTYPES
from n2d2py_nvdla.model.integers import convert, shift_right
from n2d2py_nvdla.model.lut import CDP_WIDTHS, Answer, half_slope, look_up, lookup_integers
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.program import DlaTask, Operation


def cdp(machine: Machine, task: DlaTask, operation: Operation) -> np.ndarray:
    """Return the result (C, H, W)."""
    op = operation.op
    precision, size, index = int(op["in_precision"]), int(op["local_size"]), int(op["lut_index"])
    if size not in (3, 5, 7, 9) or int(op["out_precision"]) != precision or not 0 <= index < len(task.luts):
        raise N2D2Error(
            "E903",
            f"{operation.name}: local size {size}, precisions {precision} to "
            f"{int(op['out_precision'])}, look-up table {index} of {len(task.luts)}",
            where=machine.name,
            remedy="compile it again",
        )
    x = machine.read_cube(task, operation, "src_data", precision)
    channels = int(operation.surface["src_data"]["channel"])
    return (_floats if precision == FP16 else _integers)(x, channels, op, task.luts[index], size // 2)


def _integers(x: np.ndarray, channels: int, op: np.void, lut: np.void, half: int) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    into, out = op["in_cvt"], op["out_cvt"]
    offset = int(into["offset"])
    if x.dtype.itemsize == BYTES[INT8]:
        offset = ((offset & 0xFF) ^ 0x80) - 0x80
    v = convert(x.astype(np.int64), offset, int(into["scale"]), int(into["truncate"]) & 31, bits + 1)
    v[channels:] = 0
    if op["bypass_sqsum"]:
        index = v
    else:
        squares = np.pad(v * v, ((half, half), (0, 0), (0, 0)))
        index = reduce(np.add, (squares[i : i + len(v)] for i in range(2 * half + 1)))
    y = lookup_integers(index, lut, lambda y0, y1, f: y0 + shift_right((y1 - y0) * f, 16), CDP_WIDTHS)
    if not op["bypass_out_mul"]:
        y = y * v
    offset = int(out["offset"])
    if bits == 8:
        offset = ((offset & 0x1FFFFFF) ^ 0x1000000) - 0x1000000
    return convert(y, offset, int(out["scale"]), int(out["truncate"]) & 63, bits).astype(x.dtype)


def _floats(x: np.ndarray, channels: int, op: np.void, lut: np.void, half: int) -> np.ndarray:
    v = floats.half_to_fp17(x).astype(np.float32)
    v[channels:] = 0
    if op["bypass_sqsum"]:
        index = v
    else:
        squares = np.pad(floats.multiply(v, v), ((4, 4), (0, 0), (0, 0)))

        def at(shift: int) -> np.ndarray:
            return squares[4 + shift : 4 + shift + len(v)]

        index = floats.add(floats.add(at(-1), at(1)), at(0))
        for distance in range(2, half + 1):
            index = floats.add(index, floats.add(at(-distance), at(distance)))
    y = _look_up(index, lut)
    if not op["bypass_out_mul"]:
        y = floats.fp17_multiply(v.astype(np.float64), y)
    return floats.fp17_to_half(y).astype(DTYPES[FP16])


def _look_up(x: np.ndarray, lut: np.void) -> np.ndarray:
    """Return the CDP's table for float32 `x`: index in fp32, a 16-bit fraction, interpolation in fp17."""

    def answer(
        table: np.ndarray, start_bits: int, end_bits: int, exponential: bool, number: int, below: np.void, above: np.void
    ) -> Answer:
        last = len(table) - 1
        halves = floats.half_to_single(table.view("<f2"))
        start, end = floats.bits_to_single(start_bits), floats.bits_to_single(end_bits)
        gap = floats.add(x, np.float32(-start))
        under = ~(gap > 0)
        positive = np.where(under, np.float32(1), gap).astype(np.float64)
        if exponential:
            mantissa, exponent = np.frexp(positive)
            index = exponent - 1 - number
            fraction = np.floor((mantissa * 2 - 1) * 65536)
            under = under | (index < 0)
        else:
            scaled = positive.astype(np.float32).astype(np.float64) * 2.0**-number
            index = np.floor(np.minimum(scaled, 2.0**20)).astype(np.int64)
            fraction = np.floor((scaled - np.floor(scaled)) * 65536)
        over = ~under & (index >= last)
        index = np.clip(index, 0, last - 1)
        step = floats.single_to_fp17(floats.add(halves[index + 1], -halves[index]))
        value = floats.fp17_add(floats.fp17_multiply(step, floats.fp17(fraction / 65536)), halves[index].astype(np.float64))
        bias = np.float32(2.0**number) if exponential and number > -127 else np.float32(0)
        for miss, bound, y, slope in (
            (under, floats.add(np.float32(start), bias), halves[0], below),
            (over, np.float32(end), halves[last], above),
        ):
            away = floats.single_to_fp17(floats.add(x, np.float32(-bound)))
            value = np.where(miss, floats.fp17_add(floats.fp17_multiply(away, half_slope(slope)), np.float64(y)), value)
        return Answer(value, under, over)

    return look_up(answer, lut)
