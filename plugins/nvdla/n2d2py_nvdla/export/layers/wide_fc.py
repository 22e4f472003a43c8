"""Fully connected layers on maps that are not a valid kernel: wider or higher than 32, or too large for the convolution buffer.

The pixels of a surface follow each other in memory, whatever its lines. Seen as pieces of h x w pixels, each a surface of its
own, they are a smaller map of more channels, and the layer is a convolution with that map as its kernel: the same sums.
Where the buffer has no room for the kernels of an atom, fewer at a time are computed, and put together by 1x1 convolutions.
Halves can also be summed up map by map; bytes cannot, as what lies between would be rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.convolution import ConvolutionWindow, split
from n2d2py_nvdla.export.hardware import HwOp, Region, SubRegion
from n2d2py_nvdla.export.layers.moves import shifted
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, refuse

LARGEST_KERNEL = 32
MOST_CHANNELS = 8192
_WIDER = 8
"""Columns that may be added to a map so that it falls into pieces."""


@dataclass(frozen=True)
class Pieces:
    """View of a feature map: its width in memory, pieces of a surface, their lines and columns, kernels at a time."""

    width: int
    count: int
    high: int
    wide: int
    kernels: int


def pieces(state: Lowering, source: Region, outputs: int) -> Pieces | None:
    """Return the pieces for which most kernels fit at once; None if not even one does."""
    lanes, (channels, height, width) = state.lanes, source.shape
    surfaces, most = -(-channels // lanes), min(outputs, lanes)
    best: Pieces | None = None
    for wider in range(width, width + (_WIDER if state.integer else 1)):
        pixels = height * wider
        for wide in range(1, LARGEST_KERNEL + 1):
            for high in range(1, LARGEST_KERNEL + 1):
                count, rest = divmod(pixels, wide * high)
                if rest or surfaces * lanes * count > MOST_CHANNELS:
                    continue
                if best is not None and (best.kernels == most or best.count <= count):
                    continue
                shape = (surfaces * lanes * count, high, wide)
                for kernels in range(most, best.kernels if best else 0, -1):
                    if (
                        split(state.config, state.precision, shape, kernels, (high, wide), 1, ConvolutionWindow(), lanes)
                        is not None
                    ):
                        best = Pieces(wider, count, high, wide, kernels)
                        break
        if best is not None and best.kernels == most:
            break
    return best


def wide_chains(
    state: Lowering, node: QuantNode, value: HardwareTensor, weights: np.ndarray, found: Pieces, post: Post, result: Region
) -> list[list[HwOp]]:
    """Return the operations of the layer with weights (K, C, H, W)."""
    source, lanes, outputs = value.region, state.lanes, len(weights)
    chains: list[list[HwOp]] = []
    packed = source.rows == source.buffer.height and source.width == source.buffer.width == found.width
    if not packed:
        target = Region.whole(state.buffer(f"{node.output}.map", shape=(source.channels, source.rows, found.width)))
        copied = replace(target, columns=source.width)
        chains.append(state.sdp_chain(source, Post(np.array([value.scale]), None, value.scale), copied))
        source = target
    kernels = _in_pieces(weights, lanes, found)
    atom = source.buffer.atom
    view = SubRegion(
        source.buffer,
        source.channel,
        source.channels,
        source.row,
        source.rows,
        cube=kernels.shape[1:],
        strides=(found.wide * atom, found.high * found.wide * atom),
    )
    if found.kernels >= min(outputs, lanes):
        return chains + state.convolution(node, view, kernels, ConvolutionWindow(), 1, post, result)
    plain = Post(np.array([post.scale]), None, post.scale)
    for first in range(0, outputs, found.kernels):
        many = min(found.kernels, outputs - first)
        part = Region.whole(state.buffer(f"{node.output}.{first}", shape=(many, 1, 1)))
        chosen = replace(post, gain=_cut(post.gain, first, many), bias=_cut(post.bias, first, many))
        chains += state.convolution(node, view, kernels[first : first + many], ConvolutionWindow(), 1, chosen, part)
        if first % lanes == 0:
            chains.append(state.sdp_chain(part, plain, result.part(first, many)))
        else:
            chains += shifted(state, HardwareTensor(part, post.scale), result, first, post.scale)
    return chains


def _cut(values: np.ndarray | None, first: int, many: int) -> np.ndarray | None:
    return values if values is None or np.size(values) == 1 else np.asarray(values)[first : first + many]


def _in_pieces(weights: np.ndarray, lanes: int, found: Pieces) -> np.ndarray:
    """Return the weights (K, C, H, W) as (K, channels of the pieces, lines, columns), zeros where a map has no channel or
    column.
    """
    k, c, h, w = weights.shape
    surfaces = -(-c // lanes)
    whole = np.zeros((k, surfaces * lanes, h, found.width), weights.dtype)
    whole[:, :c, :, :w] = weights
    split_up = whole.reshape(k, surfaces, lanes, found.count, found.high, found.wide)
    return np.ascontiguousarray(split_up.transpose(0, 1, 3, 2, 4, 5)).reshape(k, -1, found.high, found.wide)


def summed_maps(
    state: Lowering, node: QuantNode, source: Region, weights: np.ndarray, post: Post, result: Region
) -> list[list[HwOp]]:
    """fp16: the sums of parts of the map, each added to those before.

    Raises:
        N2D2Error: E715 in int8, and where not even a part fits.
    """
    if state.integer:
        raise refuse(
            node,
            f"a map of {source.width}x{source.rows} with {source.channels} channels does not fit into the convolution buffer "
            f"of {state.config.name} together with one kernel",
            "pool before it, or use a larger configuration",
        )
    chains: list[list[HwOp]] = []
    before: Region | None = None
    step = LARGEST_KERNEL
    corners = [(y, x) for y in range(0, source.rows, step) for x in range(0, source.width, step)]
    for number, (y, x) in enumerate(corners):
        high, wide = min(step, source.rows - y), min(step, source.width - x)
        part = replace(source.part(row=y, rows=high), columns=wide, column=source.column + x)
        last = number == len(corners) - 1
        target = result if last else Region.whole(state.buffer(f"{node.output}.{number}", shape=(len(weights), 1, 1)))
        own = replace(post, operand=before) if last else Post(np.ones(1), None, 1.0, operand=before)
        chains += state.convolution(node, part, weights[:, :, y : y + high, x : x + wide], ConvolutionWindow(), 1, own, target)
        before = target
    return chains
