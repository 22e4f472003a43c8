"""Layers between two reshapes that hardware has all the same: channels in another order."""

from __future__ import annotations

import numpy as np

from n2d2py.export.nvdla.arithmetic import Post
from n2d2py.export.nvdla.convolution import Window
from n2d2py.export.nvdla.lower import Lowering, chw
from n2d2py.graph import QuantNode

__all__ = ["between_reshapes"]


def between_reshapes(state: Lowering, node: QuantNode) -> bool:
    """Compiles a reshape to a vector, the layer behind it and the reshape back; False where it is none of these."""
    middle = state.sole_reader(node.output)
    last = state.sole_reader(middle.output) if middle is not None and len(middle.outputs) == 1 else None
    if last is None or last.op.kind != "Reshape" or len(state.graph.shape(node.inputs[0])) != 4:
        return False
    if len(state.graph.shape(last.output)) != 4 or last.activation is not None or middle.activation is not None:
        return False
    if middle.op.kind != "ArrayTake" or not _channels(state, node, middle, last):
        return False
    state.done.update((middle.name, last.name))
    return True


def _channels(state: Lowering, node: QuantNode, middle: QuantNode, last: QuantNode) -> bool:
    """Whole channels in another order, repeated or left out: a 1x1 convolution."""
    value = state.values[node.inputs[0]]
    c, h, w = value.region.shape
    positions, filled = middle.op.positions()
    target = chw(state.graph.shape(last.output))
    if filled.any() or target[1:] != (h, w) or len(positions) != int(np.prod(target)):
        return False
    rows = positions.reshape(target[0], h * w)
    if np.any(rows[:, 0] % (h * w)) or np.any(rows != rows[:, :1] + np.arange(h * w)):
        return False
    unit = 64 if state.integer else 1
    weights = np.zeros((target[0], c, 1, 1), np.int8 if state.integer else np.float16)
    weights[np.arange(target[0]), rows[:, 0] // (h * w)] = unit
    gain = np.array([value.scale / unit if state.integer else 1.0])
    state.convolve(node, last.output, value.region, weights, Window(), 1, Post(gain, None, value.scale))
    return True
