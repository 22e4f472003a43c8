"""Layers between two reshapes that hardware has all the same: positions in another order."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.layers.index_select import choose
from n2d2py_nvdla.export.lowering import Lowering, chw


def between_reshapes(state: Lowering, node: QuantNode) -> bool:
    """Compile a reshape to a vector, the layer after it and the reshape back; False where it is none of these."""
    middle = state.sole_reader(node.output)
    if middle is None or len(middle.outputs) != 1:
        return False
    last = state.sole_reader(middle.output)
    if last is None or last.op.kind != "Reshape" or len(state.graph.shape(node.inputs[0])) != 4:
        return False
    if len(state.graph.shape(last.output)) != 4 or last.activation is not None or middle.activation is not None:
        return False
    if middle.op.kind != "IndexSelect" or not _positions(state, node, middle, last):
        return False
    state.done.update((middle.name, last.name))
    return True


def _positions(state: Lowering, node: QuantNode, middle: QuantNode, last: QuantNode) -> bool:
    """Return the channels, lines and columns in another order, repeated or left out."""
    value = state.values[node.inputs[0]]
    h, w = value.region.shape[1:]
    positions, filled = middle.op.positions()
    target = chw(state.graph.shape(last.output))
    if filled.any() or len(positions) != int(np.prod(target)):
        return False
    taken = positions.reshape(target)
    channels, rows, columns = chosen = [taken[:, 0, 0] // (h * w), taken[0, :, 0] // w % h, taken[0, 0] % w]
    if np.any(taken != channels[:, None, None] * h * w + rows[:, None] * w + columns):
        return False
    choose(state, middle, last.output, value, chosen)
    return True
