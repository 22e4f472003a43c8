"""A Softmax over the channels of an image, inside of a network, becomes one of rows of an array, which has integers.

Softmax(image)   =>  FromChannelsLast(ArraySoftmax(ToChannelsLast(image))): memory holds images with the channels last, both are views
Softmax(vector)  =>  ArraySoftmax(vector)

The distributions of the sides of a box in a detector are of this kind. One whose result leaves the network stays in floating point.
"""

from __future__ import annotations

from math import prod

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.norm import ArraySoftmax
from n2d2py.operators.channels_last import FromChannelsLast, ToChannelsLast
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.base import Match, Pass


class SoftmaxRows(Pass):
    """Softmax => ArraySoftmax; not in networks that come quantized, which compute it in floating point."""

    name = "softmax-rows"
    summary = "Softmax of channels turned into ones of rows, which have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, Softmax) or op.log or node.activation is not None or graph.precision(node).quantize is False:
            return None
        if node.output in graph.outputs:
            return Match.no("its result leaves the network")
        if any(isinstance(other.op, Quantize) for other in graph.nodes):
            return Match.no("the file has integers, and computes it in floating point")
        return Match(op.group_size or graph.shape(node.output)[1])

    def rewrite(self, graph: Graph, node: Node, found: int) -> str:
        shape = graph.shape(node.output)
        softmax = ArraySoftmax(prod(shape[1:]) // found, found, 1)
        if len(shape) == 2:
            node.op = softmax
            return f"rows of {found}"
        at, (source,) = graph.nodes.index(node), node.inputs
        rows, shares, line = (graph.fresh_name(f"{node.output}_{what}") for what in ("rows", "shares", "line"))
        graph.add(Node(rows, ToChannelsLast(), [source], [rows], location=node.location, helper=True), at=at)
        graph.add(Node(shares, softmax, [rows], [shares], location=node.location, source=[shares, *node.source]), at=at + 1)
        graph.add(Node(line, FromChannelsLast(shape[1]), [shares], [line], location=node.location, helper=True), at=at + 2)
        node.op, node.inputs = Reshape(shape[1:]), [line]
        return f"rows of {found}"
