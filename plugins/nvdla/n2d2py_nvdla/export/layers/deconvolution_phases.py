"""Transposed convolutions without RUBIK: one convolution for each position within a stride, copied between each other.

y[s q + r] sums w[u] x[q + (r + pad - d u) / s] over the weights u of an axis for which the division is exact (s: stride,
d: dilation): for every r a convolution of the unchanged input, with the few weights that reach it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.convolution import ConvolutionWindow
from n2d2py_nvdla.export.hardware import HwOp, Region
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, chw
from n2d2py_nvdla.export.rearrange import Steps, copy


def phase_chains(state: Lowering, node: QuantNode, value: HardwareTensor, post: Post, result: Region) -> list[list[HwOp]]:
    """Return the operations of a transposed convolution of any stride, dilation and padding, with `post` of the sums.

    Raises:
        N2D2Error: E715 for a phase whose kernel or padding hardware does not have.
    """
    op = node.op
    c, h, w = chw(state.graph.shape(node.output))
    weights = node.params["weights"].astype(np.int8 if state.integer else np.float16)
    plain = Post(np.array([post.scale]), None, post.scale)
    buffers: dict[tuple[int, int], Region] = {}
    chains: list[list[HwOp]] = []
    for row in range(min(op.stride[0], h)):
        for column in range(min(op.stride[1], w)):
            size = -(-(h - row) // op.stride[0]), -(-(w - column) // op.stride[1])
            kernel, top = _phase(weights, 2, row + op.pads[0], op.stride[0], op.dilation[0])
            kernel, left = _phase(kernel, 3, column + op.pads[1], op.stride[1], op.dilation[1])
            reach = [n - 1 + k - before for n, k, before in zip(size, kernel.shape[2:], (top, left), strict=True)]
            source = value.region
            bottom, right = (max(0, need - have) for need, have in zip(reach, source.shape[1:], strict=True))
            high, wide = (min(need, have) for need, have in zip(reach, source.shape[1:], strict=True))
            source = replace(source, rows=high, columns=wide)
            if size not in buffers:
                buffers[size] = Region.whole(state.buffer(f"{node.output}.{len(buffers)}", shape=(c, *size)))
            part = result if op.stride == (1, 1) else buffers[size]
            chains += state.convolution(
                node, source, kernel, ConvolutionWindow(pads=(top, left, bottom, right)), op.groups, post, part
            )
            if part is not result:
                steps = [Steps(n, 0, 1, r, s) for n, r, s in zip(size, (row, column), op.stride, strict=True)]
                chains += copy(state, part, result, *steps, plain)
    return chains


def _phase(weights: np.ndarray, axis: int, offset: int, stride: int, dilation: int) -> tuple[np.ndarray, int]:
    """(weights along `axis` that reach the positions of a phase, in the order of a convolution; padding before)."""
    taps = {
        (offset - dilation * index) // stride: index
        for index in range(weights.shape[axis])
        if (offset - dilation * index) % stride == 0
    }
    first, last = min([0, *taps]), max([0, *taps])
    shape = list(weights.shape)
    shape[axis] = last - first + 1
    laid = np.zeros(shape, weights.dtype)
    to, of = np.moveaxis(laid, axis, 0), np.moveaxis(weights, axis, 0)
    for tap, index in taps.items():
        to[tap - first] = of[index]
    return laid, -first
