"""How a concatenation goes through memory."""

from __future__ import annotations

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import Access, Concatenated, memory_access


@memory_access("Concat")
def _concat(node: QuantNode, graph: QuantGraph) -> Access:
    return Concatenated(node.rescale is not None or node.activation is not None)
