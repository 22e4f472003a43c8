"""Replacement of a chain of layers by one layer: the pass for chains that operators and plug-ins declare.

a -> b -> c  =>  one layer, if each intermediate result has one consumer and is not a network output
"""

from __future__ import annotations

from typing import Any

from n2d2py.graph import Chain, Graph, Node
from n2d2py.operators.pointwise import Activation
from n2d2py.passes.base import Pass


class ChainPass(Pass):
    """The pass of one declared chain."""

    def __init__(self, chain: Chain):
        self.name, self.summary = chain.name, chain.summary
        self._kinds, self._becomes = chain.kinds, chain.becomes

    def match(self, graph: Graph, node: Node) -> tuple[list[Node], Any, dict[str, Any]] | str | None:
        if _kind(node) != self._kinds[0]:
            return None
        nodes = [node]
        for kind in self._kinds[1:]:
            follower = graph.sole_consumer(nodes[-1].output)
            if follower is None or _kind(follower) != kind:
                readers = [f"{reader.name} ({_kind(reader)})" for reader in graph.consumers(nodes[-1].output)]
                text = ", ".join(readers) or "nothing"
                return f"the result of {nodes[-1].name} is read by {text}, not by a {kind} alone"
            nodes.append(follower)
        for one in nodes[:-1]:
            if one.activation is not None:
                return f"{one.name} carries the activation {one.activation.kind}"
        result = self._becomes(*nodes)
        if isinstance(result, str):
            return result
        op, params = result if isinstance(result, tuple) else (result, dict(node.params))
        return nodes, op, params

    def rewrite(self, graph: Graph, node: Node, match: Any) -> str:
        nodes, op, params = match
        inside = {one.output for one in nodes}
        outside = [name for one in nodes for name in one.inputs if name not in inside]
        last, source = nodes[-1], [name for one in nodes for name in one.source]
        result, place = last.output, graph.nodes.index(last) - len(nodes) + 1
        new = Node(last.name, op, outside, [result], params, last.activation, last.location, source)
        for one in nodes:
            graph.remove(one)
            graph.tensors.pop(one.output)
            if one is not last:
                graph.aliases[one.output] = result
        graph.add(new, at=place)
        return f"{' - '.join(self._kinds)} became {op.kind}"


def _kind(node: Node) -> str:
    return node.op.function.kind if isinstance(node.op, Activation) else node.op.kind
