"""Which tensors of a float graph are known to hold no negative value."""

from __future__ import annotations

from n2d2py.graph import Graph
from n2d2py.operators.activation import Activation
from n2d2py.operators.concat import Concat
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pool import Pool
from n2d2py.operators.softmax import Softmax


def is_nonnegative(graph: Graph, tensor: str) -> bool:
    """Whether no input of the network can make a value of `tensor` negative, as far as the layers tell."""
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
    elif not (op.moves_values or isinstance(op, (Concat, Pool))):
        return False
    return all(is_nonnegative(graph, name) for name in node.inputs)
