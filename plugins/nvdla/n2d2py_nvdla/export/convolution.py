"""Convolutions for the convolution buffer: weights in order, split by kernels and lines where they do not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from n2d2py_nvdla import firmware
from n2d2py_nvdla.config import HardwareConfig, entries_per_slice
from n2d2py_nvdla.export.arithmetic import Post, plan_sdp
from n2d2py_nvdla.export.hardware import ConstantBlob, HwOp, Region
from n2d2py_nvdla.export.pixels import ConvolutionWindow, entries_of_pixels, extended, read_pixels
from n2d2py_nvdla.firmware import BYTES, CONV, SDP
from n2d2py_nvdla.model.conv import pack_weights

__all__ = ["ConvolutionWindow", "Split", "convolution_chains", "split"]


@dataclass(frozen=True)
class Split:
    """Kernels of an operation, output lines of an operation."""

    kernels: int
    rows: int


def _banks(size: int, one: HardwareConfig) -> int:
    return max(1, -(-size // one.bank_bytes))


def _rows_in(rows: int, kernel: int, window: ConvolutionWindow) -> int:
    return (rows - 1) * window.stride[0] + (kernel - 1) * window.dilation[0] + 1


def split(
    one: HardwareConfig,
    precision: int,
    source: tuple[int, int, int],
    kernels: int,
    kernel: tuple[int, int],
    rows: int,
    window: ConvolutionWindow,
    lanes: int,
    image: bool = False,
) -> Split | None:
    """Return the split with the fewest operations for which data and weights fit into the buffer; None when none does."""
    c, h, w = source
    per_slice = entries_of_pixels(one, w, window) if image else entries_per_slice(one, w, c, precision)
    per_kernel = c * kernel[0] * kernel[1] * BYTES[precision]
    best: tuple[int, int, int] | None = None
    group = max(one.kernel_group(precision), lanes)
    for parts in range(1, rows + 1):
        high = -(-rows // parts)
        if parts > 1 and -(-rows // high) != parts:
            continue
        lines = min(h, _rows_in(high, kernel[0], window))
        data = max(1, -(-per_slice * lines // one.depth))
        room = (one.banks - data) * one.bank_bytes
        if data >= one.banks or room < per_kernel * min(kernels, lanes):
            continue
        most = min(kernels, room // per_kernel)
        if most < kernels:
            most = most // group * group or most // lanes * lanes
        if not most:
            continue
        found = (parts * -(-kernels // most), high, most)
        if best is None or found[0] < best[0]:
            best = found
    return Split(best[2], best[1]) if best else None


def convolution_chains(
    one: HardwareConfig,
    precision: int,
    source: Region,
    weights: np.ndarray,
    window: ConvolutionWindow,
    post: Post,
    result: Region,
) -> list[list[HwOp]]:
    """CONV and SDP operations of a dense convolution of `source` with `weights` (K, C, R, S).

    The split must exist (`split` gives one).
    """
    k, c, r, s = weights.shape
    lanes = result.buffer.lanes
    image = source.buffer.image
    plan = split(one, precision, source.shape, k, (r, s), result.rows, window, lanes, image)
    assert plan is not None
    if result.width == 1 and plan.rows == 1 < result.rows:
        plan = Split(min(plan.kernels, lanes), 1)
    chains = []
    for first in range(0, k, plan.kernels):
        many = min(plan.kernels, k - first)
        part = weights[first : first + many]
        ordered = extended(part) if image else part
        data = pack_weights(ordered, 1, one.kernel_group(precision), one.channels).tobytes()
        # Whole entries of the buffer and no more: what is loaded and not read would stay in it.
        constants = ConstantBlob(data + bytes(-len(data) % one.width), (s, r, c, 0, 0))
        selected = _select(post, first, many)
        for row, high in _line_parts(result, plan.rows, many > lanes):
            chains.append(
                _chain(one, precision, source, (r, s), window, constants, selected, row, result.part(first, many, row, high))
            )
    return chains


def _line_parts(result: Region, rows: int, atoms: bool) -> list[tuple[int, int]]:
    """(first line, lines) of the operations.

    Hardware wants a single pixel of several atoms packed, which a part of a larger map is not: it is then computed
    again, together with the line before it.
    """
    parts = [(row, min(rows, result.rows - row)) for row in range(0, result.rows, rows)]
    if atoms and result.width == 1 and rows > 1 and len(parts) > 1 and parts[-1][1] == 1:
        parts[-1] = (result.rows - 2, 2)
    return parts


def _select(post: Post, first: int, many: int) -> Post:
    """Return the post-processing of some kernels."""

    def cut(values: np.ndarray | None) -> np.ndarray | None:
        return values if values is None or np.size(values) == 1 else np.asarray(values)[first : first + many]

    operand = post.operand.part(first, many) if post.operand is not None else None
    return replace(post, gain=cut(post.gain), bias=cut(post.bias), after=cut(post.after), operand=operand)


def _chain(
    one: HardwareConfig,
    precision: int,
    source: Region,
    kernel: tuple[int, int],
    window: ConvolutionWindow,
    weights: ConstantBlob,
    post: Post,
    row: int,
    result: Region,
) -> list[HwOp]:
    """One CONV and its SDP: the lines from `row` of the layer's result."""
    top, left = window.pads[:2]
    first = row * window.stride[0] - top
    last = first + _rows_in(result.rows, kernel[0], window)
    begin, end = max(first, 0), min(last, source.shape[1])
    # Lines and columns that no window reaches are left out: the hardware derives the number of windows from the rest.
    reach = (result.width - 1) * window.stride[1] + (kernel[1] - 1) * window.dilation[1] + 1 - left
    lines = source.part(row=begin, rows=end - begin)
    wide = source.shape[2]
    if reach < wide and (wide - reach) // window.stride[1]:
        lines = replace(lines, columns=max(reach, 1))
    c, h, w = lines.shape
    op = np.zeros((), firmware.CONV_OP)
    size = c * kernel[0] * kernel[1] * BYTES[precision]
    per_slice = entries_per_slice(one, w, c, precision)
    values = {
        "entry_per_slice": per_slice,
        "data_format": 36,
        "fetch_grain": 1,
        "batch": 1,
        "release": h,
        "data_bank": max(1, -(-per_slice * h // one.depth)),
        "weight_bank": _banks(len(weights.data), one),
        "input_width_csc": w,
        "input_height_csc": h,
        "input_channel_csc": c,
        "kernel_width_csc": kernel[1],
        "kernel_height_csc": kernel[0],
        "kernel_channel_csc": c,
        "input_width_cmac": result.width,
        "input_height_cmac": result.rows,
        "bytes_per_kernel": size,
        "conv_stride_x": window.stride[1],
        "conv_stride_y": window.stride[0],
        "pad_x_left": left,
        "pad_x_right": max(0, reach - w),
        "pad_y_top": max(0, -first),
        "pad_y_bottom": max(0, last - source.shape[1]),
        "dilation_x": window.dilation[1],
        "dilation_y": window.dilation[0],
        "in_precision": precision,
        "out_precision": precision,
    }
    for name, value in values.items():
        op[name] = value
    op["out_cvt"]["scale"], op["out_cvt"]["enable"] = 1, 1
    if source.buffer.image:
        read_pixels(op, one, w, h, kernel, window)
    operand = post.operand
    if operand is not None and not post.repeated:
        operand = operand.part(row=row, rows=result.rows)
    plan = plan_sdp(precision, replace(post, operand=operand), result.channels, result.buffer.lanes)
    conv = HwOp(CONV, firmware.descriptor(op), {"src_data": lines, "weight_data": weights, "dst_data": ("fly", result.shape)})
    sdp = HwOp(SDP, plan.op, {"src_data": ("fly", result.shape), "dst_data": result, **plan.cubes}, plan.lut)
    return [conv, sdp]
