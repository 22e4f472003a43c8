"""Sums of arrays that have integers: of two of one shape, and of an array and a constant for each of its elements.

ArrayMap Add or Sub of two arrays of one shape                  =>  ElemWise Sum
ArrayMap Add of an array and constants of its shape, in front of
a normalisation of lines: embeddings of positions               =>  AddConstants
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.base import Op
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes.base import Match, Pass


@dataclass(frozen=True)
class Replacement:
    """The operator that a layer gets, and its parameters."""

    op: Op
    params: dict[str, np.ndarray]


class ArraySums(Pass):
    """ArrayMap Add => ElemWise Sum or AddConstants; not in networks that come quantized."""

    name = "array-sums"
    summary = "sums of arrays turned into layers that have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, ArrayMap) or op.function not in ("Add", "Sub") or op.result or node.activation is not None:
            return None
        if is_quantized(graph):
            return Match.no("it computes in integers of the file")
        if sorted(op.slots) == [0, 1]:
            if any(shape != op.dims for shape in op.shapes):
                return Match.no("one of its operands is repeated")
            weights = (1.0, 1.0) if op.function == "Add" else (1.0, -1.0) if op.slots == (0, 1) else (-1.0, 1.0)
            return Match(Replacement(ElemWise("Sum", () if op.function == "Add" else weights), {}))
        if op.function == "Add" and sorted(op.slots) == [-1, 0] and _is_normalised(graph, node.output):
            constant = node.params[f"operand{op.slots.index(-1)}"]
            if constant.dtype.kind == "f" and constant.size == prod(op.dims) and np.isfinite(constant).all():
                return Match(Replacement(AddConstants(), {"constants": constant.reshape(-1)}))
        return None

    def rewrite(self, graph: Graph, node: Node, found: Replacement) -> str:
        node.op, node.params = found.op, found.params
        return f"it is {found.op.kind}"


def _is_normalised(graph: Graph, tensor: str) -> bool:
    """Whether a normalisation of lines reads a tensor."""
    return any(isinstance(reader.op, Normalize) for reader in graph.consumers(tensor))
