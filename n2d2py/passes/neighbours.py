"""True if a layer on arrays may get integers: where the layers next to it have none, conversions would cost more than they save."""

from __future__ import annotations

from collections.abc import Callable

from n2d2py.graph import Graph, Node
from n2d2py.operators.quantize import is_quantized
from n2d2py.quant.contract import refused

Rule = Callable[[Node], bool]
_RULES: list[Rule] = []


def gets_integers(rule: Rule) -> Rule:
    """Registers a rule: layers that some rewrite gives integers, where those after them have integers too."""
    _RULES.append(rule)
    return rule


def left_in_floats(graph: Graph, node: Node) -> str | None:
    """Why a layer on arrays of real numbers gets no integers: it is asked not to, the network is pre-quantized, a layer next to it has none;
    else None.
    """
    if is_quantized(graph):
        return "it computes in integers of the file"
    if graph.precision(node).quantize is False:
        return "it is to stay in floating point"
    for producer in map(graph.producer, node.inputs):
        if producer is not None and not _has_integers(graph, producer):
            return f"it follows {producer.name}, which has no integers"
    for reader in graph.consumers(node.output):
        if not _has_integers(graph, reader):
            return f"it feeds {reader.name}, which has no integers"
    return None


def _has_integers(graph: Graph, node: Node) -> bool:
    """True if a layer has an integer form, or gets one by a rewrite because those after it have."""
    if graph.precision(node).quantize is False:
        return False
    if any(rule(node) for rule in _RULES):
        return all(_has_integers(graph, reader) for reader in graph.consumers(node.output))
    return refused(node) is None
