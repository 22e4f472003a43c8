"""Gains and shifts of a normalisation of lines become part of it.

Normalize, ArrayMap Mul by a constant of a line [, ArrayMap Add of one]   =>  Normalize with gain and shift
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.normalize import Normalize
from n2d2py.passes.base import Match, Pass


def _of_lines(node: Node, function: str, size: int) -> np.ndarray | None:
    """The constant of `size` elements that a layer combines with every line of its input; None for any other layer."""
    if not isinstance(node.op, ArrayMap) or node.op.function != function or node.activation is not None:
        return None
    op = node.op
    if op.result or sorted(op.slots) != [-1, 0]:
        return None
    index = op.slots.index(-1)
    constant, shape = node.params[f"operand{index}"], op.shapes[index]
    if constant.dtype.kind != "f" or op.shapes[1 - index] != op.dims:
        return None
    last = next((axis for axis in range(len(shape) + 1) if prod(op.dims[axis:]) == size), None)
    if last is None or prod(shape[:last]) != 1:
        return None
    return np.broadcast_to(constant.reshape(shape[last:]), op.dims[last:]).reshape(-1)


class FuseNorm(Pass):
    """Normalize, Mul and Add => Normalize."""

    name = "fuse-norm"
    summary = "gains and shifts merged into normalisations of lines"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, Normalize) or op.part or node.activation is not None:
            return None
        reader = graph.sole_consumer(node.output)
        if reader is None:
            return None
        gains = _of_lines(reader, "Mul", op.size)
        shifts = _of_lines(reader, "Add", op.size)
        return None if gains is None and shifts is None else Match((reader, gains, shifts))

    def rewrite(self, graph: Graph, node: Node, found: tuple[Node, np.ndarray | None, np.ndarray | None]) -> str:
        reader, gains, shifts = found
        size = node.op.size
        own, shift = node.params.get("gain", np.ones(size, np.float32)), node.params.get("shift", np.zeros(size, np.float32))
        if gains is not None:
            own, shift = own * gains, shift * gains
        if shifts is not None:
            shift = shift + shifts
        graph.absorb(node, reader)
        node.params = {"gain": own.astype(np.float32), "shift": shift.astype(np.float32)}
        return f"it does what {reader.name} did"
