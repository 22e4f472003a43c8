"""Chosen channels, lines and columns: slices, splits, channel shuffles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.convolution import ConvolutionWindow
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, lowering, refuse

LARGEST_STEP = 8
"""Stride of a convolution."""


@lowering("IndexSelect")
def _take(state: Lowering, node: QuantNode) -> None:
    if node.activation is not None:
        raise refuse(node, "chosen positions with an activation", "put the activation before it")
    if not node.op.by_axes(state.graph.shape(node.inputs[0])):
        raise refuse(node, "elements of an array in another order")
    value = state.values[node.inputs[0]]
    chosen = [
        np.arange(n) if taken is None else np.asarray(taken)
        for n, taken in zip(value.region.shape, (*node.op.indices, None, None)[:3], strict=True)
    ]
    choose(state, node, node.output, value, chosen)


def choose(state: Lowering, node: QuantNode, tensor: str, value: HardwareTensor, chosen: list[np.ndarray]) -> None:
    """Write `tensor`: the chosen channels, lines and columns of `value`.

    A view of whole atoms where that is enough, a copy by the SDP of neighbouring lines and columns, else a 1x1 convolution.

    Raises:
        N2D2Error: E715 for lines or columns that no stride reaches.
    """
    size, channels = value.region.shape, chosen[0]
    steps = [_step(positions) for positions in chosen[1:]]
    if not all(1 <= step <= LARGEST_STEP for step in steps):
        raise refuse(
            node,
            f"lines or columns in an order of their own, or more than {LARGEST_STEP} apart",
            "take them in order, at even distances",
        )
    (row, rows), (column, columns) = ((int(axis[0]), int(axis[-1] - axis[0]) + 1) for axis in chosen[1:])
    part, scale = value.region.part(row=row, rows=rows), state.scale_of(tensor)
    if columns < part.width:
        part = replace(part, columns=columns, column=part.column + column)
    neighbours = bool(np.all(np.diff(channels) == 1)) and channels[0] % state.lanes == 0
    if part.shape[1:] == (1, 1) != size[1:]:
        neighbours = False  # the SDP reads a single pixel as if nothing stood between its atoms
    if neighbours and steps == [1, 1] and (len(channels) % state.lanes == 0 or channels[-1] == size[0] - 1):
        part = part.part(int(channels[0]), len(channels))
        free = tensor not in state.slots and tensor not in state.graph.outputs
        if free and part.shape[1:] == size[1:] and value.scale == scale:
            state.values[tensor] = HardwareTensor(part, scale)
        else:
            state.from_memory(node, tensor, part, Post(np.array([value.scale]), None, scale))
        return
    unit = 64 if state.integer else 1
    weights = np.zeros((len(channels), size[0], 1, 1), np.int8 if state.integer else np.float16)
    weights[np.arange(len(channels)), channels] = unit
    gain = np.array([value.scale / unit if state.integer else 1.0])
    state.convolve(node, tensor, part, weights, ConvolutionWindow((steps[0], steps[1])), 1, Post(gain, None, scale))


def _step(positions: np.ndarray) -> int:
    """Return the distance of neighbouring positions; 0 when it changes."""
    steps = np.unique(np.diff(positions))
    return 1 if not len(steps) else int(steps[0]) if len(steps) == 1 else 0
