"""PDP, the planar data processor: average, maximum and minimum pooling."""
from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.nvdla.firmware import FP16
from n2d2py.nvdla.model import floats
from n2d2py.nvdla.model.formats import DTYPES
from n2d2py.nvdla.model.integers import saturate, shift_right
from n2d2py.nvdla.model.machine import Machine
from n2d2py.nvdla.program import DlaTask, Operation

__all__ = ["pdp", "RECIPROCALS"]

AVERAGE, MAXIMUM, MINIMUM = range(3)
RECIPROCALS = (0x10000, 0x8000, 0x5555, 0x4000, 0x3333, 0x2AAA, 0x2492, 0x2000)
"""65536 / k, cut, for kernels 1 to 8."""
_RECIPROCALS17 = tuple(floats.fp17(np.float64(sum(2.0 ** -bit * (pattern >> (10 - bit) & 1) for bit in range(1, 11)) + 1)
                                   * 2.0 ** ((pattern >> 10) - 31)) for pattern in
                       (0x7C00, 0x7800, 0x7555, 0x7400, 0x7266, 0x7155, 0x7092, 0x7000))


def pdp(machine: Machine, task: DlaTask, operation: Operation, source: np.ndarray | None) -> np.ndarray:
    """The result (C, H, W) of `source` (from the SDP) or of memory."""
    op, dst = operation.op, operation.surface["dst_data"]
    precision, mode = int(op["precision"]), int(op["pool_mode"])
    kernel = int(op["pool_height"]) + 1, int(op["pool_width"]) + 1
    stride = int(op["stride_y"]), int(op["stride_x"])
    if mode > MINIMUM or max(kernel) > 8 or 0 in stride:
        raise N2D2Error("E903", f"{operation.name}: pool mode {mode} of {kernel[1]}x{kernel[0]}, stride {stride[1]}x"
                        f"{stride[0]} does not exist", where=machine.name, remedy="compile it again")
    x = source if source is not None else machine.read_cube(task, operation, "src_data", precision)
    size = int(dst["height"]), int(dst["width"])
    pads = int(op["pad_top"]), int(op["pad_left"])
    if mode != AVERAGE:
        choose = _extreme(precision, mode)
        rows = _reduce(x, 2, kernel[1], stride[1], pads[1], size[1], choose)
        return _reduce(rows, 1, kernel[0], stride[0], pads[0], size[0], choose)
    if precision == FP16:
        wide = np.clip(x.astype(np.float64), -2.0 ** 31, 2.0 ** 31)
        rows = _reduce(wide, 2, kernel[1], stride[1], pads[1], size[1], floats.fp17_add)
        total = _reduce(rows, 1, kernel[0], stride[0], pads[0], size[0], floats.fp17_add)
        scaled = floats.fp17_multiply(total, _RECIPROCALS17[kernel[1] - 1])
        return floats.fp17_to_half(floats.fp17_multiply(scaled, _RECIPROCALS17[kernel[0] - 1]))
    table = [0, *(int(value) for value in op["padding_value"])]
    left, right = _missing(x.shape[2], kernel[1], stride[1], pads[1], size[1])
    rows = _reduce(x.astype(np.int64), 2, kernel[1], stride[1], pads[1], size[1], np.add)
    rows = rows + np.array([table[l] + table[r] for l, r in zip(left, right)])[None, None, :]
    top, bottom = _missing(x.shape[1], kernel[0], stride[0], pads[0], size[0])
    total = _reduce(rows, 1, kernel[0], stride[0], pads[0], size[0], np.add)
    total = total + kernel[1] * np.array([table[t] + table[b] for t, b in zip(top, bottom)])[None, :, None]
    for k in (kernel[1], kernel[0]):
        total = shift_right(total * RECIPROCALS[k - 1], 16)
    return saturate(total, 8 * DTYPES[precision].itemsize).astype(DTYPES[precision])


def _extreme(precision: int, mode: int):  # noqa: ANN202
    if precision == FP16:
        return floats.maximum if mode == MAXIMUM else floats.minimum
    return np.maximum if mode == MAXIMUM else np.minimum


def _missing(length: int, kernel: int, stride: int, pad: int, size: int) -> tuple[list[int], list[int]]:
    """How many cells of each window lie before and behind the data (at most 7 are known to the table)."""
    before = [min(max(pad - i * stride, 0), 7) for i in range(size)]
    behind = [min(max(i * stride - pad + kernel - length, 0), 7) for i in range(size)]
    return before, behind


def _reduce(x: np.ndarray, axis: int, kernel: int, stride: int, pad: int, size: int, combine) -> np.ndarray:  # noqa: ANN001
    """Windows along `axis` combined from the first cell to the last; cells outside of the data do not take part."""
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
