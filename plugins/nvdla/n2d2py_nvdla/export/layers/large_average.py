"""The average of a whole map that is larger than kernels and strides: sums of blocks, then the sum of these.

A sum of 64 bytes has 14 bits. It is kept whole in two bytes: q = round(sum / 64), written with its sign turned, and
sum - 64 q; both are sums of the same block, the second with the first as operand. The last convolution weighs them with
-64 and 1, so that its sums are those of all pixels, and one rounding gives the average: the integers of one large window.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.convolution import ConvolutionWindow
from n2d2py_nvdla.export.hardware import HwOp, Region
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering

BLOCK = 8
"""Lines and columns of a block: the largest stride of a convolution."""
_UNIT = 64
"""Weight of the upper byte of a block's sum."""


def is_one_large_window(node: QuantNode, outputs: tuple[int, int], size: tuple[int, int]) -> bool:
    """True if a pool has one window, of more than one block."""
    return outputs == (1, 1) and max(_used(node, size)) > BLOCK


def _used(node: QuantNode, size: tuple[int, int]) -> tuple[int, int]:
    """Return the lines and columns of the map inside of the window."""
    (top, left), (high, wide) = node.op.pads[:2], node.op.kernel
    return min(size[0], high - top), min(size[1], wide - left)


def average_in_blocks(state: Lowering, node: QuantNode, value: HardwareTensor, post: Post, result: Region) -> list[list[HwOp]]:
    """Return the operations of the average; `post` divides by the number of pixels.

    Raises:
        N2D2Error: E715 where there are more blocks than a convolution can sum up.
    """
    rows, columns = _used(node, value.region.shape[1:])
    source = replace(value.region, rows=rows, columns=columns)
    blocks = -(-rows // BLOCK), -(-columns // BLOCK)
    window = ConvolutionWindow((BLOCK, BLOCK), (0, 0, blocks[0] * BLOCK - rows, blocks[1] * BLOCK - columns))
    lanes, chains = state.lanes, []
    planes = 2 if state.integer else 1
    surfaces = -(-source.channels // lanes)
    parts = Region.whole(state.buffer(f"{node.output}.blocks", shape=(planes * lanes * surfaces, *blocks)))
    for surface in range(surfaces):
        first = surface * lanes
        many = min(lanes, source.channels - first)
        piece = source.part(first, many)
        upper = parts.part(planes * first, many)
        if state.integer:
            ones = _diagonal(many, (BLOCK, BLOCK), 1, np.int8)
            lower = parts.part(planes * first + lanes, many)
            turned = Post(-np.ones(1), None, float(_UNIT))
            rest = Post(np.ones(1), None, 1.0, operand=upper, operand_scale=float(_UNIT))
            chains += state.convolution(node, piece, ones, window, 1, turned, upper)
            chains += state.convolution(node, piece, ones, window, 1, rest, lower)
            weights = np.zeros((many, planes * lanes, *blocks), np.int8)
            weights[:, :many] = _diagonal(many, blocks, -_UNIT, np.int8)
            weights[:, lanes : lanes + many] = _diagonal(many, blocks, 1, np.int8)
            both = parts.part(planes * first, planes * lanes)
        else:
            means = _diagonal(many, (BLOCK, BLOCK), 1 / BLOCK**2, np.float16)
            chains += state.convolution(node, piece, means, window, 1, Post(np.ones(1), None, 1.0), upper)
            weights, both = _diagonal(many, blocks, 1, np.float16), upper
        gain = post.gain if state.integer else post.gain * BLOCK**2
        chains += state.convolution(
            node, both, weights, ConvolutionWindow(), 1, replace(post, gain=gain), result.part(first, many)
        )
    return chains


def _diagonal(channels: int, kernel: tuple[int, int], value: float, dtype: type) -> np.ndarray:
    """Return the weights (K, C, R, S) that sum up each channel by itself."""
    return (np.eye(channels)[:, :, None, None] * np.full(kernel, value)).astype(dtype)
