"""Sees through a transposition, so that NHWC stretches of a model become NCHW layers."""

from __future__ import annotations

from n2d2py.graph import Graph
from n2d2py.operators.transpose import Transpose

__all__ = ["channels_first"]


def channels_first(tensor: str, graph: Graph) -> tuple[str, tuple[int, ...]]:
    """(source, p): axis i of `tensor` is axis p[i] of `source`.

    `source` is what a transposition that gives `tensor` reads; without one, `tensor` itself.
    """
    producer = graph.producer(tensor)
    if producer is not None and isinstance(producer.op, Transpose):
        return producer.inputs[0], producer.op.perm
    return tensor, tuple(range(len(graph.shape(tensor))))
