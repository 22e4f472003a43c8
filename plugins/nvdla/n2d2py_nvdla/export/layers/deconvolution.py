"""Transposed convolutions: one convolution whose outputs are all positions within a stride, rearranged by RUBIK.

Without RUBIK, or where the result is not a multiple of the stride, the positions are copied to their places (`deconvolution_phases`).

y[s q + r] = sum over v of w[m + s v] x[q + t - v] with t = (r + pad) div s, m = (r + pad) mod s: for every r a convolution
of the unchanged input. Their kernels are laid over each other with zeros where they do not reach.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla import firmware
from n2d2py_nvdla.export.arithmetic import Post, one_pass
from n2d2py_nvdla.export.convolution import ConvolutionWindow, convolution_chains, split
from n2d2py_nvdla.export.hardware import HwOp, Region
from n2d2py_nvdla.export.layers.deconvolution_phases import phase_chains
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, chw, lowering
from n2d2py_nvdla.firmware import RUBIK


@lowering("Deconv")
def _deconv(state: Lowering, node: QuantNode) -> None:
    value = state.values[node.inputs[0]]
    post, result = _post(state, node, value), state.result(node.output)
    chains = _by_rubik(state, node, value, post, result)
    if chains is None:
        chains = phase_chains(state, node, value, post, result)
    state.finish(node, node.output, result, post.scale, chains)


def _by_rubik(state: Lowering, node: QuantNode, value: HardwareTensor, post: Post, result: Region) -> list[list[HwOp]] | None:
    """Return the operations with RUBIK; None if the configuration has none, or it cannot put the positions together."""
    op = node.op
    c, h, w = chw(state.graph.shape(node.output))
    uneven = h % op.stride[0] or w % op.stride[1] or max(op.stride) > 8
    if not state.config.has_rubik or uneven or op.stride == (1, 1) or op.dilation != (1, 1) or min(op.pads) < 0:
        return None
    if not one_pass(state.precision, post):
        return None
    lanes = state.lanes
    step = -(-c // lanes) * lanes
    weights, pads = _phases(_dense(node).astype(np.int8 if state.integer else np.float16), op.stride, op.pads[:2], step)
    size = h // op.stride[0], w // op.stride[1]
    source = value.region
    behind = [
        max(0, n - 1 + k - pad - have) for n, k, pad, have in zip(size, weights.shape[2:], pads, source.shape[1:], strict=True)
    ]
    window = ConvolutionWindow(pads=(pads[0], pads[1], behind[0], behind[1]))
    if max(weights.shape[2:]) > 32 or max(window.pads) > 31:
        return None
    if split(state.config, state.precision, source.shape, len(weights), weights.shape[2:], size[0], window, lanes) is None:
        return None
    phases = op.stride[0] * op.stride[1]
    repeated = replace(post, gain=_repeated(post.gain, c, step, phases), bias=_repeated(post.bias, c, step, phases))
    parts = Region.whole(state.buffer(f"{node.output}.positions", shape=(len(weights), *size)))
    chains = convolution_chains(state.config, state.precision, source, weights, window, repeated, parts)
    rubik = np.zeros((), firmware.RUBIK_OP)
    rubik["precision"], rubik["stride_x"], rubik["stride_y"] = state.precision, op.stride[1], op.stride[0]
    return [*chains, [HwOp(RUBIK, firmware.descriptor(rubik), {"src_data": parts, "dst_data": result})]]


def _dense(node: QuantNode) -> np.ndarray:
    """Return the weights (O, C, KH, KW) of a grouped layer with zeros between the groups."""
    weights, groups = node.params["weights"], node.op.groups
    outputs, per_group = weights.shape[:2]
    dense = np.zeros((outputs, per_group * groups, *weights.shape[2:]), weights.dtype)
    each = outputs // groups
    for g in range(groups):
        dense[g * each : (g + 1) * each, g * per_group : (g + 1) * per_group] = weights[g * each : (g + 1) * each]
    return dense


def _axis(kernel: int, stride: int, pad: int) -> tuple[list[list[tuple[int, int]]], int, int]:
    """For each position r within a stride [(tap, index in the kernel)], the number of taps, the padding before."""
    offsets = [((r + pad) // stride, (r + pad) % stride) for r in range(stride)]
    taps = [[(t - v, m + stride * v) for v in range(max(0, -(-(kernel - m) // stride)))] for t, m in offsets]
    before = max([0, *(-tap for phase in taps for tap, _ in phase)])
    reach = max([0, *(tap for phase in taps for tap, _ in phase)])
    return [[(tap + before, index) for tap, index in phase] for phase in taps], reach + before + 1, before


def _phases(weights: np.ndarray, stride: tuple[int, int], pads, step: int):
    """(weights of all positions within a stride, `step` outputs for each; padding (top, left))."""
    (rows, high, top), (columns, wide, left) = (_axis(k, s, p) for k, s, p in zip(weights.shape[2:], stride, pads, strict=True))
    c = len(weights)
    laid = np.zeros((stride[0] * stride[1] * step, weights.shape[1], high, wide), weights.dtype)
    for j, row in enumerate(rows):
        for i, column in enumerate(columns):
            at = (j * stride[1] + i) * step
            for y, u in row:
                for x, v in column:
                    laid[at : at + c, :, y, x] = weights[:, :, u, v]
    return laid, (top, left)


def _repeated(values: np.ndarray | None, c: int, step: int, phases: int) -> np.ndarray | None:
    """Return the values of the outputs, for every position within a stride."""
    if values is None or np.size(values) == 1:
        return values
    filled = np.zeros(step)
    filled[:c] = values
    return np.tile(filled, phases)


def _post(state: Lowering, node: QuantNode, value: HardwareTensor) -> Post:
    """Return the bias, scale and activation."""
    if state.integer:
        kind = state.graph.type(node.inputs[0])
        gain = node.rescaling.effective() * state.graph.type(node.output).scale * (value.scale / kind.scale)
        bias = np.rint(node.params["bias"].astype(np.float64) * (kind.scale / value.scale))
        post = Post(gain, bias, state.scale_of(node.output))
    else:
        post = Post(np.ones(1), node.params["bias"].astype(np.float64), 1.0)
    return state.activated(node, post, None if state.integer else node.activation, node.clamp)
