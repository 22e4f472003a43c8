"""Reductions of row-major arrays become pools of images whose channels are the axes after the reduced ones.

An array (A, R, C) has the memory order of an image with C channels, one row and A * R columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.base import strides
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.pointwise import Affine
from n2d2py.operators.pool import Pool
from n2d2py.passes.array_layers import IntegerRewrite, over_images

_MODES = {"Mean": "Average", "Sum": "Average", "Max": "Max"}


@dataclass(frozen=True)
class Axes:
    """The array as (A, R, C) with the reduced elements in the middle; the axis order for that, () for the one in memory."""

    outer: int
    reduced: int
    inner: int
    order: tuple[int, ...]


class PooledArrays(IntegerRewrite):
    """ArrayReduce Mean or Max of (A, R, C) over R => MemoryView(Pool 1xR(MemoryView(x))); Sum is the mean times R; an
    IndexSelect makes reduced axes with others between them adjacent."""

    name = "pooled-arrays"
    summary = "reductions of arrays turned into pools"

    @staticmethod
    def find(node: Node) -> Axes | None:
        op = node.op
        if not isinstance(op, ArrayReduce) or op.function not in _MODES or op.result or node.activation is not None:
            return None
        if prod(op.dims[axis] for axis in op.axes) == 1:
            return None
        before, between = range(min(op.axes)), [axis for axis in range(min(op.axes), max(op.axes)) if axis not in op.axes]
        after = [*between, *range(max(op.axes) + 1, len(op.dims))]
        outer, reduced, inner = (prod(op.dims[axis] for axis in axes) for axes in (before, op.axes, after))
        turns = any(op.dims[axis] > 1 for axis in between)
        return Axes(outer, reduced, inner, (*before, *op.axes, *after) if turns else ())

    def rewrite(self, graph: Graph, node: Node, axes: Axes) -> str:
        function, window = node.op.function, (1, axes.reduced)

        if axes.order:
            dims, steps = node.op.dims, strides(node.op.dims)
            order = IndexSelect(tuple(tuple(step * steps[axis] for step in range(dims[axis])) for axis in axes.order))
            index, name = graph.nodes.index(node), f"{node.output}_order"
            node.inputs = [graph.add_helper(order, node.inputs[0], name, index, node.location)]
        node.op = Pool(_MODES[function], window, window)
        output = node.output
        over_images(graph, node, [(axes.inner, 1, axes.outer * axes.reduced)], (axes.inner, 1, axes.outer))
        if function == "Sum":
            gains = {"weights": np.full(axes.inner, axes.reduced, np.float32), "bias": np.zeros(axes.inner, np.float32)}
            index, view = graph.nodes.index(node) + 1, graph.required_producer(output)
            view.inputs = [graph.add_helper(Affine(), node.output, f"{node.output}_sum", index, node.location, gains)]
        return f"{function} of {axes.reduced} rows turned into a Pool"
