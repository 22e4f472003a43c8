"""A product with a constant matrix on the left is one with its transpose on the right, between transpositions.

    ArrayMatMul(W, x) of W (M, K) and x (..., K, N)   =>  (ArrayMatMul(x transposed, W transposed)) transposed
    ArrayMatMul(W, x) of W (M, K) and x (K, 1)        =>  ArrayMatMul(x, W transposed), x as a row

The neighbours of a graph network's nodes are such a matrix, and the layers that mix the tokens of an MLP-Mixer, or resample a line. The
product is then a convolution of 1x1 (`matmul_to_conv.py`).
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node, Tensor
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.constant_products import constant_product, kept_by_the_file
from n2d2py.passes.views import as_array, turn_rows

_TURNED = (0, 3, 2, 1)
"""Channels and columns change places."""


class LeftMatMul(Pass):
    """ArrayMatMul with a constant left matrix => with a constant right one; not in networks that come quantized."""

    name = "left-matmul"
    summary = "matrix products with constant left matrices turned into ones with constant right ones"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = constant_product(node, (-1, 0))
        if op is None:
            return None
        kept = kept_by_the_file(graph, node)
        if kept is not None:
            return kept
        if prod(op.left[:-2]) != 1:
            return Match.no("it has a matrix for each of several products")
        return Match((prod(op.right[:-2]), op.right[-1]))

    def rewrite(self, graph: Graph, node: Node, found: tuple[int, int]) -> str:
        products, columns = found
        op, (source,), output = node.op, node.inputs, node.output
        assert isinstance(op, ArrayMatMul)
        outputs, depth = op.left[-2:]
        weights = node.params["operand0"].reshape(outputs, depth)
        node.op = ArrayMatMul((products * columns, depth), (depth, outputs), (0, -1))
        node.params = {"operand1": np.ascontiguousarray(weights.T)}
        text = f"its matrix of {outputs} x {depth} multiplies from the right"
        if products * columns == 1:
            return text
        at, product = graph.nodes.index(node), graph.fresh_name(f"{output}_product")
        turned = turn_rows(graph, node, at, source, (columns, products, depth), _TURNED, f"{output}_operand")
        graph.tensors[product] = Tensor(product, (1, products * columns * outputs))
        node.inputs, node.outputs = [turned], [product]
        at = graph.nodes.index(node) + 1
        line = turn_rows(graph, node, at, product, (outputs, products, columns), _TURNED, product, rows=False)
        as_array(graph, line, output, node, at + 2)
        return text
