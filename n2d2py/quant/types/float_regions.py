"""Targets that have integers for layers of weights alone: what is between these layers stays real, and is rounded where one reads it.

Such a layer gives real numbers, its sums of integers times their steps. Where only convolutions in integers read what a convolution
gives, its result is integers: to round it once or where it is read is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from n2d2py.graph import Graph, Node
from n2d2py.graph.precision import Precision, TargetForm
from n2d2py.operators.conv import Conv
from n2d2py.quant.contract import refused


def with_target_forms(graph: Graph, in_integers: Callable[[Node], bool]) -> Graph:
    """A copy of a fused float graph that says of each layer what the target makes of it; `in_integers` are those that sum integers there."""
    chosen = {
        node.name
        for node in graph.nodes
        if in_integers(node) and refused(node) is None and graph.precision(node).quantize is not False
    }
    result = graph.copy()
    for node in result.nodes:
        form = TargetForm.REAL
        if node.name in chosen:
            form = TargetForm.INTEGERS if _stays(result, node, chosen) else TargetForm.SUMS
        result.precisions[node.name] = replace(result.precisions.get(node.name, Precision()), target=form)
    return result


def _stays(graph: Graph, node: Node, chosen: set[str]) -> bool:
    """True if only convolutions in integers read the result of a convolution."""
    readers = graph.consumers(node.output)
    return (
        node.output not in graph.outputs
        and bool(readers)
        and all(isinstance(one.op, Conv) and one.name in chosen for one in (node, *readers))
    )
