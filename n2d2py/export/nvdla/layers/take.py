"""Chosen channels, lines and columns: slices, splits, channel shuffles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.export.nvdla.arithmetic import Post
from n2d2py.export.nvdla.convolution import Window
from n2d2py.export.nvdla.lower import Lowering, Value, lowering, refuse
from n2d2py.graph import QuantNode

__all__ = ["choose_channels"]

LARGEST_STEP = 8
"""Stride of a convolution."""


@lowering("Take")
def _take(state: Lowering, node: QuantNode) -> None:
    """A view of whole atoms where that is enough, a copy by the SDP of neighbouring lines and columns, else a 1x1 convolution."""
    if node.activation is not None:
        raise refuse(node, "chosen positions with an activation", "put the activation before it")
    value = state.values[node.inputs[0]]
    size = value.region.shape
    chosen = [
        np.arange(n) if taken is None else np.asarray(taken)
        for n, taken in zip(size, (*node.op.indices, None, None)[:3], strict=True)
    ]
    steps = [_step(positions) for positions in chosen[1:]]
    if not all(1 <= step <= LARGEST_STEP for step in steps):
        raise refuse(
            node,
            f"lines or columns in an order of their own, or more than {LARGEST_STEP} apart",
            "take them in order, at even distances",
        )
    (row, rows), (column, columns) = ((int(axis[0]), int(axis[-1] - axis[0]) + 1) for axis in chosen[1:])
    part = value.region.part(row=row, rows=rows)
    if columns < part.width:
        part = replace(part, columns=columns, column=part.column + column)
    channels, scale = chosen[0], state.scale_of(node.output)
    neighbours = bool(np.all(np.diff(channels) == 1)) and channels[0] % state.lanes == 0
    if part.shape[1:] == (1, 1) != size[1:]:
        neighbours = False  # the SDP reads a single pixel as if nothing stood between its atoms
    if neighbours and steps == [1, 1] and (len(channels) % state.lanes == 0 or channels[-1] == size[0] - 1):
        part = part.part(int(channels[0]), len(channels))
        free = node.output not in state.slots and node.output not in state.graph.outputs
        if free and part.shape[1:] == size[1:] and value.scale == scale:
            state.values[node.output] = Value(part, scale)
            return
        gain = np.array([value.scale])
        state.from_memory(node, node.output, part, Post(gain, None, scale))
        return
    choose_channels(state, node, node.output, replace(value, region=part), channels, (steps[0], steps[1]), scale)


def _step(positions: np.ndarray) -> int:
    """The distance of neighbouring positions; 0 when it changes."""
    steps = np.unique(np.diff(positions))
    return 1 if not len(steps) else int(steps[0]) if len(steps) == 1 else 0


def choose_channels(
    state: Lowering, node: QuantNode, tensor: str, value: Value, channels: np.ndarray, step: tuple[int, int], scale: float
) -> None:
    """A layer that writes chosen channels of `value`, and every `step`-th line and column, by a 1x1 convolution."""
    unit = 64 if state.integer else 1
    weights = np.zeros((len(channels), value.region.channels, 1, 1), np.int8 if state.integer else np.float16)
    weights[np.arange(len(channels)), channels] = unit
    gain = np.array([value.scale / unit if state.integer else 1.0])
    state.convolve(node, tensor, value.region, weights, Window(step), 1, Post(gain, None, scale))
