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
from n2d2py.operators.conv import Conv
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.constant_products import constant_product, kept_by_the_file
from n2d2py.passes.views import as_array, over_images, turn_rows

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
        node.inputs = [turned]
        text = f"products of {groups} matrices"
        if rows == 1:
            over_images(graph, node, [(groups * depth, 1, 1)], (groups * width, 1, 1))
            return f"{text} turned into a Conv of as many groups"
        lines = graph.fresh_name(f"{output}_product")
        graph.tensors[lines] = Tensor(lines, graph.shape(output))
        node.outputs = [lines]
        over_images(graph, node, [(groups * depth, 1, rows)], (groups * width, 1, rows))
        at = graph.nodes.index(node) + 2
        back = turn_rows(graph, node, at, lines, (width, rows, groups), _TURNED, f"{output}_back", rows=False)
        as_array(graph, back, output, node, at + 2)
        return f"{text} with {rows} rows each turned into a Conv of as many groups"


def _sizes(op: ArrayMatMul) -> tuple[int, int] | None:
    """(groups, rows of each) where the outermost axes of both operands are the groups alike; None where they are not."""
    end = 1 + max(axis for axis, size in enumerate(op.right[:-2]) if size > 1)
    return (prod(op.right[:end]), prod(op.left[end:-1])) if op.left[:end] == op.right[:end] else None
