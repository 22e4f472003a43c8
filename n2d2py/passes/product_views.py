"""Products of two activations read and write through views, so layers that only move or scale their matrices disappear.

Heads of an attention then need no transposition, and their temperature is part of the rescale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import scale_and_shift
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.matmul.op import view_positions
from n2d2py.operators.index_select import IndexSelect
from n2d2py.passes.base import Pass


def steps_of_order(places: np.ndarray, size: int) -> tuple[int, ...] | None:
    """Return the view (size, first, steps) of an array whose elements lie at `places`; None without constant steps."""
    first = int(places.reshape(-1)[0])
    steps = []
    for axis, length in enumerate(places.shape):
        corner = tuple(1 if i == axis else 0 for i in range(places.ndim))
        steps.append(int(places[corner]) - first if length > 1 else 0)
    view = (size, first, *steps)
    return view if min(steps) >= 0 and np.array_equal(view_positions(view, places.shape), places) else None


def _only_moves(node: Node | None) -> bool:
    """True if a layer only reorders, repeats or drops elements."""
    return node is not None and isinstance(node.op, IndexSelect) and node.activation is None and not node.op.fills


@dataclass(frozen=True)
class Operand:
    """Replacement of operand `index` of a product: another tensor in a view, times a factor."""

    index: int
    source: str
    view: tuple[int, ...]
    factor: float
    what: str


class ProductOperand(Pass):
    """ArrayMatMul(IndexSelect(x), y) with constant steps => ArrayMatMul(x, y) with a view of x; ArrayMatMul(c * x, y) =>
    ArrayMatMul(x, y) times c, a number above 0."""

    name = "product-operand"
    summary = "layers that move or scale operands taken into products of two arrays"

    def match(self, graph: Graph, node: Node) -> Operand | None:
        op = node.op
        if not isinstance(op, ArrayMatMul) or op.slots != (0, 1) or op.result:
            return None
        for index, dims in enumerate((op.left, op.right)):
            producer = graph.producer(node.inputs[index])
            if producer is None:
                continue
            view = op.full_views()[index]
            scaled = scale_and_shift(producer)
            if scaled is not None and scaled[0] > 0 and scaled[1] == 0:
                return Operand(index, producer.inputs[0], view, scaled[0], f"the factor of {producer.name}")
            if _only_moves(producer):
                places = producer.op.positions()[0][view_positions(view, dims)]
                steps = steps_of_order(places, graph.shape(producer.inputs[0])[1])
                if steps is not None:
                    return Operand(index, producer.inputs[0], steps, 1.0, f"the order of {producer.name}")
        return None

    def rewrite(self, graph: Graph, node: Node, operand: Operand) -> str:
        views = list(node.op.full_views())
        views[operand.index] = operand.view
        node.op = replace(node.op, scale=node.op.scale * operand.factor, views=tuple(views))
        node.inputs = [operand.source if index == operand.index else name for index, name in enumerate(node.inputs)]
        graph.prune()
        return f"it takes in {operand.what}"


class ProductResult(Pass):
    """IndexSelect(ArrayMatMul(x, y)) => ArrayMatMul with a view of its result; c * ArrayMatMul(x, y) => ArrayMatMul times c >
    0."""

    name = "product-result"
    summary = "layers that move or scale results taken into products of two arrays"

    def match(self, graph: Graph, node: Node) -> tuple[Node, ArrayMatMul] | None:
        op = node.op
        if not isinstance(op, ArrayMatMul) or op.slots != (0, 1) or op.result or node.activation is not None:
            return None
        reader = graph.sole_consumer(node.output)
        if reader is None:
            return None
        scaled = scale_and_shift(reader)
        if scaled is not None and scaled[0] > 0 and scaled[1] == 0:
            return reader, replace(op, scale=op.scale * scaled[0])
        if not _only_moves(reader):
            return None
        order = reader.op.positions()[0]
        if len(order) != op.output_size() or len(np.unique(order)) != len(order):
            return None
        views = op.full_views()
        back = np.argsort(order)  # where each element of the result goes
        view = steps_of_order(back[view_positions(views[2], op.dims)], op.output_size())
        return None if view is None else (reader, replace(op, views=(*views[:2], view)))

    def rewrite(self, graph: Graph, node: Node, match: tuple[Node, ArrayMatMul]) -> str:
        reader, op = match
        graph.absorb(node, reader)
        node.op = op
        return f"it does what {reader.name} did"
