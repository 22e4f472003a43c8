"""Signs of values, as far as the layers determine them."""

from __future__ import annotations

from collections.abc import Collection

from n2d2py.graph import Graph
from n2d2py.operators.concat import is_real_concat
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Convert
from n2d2py.operators.softmax import Softmax


def nonnegative_tensors(graph: Graph, inputs: Collection[str] = ()) -> set[str]:
    """Return the tensors that cannot be negative, given the nonnegative `inputs` of the network."""
    facts = set(inputs)
    for node in graph.nodes:
        op, all_known = node.op, all(name in facts for name in node.inputs)
        activation = node.activation or (op.function if isinstance(op, Activation) else None)
        preserves = (op.moves_values and getattr(op, "fill", 0) >= 0) or is_real_concat(node) or isinstance(op, (Pool, Convert))
        if isinstance(op, Affine):
            preserves = all(values.min(initial=0) >= 0 for values in node.params.values())
        if isinstance(op, ElemWise):
            weights, shifts = op.coefficients(len(node.inputs))
            preserves = min(*weights, *shifts) >= 0 or op.operation in ("Prod", "Max", "Min")
            all_known = all_known or op.operation == "EuclideanSum" or (op.operation == "AbsSum" and min(weights) >= 0)
        keeps = activation is None or (activation.is_clamp and getattr(activation, "high", 0.0) >= 0)
        own = op.nonnegative or (isinstance(op, Softmax) and not op.log) or (activation is not None and activation.nonnegative)
        if own or (preserves and all_known and keeps):
            facts.update(node.outputs)
    return facts
