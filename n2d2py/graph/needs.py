"""Which outputs of a network are computed from a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from n2d2py.graph.quant import QuantGraph, QuantNode


def outputs_from(graph: QuantGraph) -> dict[str, int]:
    """For each tensor the outputs that need it, as bits: bit i is set where output i is the tensor, or is computed from it."""
    found = dict.fromkeys([*graph.inputs, *(name for node in graph.nodes for name in node.outputs)], 0)
    for index, name in enumerate(graph.outputs):
        found[name] |= 1 << index
    for node in reversed(graph.nodes):
        bits = 0
        for name in node.outputs:
            bits |= found[name]
        for name in node.inputs:
            found[name] |= bits
    return found


def nodes_for(graph: QuantGraph, outputs: Iterable[str]) -> list[QuantNode]:
    """The nodes that the named outputs need, in order."""
    named = set(outputs)
    wanted = sum(1 << index for index, name in enumerate(graph.outputs) if name in named)
    needs = outputs_from(graph)
    return [node for node in graph.nodes if any(needs[name] & wanted for name in node.outputs)]
