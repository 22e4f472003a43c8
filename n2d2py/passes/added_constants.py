"""Constants added to arrays, the same ones again along the leading axes, have integers: biases of attention, embeddings of positions.

    ArrayMap Add or Sub of an array (..., *S) and constants (*S)   =>  AddConstants

One constant for each channel or row is left to the layers that have gains too (`gains.py`).
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.neighbours import gets_integers, left_in_floats

_LARGEST_SCORE = 128.0
"""Larger constants in front of a softmax are a mask, whose steps of 8 bits would be too coarse for the others."""


class AddedConstants(Pass):
    """ArrayMap Add or Sub of constants => AddConstants; not in networks that come quantized, nor beside layers that have no integers."""

    name = "added-constants"
    summary = "constants added to arrays turned into layers that have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        constants = _constants(node)
        if constants is None:
            return None
        readers = graph.consumers(node.output)
        if any(isinstance(reader.op, Softmax) for reader in readers):
            if np.abs(constants).max() > _LARGEST_SCORE:
                return Match.no("its constants are a mask")
        reason = left_in_floats(graph, node)
        return Match(constants) if reason is None else Match.no(reason)

    def rewrite(self, graph: Graph, node: Node, found: np.ndarray) -> str:
        node.op, node.params = AddConstants(), {"constants": found}
        return "it is AddConstants"


@gets_integers
def _is_sum(node: Node) -> bool:
    return _constants(node) is not None


def _constants(node: Node) -> np.ndarray | None:
    """The constants (C) that a layer adds to each C elements of its only input; None where it does something else."""
    op = node.op
    if not isinstance(op, ArrayMap) or op.result or node.activation is not None:
        return None
    if not (op.function == "Add" and sorted(op.slots) == [-1, 0]) and not (op.function == "Sub" and op.slots == (0, -1)):
        return None
    index = op.slots.index(-1)
    shape, values = op.shapes[index], node.params[f"operand{index}"]
    first = next((axis for axis, size in enumerate(shape) if size > 1), None)
    if first is None or shape[first:] != op.dims[first:] or op.shapes[1 - index] != op.dims:
        return None
    if values.dtype.kind != "f" or values.size != prod(shape) or not np.isfinite(values).all():
        return None
    return values.reshape(-1) if op.function == "Add" else -values.reshape(-1)
