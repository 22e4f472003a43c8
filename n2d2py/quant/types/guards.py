"""Divisions and logarithms that stay in floating point.

One integer scale cannot serve loud and quiet inputs of a divisor, and a guard against zero, such as epsilon in
x / (deviation + epsilon) or log(x + epsilon), is smaller than one step.

The float layers reach from the division back to the last weighted layer: added constants, limits, functions, products,
reductions, and differences from a mean. A dividend that is a reduction, such as a dot product, is included. A logarithm or
negative power falls back only if a constant guards its input.
"""

from __future__ import annotations

from collections.abc import Iterator

from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap, divisor_tensor, function_name
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import is_quantized
from n2d2py.quant.types.spectra import copied_from, is_to_float

_DEEPEST = 24
"""Longest chain of layers that computes a divisor, including layers that only move values."""
EXACT_FUNCTIONS = ("Abs", "Erf", "Exp", "Log", "Logistic", "Softplus", "Sqrt")
"""Functions whose float results have the same bits on every machine."""


def divisor_layers(graph: Graph) -> set[str]:
    """Return the layers that compute divisors and guarded logarithms in floating point; no chain that contains `Quantize=1`."""
    return {one.name for layers in _division_chains(graph) for one in layers}


def coarse_tensors(graph: Graph) -> set[str]:
    """Return the integer tensors that only divisions and their chains consume: 8 bits would leave few steps for quiet inputs.

    `graph` has its conversions.
    """
    tensors: set[str] = set()
    for layers in _division_chains(graph):
        for name in (name for one in layers for name in one.inputs):
            node = graph.producer(copied_from(graph, name))
            if node is not None and is_to_float(node):
                origin = copied_from(graph, node.inputs[0])
                if _is_only_converted(graph, origin):
                    tensors.add(origin)
    return tensors


def _is_only_converted(graph: Graph, tensor: str) -> bool:
    """True if all consumers of a tensor and of its copies are conversions to floating point; an output has another reader."""
    return tensor not in graph.outputs and all(
        is_to_float(one) or (one.op.moves_values and _is_only_converted(graph, one.output)) for one in graph.consumers(tensor)
    )


def _division_chains(graph: Graph) -> Iterator[list[Node]]:
    """Yield, for each division and guarded logarithm, the chain of layers that ends with it."""
    if is_quantized(graph):
        return
    for node in graph.nodes:
        tensor = divisor_tensor(node)
        if tensor is None:
            continue
        layers = [*_chain(graph, tensor, {}), node]
        if function_name(node) == "Log" and not any(map(_is_guard, layers)):
            continue
        for name in node.inputs:
            if name != tensor and _is_reduced(graph, name):
                layers += _chain(graph, name, {})
        if not any(graph.precision(one).quantize for one in layers):
            yield layers


def _is_guard(node: Node) -> bool:
    """True if a layer adds a positive constant or limits its result to positive values."""
    op = node.op
    limits = [node.activation, op.function if isinstance(op, Activation) else None]
    if any(isinstance(limit, Clip) and limit.low > 0 for limit in limits):
        return True
    if isinstance(op, ArrayMap) and op.function in ("Add", "Max") and -1 in op.slots:
        return bool((node.params[f"operand{op.slots.index(-1)}"] > 0).all())
    role = {"Affine": "bias", "AddConstants": "constants"}.get(op.kind)
    return role is not None and bool((node.params[role] > 0).all())


def _chain(graph: Graph, tensor: str, known: dict[str, list[Node]], depth: int = _DEEPEST) -> list[Node]:
    """Return the layers that compute a divisor, in order."""
    if tensor not in known:
        node = graph.producer(tensor)
        known[tensor] = []
        if (
            node is not None
            and depth > 0
            and not graph.kind(tensor)
            and (node.op.moves_values or _belongs_to_divisor(graph, node))
        ):
            parts = {one.name: one for name in node.inputs for one in _chain(graph, name, known, depth - 1)}
            if parts or not node.op.moves_values:
                known[tensor] = [*parts.values(), node]
    return known[tensor]


def _belongs_to_divisor(graph: Graph, node: Node) -> bool:
    """True for element-wise layers, products, reductions, and differences from a reduction."""
    op = node.op
    if node.activation is not None and not isinstance(node.activation, Clip):
        return False
    if len(node.inputs) > 1 and _is_sum(node):
        return any(_is_reduced(graph, name) for name in node.inputs)
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or op.function.kind in EXACT_FUNCTIONS
    return isinstance(op, (AddConstants, Affine, ArrayMap, ArrayReduce, ElemWise, Pool))


def _is_sum(node: Node) -> bool:
    op = node.op
    return (isinstance(op, ElemWise) and op.operation == "Sum") or (isinstance(op, ArrayMap) and op.function in ("Add", "Sub"))


def _is_reduced(graph: Graph, tensor: str) -> bool:
    """True if a tensor is a reduction, or an element-wise function or copy of one."""
    node = graph.producer(tensor)
    while node is not None and (
        node.op.moves_values or (len(set(node.inputs)) == 1 and isinstance(node.op, (Activation, Affine)))
    ):
        node = graph.producer(node.inputs[0])
    return node is not None and isinstance(node.op, (ArrayReduce, Pool))
