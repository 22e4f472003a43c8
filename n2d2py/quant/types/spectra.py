"""Types of audio spectra.

60 dB are a factor of 1,000 in amplitude, too much for 8 bits, and 1,000,000 in power, too much for 16. A spectrum whose
magnitude or power is computed has 16 bits, and so have the samples before it. The layers from the power to its logarithm
stay in floating point: squares, their sums, a filter bank, limits. So do those from squared inputs to a root.
"""

from __future__ import annotations

from n2d2py.contracts.functions import Clip, Log, Sqrt
from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv, Fc
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Convert

_LINEAR = (AddConstants, Affine, ArrayMatMul, Conv, Fc)
_MAPS = ("Add", "Clip", "Div", "Max", "Min", "Mul")
_CHOICES = ("Add", "Mul", "Sub", "Where")
_MOST_SUMMED = 1 << 15
"""Number of 16-bit values whose sum always fits 32 bits."""
_DEEPEST = 16
"""Longest chain between squares and logarithm: filter bank, limits, and layers that move values."""


def power_layers(graph: Graph) -> set[str]:
    """Return the layers from the squares of a spectrum to the logarithm of its power, or from the squares of network inputs to
    the root; no chain that contains `Quantize=1`."""
    names: set[str] = set()
    for node in graph.nodes:
        if _is_logarithm(node) or _is_root(node):
            chain = _layers_of_power(graph, node.inputs[0], {})
            squared = {copied_from(graph, one.inputs[0]) for one in chain if is_square(one)}
            if _is_root(node) and not squared.issubset(graph.inputs):
                continue
            if chain and not any(graph.precision(one).quantize for one in (*chain, node)):
                names |= {node.name, *(one.name for one in chain)}
    return names


def spectrum_tensors(graph: Graph) -> set[str]:
    """Return spectra and the tensors that only spectra are computed from, integer or float. Other conversions to float do not
    count.

    `graph` has its conversions.
    """
    spectra: set[str] = set()
    for name in reversed([*graph.inputs, *(name for node in graph.nodes for name in node.outputs)]):
        readers = [node for node in graph.consumers(name) if not _is_other_conversion(graph, node, spectra)]
        if readers and name not in graph.outputs and all(_leads_to_spectrum(graph, node, spectra) for node in readers):
            spectra.add(name)
    return spectra


def _is_other_conversion(graph: Graph, node: Node, spectra: set[str]) -> bool:
    """True if a layer converts values to float for another purpose than a spectrum, or moves values that are only converted."""
    if not spectra.isdisjoint(node.outputs) or _is_converted_and_squared(graph, node):
        return False
    if not node.op.moves_values or any(name in graph.outputs for name in node.outputs):
        return is_to_float(node)
    readers = [reader for name in node.outputs for reader in graph.consumers(name)]
    return bool(readers) and all(_is_other_conversion(graph, reader, spectra) for reader in readers)


def _leads_to_spectrum(graph: Graph, node: Node, spectra: set[str]) -> bool:
    if is_magnitude(node) or _is_converted_and_squared(graph, node):
        return True
    return (node.op.moves_values or _is_linear_or_selects(node)) and spectra.issuperset(node.outputs)


def _is_linear_or_selects(node: Node) -> bool:
    """True if a layer adds, concatenates or selects its inputs, or converts them."""
    op = node.op
    if isinstance(op, ElemWise):
        return op.operation == "Sum"
    if isinstance(op, Pool):
        return op.mode == "Average" and op.kernel[0] * op.kernel[1] <= _MOST_SUMMED
    if isinstance(op, ArrayMap):
        return op.function in _CHOICES
    return isinstance(op, (*_LINEAR, Concat, ArrayGather, ArrayScatter, Convert))


def _is_converted_and_squared(graph: Graph, node: Node) -> bool:
    """True if a layer converts values to float and all of these, or their copies, are squared."""
    return is_to_float(node) and graph.feeds_only(node.output, is_square, _moves_or_joins)


def _moves_or_joins(node: Node) -> bool:
    return node.op.moves_values or isinstance(node.op, Concat)


def is_to_float(node: Node) -> bool:
    """True if a layer converts integers to floating point."""
    return isinstance(node.op, Convert) and node.op.to_float


def is_magnitude(node: Node | None) -> bool:
    """True if a layer computes the magnitude of a spectrum. It is treated like an input of the network."""
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


def _is_root(node: Node) -> bool:
    return isinstance(node.op, Activation) and node.op.function == Sqrt() and node.activation is None


def copied_from(graph: Graph, tensor: str) -> str:
    """Return the tensor that the values of `tensor` are copied from."""
    while (node := graph.producer(tensor)) is not None and node.op.moves_values:
        tensor = node.inputs[0]
    return tensor


def _layers_of_power(graph: Graph, name: str, known: dict[str, list[Node]], depth: int = _DEEPEST) -> list[Node]:
    """Return the layers from the squares to a tensor; empty if it depends on anything else or on a chain longer than `depth`.

    `known` caches the result by tensor.
    """
    if name not in known:
        node = graph.producer(name)
        if node is None or depth == 0 or not (is_square(node) or _is_sum_or_limit(node)):
            known[name] = []
        elif is_square(node):
            known[name] = [*_layers_of_magnitude(graph, node.inputs[0], known, depth - 1), node]
        else:
            parts = [_layers_of_power(graph, source, known, depth - 1) for source in dict.fromkeys(node.inputs)]
            known[name] = [*dict.fromkeys(one for part in parts for one in part), node] if all(parts) else []
    return known[name]


def _layers_of_magnitude(graph: Graph, name: str, known: dict[str, list[Node]], depth: int) -> list[Node]:
    """Return the layers of a magnitude that is squared again, from the squares to the root; empty for other tensors."""
    moved: list[Node] = []
    node = graph.producer(name)
    while node is not None and node.op.moves_values:
        moved.insert(0, node)
        node = graph.producer(node.inputs[0])
    if node is None or not _is_root(node):
        return []
    power = _layers_of_power(graph, node.inputs[0], known, depth)
    return [*power, node, *moved] if power else []


def _is_sum_or_limit(node: Node) -> bool:
    """True if a layer computes sums, means or limits of its inputs."""
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
