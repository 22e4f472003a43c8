"""Zeros added by a Padding layer become padding of the Conv and Pool layers that read it.

    Conv(Padding(x))      =>  Conv with pads' = pads + padding
    average pool          =>  the same where the mean counts the padding; one that does not counts the zeros of
                              the Padding layer, so it becomes one that does if it has no its own pads
    max pool              =>  the same where x cannot be negative (pads of a pool never win, zeros could) and
                              every window holds an element of x

All readers must be such layers (n2d2-spec.md 19.3). Crops (negative padding) stay.
"""

from __future__ import annotations

from dataclasses import replace

from n2d2py.contracts.windows import Pads
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import is_real_concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import Activation
from n2d2py.operators.pool import Pool
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.base import Pass, drop


def _sum(a: Pads, b: Pads) -> Pads:
    top, left, bottom, right = (p + q for p, q in zip(a, b, strict=True))
    return top, left, bottom, right


class FusePadding(Pass):
    """Padding whose readers are all Conv or Pool => larger, possibly asymmetric, pads of the readers."""

    name = "fuse-padding"
    summary = "Padding layers merged into Conv or Pool"
    at = (Padding,)

    def match(self, graph: Graph, node: Node) -> list[tuple[Node, Conv | Pool]] | str:
        if min(node.op.pads) < 0:
            return "it crops"
        if node.activation is not None:
            return "it carries an activation"
        if node.output in graph.outputs:
            return "it is a network output"
        readers = graph.consumers(node.output)
        if not readers:
            return "nothing reads it"
        ops = []
        for reader in readers:
            op = self._padded(graph, node, reader)
            if isinstance(op, str):
                return op
            ops.append(op)
        return list(zip(readers, ops, strict=True))

    @staticmethod
    def _padded(graph: Graph, node: Node, reader: Node) -> Conv | Pool | str:
        """Return the reader's operator with the padding in it, or why that is not exact."""
        op, padding = reader.op, node.op.pads
        if not isinstance(op, (Conv, Pool)):
            return f"it feeds {reader.name} of type {op.kind}"
        if min(op.pads) < 0:
            return f"{reader.name} crops"
        fused = replace(op, pads=_sum(op.pads, padding))
        if isinstance(op, Conv):
            return fused
        if op.mode == "Average":
            if op.count_pad:
                return fused
            if any(op.pads):
                return f"{reader.name} averages without its own pads, but counts these zeros"
            return replace(fused, count_pad=True)
        if not is_nonnegative(graph, node.inputs[0]):
            return f"a padded zero can be the maximum in {reader.name}, as its input may be negative"
        size = graph.shape(node.inputs[0])[2:]
        inside = Pool("Average", op.kernel, op.stride, fused.pads, False)
        if int(inside.window_counts(size).min()) == 0:
            return f"a window of {reader.name} would hold padding only"
        return fused

    def rewrite(self, graph: Graph, node: Node, match: list[tuple[Node, Conv | Pool]]) -> str:
        for reader, op in match:
            reader.op = op
        drop(graph, node)
        return "padding merged into " + ", ".join(reader.name for reader, _ in match)


def is_nonnegative(graph: Graph, tensor: str) -> bool:
    """True if no input of the network can make a value of `tensor` negative, as far as the layers tell."""
    node = graph.producer(tensor)
    if node is None:
        return False
    if node.activation is not None and node.activation.nonnegative:
        return True
    if node.activation is not None and not node.activation.is_clamp:
        return False
    # a clamp that keeps zero does not make a nonnegative value negative
    if node.activation is not None and getattr(node.activation, "high", 0.0) < 0:
        return False
    op = node.op
    if (isinstance(op, Softmax) and not op.log) or (isinstance(op, Activation) and op.function.nonnegative):
        return True
    if isinstance(op, ElemWise):
        weights, shifts = op.coefficients(len(node.inputs))
        if op.operation not in ("Sum", "Prod", "Max", "Min") or (op.operation == "Sum" and min(*weights, *shifts) < 0):
            return False
    elif not (op.moves_values or is_real_concat(node) or isinstance(op, Pool)):
        return False
    return all(is_nonnegative(graph, name) for name in node.inputs)
