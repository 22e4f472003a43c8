"""Rewrites of array layers that depend on their neighbours: next to float layers, conversions would cost more than integers
save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from n2d2py.contracts.quant.quantizer import refused
from n2d2py.graph import Graph, Node
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes.base import Match, Pass

_RULES: list[Callable[[Node], Any]] = []


class IntegerRewrite(Pass):
    """A rewrite to integer layers, applied only next to integer layers; not in pre-quantized networks."""

    @staticmethod
    def find(node: Node) -> Any:
        """Return the replacement of the layer; None if the rewrite does not apply."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        _RULES.append(cls.find)

    def match(self, graph: Graph, node: Node) -> Match | None:
        replacement = self.find(node)
        if replacement is None:
            return None
        reason = reason_for_float(graph, node)
        return Match(replacement) if reason is None else Match.no(reason)


def reason_for_float(graph: Graph, node: Node) -> str | None:
    """Return the reason why an array layer stays in floating point: its precision, a pre-quantized network, a float neighbour;
    else None."""
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
    """True if a layer has an integer form, or gets one by a rewrite because its consumers have one."""
    if graph.precision(node).quantize is False:
        return False
    if any(find(node) is not None for find in _RULES):
        return all(_has_integers(graph, reader) for reader in graph.consumers(node.output))
    return refused(node) is None
