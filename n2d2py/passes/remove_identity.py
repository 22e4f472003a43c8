"""Identity and Dropout are removed: y = x."""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.identity import Identity
from n2d2py.passes.base import Match, Pass, drop


class RemoveIdentity(Pass):
    """y = Identity(x) or Dropout(x) => x, unless a network output would become an input or another output."""

    name = "remove-identity"
    summary = "Identity and Dropout layers removed"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, Identity):
            return None
        if node.activation is not None:
            return Match.no("it carries an activation")
        if graph.joins_ends(node):
            return Match.no("it joins a network output and an input or another output")
        return Match(True)

    def rewrite(self, graph: Graph, node: Node, found: object) -> str:
        drop(graph, node)
        return f"{node.op.kind} removed"
