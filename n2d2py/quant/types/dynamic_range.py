"""Layers and tensors whose dynamic range is too large for 8 bits: audio spectra, divisors, guarded logarithms.

60 dB are a factor of 1,000 in amplitude, too much for 8 bits, and 1,000,000 in power, too much for 16. A spectrum whose
magnitude or power is computed has 16 bits, and so have the samples before it. The layers from the power to its logarithm
stay in floating point: squares, their sums, a filter bank, limits. So do those from squared inputs to a root.

One integer scale cannot serve loud and quiet inputs of a divisor, and a guard against zero, such as epsilon in
x / (deviation + epsilon) or log(x + epsilon), is smaller than one step. The float layers reach from the division back to the
last weighted layer: added constants, limits, functions, products, reductions, and differences from a mean. A dividend that is a
reduction, such as a dot product, is included. A logarithm or negative power falls back only if a constant guards its input.
"""

from collections.abc import Iterator

from n2d2py.contracts.functions import Clip, Sqrt
from n2d2py.graph import Graph, Node
from n2d2py.operators import ArrayMatMul, ArrayReduce, Concat, Conv, Convert, ElemWise, Fc, Pool, is_quantized
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.map import ArrayMap, divisor_tensor, function_name
from n2d2py.operators.pointwise import Activation, AddConstants, Affine

_LINEAR = (AddConstants, Affine, ArrayMatMul, Conv, Fc)
_MAPS = ("Add", "Clip", "Div", "Max", "Min", "Mul")
_CHOICES = ("Add", "Mul", "Sub", "Where")
_MOST_SUMMED = 1 << 15
"""Number of 16-bit values whose sum always fits 32 bits."""
_LONGEST_POWER = 16
"""Longest chain between squares and logarithm: filter bank, limits, and layers that move values."""
_LONGEST_DIVISOR = 24
"""Longest chain of layers that computes a divisor, including layers that only move values."""
EXACT_FUNCTIONS = ("Abs", "Erf", "Exp", "Log", "Logistic", "Softplus", "Sqrt")
"""Functions whose float results have the same bits on every machine."""


def only_clamps(node: Node) -> bool:
    """True if a layer has no activation but a clamp."""
    return node.activation is None or isinstance(node.activation, Clip)


def is_to_float(node: Node) -> bool:
    """True if a layer converts integers to floating point."""
    return isinstance(node.op, Convert) and node.op.to_float


def _copied_from(graph: Graph, tensor: str) -> str:
    while (node := graph.producer(tensor)) is not None and node.op.moves_values:
        tensor = node.inputs[0]
    return tensor


# ---- spectra ------------------------------------------------------------------------------------


def power_layers(graph: Graph) -> set[str]:
    """Return the layers from the squares of a spectrum to the logarithm of its power, or from the squares of network inputs to
    the root; no chain that contains `Quantize=1`."""
    names: set[str] = set()
    for node in graph.nodes:
        is_logarithm = function_name(node) == "Log" and node.activation is None
        if is_logarithm or _is_root(node):
            chain = _layers_of_power(graph, node.inputs[0], {})
            squared = {_copied_from(graph, one.inputs[0]) for one in chain if is_square(one)}
            if not is_logarithm and not squared.issubset(graph.inputs):
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
    readers = graph.followers(node)
    return bool(readers) and all(_is_other_conversion(graph, reader, spectra) for reader in readers)


def _leads_to_spectrum(graph: Graph, node: Node, spectra: set[str]) -> bool:
    if is_magnitude(node) or _is_converted_and_squared(graph, node):
        return True
    return (node.op.moves_values or _is_linear_or_selects(node)) and spectra.issuperset(node.outputs)


def _is_linear_or_selects(node: Node) -> bool:
    """True if a layer adds, concatenates or selects its inputs, or converts them."""
    op = node.op
    if isinstance(op, Pool):
        return op.mode == "Average" and op.kernel[0] * op.kernel[1] <= _MOST_SUMMED
    if isinstance(op, (ArrayMap, ElemWise)):
        return function_name(node) in ("Sum", *_CHOICES)
    return isinstance(op, (*_LINEAR, Concat, ArrayGather, ArrayScatter, Convert))


def _is_converted_and_squared(graph: Graph, node: Node) -> bool:
    """True if a layer converts values to float and all of these, or their copies, are squared."""
    return is_to_float(node) and graph.feeds_only(
        node.output, is_square, lambda reader: reader.op.moves_values or isinstance(reader.op, Concat)
    )


def is_magnitude(node: Node | None) -> bool:
    """True if a layer computes the magnitude of a spectrum. It is treated like an input of the network."""
    return node is not None and function_name(node) == "EuclideanSum"


def is_square(node: Node) -> bool:
    """True if a layer multiplies a tensor by itself."""
    if len(set(node.inputs)) != 1 or node.activation is not None:
        return False
    name = function_name(node)
    return (name == "Prod" and len(node.inputs) == 2) or (name == "Mul" and sorted(node.op.slots) in ([0, 0], [0, 1]))


def _is_root(node: Node) -> bool:
    return isinstance(node.op, Activation) and node.op.function == Sqrt() and node.activation is None


def _layers_of_power(graph: Graph, name: str, known: dict[str, list[Node]], depth: int = _LONGEST_POWER) -> list[Node]:
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
    while (node := graph.producer(name)) is not None and node.op.moves_values:
        moved.insert(0, node)
        name = node.inputs[0]
    power = _layers_of_power(graph, node.inputs[0], known, depth) if node is not None and _is_root(node) else []
    return [*power, node, *moved] if node is not None and power else []


def _is_sum_or_limit(node: Node) -> bool:
    """True if a layer computes sums, means or limits of its inputs."""
    op, name = node.op, function_name(node)
    if not only_clamps(node):
        return False
    if isinstance(op, ElemWise):
        return name in ("Sum", "Max", "Min")
    if isinstance(op, ArrayMap):
        return name in _MAPS and len(node.inputs) == 1
    if isinstance(op, ArrayReduce):
        return op.function in ("Mean", "Sum")
    if isinstance(op, Activation):
        return isinstance(op.function, Clip)
    return op.moves_values or isinstance(op, _LINEAR) or (isinstance(op, Pool) and op.mode == "Average")


# ---- divisors and guarded logarithms ------------------------------------------------------------


def divisor_layers(graph: Graph) -> set[str]:
    """Return the layers that compute divisors and guarded logarithms in floating point; no chain that contains `Quantize=1`."""
    return {one.name for layers in _division_chains(graph) for one in layers}


def coarse_tensors(graph: Graph) -> set[str]:
    """Return the integer tensors that only divisions and their chains consume: 8 bits would leave few steps for quiet inputs.

    `graph` has its conversions.
    """

    def is_moved(node: Node) -> bool:
        return node.op.moves_values and node.output not in graph.outputs

    tensors: set[str] = set()
    for name in (name for layers in _division_chains(graph) for one in layers for name in one.inputs):
        node = graph.producer(_copied_from(graph, name))
        if node is not None and is_to_float(node):
            origin = _copied_from(graph, node.inputs[0])
            if origin not in graph.outputs and graph.feeds_only(origin, is_to_float, is_moved):
                tensors.add(origin)
    return tensors


def _division_chains(graph: Graph) -> Iterator[list[Node]]:
    """Yield, for each division and guarded logarithm, the chain of layers that ends with it."""
    for node in [] if is_quantized(graph) else graph.nodes:
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


def _chain(graph: Graph, tensor: str, known: dict[str, list[Node]], depth: int = _LONGEST_DIVISOR) -> list[Node]:
    """Return the layers that compute a divisor, in order."""
    if tensor not in known:
        node, known[tensor] = graph.producer(tensor), []
        if node is None or depth == 0 or graph.kind(tensor):
            return []
        if node.op.moves_values or _belongs_to_divisor(graph, node):
            parts = {one.name: one for name in node.inputs for one in _chain(graph, name, known, depth - 1)}
            if parts or not node.op.moves_values:
                known[tensor] = [*parts.values(), node]
    return known[tensor]


def _belongs_to_divisor(graph: Graph, node: Node) -> bool:
    """True for element-wise layers, products, reductions, and differences from a reduction."""
    op = node.op
    if not only_clamps(node):
        return False
    if len(node.inputs) > 1 and function_name(node) in ("Sum", "Add", "Sub"):
        return any(_is_reduced(graph, name) for name in node.inputs)
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or op.function.kind in EXACT_FUNCTIONS
    return isinstance(op, (AddConstants, Affine, ArrayMap, ArrayReduce, ElemWise, Pool))


def _is_reduced(graph: Graph, tensor: str) -> bool:
    """True if a tensor is a reduction, or an element-wise function or copy of one."""
    while (node := graph.producer(tensor)) is not None and (
        node.op.moves_values or (len(set(node.inputs)) == 1 and isinstance(node.op, (Activation, Affine)))
    ):
        tensor = node.inputs[0]
    return node is not None and isinstance(node.op, (ArrayReduce, Pool))
