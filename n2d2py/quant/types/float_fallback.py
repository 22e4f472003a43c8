"""Layers that stay in floating point inside of an integer network, and the conversions at their borders.

They are those with `Quantize=0`, those that have no integer form, those between the squares of a spectrum and their logarithm (quant/types/spectra.py), those
that make divisors (quant/types/guards.py), the first ones after an input in floating point (quant/types/float_inputs.py), and those for which the target has no integers (quant/types/float_regions.py). What reads only such tensors and either moves values or
computes exactly (maxima, products, sums of two) joins the latter. A Concat with an input or a reader in floating point joins
both: boxes and scores of a detector would lose their scores in integers of one scale. The functions of layers without integer
form are those of `arithmetic/functions.py`, so that every export gives the same bits.
"""

from __future__ import annotations

from math import prod

from n2d2py.graph import Graph, Node, Tensor
from n2d2py.graph.precision import TargetForm
from n2d2py.operators.activation import Activation
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.arrays.topk import ArrayTopK
from n2d2py.operators.concat import joins
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape
from n2d2py.quant.contract import refusal, refused
from n2d2py.quant.types.float_inputs import input_layers
from n2d2py.quant.types.guards import divisor_layers
from n2d2py.quant.types.spectra import power_layers

_EXACT = {"Logistic": "Sigmoid", "Exp": "Exp", "Log": "Log", "Erf": "Erf", "Softplus": "Softplus", "Sqrt": "Sqrt", "Abs": "Abs"}
"""Activation functions that are computed as maps of arrays there."""
_ROUNDED = ("Logistic", "Exp", "Log", "Erf", "Softplus")
"""Those of them whose last bits depend on the library."""
_ORDERED = ("ArgMax", "ArgMin", "ArgMaxLast", "ArgMinLast")


def float_layers(graph: Graph) -> set[str]:
    """Names of the layers that stay in floating point.

    Layers that only move values, between layers in floating point alone, join them: nothing is converted for them. So does a
    Concat next to one, and what only moves the values of that: each part of them is rounded by itself.
    """
    chosen = {node.name for node in graph.nodes if graph.precision(node).quantize is False or _by_target(graph, node)}
    chosen |= _formless(graph) | power_layers(graph) | divisor_layers(graph) | input_layers(graph)
    joints: set[str] = set()
    while chosen:
        inside = _inside(graph, chosen)
        joined = {node.name for node in graph.nodes if node.name not in chosen and _is_joint(graph, node, chosen, joints)}
        if not inside and not joined:
            break
        chosen |= inside | joined
        joints |= joined
    return chosen


def _by_target(graph: Graph, node: Node) -> bool:
    return graph.precision(node).target is TargetForm.REAL


def _sums(graph: Graph, node: Node) -> bool:
    """True if a layer reads integers and gives real numbers."""
    return graph.precision(node).target is TargetForm.SUMS


def _is_joint(graph: Graph, node: Node, chosen: set[str], joints: set[str]) -> bool:
    """True if a layer is a Concat that reads `chosen` layers or is read by one, or moves the values of one of `joints`."""
    if graph.precision(node).quantize is not None or any(graph.kind(name) for name in (*node.inputs, *node.outputs)):
        return False
    if joins(node):
        plain = node.activation is None or isinstance(node.activation, Clip)
        return plain and (_comes_from(graph, node, chosen) or _goes_to(graph, node, chosen))
    producer = graph.producer(node.inputs[0]) if node.op.moves_values and node.activation is None else None
    return producer is not None and producer.name in joints


def _comes_from(graph: Graph, node: Node, chosen: set[str]) -> bool:
    """True if one of a layer's inputs is computed by `chosen` layers, moved or not."""
    producers = [producer for name in node.inputs if (producer := graph.producer(name)) is not None]
    return any(
        producer.name in chosen or (producer.op.moves_values and _comes_from(graph, producer, chosen)) for producer in producers
    )


def _goes_to(graph: Graph, node: Node, chosen: set[str]) -> bool:
    """True if one of `chosen` layers reads what a layer gives, moved or not."""
    readers = [reader for name in node.outputs for reader in graph.consumers(name)]
    return any(reader.name in chosen or (reader.op.moves_values and _goes_to(graph, reader, chosen)) for reader in readers)


def _formless(graph: Graph) -> set[str]:
    """The layers without integer form, and those after them that are computed exactly in floating point too."""
    chosen: set[str] = set()
    real: set[str] = set()
    for node in graph.nodes:
        sources = [name for name in node.inputs if not graph.kind(name)]
        follows = bool(sources) and all(name in real for name in sources) and _follows(node, graph)
        if (
            not _is_ordered(node)
            and not isinstance(node.op, Convert)
            and (follows or _by_target(graph, node) or refused(node) is not None)
        ):
            chosen.add(node.name)
            real.update(node.outputs)
    return chosen


def _is_ordered(node: Node) -> bool:
    """Positions of extremes are the same among the integers."""
    return isinstance(node.op, ArrayTopK) or (isinstance(node.op, ArrayReduce) and node.op.function in _ORDERED)


def _follows(node: Node, graph: Graph) -> bool:
    """True if a layer with an integer form gives the same bits everywhere in floating point."""
    op = node.op
    if graph.precision(node).quantize or (node.activation is not None and not isinstance(node.activation, Clip)):
        return False
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or _as_map(node, graph) is not None
    if isinstance(op, ElemWise):
        weights, shifts = op.coefficients(len(node.inputs))
        plain = all(abs(w) == 1 for w in weights) and not any(shifts)
        return op.operation in ("Prod", "Max", "Min") or (op.operation == "Sum" and plain)
    return op.moves_values or joins(node) or (isinstance(op, Pool) and op.mode == "Max")


def _as_map(node: Node, graph: Graph) -> ArrayMap | None:
    """The map of an array that an activation function of a vector is."""
    size = graph.shape(node.output)
    if not isinstance(node.op, Activation) or node.op.function.kind not in _EXACT or len(size) != 2 or node.activation:
        return None
    return ArrayMap(_EXACT[node.op.function.kind], (size[1],), ((size[1],),))


def _inside(graph: Graph, chosen: set[str]) -> set[str]:
    """The layers that move or scale values from `chosen` layers, or each other, to such alone: what floating point alone reads is not
    rounded on its way."""
    found = {
        node.name: node
        for node in graph.nodes
        if node.name not in chosen
        and (node.op.moves_values or _scales(node))
        and graph.precision(node).quantize is None
        and not any(name in graph.outputs for name in node.outputs)
    }
    while True:
        kept = {name: node for name, node in found.items() if _are_within(graph, node, chosen | found.keys())}
        if len(kept) == len(found):
            return set(kept)
        found = kept


def _scales(node: Node) -> bool:
    """True if a layer has a gain, a shift or a sum for each value."""
    plain = node.activation is None or isinstance(node.activation, Clip)
    return plain and isinstance(node.op, (AddConstants, Affine, ElemWise))


def _are_within(graph: Graph, node: Node, names: set[str]) -> bool:
    """True if all neighbours of a layer are among `names`, and some layer reads it."""
    producers = [graph.producer(name) for name in node.inputs]
    readers = [reader for name in node.outputs for reader in graph.consumers(name)]
    return bool(readers) and all(other is not None and other.name in names for other in (*producers, *readers))


def float_tensors(graph: Graph) -> set[str]:
    """Tensors of a graph with conversions that hold floating-point numbers.

    The conversions tell: a layer that reads real numbers is of the kind that it reads. To decide again which layers stay in
    floating point would be wrong, for a conversion hides from a Concat what its input was moved from.
    """
    chosen = float_layers(graph)
    return _found_real(graph, chosen, _real_inputs(graph, _found_real(graph, chosen, set())))


def _real_inputs(graph: Graph, real: set[str]) -> set[str]:
    """The inputs in floating point: those that stay so, and the states whose outputs are `real`."""
    ends = zip(graph.kept, graph.becoming, strict=True)
    return {*graph.float_inputs, *(name for name, output in ends if output in real)}


def _found_real(graph: Graph, chosen: set[str], states: set[str]) -> set[str]:
    found = set(states)
    for node in graph.nodes:
        sources = [name for name in node.inputs if not graph.kind(name)]
        if isinstance(node.op, Convert):
            real = node.op.to_float
        else:
            real = (any(name in found for name in sources) if sources else node.name in chosen) or _sums(graph, node)
        found.update(name for name in node.outputs if real and not graph.kind(name))
    return found


def insert_conversions(graph: Graph, chosen: set[str] | None = None) -> Graph:
    """A copy of a fused float graph with a Convert layer on every edge between integers and floating point.

    A tensor that several layers read is converted once. Outputs of the network keep their computed type. `chosen` are the layers in
    floating point; by default `float_layers`.

    Raises:
        N2D2Error: E510 for a layer that has neither an integer form nor a kernel that gives the same bits everywhere.
    """
    chosen = float_layers(graph) if chosen is None else chosen
    if not chosen and not graph.float_inputs and not any(_sums(graph, node) for node in graph.nodes):
        return graph
    result = graph.copy()
    real = {name for node in result.nodes if node.name in chosen or _sums(result, node) for name in node.outputs}
    real |= _real_inputs(result, real)
    converted: dict[tuple[str, bool], str] = {}
    for node in list(result.nodes):
        wants = node.name in chosen
        if wants and result.precision(node).quantize is not False and not _by_target(result, node):
            _check(node)
            node.op = _as_map(node, result) or node.op
        for position, name in enumerate(node.inputs):
            if (name in real) == wants or result.kind(name) or _is_ordered(node):
                continue
            if (name, wants) not in converted:
                converted[name, wants] = _convert(result, node, name, wants)
            node.inputs = [*node.inputs[:position], converted[name, wants], *node.inputs[position + 1 :]]
    for node in list(result.nodes):
        if node.name in chosen and result.precision(node).quantize is not False and not _by_target(result, node):
            _map_image(result, node)
    result.verify()
    return result


def _map_image(graph: Graph, node: Node) -> None:
    """Make a function of an image, which libraries round each in their way, the map of an array between views."""
    shape, output = graph.shape(node.output), node.output
    if not isinstance(node.op, Activation) or node.op.function.kind not in _ROUNDED or len(shape) == 2 or node.activation:
        return
    size, at = prod(shape[1:]), graph.nodes.index(node)
    before, mapped, after = (graph.fresh_name(f"{output}_{what}") for what in ("elements", "mapped", "view"))
    graph.add(Node(before, Reshape((size,)), list(node.inputs), [before], location=node.location, helper=True), at=at)
    graph.tensors[mapped] = Tensor(mapped, (1, size))
    node.op, node.inputs, node.outputs = ArrayMap(_EXACT[node.op.function.kind], (size,), ((size,),)), [before], [mapped]
    view = Node(after, Reshape(tuple(shape[1:])), [mapped], [output], location=node.location, helper=True)
    graph.nodes.insert(at + 2, view)


def _check(node: Node) -> None:
    reason = refused(node)
    if reason is not None and not isinstance(node.op, ArrayOp) and not node.op.same_bits:
        raise refusal(node, reason)


def _convert(graph: Graph, reader: Node, name: str, to_float: bool) -> str:
    """Add the conversion of a tensor before its first reader of the other kind; return its output."""
    output = graph.fresh_name(f"{name}_{'float' if to_float else 'integer'}")
    graph.add(
        Node(output, Convert(to_float), [name], [output], location=reader.location, helper=True), at=graph.nodes.index(reader)
    )
    return output
