"""Logarithms of power spectra: 60 dB of a sound are a factor of a million in its power, which neither 8 bits nor 16 hold.

The layers from the squares of a spectrum to the logarithm stay in floating point: squares, their sums, a filter bank (weights over the bands), limits. The
spectrum itself has integers of 16 bits, and so has what is made of the logarithm.
"""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip, Log
from n2d2py.operators.pool import Pool

_LINEAR = (AddConstants, Affine, ArrayMatMul, Conv, Fc)
_MAPS = ("Add", "Clip", "Div", "Max", "Min", "Mul")
_DEEPEST = 16
"""Layers between squares and logarithm, one after the other: a bank of filters, its limits, and what moves values between them."""


def power_layers(graph: Graph) -> set[str]:
    """Names of the layers from squares to the logarithm of what is made of them; none of a chain of which one has `Quantize=1`."""
    found: set[str] = set()
    for node in graph.nodes:
        if _is_logarithm(node):
            chain = _power_behind(graph, node.inputs[0], {})
            if chain and not any(graph.precision(one).quantize for one in (*chain, node)):
                found |= {node.name, *(one.name for one in chain)}
    return found


def is_square(node: Node) -> bool:
    """Whether a layer multiplies a tensor by itself."""
    if len(set(node.inputs)) != 1 or node.activation is not None:
        return False
    if isinstance(node.op, ElemWise):
        return node.op.operation == "Prod" and len(node.inputs) == 2
    return isinstance(node.op, ArrayMap) and node.op.function == "Mul" and sorted(node.op.slots) in ([0, 0], [0, 1])


def _is_logarithm(node: Node) -> bool:
    if isinstance(node.op, Activation):
        return node.op.function == Log() and node.activation is None
    return isinstance(node.op, ArrayMap) and node.op.function == "Log"


def _power_behind(graph: Graph, name: str, known: dict[str, list[Node]], depth: int = _DEEPEST) -> list[Node]:
    """The layers that make a tensor of squares, these first; none where something else goes into it, or where it takes more than `depth`
    layers one after the other. `known` remembers tensors."""
    if name not in known:
        node = graph.producer(name)
        if node is None or depth == 0 or not (is_square(node) or _passes(node)):
            known[name] = []
        elif is_square(node):
            known[name] = [node]
        else:
            parts = [_power_behind(graph, source, known, depth - 1) for source in dict.fromkeys(node.inputs)]
            known[name] = [*dict.fromkeys(one for part in parts for one in part), node] if all(parts) else []
    return known[name]


def _passes(node: Node) -> bool:
    """Whether a layer makes sums, means or limits of its inputs."""
    op = node.op
    if node.activation is not None and not isinstance(node.activation, Clip):
        return False
    if isinstance(op, ElemWise):
        return op.operation in ("Sum", "Max", "Min")
    if isinstance(op, ArrayMap):
        return op.function in _MAPS and len(node.inputs) == 1
    if isinstance(op, ArrayReduce):
        return op.function in ("Mean", "Sum")
    if isinstance(op, Activation):
        return isinstance(op.function, Clip)
    return op.moves_values or isinstance(op, _LINEAR) or (isinstance(op, Pool) and op.mode == "Average")
