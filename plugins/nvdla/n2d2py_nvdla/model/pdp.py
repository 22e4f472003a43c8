"""PDP, the planar data processor: average, maximum and minimum pooling."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import FP16, INT8, INT16
from n2d2py_nvdla.model import floats
from n2d2py_nvdla.model.formats import DTYPES
from n2d2py_nvdla.model.integers import shift_right
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.program import DlaTask, Operation

AVERAGE, MAXIMUM, MINIMUM = range(3)
RECIPROCALS = (0x10000, 0x8000, 0x5555, 0x4000, 0x3333, 0x2AAA, 0x2492, 0x2000)
"""65536 / k, cut, for kernels 1 to 8."""
_SIGN_BITS = {INT8: (7, 8, 9, 9, 10, 10, 10), INT16: (15, 16, 17, 17, 18, 18, 18)}
"""Sign bit of the padding value of 1 to 7 cells."""


def _from_fp17(bits: int) -> float:
    """Return the number with these bits of 6 exponent and 10 mantissa bits."""
    return (1 + (bits & 1023) / 1024) * 2.0 ** ((bits >> 10) - 31)


_RECIPROCALS17 = tuple(_from_fp17(bits) for bits in (0x7C00, 0x7800, 0x7555, 0x7400, 0x7266, 0x7155, 0x7092, 0x7000))


def pdp(machine: Machine, task: DlaTask, operation: Operation, source: np.ndarray | None) -> np.ndarray:
    """Return the result (C, H, W) of `source` (from the SDP) or of memory."""
    op, dst = operation.op, operation.surface["dst_data"]
    precision, mode = int(op["precision"]), int(op["pool_mode"])
    kernel = int(op["pool_height"]) + 1, int(op["pool_width"]) + 1
    stride = int(op["stride_y"]), int(op["stride_x"])
    if mode > MINIMUM or max(kernel) > 8 or 0 in stride:
        raise N2D2Error(
            "E903",
            f"{operation.name}: pool mode {mode} of {kernel[1]}x{kernel[0]}, stride {stride[1]}x{stride[0]} does not exist",
            where=machine.name,
            remedy="compile it again",
        )
    x = source if source is not None else machine.read_cube(task, operation, "src_data", precision)
    size = int(dst["height"]), int(dst["width"])
    pads = int(op["pad_top"]), int(op["pad_left"])
    if mode != AVERAGE:
        choose = _extreme(precision, mode)
        rows = _reduce(x, 2, kernel[1], stride[1], pads[1], size[1], choose)
        return _reduce(rows, 1, kernel[0], stride[0], pads[0], size[0], _swapped(choose))
    if precision == FP16:
        if any(op["padding_value"]):
            raise N2D2Error(
                "E903",
                f"{operation.name}: padding values other than 0 in fp16, which firmware refuses",
                where=machine.name,
                remedy="pad with zeros",
            )
        return _average_floats(x, kernel, stride, pads, size)
    outside = (
        _missing(x.shape[2], kernel[1], stride[1], pads[1], size[1]),
        _missing(x.shape[1], kernel[0], stride[0], pads[0], size[0]),
    )
    table = _padding_table(op, precision)
    rows = _reduce(x.astype(np.int64), 2, kernel[1], stride[1], pads[1], size[1], np.add)
    total = _reduce(rows + table[outside[0]], 1, kernel[0], stride[0], pads[0], size[0], np.add)
    total = total + kernel[1] * table[outside[1]][:, None]
    for k in (kernel[1], kernel[0]):
        total = shift_right(total * RECIPROCALS[k - 1], 16)
    return total.astype(DTYPES[precision])


def _average_floats(x: np.ndarray, kernel, stride, pads, size) -> np.ndarray:
    """Return the sums in fp17 from left to right, then downwards; times both reciprocals."""
    rows = _reduce(floats.half_to_fp17(x), 2, kernel[1], stride[1], pads[1], size[1], floats.fp17_add)
    total = _reduce(rows, 1, kernel[0], stride[0], pads[0], size[0], _swapped(floats.fp17_add))
    scaled = floats.fp17_multiply(total, _RECIPROCALS17[kernel[1] - 1])
    return floats.fp17_to_half(floats.fp17_multiply(scaled, _RECIPROCALS17[kernel[0] - 1]))


def _padding_table(op: np.void, precision: int) -> np.ndarray:
    """Sum of k padded cells, k from 0 to 7: registers of 19 bits whose sign is where the type needs it."""
    table = [0]
    for register, sign in zip(op["padding_value"], _SIGN_BITS[precision], strict=True):
        bits = int(register) & 0x7FFFF
        table.append(bits | -(1 << sign + 1) if bits >> sign & 1 else bits)
    return np.array(table, np.int64)


def _swapped(combine):
    """Combine two lines: the next line is the first operand, the accumulator the second. This decides the signs of zeros and
    NaNs.
    """
    return lambda a, b: combine(b, a)


def _extreme(precision: int, mode: int):
    if precision == FP16:
        return floats.maximum if mode == MAXIMUM else floats.minimum
    return np.maximum if mode == MAXIMUM else np.minimum


def _missing(length: int, kernel: int, stride: int, pad: int, size: int) -> list[int]:
    """Return number of cells of each window that lie outside of the data (at most 7 are known to the table)."""
    return [min(max(pad - i * stride, 0) + max(i * stride - pad + kernel - length, 0), 7) for i in range(size)]


def _reduce(x: np.ndarray, axis: int, kernel: int, stride: int, pad: int, size: int, combine) -> np.ndarray:
    """Return the windows along `axis` combined from the first cell to the last; cells outside of the data do not take part."""
    x = np.moveaxis(x, axis, -1)
    result = np.zeros((*x.shape[:-1], size), x.dtype)
    begun = np.zeros(size, bool)
    for tap in range(kernel):
        positions = np.arange(size) * stride - pad + tap
        inside = (positions >= 0) & (positions < x.shape[-1])
        for fresh in (True, False):
            chosen = np.flatnonzero(inside & (begun != fresh))
            if len(chosen):
                values = x[..., positions[chosen]]
                result[..., chosen] = values if fresh else combine(result[..., chosen], values)
        begun |= inside
    return np.moveaxis(result, -1, axis)
