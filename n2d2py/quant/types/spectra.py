"""Spectra of sounds: 60 dB are a factor of a thousand in amplitude, which 8 bits do not hold, and of a million in power, which 16 do not.

A spectrum, of which magnitudes or squares are made, and the sounds that it is made of have 16 bits. The layers from the squares to their logarithm stay in
floating point: squares, their sums, a filter bank (weights over the bands), limits.
"""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip, Log, Sqrt
from n2d2py.operators.pool import Pool

_LINEAR = (AddConstants, Affine, ArrayMatMul, Conv, Fc)
_MAPS = ("Add", "Clip", "Div", "Max", "Min", "Mul")
_CHOICES = ("Add", "Mul", "Sub", "Where")
_MOST_SUMMED = 1 << 15
"""16-bit values whose sum 32 bits hold."""
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


def wide_tensors(graph: Graph) -> set[str]:
    """The tensors of which spectra alone are made, and these, in floating point too; what is only turned into floating point besides is one
    of them. `graph` has its conversions."""
    found: set[str] = set()
    for name in reversed([*graph.inputs, *(name for node in graph.nodes for name in node.outputs)]):
        readers = [node for node in graph.consumers(name) if not _is_beside(graph, node, found)]
        if readers and name not in graph.outputs and all(_makes_spectrum(graph, node, found) for node in readers):
            found.add(name)
    return found


def _is_beside(graph: Graph, node: Node, found: set[str]) -> bool:
    """True if a layer turns values into real numbers of which no spectrum is made, or moves what is only turned so."""
    if not found.isdisjoint(node.outputs) or _squares_follow(graph, node):
        return False
    if not node.op.moves_values or any(name in graph.outputs for name in node.outputs):
        return is_to_float(node)
    readers = [reader for name in node.outputs for reader in graph.consumers(name)]
    return bool(readers) and all(_is_beside(graph, reader, found) for reader in readers)


def _makes_spectrum(graph: Graph, node: Node, found: set[str]) -> bool:
    if is_magnitude(node) or _squares_follow(graph, node):
        return True
    return (node.op.moves_values or _sums(node)) and found.issuperset(node.outputs)


def _sums(node: Node) -> bool:
    """True if a layer makes sums of what it reads, joins or chooses of it, or is a conversion."""
    op = node.op
    if isinstance(op, ElemWise):
        return op.operation == "Sum"
    if isinstance(op, Pool):
        return op.mode == "Average" and op.kernel[0] * op.kernel[1] <= _MOST_SUMMED
    if isinstance(op, ArrayMap):
        return op.function in _CHOICES
    return isinstance(op, (*_LINEAR, Concat, ArrayGather, ArrayScatter, Convert))


def _squares_follow(graph: Graph, node: Node) -> bool:
    """True if a layer turns values into real numbers that are squared."""
    readers = graph.consumers(node.output)
    return is_to_float(node) and bool(readers) and all(_is_squared(graph, reader) for reader in readers)


def _is_squared(graph: Graph, node: Node) -> bool:
    """True if a layer squares what it reads, or only moves and joins what is squared."""
    if not (node.op.moves_values or isinstance(node.op, Concat)):
        return is_square(node)
    readers = graph.consumers(node.output)
    return bool(readers) and all(_is_squared(graph, reader) for reader in readers)


def is_to_float(node: Node) -> bool:
    """True if a layer turns integers into real numbers."""
    return isinstance(node.op, Convert) and node.op.to_float


def is_magnitude(node: Node | None) -> bool:
    """True if a layer makes the magnitudes of a spectrum, which are to the layers after it what an input is."""
    return node is not None and isinstance(node.op, ElemWise) and node.op.operation == "EuclideanSum"


def is_square(node: Node) -> bool:
    """True if a layer multiplies a tensor by itself."""
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
            known[name] = [*_root_behind(graph, node.inputs[0], known, depth - 1), node]
        else:
            parts = [_power_behind(graph, source, known, depth - 1) for source in dict.fromkeys(node.inputs)]
            known[name] = [*dict.fromkeys(one for part in parts for one in part), node] if all(parts) else []
    return known[name]


def _root_behind(graph: Graph, name: str, known: dict[str, list[Node]], depth: int) -> list[Node]:
    """The layers from squares to the square root of their sums, magnitudes that are squared again; none where no root is read."""
    moved: list[Node] = []
    node = graph.producer(name)
    while node is not None and node.op.moves_values:
        moved.insert(0, node)
        node = graph.producer(node.inputs[0])
    if node is None or node.activation is not None or not (isinstance(node.op, Activation) and node.op.function == Sqrt()):
        return []
    power = _power_behind(graph, node.inputs[0], known, depth)
    return [*power, node, *moved] if power else []


def _passes(node: Node) -> bool:
    """True if a layer makes sums, means or limits of its inputs."""
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
