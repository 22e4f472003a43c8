"""Pools on the PDP; averages that it cannot form as convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.graph import QuantNode
from n2d2py_nvdla import firmware
from n2d2py_nvdla.config import widest_pool
from n2d2py_nvdla.export.arithmetic import Post, fixed_point
from n2d2py_nvdla.export.convolution import ConvolutionWindow
from n2d2py_nvdla.export.hardware import ConstantBlob, HwOp, Region
from n2d2py_nvdla.export.layers.large_average import average_in_blocks, is_one_large_window
from n2d2py_nvdla.export.layers.pool_stages import LARGEST_KERNEL, LARGEST_PAD, LARGEST_STRIDE, factors, maximum_stages
from n2d2py_nvdla.export.lowering import Lowering, lowering, refuse
from n2d2py_nvdla.export.rearrange import gather
from n2d2py_nvdla.firmware import PDP, SDP

AVERAGE, MAXIMUM = 0, 1
LARGEST_WEIGHTS = 1 << 20
"""Bytes of weights that an average may take."""


@lowering("Pool", in_bytes=True)
def _pool(state: Lowering, node: QuantNode) -> None:
    op, value = node.op, state.values[node.inputs[0]]
    if op.mode not in ("Max", "Average"):
        raise refuse(node, f"mode {op.mode}")
    if min(op.pads) < 0:
        raise refuse(node, "a pool that crops")
    source, result = value.region, state.result(node.output)
    if op.mode == "Max":
        chains = _maximum(state, node, source, result)
    elif _finer_by_convolution(state, node, value):
        _average_by_convolution(state, node)
        return
    elif _better_in_blocks(state, node, source, result):
        _average_of_the_map(state, node, value, result)
        return
    else:
        stages = _stages(node, op.kernel, _stride(state, node), op.pads, source.shape[1:])
        if stages is None:
            _average_by_convolution(state, node)
            return
        chains = _average(state, node, source, result, stages)
    chains += _activated(state, node, value.scale, result)
    state.finish(node, node.output, result, value.scale, chains)


def _maximum(state: Lowering, node: QuantNode, source: Region, result: Region) -> list[list[HwOp]]:
    """Consecutive pools, then a copy of every so many positions where they lie more than 8 apart."""
    axes = [
        maximum_stages(n, k, s, p, m)
        for n, k, s, p, m in zip(
            source.shape[1:], node.op.kernel, _stride(state, node), node.op.pads[:2], result.shape[1:], strict=True
        )
    ]
    depth = max(len(axis.stages) for axis in axes)
    sparse = any(axis.step > 1 for axis in axes)
    current, chains = replace(source, rows=axes[0].used, columns=axes[1].used), []
    for number, (rows, columns) in enumerate(zip(*(axis.padded(depth) for axis in axes), strict=True)):
        size = (source.channels, rows[3], columns[3])
        last = number == depth - 1 and not sparse
        target = result if last else Region.whole(state.buffer(f"{node.output}.{number}", shape=size))
        pads = (rows[2], columns[2], 0, 0)
        chains += _columns(state, current, target, MAXIMUM, (rows[0], columns[0]), (rows[1], columns[1]), pads)
        current = target
    if sparse:
        rows, columns = (np.arange(m) * axis.step for m, axis in zip(result.shape[1:], axes, strict=True))
        scale = state.values[node.inputs[0]].scale
        chains += gather(state, current, result, rows, columns, Post(np.array([scale]), None, scale))
    return chains


def _average(state: Lowering, node: QuantNode, source: Region, result: Region, stages) -> list[list[HwOp]]:
    """Consecutive pools, then a factor per position where the padding does not count."""
    chains, current = [], source
    for number, (k, s, p) in enumerate(stages):
        last = number == len(stages) - 1
        size = [(n + a + b - kk) // ss + 1 for n, a, b, kk, ss in zip(current.shape[1:], p[:2], p[2:], k, s, strict=True)]
        target = result if last else Region.whole(state.buffer(f"{node.output}.{number}", shape=(source.channels, *size)))
        chains += _columns(state, current, target, AVERAGE, k, s, p)
        current = target
    if not node.op.count_pad and any(node.op.pads):
        chains.append([_correct(state, node, result)])
    return chains


def _activated(state: Lowering, node: QuantNode, scale: float, result: Region) -> list[list[HwOp]]:
    """Return the activation after a pool, where it is one that its input has not met already."""
    if _activated_by_moving(state, node):
        return []
    post = Post(np.array([scale]), None, scale)
    post = state.activated(node, post, None if state.integer else node.activation, node.clamp)
    return state.passes(node, result, post, result)


def _stride(state: Lowering, node: QuantNode) -> tuple[int, int]:
    """Return the steps of the windows; 1 along an axis with one window, where it means nothing."""
    size = state.graph.shape(node.output)[2:]
    rows, columns = (1 if n == 1 else step for n, step in zip(size, node.op.stride, strict=True))
    return rows, columns


def _finer_by_convolution(state: Lowering, node: QuantNode, value) -> bool:
    """True if an int8 average is worth a convolution: the PDP keeps the scale of the input, averages are smaller."""
    op = node.op
    if not state.integer or op.mode != "Average" or (not op.count_pad and any(op.pads)):
        return False
    area = op.kernel[0] * op.kernel[1]
    if max(op.kernel) > 32 or max(_stride(state, node)) > LARGEST_STRIDE:
        return False
    return (
        area >= 16
        and value.scale >= 1.5 * state.scale_or(node.output, value.scale)
        and value.region.channels * 32 * area <= LARGEST_WEIGHTS
    )


def _better_in_blocks(state: Lowering, node: QuantNode, source: Region, result: Region) -> bool:
    """True if the average of the map is formed of blocks: always in int8, in halves where pools do not make it."""
    if not is_one_large_window(node, result.shape[1:], source.shape[1:]):
        return False
    if state.integer:
        return True
    pools = _stages(node, node.op.kernel, _stride(state, node), node.op.pads, source.shape[1:])
    return pools is None and max(node.op.kernel) > 32


def _average_of_the_map(state: Lowering, node: QuantNode, value, result: Region) -> None:
    count = int(node.op.window_counts(tuple(value.region.shape[1:]))[0, 0])
    scale = state.scale_or(node.output, value.scale)
    post = Post(np.array([value.scale / count]), None, scale)
    post = state.activated(node, post, None if state.integer else node.activation, node.clamp)
    state.finish(node, node.output, result, scale, average_in_blocks(state, node, value, post, result))


def _activated_by_moving(state: Lowering, node: QuantNode) -> bool:
    """True if the pool leaves values unchanged: no activation, or one that its input has met already."""
    if not state.integer:
        return node.activation is None or (
            isinstance(node.activation, Clip) and node.activation.low == -np.inf and node.activation.high == np.inf
        )
    kind = state.graph.type(node.output)
    return node.clamp is None or (node.clamp[0] <= kind.qmin and node.clamp[1] >= kind.qmax)


def _stages(node: QuantNode, kernel, stride, pads, size):
    """[(kernel, stride, pads)] of pools that together are this one; None when there are none."""
    if max(kernel) <= LARGEST_KERNEL and max(stride) <= LARGEST_STRIDE and max(pads) <= LARGEST_PAD:
        return [(kernel, stride, pads)]
    whole = tuple(kernel) == tuple(size)  # one window, whatever the stride
    if any(pads) or not (whole or tuple(kernel) == tuple(stride)):
        return None
    rows, columns = (factors(k) for k in kernel)
    if rows is None or columns is None:
        return None
    depth = max(len(rows), len(columns))
    rows, columns = (part + [1] * (depth - len(part)) for part in (rows, columns))
    return [((r, c), (r, c), (0, 0, 0, 0)) for r, c in zip(rows, columns, strict=True)]


def _columns(state: Lowering, source: Region, result: Region, mode: int, kernel, stride, pads):
    """Add operations for as many columns each as the engine's line buffer has room for."""
    width = result.width
    count = -(-width // widest_pool(state.config, state.precision, kernel[0], stride[0]))
    if count == 1:
        return [[_pdp(state, source, result, mode, kernel, stride, pads)]]
    chains = []
    for number in range(count):
        first, last = number * width // count, (number + 1) * width // count
        begin = first * stride[1] - pads[1]
        left = max(0, begin)
        part = replace(result, column=first, columns=last - first)
        chains.append(
            [
                _pdp(
                    state,
                    replace(source, column=left, columns=source.width - left),
                    part,
                    mode,
                    kernel,
                    stride,
                    (pads[0], max(0, -begin), *pads[2:]),
                )
            ]
        )
    return chains


def _pdp(state: Lowering, source: Region, result: Region, mode: int, kernel, stride, pads) -> HwOp:
    op = np.zeros((), firmware.PDP_OP)
    # Lines and columns that no window reaches are left out: the engine wants windows that end where the data end.
    h, w = (
        min(n, (out - 1) * step + size - pad)
        for n, out, step, size, pad in zip(source.shape[1:], result.shape[1:], stride, kernel, pads[:2], strict=True)
    )
    source = replace(source, rows=h, columns=w)
    bottom = max(0, (result.rows - 1) * stride[0] + kernel[0] - h - pads[0])
    right = max(0, (result.width - 1) * stride[1] + kernel[1] - w - pads[1])
    values = {
        "split_num": 1,
        "pool_mode": mode,
        "pool_width": kernel[1] - 1,
        "pool_height": kernel[0] - 1,
        "stride_x": stride[1],
        "stride_y": stride[0],
        "pad_left": pads[1],
        "pad_right": right,
        "pad_top": pads[0],
        "pad_bottom": bottom,
        "precision": state.precision,
    }
    for name, value in values.items():
        op[name] = value
    return HwOp(PDP, firmware.descriptor(op), {"src_data": source, "dst_data": result})


def _correct(state: Lowering, node: QuantNode, result: Region) -> HwOp:
    """Return a factor per position: the PDP divides by the whole window, the network by the part inside of the input."""
    op = node.op
    counts = op.window_counts(tuple(state.graph.shape(node.inputs[0])[2:]))
    factors = op.kernel[0] * op.kernel[1] / counts
    sdp = np.zeros((), firmware.SDP_DESC)
    sdp["src_precision"] = sdp["dst_precision"] = state.precision
    sdp["lut_index"], sdp["batch_num"] = -1, 1
    sdp["out_cvt"]["scale"], sdp["out_cvt"]["enable"] = 1, 1
    x1 = sdp["x1_op"]
    x1["enable"], x1["type"], x1["mode"] = 1, 1, 2
    if state.integer:
        whole, x1["truncate"] = fixed_point(factors)
        x1["precision"] = firmware.INT16
        table = whole.reshape(factors.shape).astype("<i2")
    else:
        x1["precision"] = firmware.FP16
        table = factors.astype("<f2")
    lanes = result.buffer.lanes
    surfaces = -(-result.channels // lanes)
    data = np.broadcast_to(table[None, :, :, None], (surfaces, *table.shape, lanes)).tobytes()
    line = table.shape[1] * lanes * 2
    cube = ConstantBlob(data, (table.shape[1], table.shape[0], result.channels, line, line * table.shape[0]))
    return HwOp(SDP, firmware.descriptor(sdp), {"src_data": result, "dst_data": result, "x1_data": cube})


def _average_by_convolution(state: Lowering, node: QuantNode) -> None:
    """Compile the sum of each channel to a convolution with weights of 1."""
    op, value = node.op, state.values[node.inputs[0]]
    if not op.count_pad and any(op.pads):
        raise refuse(node, "a large average that leaves out its padding")
    c, count = value.region.channels, op.kernel[0] * op.kernel[1]
    ones = np.ones((c, 1, *op.kernel), np.int8 if state.integer else np.float16)
    scale = state.scale_or(node.output, value.scale)
    post = Post(np.array([value.scale / count]), None, scale)
    post = state.activated(node, post, None if state.integer else node.activation, node.clamp)
    state.convolve(node, node.output, value.region, ones, ConvolutionWindow(_stride(state, node), op.pads), c, post)
