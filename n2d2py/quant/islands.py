"""Layers that stay in floating point inside of an integer network, and the conversions at their borders."""
from __future__ import annotations

from n2d2py import log
from n2d2py.graph import Graph, Node
from n2d2py.operators import Convert

__all__ = ["float_layers", "float_tensors", "insert_conversions"]


def float_layers(graph: Graph) -> set[str]:
    """Names of the layers that stay in floating point: those with `Quantize=0`.

    A layer that only moves values, between layers in floating point alone, joins them: nothing is converted for it.
    """
    chosen = {node.name for node in graph.nodes if graph.precision(node).quantize is False}
    while chosen:
        joined = {node.name for node in graph.nodes if node.name not in chosen and _is_inside(graph, node, chosen)}
        if not joined:
            break
        chosen |= joined
    return chosen


def _is_inside(graph: Graph, node: Node, chosen: set[str]) -> bool:
    if not node.op.moves_values or graph.precision(node).quantize is not None:
        return False
    producers = [graph.producer(name) for name in node.inputs]
    readers = [reader for name in node.outputs for reader in graph.consumers(name)]
    return bool(readers) and not any(name in graph.outputs for name in node.outputs) and all(
        other is not None and other.name in chosen for other in (*producers, *readers))


def float_tensors(graph: Graph) -> set[str]:
    """Tensors of a graph with conversions that hold floating-point numbers."""
    chosen = float_layers(graph)
    return {name for node in graph.nodes if _gives_floats(node, chosen) for name in node.outputs}


def _gives_floats(node: Node, chosen: set[str]) -> bool:
    return node.op.to_float if isinstance(node.op, Convert) else node.name in chosen


def insert_conversions(graph: Graph) -> Graph:
    """A copy of a fused float graph with a Convert layer on every edge between integers and floating point.

    A tensor that several layers read is converted once. Outputs of the network stay as they are computed.
    """
    chosen = float_layers(graph)
    if not chosen:
        return graph
    result = graph.copy()
    real = {name for node in result.nodes if node.name in chosen for name in node.outputs}
    converted: dict[tuple[str, bool], str] = {}
    for node in list(result.nodes):
        wants = node.name in chosen
        for position, name in enumerate(node.inputs):
            if (name in real) == wants:
                continue
            if (name, wants) not in converted:
                converted[name, wants] = _convert(result, node, name, wants)
            node.inputs[position] = converted[name, wants]
    log.notice("in floating point: %s", ", ".join(node.name for node in graph.nodes if node.name in chosen))
    result.verify()
    return result


def _convert(graph: Graph, reader: Node, name: str, to_float: bool) -> str:
    """Adds the conversion of a tensor before its first reader of the other kind; returns its output."""
    output = f"{name}_{'float' if to_float else 'integer'}"
    taken = {node.name for node in graph.nodes} | set(graph.tensors)
    while output in taken:
        output += "_"
    graph.add(Node(output, Convert(to_float), [name], [output], location=reader.location, helper=True),
              at=graph.nodes.index(reader))
    return output
