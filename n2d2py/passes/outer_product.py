"""A product of two arrays of which each repeats along the axes of the other is a product of matrices, with integers.

    ArrayMap Mul of (..., A, 1) and (..., 1, B)   =>  ArrayMatMul of the same, sums of a single product

A vector of channels times a map of gates is such a product (focal modulation).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.passes.array_elemwise import axis_groups
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.neighbours import gets_integers, left_in_floats


class OuterProduct(Pass):
    """ArrayMap Mul of two arrays, each repeated along the last axes of the other => ArrayMatMul; not in pre-quantized networks,
    nor next to layers that have no integers."""

    name = "outer-product"
    summary = "products of arrays that repeat each other turned into products of matrices"

    def match(self, graph: Graph, node: Node) -> Match | None:
        found = _product_of(node)
        if found is None:
            return None
        reason = left_in_floats(graph, node)
        return Match(found) if reason is None else Match.no(reason)

    def rewrite(self, graph: Graph, node: Node, found: ArrayMatMul) -> str:
        node.inputs = [node.inputs[slot] for slot in found.slots]
        node.op = replace(found, slots=(0, 1))
        return f"it is a product of {found.left[-2]} by {found.right[-1]}"


@gets_integers
def _is_outer(node: Node) -> bool:
    return _product_of(node) is not None


def _product_of(node: Node) -> ArrayMatMul | None:
    """Replacement of a layer, its slots those of the layer's inputs; None where it is not a product, or its operands repeat in another way."""
    op = node.op
    if (
        not isinstance(op, ArrayMap)
        or op.function != "Mul"
        or op.result
        or node.activation is not None
        or sorted(op.slots) != [0, 1]
    ):
        return None
    groups = axis_groups(op.dims, op.shapes)
    ways = [repeats for _, repeats in groups]
    if len(ways) < 2 or sorted(ways[-2:]) != [(False, True), (True, False)]:
        return None
    if any(repeats != (False, False) for repeats in ways[:-2]):
        return None
    *outer, (rows, _), (columns, _) = groups
    count = prod(size for size, _ in outer)
    first = ways[-2].index(False)
    return ArrayMatMul((count, rows, 1), (count, 1, columns), (op.slots[first], op.slots[1 - first]))
