"""Layers around a division or logarithm that stay in floating point: what divides has integers of one scale for loud and quiet inputs, and a
constant that guards against zero (x / (deviation + epsilon), log(x + epsilon)) is less than a step of them.

They are the layers from what reads a divisor back to the last layer of weights: sums with constants, limits, roots, functions, products,
reductions, and differences from a mean; so are those of a dividend that is a reduction, such as a product of vectors. A logarithm or a negative power has them where a constant guards what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.divisors import divisor, function_name
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import is_quantized
from n2d2py.quant.types.spectra import is_to_float

_DEEPEST = 24
"""Layers one after the other that make a divisor, those that only move values among them."""
EXACT_FUNCTIONS = ("Abs", "Erf", "Exp", "Log", "Logistic", "Softplus", "Sqrt")
"""Functions that have the same bits everywhere in floating point."""


def divisor_layers(graph: Graph) -> set[str]:
    """Names of the layers that make divisors, and of guarded logarithms, in real numbers; none of a chain of which one has `Quantize=1`."""
    return {one.name for layers in _divisions(graph) for one in layers}


def coarse_tensors(graph: Graph) -> set[str]:
    """The tensors that are turned into real numbers for divisions alone, and for what makes divisors: 8 bits would be a few steps of quiet
    inputs. `graph` has its conversions."""
    found: set[str] = set()
    for layers in _divisions(graph):
        for name in (name for one in layers for name in one.inputs):
            node = graph.producer(_origin(graph, name))
            if node is not None and is_to_float(node):
                origin = _origin(graph, node.inputs[0])
                if origin not in graph.outputs and _feeds_reals(graph, origin):
                    found.add(origin)
    return found


def _origin(graph: Graph, tensor: str) -> str:
    """The tensor whose values a tensor holds, moved."""
    while (node := graph.producer(tensor)) is not None and node.op.moves_values:
        tensor = node.inputs[0]
    return tensor


def _feeds_reals(graph: Graph, tensor: str) -> bool:
    """True if all that reads a tensor, moved or not, turns it into real numbers."""
    readers = graph.consumers(tensor)
    return all(is_to_float(one) or (one.op.moves_values and _feeds_reals(graph, one.output)) for one in readers)


def _divisions(graph: Graph) -> Iterator[list[Node]]:
    """Each layer that divides or takes a logarithm, after those that make what it reads."""
    if is_quantized(graph):
        return
    for node in graph.nodes:
        tensor = divisor(node)
        if tensor is None:
            continue
        layers = [*_chain(graph, tensor, {}), node]
        if function_name(node) == "Log" and not any(map(_guards, layers)):
            continue
        for name in node.inputs:
            if name != tensor and _is_reduced(graph, name):
                layers += _chain(graph, name, {})
        if not any(graph.precision(one).quantize for one in layers):
            yield layers


def _guards(node: Node) -> bool:
    """True if a layer adds a positive constant, or gives at least one."""
    op = node.op
    limits = [node.activation, op.function if isinstance(op, Activation) else None]
    if any(isinstance(limit, Clip) and limit.low > 0 for limit in limits):
        return True
    if isinstance(op, ArrayMap) and op.function in ("Add", "Max") and -1 in op.slots:
        return bool((node.params[f"operand{op.slots.index(-1)}"] > 0).all())
    role = {"Affine": "bias", "AddConstants": "constants"}.get(op.kind)
    return role is not None and bool((node.params[role] > 0).all())


def _chain(graph: Graph, tensor: str, known: dict[str, list[Node]], depth: int = _DEEPEST) -> list[Node]:
    """The layers that make a divisor, the first ones first."""
    if tensor not in known:
        node = graph.producer(tensor)
        known[tensor] = []
        if node is not None and depth > 0 and not graph.kind(tensor) and (node.op.moves_values or _makes(graph, node)):
            parts = {one.name: one for name in node.inputs for one in _chain(graph, name, known, depth - 1)}
            if parts or not node.op.moves_values:
                known[tensor] = [*parts.values(), node]
    return known[tensor]


def _makes(graph: Graph, node: Node) -> bool:
    """True if a layer is one of single values, of products, of a reduction, or of differences from one."""
    op = node.op
    if node.activation is not None and not isinstance(node.activation, Clip):
        return False
    if len(node.inputs) > 1 and _adds(node):
        return any(_is_reduced(graph, name) for name in node.inputs)
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or op.function.kind in EXACT_FUNCTIONS
    return isinstance(op, (AddConstants, Affine, ArrayMap, ArrayReduce, ElemWise, Pool))


def _adds(node: Node) -> bool:
    op = node.op
    return (isinstance(op, ElemWise) and op.operation == "Sum") or (isinstance(op, ArrayMap) and op.function in ("Add", "Sub"))


def _is_reduced(graph: Graph, tensor: str) -> bool:
    """True if a tensor holds results of a reduction, moved or not, with functions of them or products."""
    node = graph.producer(tensor)
    while node is not None and (
        node.op.moves_values or (len(set(node.inputs)) == 1 and isinstance(node.op, (Activation, Affine)))
    ):
        node = graph.producer(node.inputs[0])
    return node is not None and isinstance(node.op, (ArrayReduce, Pool))
