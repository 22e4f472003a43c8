"""Layers that change nothing are removed; a Softmax at an output on request, and for targets without one: it then gives
logits."""

from __future__ import annotations

from n2d2py import log
from n2d2py.graph import Graph, Node
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Identity
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.base import Pass, drop


class RemoveIdentity(Pass):
    """y = Identity(x) or Dropout(x) => x, unless a network output would become an input or another output."""

    name = "remove-identity"
    summary = "Identity and Dropout layers removed"
    at = (Identity,)

    def match(self, graph: Graph, node: Node) -> bool | str:
        if node.activation is not None:
            return "it carries an activation"
        if graph.joins_ends(node):
            return "it joins a network output and an input or another output"
        return True

    def rewrite(self, graph: Graph, node: Node, match: object) -> str:
        drop(graph, node)
        return f"{node.op.kind} removed"


class DropSoftmax(Pass):
    """Softmax(x) at a network output => x; a Quantize of its result is dropped too."""

    name = "drop-softmax"
    summary = "Softmax at the network's outputs dropped"

    def match(self, graph: Graph, node: Node) -> bool | str | None:
        if type(node.op) is not Softmax:
            return None
        last = self._rounding(graph, node) or node
        if not graph.is_last(last.output):
            return "it is not at the end of the network"
        if node.activation is not None:
            return "it carries an activation"
        if graph.joins_ends(node):
            return "it reads a network input, or another output"
        return True

    @staticmethod
    def _rounding(graph: Graph, node: Node) -> Node | None:
        reader = graph.sole_consumer(node.output)
        return reader if reader is not None and isinstance(reader.op, Quantize) else None

    def rewrite(self, graph: Graph, node: Node, match: object) -> str:
        rounding = self._rounding(graph, node)
        if rounding is not None:
            drop(graph, rounding)
        log.notice("Softmax '%s' at the output is removed: the output gives logits instead of probabilities", node.name)
        drop(graph, node)
        return "Softmax dropped"
