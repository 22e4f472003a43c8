"""PyTorch's softplus switches to x above a threshold, where log(1 + exp(x)) equals x in float32.

Where(Greater(x, c), x, Softplus(x))   =>  Softplus(x), if c is large enough
"""

from __future__ import annotations

from math import exp

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.functions import Softplus
from n2d2py.operators.identity import Identity
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.base import Match, Pass

_LEAST_THRESHOLD = 15.0
"""Smallest threshold: softplus(15) is 15 + 3.1e-7, the next float32 is 15 + 9.5e-7."""
assert exp(-_LEAST_THRESHOLD) < _LEAST_THRESHOLD * 2.0**-24


class RemoveSoftplusTail(Pass):
    """Where(x > c, x, Softplus(x)) => Softplus(x)."""

    name = "remove-softplus-tail"
    summary = "choices between a softplus and its argument removed"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, ArrayMap) or op.function != "Where" or op.slots != (0, 1, 2) or node.activation is not None:
            return None
        condition, value = graph.producer(node.inputs[0]), graph.producer(_source(graph, node.inputs[2]))
        if condition is None or not isinstance(condition.op, ArrayMap) or condition.op.function != "Greater":
            return None
        if value is None or not _is_softplus(value) or condition.op.slots != (0, -1):
            return None
        if any(shape != op.dims for shape in (*op.shapes, condition.op.shapes[0])) or condition.op.dims != op.dims:
            return None
        read = {_source(graph, tensor) for tensor in (condition.inputs[0], node.inputs[1], value.inputs[0])}
        if len(read) > 1:
            return None
        if condition.params["operand1"].min() < _LEAST_THRESHOLD:
            return Match.no(f"the threshold is below {_LEAST_THRESHOLD:g}")
        return Match(node.inputs[2])

    def rewrite(self, graph: Graph, node: Node, found: str) -> str:
        node.op, node.inputs, node.params = Identity(), [found], {}
        graph.prune()
        return "a softplus is linear there"


def _is_softplus(node: Node) -> bool:
    if node.activation is not None:
        return False
    if isinstance(node.op, Activation):
        return isinstance(node.op.function, Softplus)
    return isinstance(node.op, ArrayMap) and node.op.function == "Softplus"


def _source(graph: Graph, tensor: str) -> str:
    """Return the tensor whose elements `tensor` has in the same order."""
    node = graph.producer(tensor)
    while node is not None and isinstance(node.op, Reshape) and node.activation is None:
        tensor = node.inputs[0]
        node = graph.producer(tensor)
    return tensor
