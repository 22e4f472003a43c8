"""Layers between two reshapes that hardware has all the same: positions in another order, a constant for every element."""

from __future__ import annotations

import numpy as np

from n2d2py.export.nvdla.arithmetic import Post
from n2d2py.export.nvdla.hardware import Constants
from n2d2py.export.nvdla.layers.take import choose
from n2d2py.export.nvdla.lower import Lowering, chw
from n2d2py.graph import QuantNode
from n2d2py.nvdla.model.formats import as_bytes

__all__ = ["between_reshapes"]


def between_reshapes(state: Lowering, node: QuantNode) -> bool:
    """Compiles a reshape to a vector, the layer behind it and the reshape back; False where it is none of these."""
    middle = state.sole_reader(node.output)
    last = state.sole_reader(middle.output) if middle is not None and len(middle.outputs) == 1 else None
    if middle is not None and last is None and middle.op.kind == "ArrayMap":
        readers = state.graph.consumers(middle.output)
        last = readers[0] if len(readers) == 1 else None
    if last is None or last.op.kind != "Reshape" or len(state.graph.shape(node.inputs[0])) != 4:
        return False
    if len(state.graph.shape(last.output)) != 4 or last.activation is not None or middle.activation is not None:
        return False
    done = _positions if middle.op.kind == "ArrayTake" else _addition if middle.op.kind == "ArrayMap" else None
    if done is None or not done(state, node, middle, last):
        return False
    state.done.update((middle.name, last.name))
    return True


def _positions(state: Lowering, node: QuantNode, middle: QuantNode, last: QuantNode) -> bool:
    """Channels, lines and columns in another order, repeated or left out."""
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


def _addition(state: Lowering, node: QuantNode, middle: QuantNode, last: QuantNode) -> bool:
    """A constant of its own for every element: the second operand of an SDP operation."""
    value = state.values[node.inputs[0]]
    constant = middle.params.get("operand1")
    shape = value.region.shape
    if (
        middle.op.function != "Add"
        or tuple(middle.op.slots) != (0, -1)
        or constant is None
        or constant.size != int(np.prod(shape))
        or chw(state.graph.shape(last.output)) != shape
        or state.integer
    ):
        return False
    buffer = value.region.buffer
    atom, lanes = buffer.atom, buffer.lanes
    line, surface = shape[2] * atom, shape[1] * shape[2] * atom
    data = as_bytes(constant.reshape(shape).astype(np.float16), -(-shape[0] // lanes) * surface, line, surface, atom)
    cube = Constants(data.tobytes(), (shape[2], shape[1], shape[0], line, surface))
    state.from_memory(node, last.output, value.region, Post(np.ones(1), None, 1.0, operand=cube))
    return True
