"""The magnitude of a complex spectrum becomes one layer, since squares have twice the dynamic range in decibels.

    ElemWise Sum of products of tensors with themselves, then a square root  =>  ElemWise EuclideanSum

Its parts are removed if nothing else consumes them.
"""

from __future__ import annotations

from math import sqrt

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Sqrt
from n2d2py.passes.base import Match, Pass


class FuseMagnitude(Pass):
    """Sqrt(w x * x + v y * y + ...) => EuclideanSum(sqrt(w) x, sqrt(v) y, ...)."""

    name = "fuse-magnitude"
    summary = "roots of sums of squares merged into one layer"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not (isinstance(node.op, Activation) and node.op.function == Sqrt()) or node.activation is not None:
            return None
        total = graph.producer(node.inputs[0])
        if total is None or not _is_elemwise(total, "Sum") or len(total.inputs) < 2:
            return None
        squares = [graph.producer(name) for name in total.inputs]
        if any(square is None or not _is_elemwise(square, "Prod") or len(set(square.inputs)) > 1 for square in squares):
            return None
        if any(len(square.inputs) != 2 for square in squares if square is not None):
            return None
        weights, shifts = total.op.coefficients(len(total.inputs))
        if min(weights) < 0 or any(shifts):
            return Match.no("its sum has a shift, or takes a square away")
        return Match(([square.inputs[0] for square in squares if square is not None], tuple(map(sqrt, weights))))

    def rewrite(self, graph: Graph, node: Node, found: tuple[list[str], tuple[float, ...]]) -> str:
        inputs, weights = found
        node.op, node.inputs, node.params = ElemWise("EuclideanSum", weights if set(weights) != {1.0} else ()), inputs, {}
        graph.prune()
        return "the magnitude of what was squared"


def _is_elemwise(node: Node, operation: str) -> bool:
    return isinstance(node.op, ElemWise) and node.op.operation == operation and node.activation is None
