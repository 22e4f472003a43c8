"""Transposed convolutions: one convolution whose outputs are all positions within a stride, rearranged by RUBIK.

y[s q + r] = sum over v of w[m + s v] x[q + t - v] with t = (r + pad) div s, m = (r + pad) mod s: for every r a convolution
of the input as it is. Their kernels are laid over each other with zeros where they do not reach.
"""

from __future__ import annotations

import numpy as np

from n2d2py.export.nvdla.arithmetic import Post
from n2d2py.export.nvdla.convolution import Window, convolution_chains, split
from n2d2py.export.nvdla.hardware import HwOp, Region
from n2d2py.export.nvdla.lower import Lowering, chw, lowering, refuse
from n2d2py.graph import QuantNode
from n2d2py.nvdla import firmware
from n2d2py.nvdla.firmware import RUBIK

__all__: list[str] = []


@lowering("Deconv")
def _deconv(state: Lowering, node: QuantNode) -> None:
    op, value = node.op, state.values[node.inputs[0]]
    c, h, w = chw(state.graph.shape(node.output))
    if not state.config.has_rubik:
        raise refuse(node, f"{state.config.name} has no RUBIK engine to put the positions together", "use nv_full")
    if op.dilation != (1, 1) or min(op.pads) < 0 or h % op.stride[0] or w % op.stride[1] or max(op.stride) > 8:
        raise refuse(
            node,
            f"{w}x{h} positions with stride {op.stride[1]}x{op.stride[0]}, dilation {op.dilation[1]}x"
            f"{op.dilation[0]}, paddings {op.pads}",
            "make the output a multiple of the stride, without dilation",
        )
    lanes = state.lanes
    step = -(-c // lanes) * lanes
    weights, pads = _phases(_dense(node).astype(np.int8 if state.integer else np.float16), op.stride, op.pads[:2], step)
    size = h // op.stride[0], w // op.stride[1]
    source = value.region
    behind = [
        max(0, n - 1 + k - pad - have) for n, k, pad, have in zip(size, weights.shape[2:], pads, source.shape[1:], strict=True)
    ]
    window = Window(pads=(pads[0], pads[1], behind[0], behind[1]))
    post = _post(state, node, value, c, step, op.stride[0] * op.stride[1])
    parts = Region.whole(state.buffer(f"{node.output}.positions", shape=(len(weights), *size)))
    if split(state.config, state.precision, source.shape, len(weights), weights.shape[2:], size[0], window, lanes) is None:
        raise refuse(node, f"one line of {source.width} pixels does not fit into the convolution buffer")
    chains = convolution_chains(state.config, state.precision, source, weights, window, post, parts)
    result = state.result(node.output)
    rubik = np.zeros((), firmware.RUBIK_OP)
    rubik["precision"], rubik["stride_x"], rubik["stride_y"] = state.precision, op.stride[1], op.stride[0]
    chains.append([HwOp(RUBIK, rubik[()], {"src_data": parts, "dst_data": result})])
    state.finish(node, node.output, result, post.scale, chains)


def _dense(node: QuantNode) -> np.ndarray:
    """The weights (O, C, KH, KW) of a grouped layer with zeros between the groups."""
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


def _post(state: Lowering, node: QuantNode, value, c: int, step: int, phases: int) -> Post:
    """Bias, scale and activation, repeated for every position."""

    def repeated(values: np.ndarray) -> np.ndarray:
        filled = np.zeros(step)
        filled[:c] = np.broadcast_to(values, (c,))
        return np.tile(filled, phases)

    if state.integer:
        kind = state.graph.type(node.inputs[0])
        gain = node.rescale.effective() * state.graph.type(node.output).scale * (value.scale / kind.scale)
        bias = np.rint(node.params["bias"].astype(np.float64) * (kind.scale / value.scale))
        post = Post(repeated(gain), repeated(bias), state.scale_of(node.output))
    else:
        post = Post(np.ones(1), repeated(node.params["bias"]), 1.0)
    return state.activated(node, post, None if state.integer else node.activation, node.clamp)
