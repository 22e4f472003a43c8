"""A Softmax at the end of the network is left out of integer exports: the class stays the same."""

from __future__ import annotations

from n2d2py import log
from n2d2py.graph import Graph, Node
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.base import Match, Pass, drop


class DropSoftmax(Pass):
    """Softmax(x) at a network output => x. The outputs are then logits, in the same order.

    A rounding of its result to integers goes with it.
    """

    name = "drop-softmax"
    summary = "Softmax at the network's outputs dropped"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, Softmax):
            return None
        last = self._rounding(graph, node) or node
        if last.output not in graph.outputs or graph.consumers(last.output):
            return Match.no("it is not at the end of the network")
        channels = graph.shape(node.output)[1]
        if node.op.group_size not in (0, channels):
            return Match.no("it normalises groups of channels, whose order among each other would change")
        if channels == 1:
            return Match.no("it normalises one channel: it gives the same number for every input, what it reads does not")
        if node.activation is not None:
            return Match.no("it carries an activation")
        if node.inputs[0] in graph.inputs:
            return Match.no("it reads a network input")
        if node.inputs[0] in graph.outputs:
            return Match.no("what it reads is a network output too")
        return Match(True)

    @staticmethod
    def _rounding(graph: Graph, node: Node) -> Node | None:
        reader = graph.sole_consumer(node.output)
        return reader if reader is not None and isinstance(reader.op, Quantize) else None

    def rewrite(self, graph: Graph, node: Node, found: object) -> str:
        rounding = self._rounding(graph, node)
        if rounding is not None:
            drop(graph, rounding)
        log.notice("the Softmax '%s' at the output is dropped; the best class stays the same", node.name)
        drop(graph, node)
        return "Softmax dropped"
