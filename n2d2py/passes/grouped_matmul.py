"""A product with a constant matrix for each of several groups of rows is a grouped convolution between transpositions.

    ArrayMatMul(x, W) of x (G, T, K) and W (G, K, N)   =>  Conv of 1x1 in G groups over T pixels of G K channels, rows turned
                                                           from (G, T, K) to (T, G K) before it and back behind it

The matrices of the heads of an attention with relative positions are such, and those of several experts.
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node, Tensor
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.channels_last import FromChannelsLast, ToChannelsLast
from n2d2py.operators.conv import Conv
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.constant_products import constant_product, kept_by_the_file
from n2d2py.passes.turned_rows import turn_rows

_TURNED = (0, 1, 3, 2)
"""Lines and columns change places."""


class GroupedMatMul(Pass):
    """ArrayMatMul with a constant matrix for each group => grouped Conv 1x1; not in networks that come quantized."""

    name = "grouped-matmul"
    summary = "matrix products with a constant matrix for each group turned into grouped 1x1 convolutions"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = constant_product(node, (0, -1))
        if op is None or prod(op.right[:-2]) == 1:
            return None
        kept = kept_by_the_file(graph, node)
        if kept is not None:
            return kept
        sizes = _sizes(op)
        return Match.no("its matrices do not belong to the outermost groups of its rows") if sizes is None else Match(sizes)

    def rewrite(self, graph: Graph, node: Node, found: tuple[int, int]) -> str:
        groups, rows = found
        (source,), output = node.inputs, node.output
        assert isinstance(node.op, ArrayMatMul)
        depth, width = node.op.right[-2:]
        weights = node.params["operand1"].reshape(groups, depth, width).transpose(0, 2, 1).reshape(groups * width, depth, 1, 1)
        node.op, node.params = Conv(groups=groups), {"weights": np.ascontiguousarray(weights)}
        node.params["bias"] = np.zeros(groups * width, weights.dtype)
        turned = source
        if rows > 1:
            turned = turn_rows(
                graph, node, graph.nodes.index(node), source, (depth, groups, rows), _TURNED, f"{output}_operand"
            )
        image, pixels, lines = (graph.fresh_name(f"{output}_{what}") for what in ("rows", "pixels", "product"))
        graph.tensors[pixels] = Tensor(pixels, (1, groups * width, 1, rows))
        at, location = graph.nodes.index(node), node.location
        graph.add(Node(image, FromChannelsLast(groups * depth), [turned], [image], location=location, helper=True), at=at)
        node.inputs, node.outputs = [image], [pixels]
        if rows == 1:
            graph.nodes.insert(at + 2, _last(graph, pixels, output, node))
            return f"products of {groups} matrices turned into a Conv of as many groups"
        graph.add(Node(lines, ToChannelsLast(), [pixels], [lines], location=location, helper=True), at=at + 2)
        back = turn_rows(graph, node, at + 3, lines, (width, rows, groups), _TURNED, f"{output}_back", rows=False)
        graph.nodes.insert(at + 6, _last(graph, back, output, node))
        return f"products of {groups} matrices with {rows} rows each turned into a Conv of as many groups"


def _last(graph: Graph, source: str, output: str, node: Node) -> Node:
    """The view that gives the result of the product."""
    return Node(graph.fresh_name(f"{output}_view"), ToChannelsLast(), [source], [output], location=node.location, helper=True)


def _sizes(op: ArrayMatMul) -> tuple[int, int] | None:
    """(groups, rows of each) where the outermost axes of both operands are the groups alike; None where they are not."""
    end = 1 + max(axis for axis, size in enumerate(op.right[:-2]) if size > 1)
    return (prod(op.right[:end]), prod(op.left[end:-1])) if op.left[:end] == op.right[:end] else None
