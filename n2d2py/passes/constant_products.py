"""Which products with a constant matrix the passes may rewrite."""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes.base import Match


def constant_product(node: Node, slots: tuple[int, int]) -> ArrayMatMul | None:
    """The product that a layer is, with operands in these slots (-1: a constant) and nothing after it in the layer; None where it is none."""
    op = node.op
    if not isinstance(op, ArrayMatMul) or op.slots != slots or op.result or node.activation is not None:
        return None
    return op


def kept_by_the_file(graph: Graph, node: Node) -> Match | None:
    """Why a product stays unchanged in a pre-quantized network, whose layers have their own rules; None in others."""
    return Match.no("it computes in integers of the file") if is_quantized(graph) else None
