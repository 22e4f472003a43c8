"""Layers that stay in floating point inside of an integer network, and the conversions at their borders.

They are those with `Quantize=0`, and those that have no integer form. What reads only such tensors and either moves values or
computes exactly (maxima, products, sums of two) joins the latter. The functions of layers without integer form are those of
`arithmetic/functions.py`, so that every export gives the same bits.
"""

from __future__ import annotations

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators import (
    Activation,
    ArrayMap,
    ArrayOp,
    ArrayOrder,
    ArrayReduce,
    Clip,
    Concat,
    Convert,
    ElemWise,
    Pool,
    Unpool,
)
from n2d2py.quant.layers import has_quantizer

__all__ = ["float_layers", "float_tensors", "insert_conversions"]

_EXACT = {"Logistic": "Sigmoid", "Exp": "Exp", "Log": "Log", "Erf": "Erf", "Softplus": "Softplus", "Sqrt": "Sqrt", "Abs": "Abs"}
"""Activation functions that are computed as maps of arrays there."""
_SAME_BITS = ("Softmax", "LRN", "Normalize")
"""Layers of images without integer form whose kernels give the same bits everywhere."""
_ORDERED = ("ArgMax", "ArgMin", "ArgMaxLast", "ArgMinLast")


def float_layers(graph: Graph) -> set[str]:
    """Names of the layers that stay in floating point.

    A layer that only moves values, between layers in floating point alone, joins them: nothing is converted for it.
    """
    chosen = {node.name for node in graph.nodes if graph.precision(node).quantize is False} | _formless(graph)
    while chosen:
        joined = {node.name for node in graph.nodes if node.name not in chosen and _is_inside(graph, node, chosen)}
        if not joined:
            break
        chosen |= joined
    return chosen


def _formless(graph: Graph) -> set[str]:
    """The layers without integer form, and those behind them that are computed exactly in floating point too."""
    chosen: set[str] = set()
    real: set[str] = set()
    for node in graph.nodes:
        sources = [name for name in node.inputs if not graph.kind(name)]
        follows = bool(sources) and all(name in real for name in sources) and _follows(node, graph)
        if not _is_ordered(node) and not isinstance(node.op, Convert) and (follows or not _has_form(node)):
            chosen.add(node.name)
            real.update(node.outputs)
    return chosen


def _has_form(node: Node) -> bool:
    op = node.op
    if isinstance(op, Unpool):
        return not op.overlaps
    if isinstance(op, ElemWise):
        weights, shifts = op.coefficients(len(node.inputs))
        return op.operation != "EuclideanSum" and not (
            op.operation in ("Max", "Min") and (any(w != 1 for w in weights) or any(shifts))
        )
    return has_quantizer(op.kind)


def _is_ordered(node: Node) -> bool:
    """Positions of extremes are the same among the integers."""
    return isinstance(node.op, ArrayOrder) or (isinstance(node.op, ArrayReduce) and node.op.function in _ORDERED)


def _follows(node: Node, graph: Graph) -> bool:
    """Whether a layer with an integer form gives the same bits everywhere in floating point."""
    op = node.op
    if graph.precision(node).quantize or (node.activation is not None and not isinstance(node.activation, Clip)):
        return False
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or _as_map(node, graph) is not None
    if isinstance(op, ElemWise):
        weights, shifts = op.coefficients(len(node.inputs))
        plain = all(abs(w) == 1 for w in weights) and not any(shifts)
        return op.operation in ("Prod", "Max", "Min") or (op.operation == "Sum" and plain)
    return op.moves_values or isinstance(op, Concat) or (isinstance(op, Pool) and op.mode == "Max")


def _as_map(node: Node, graph: Graph) -> ArrayMap | None:
    """The map of an array that an activation function of a vector is."""
    size = graph.shape(node.output)
    if not isinstance(node.op, Activation) or node.op.function.kind not in _EXACT or len(size) != 2 or node.activation:
        return None
    return ArrayMap(_EXACT[node.op.function.kind], (size[1],), ((size[1],),))


def _is_inside(graph: Graph, node: Node, chosen: set[str]) -> bool:
    if not node.op.moves_values or graph.precision(node).quantize is not None:
        return False
    producers = [graph.producer(name) for name in node.inputs]
    readers = [reader for name in node.outputs for reader in graph.consumers(name)]
    return (
        bool(readers)
        and not any(name in graph.outputs for name in node.outputs)
        and all(other is not None and other.name in chosen for other in (*producers, *readers))
    )


def float_tensors(graph: Graph) -> set[str]:
    """Tensors of a graph with conversions that hold floating-point numbers."""
    chosen = float_layers(graph)
    return {name for node in graph.nodes if _gives_floats(node, chosen) for name in node.outputs if not graph.kind(name)}


def _gives_floats(node: Node, chosen: set[str]) -> bool:
    return node.op.to_float if isinstance(node.op, Convert) else node.name in chosen


def insert_conversions(graph: Graph) -> Graph:
    """A copy of a fused float graph with a Convert layer on every edge between integers and floating point.

    A tensor that several layers read is converted once. Outputs of the network stay as they are computed.

    Raises:
        N2D2Error: E510 for a layer that has neither an integer form nor a kernel that gives the same bits everywhere.
    """
    chosen = float_layers(graph)
    if not chosen:
        return graph
    result = graph.copy()
    real = {name for node in result.nodes if node.name in chosen for name in node.outputs}
    converted: dict[tuple[str, bool], str] = {}
    for node in list(result.nodes):
        wants = node.name in chosen
        if wants and result.precision(node).quantize is not False:
            _check(node)
            node.op = _as_map(node, result) or node.op
        for position, name in enumerate(node.inputs):
            if (name in real) == wants or result.kind(name) or _is_ordered(node):
                continue
            if (name, wants) not in converted:
                converted[name, wants] = _convert(result, node, name, wants)
            node.inputs[position] = converted[name, wants]
    log.notice("in floating point: %s", ", ".join(node.name for node in graph.nodes if node.name in chosen))
    result.verify()
    return result


def _check(node: Node) -> None:
    op = node.op
    if _has_form(node) or isinstance(op, ArrayOp) or op.kind in _SAME_BITS:
        return
    label = f"ElemWise {op.operation}" if isinstance(op, ElemWise) else op.kind
    raise N2D2Error(
        "E510",
        f"layer '{node.name}' ({label}) has no integer arithmetic",
        where=node.location,
        remedy="remove the layer, set Quantize=0 for it, or export in floating point with -nbbits -32",
    )


def _convert(graph: Graph, reader: Node, name: str, to_float: bool) -> str:
    """Adds the conversion of a tensor before its first reader of the other kind; returns its output."""
    output = f"{name}_{'float' if to_float else 'integer'}"
    taken = {node.name for node in graph.nodes} | set(graph.tensors)
    while output in taken:
        output += "_"
    graph.add(
        Node(output, Convert(to_float), [name], [output], location=reader.location, helper=True), at=graph.nodes.index(reader)
    )
    return output
