"""True if a layer on arrays may get integers: where the layers next to it have none, conversions would cost more than they save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from n2d2py.graph import Graph, Node
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes.base import Match, Pass
from n2d2py.quant.contract import refused

_RULES: list[Callable[[Node], Any]] = []


class GivesIntegers(Pass):
    """A rewrite that gives layers on arrays integers, where those next to them have integers too; not in pre-quantized networks."""

    @staticmethod
    def find(node: Node) -> Any:
        """What the layer becomes; None where the rewrite has nothing to say about it."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        _RULES.append(cls.find)

    def match(self, graph: Graph, node: Node) -> Match | None:
        found = self.find(node)
        if found is None:
            return None
        reason = left_in_floats(graph, node)
        return Match(found) if reason is None else Match.no(reason)


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
    if any(find(node) is not None for find in _RULES):
        return all(_has_integers(graph, reader) for reader in graph.consumers(node.output))
    return refused(node) is None
