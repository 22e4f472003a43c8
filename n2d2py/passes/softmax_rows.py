"""A Softmax or Normalize over the channels of an image becomes one of rows of an array, which has integers.

Softmax(image)       =>  FromChannelsLast(ArraySoftmax(ToChannelsLast(image))): memory holds images with the channels last, both are views
Softmax(vector)      =>  ArraySoftmax(vector)
Normalize L2 (x)     =>  the same with an ArrayNorm without mean, whose gains are 1 / sqrt(channels)

The distributions of the sides of a box in a detector are such a Softmax, and the probabilities of classes. The vectors by which faces or
voices are compared are of length 1.
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.norm import ArrayNorm, ArraySoftmax
from n2d2py.operators.channels_last import FromChannelsLast, ToChannelsLast
from n2d2py.operators.normalize import SMALLEST_NORM, Normalize
from n2d2py.operators.quantize import is_quantized
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.base import Match, Pass


class SoftmaxRows(Pass):
    """Softmax => ArraySoftmax."""

    name = "softmax-rows"
    summary = "Softmax of channels turned into ones of rows, which have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, Softmax) or op.log or node.activation is not None or graph.precision(node).quantize is False:
            return None
        return Match(op.group_size or graph.shape(node.output)[1])

    def rewrite(self, graph: Graph, node: Node, found: int) -> str:
        shape = graph.shape(node.output)
        return _of_rows(graph, node, ArraySoftmax(prod(shape[1:]) // found, found, 1), {}, "shares")


class NormalizeRows(Pass):
    """Normalize L2 => ArrayNorm; not in networks that come quantized."""

    name = "normalize-rows"
    summary = "Normalize of channels turned into normalisations of rows, which have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, Normalize) or op.norm != "L2" or node.activation is not None:
            return None
        if graph.precision(node).quantize is False:
            return None
        if is_quantized(graph):
            return Match.no("the file has integers, and computes it in floating point")
        return Match(True)

    def rewrite(self, graph: Graph, node: Node, found: object) -> str:
        shape = graph.shape(node.output)
        channels = shape[1]
        params = {"gain": np.full(channels, channels**-0.5, np.float32), "shift": np.zeros(channels, np.float32)}
        norm = ArrayNorm(prod(shape[1:]) // channels, channels, SMALLEST_NORM**2 / channels, False)
        return _of_rows(graph, node, norm, params, "unit")


def _of_rows(graph: Graph, node: Node, op: ArrayOp, params: dict[str, np.ndarray], label: str) -> str:
    """A layer of the channels of an image or of a vector becomes `op` of rows, between views."""
    shape = graph.shape(node.output)
    text = f"it is {op.kind} of rows"
    if len(shape) == 2:
        node.op, node.params = op, params
        return text
    at, (source,) = graph.nodes.index(node), node.inputs
    rows, made, line = (graph.fresh_name(f"{node.output}_{what}") for what in ("rows", label, "line"))
    graph.add(Node(rows, ToChannelsLast(), [source], [rows], location=node.location, helper=True), at=at)
    graph.add(Node(made, op, [rows], [made], params, location=node.location, source=[made, *node.source]), at=at + 1)
    graph.add(Node(line, FromChannelsLast(shape[1]), [made], [line], location=node.location, helper=True), at=at + 2)
    node.op, node.inputs = Reshape(shape[1:]), [line]
    return text
