"""Look-up tables for the SDP's Y unit and for the CDP."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from n2d2py_nvdla import firmware
from n2d2py_nvdla.export.arithmetic import single_bits

RANGE = 8.0
"""fp16 functions are tabulated from -RANGE to RANGE."""


def integer_table(values: np.ndarray) -> np.void:
    """Return a table that holds the int8 result of each stored int8 value: `values` for -128 to 127."""
    lut = np.zeros((), firmware.LUT)
    full = np.append(values, values[-1]).astype("<i2")
    lut["linear_only_table"] = full
    lut["linear_exp_table"] = full[:65]
    lut["linear_only_start"] = np.uint64(2**64 - 128)
    lut["linear_exp_start"] = np.uint64(2**64 - 128)
    lut["linear_only_end"] = 128
    lut["linear_exp_end"] = np.uint64(2**64 - 64)
    _prefer_linear(lut)
    return firmware.descriptor(lut)


def function_table(function: Callable[[np.ndarray], np.ndarray]) -> np.void:
    """fp16: `function` at 257 points, straight lines between them, tangents after the ends."""
    lut = np.zeros((), firmware.LUT)
    points = np.linspace(-RANGE, RANGE, 257)
    with np.errstate(all="ignore"):
        values = function(points)
    lut["linear_only_table"] = values.astype("<f2").view("<i2")
    lut["linear_exp_table"] = values[::4].astype("<f2").view("<i2")
    for name, number in (("linear_only", -4), ("linear_exp", -2)):
        lut[f"{name}_start"] = single_bits(-RANGE) & 0xFFFFFFFF
        lut[f"{name}_end"] = single_bits(RANGE)
        lut[f"{name}_offset"]["value"] = number
        step = RANGE / 128
        for side, slope in (("underflow", (values[1] - values[0]) / step), ("overflow", (values[-1] - values[-2]) / step)):
            lut[f"{name}_{side}_slope"]["scale"] = np.array(slope, np.float16).view(np.int16)
    _prefer_linear(lut)
    return firmware.descriptor(lut)


def normalization_table(alpha: float, beta: float, k: float) -> np.void:
    """fp16: (k + alpha * s)^-beta for the sum of squares s: in 256 steps to 8 to 16 times k / alpha, then by octaves."""
    lut = np.zeros((), firmware.LUT)
    knee = int(np.clip(np.floor(np.log2(k / alpha)), -20, 40)) if alpha > 0 and k > 0 else 0

    def value(s: np.ndarray) -> np.ndarray:
        return np.power(k + alpha * np.minimum(s, 2.0**126), -beta)

    exponents = np.arange(65) + knee + 3
    lut["linear_exp_table"] = value(2.0**exponents).astype("<f2").view("<i2")
    lut["linear_exp_offset"]["value"] = knee + 3
    lut["linear_exp_end"] = single_bits(2.0 ** min(knee + 67, 127))
    points = np.arange(257) * 2.0 ** (knee - 4)
    lut["linear_only_table"] = value(points).astype("<f2").view("<i2")
    lut["linear_only_offset"]["value"] = knee - 4
    lut["linear_only_end"] = single_bits(float(points[-1]))
    lut["underflow_priority"] = lut["hybrid_priority"] = 1
    return firmware.descriptor(lut)


def integer_normalization_table(alpha: float, beta: float, k: float, size: int) -> tuple[np.void, int]:
    """int8: ((k + alpha * s)^-beta for the sum s of `size` squares of stored values, the fraction bits of its entries).

    LO goes over all sums in 256 steps, LE over the first 64th of them in 64 steps, and is preferred there.
    """
    lut = np.zeros((), firmware.LUT)
    step = max(0, (size * 128**2 - 1).bit_length() - 8)
    peak = max(k**-beta, (k + alpha * 256 * 2.0**step) ** -beta)
    fraction = int(np.floor(np.log2(32767 / peak)))

    def values(count: int, shift: int) -> np.ndarray:
        return np.rint((k + alpha * np.arange(count) * 2.0**shift) ** -beta * 2.0**fraction).astype("<i2")

    for name, count, shift in (("linear_only", 257, step), ("linear_exp", 65, max(step - 4, 0))):
        lut[f"{name}_table"] = values(count, shift)
        lut[f"{name}_offset"]["value"] = shift
        lut[f"{name}_end"] = (count - 1) << shift
    lut["method"] = 1
    return firmware.descriptor(lut), fraction


def _prefer_linear(lut: np.ndarray) -> None:
    lut["method"] = 1
    for name in ("hybrid_priority", "underflow_priority", "overflow_priority"):
        lut[name] = 1
