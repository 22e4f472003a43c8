"""Float regions of targets that run only weighted layers in integers.

Such a layer quantizes its input and returns its accumulators as real numbers; everything between stays in floating point. If
only integer convolutions consume the result of a convolution, the result is quantized once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from n2d2py.graph import Graph, Node
from n2d2py.graph.precision import Precision, TargetForm
from n2d2py.operators.conv import Conv
from n2d2py.quant.contract import refused


def with_target_forms(graph: Graph, in_integers: Callable[[Node], bool]) -> Graph:
    """Return a copy of a fused float graph with the target's form of each layer; `in_integers` tells integer layers."""
    chosen = {
        node.name
        for node in graph.nodes
        if in_integers(node) and refused(node) is None and graph.precision(node).quantize is not False
    }
    result = graph.copy()
    for node in result.nodes:
        form = TargetForm.REAL
        if node.name in chosen:
            form = TargetForm.INTEGERS if _stays_integer(result, node, chosen) else TargetForm.SUMS
        result.precisions[node.name] = replace(result.precisions.get(node.name, Precision()), target=form)
    return result


def _stays_integer(graph: Graph, node: Node, chosen: set[str]) -> bool:
    """True for a convolution whose result only integer convolutions consume."""

    def is_chosen(one: Node) -> bool:
        return isinstance(one.op, Conv) and one.name in chosen

    return node.output not in graph.outputs and is_chosen(node) and graph.feeds_only(node.output, is_chosen)
