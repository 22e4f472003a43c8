"""A convolution and the sum after it become one layer.

    ElemWise Sum(Conv(x), r)  =>  Conv(x, r) with the constants of the sum

The layer gives the integers of the two one after the other: those of the convolution, clamped and rescaled to its own type, then
those of the sum. The other operand is added where the result is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, ShiftRescale
from n2d2py.graph import QuantGraph, QuantNode, ResidualAdd
from n2d2py.graph.forms import Aligned

_BOUND = 2**31
"""Bound of the products, their sum and its offset with the zero points: 32 bits."""


def addable(graph: QuantGraph) -> Callable[[str, str], bool]:
    """True if the arithmetic of two layers, by name, is that of a convolution over channels and a sum in integers with one factor
    that can become one layer."""
    nodes = {node.name: node for node in graph.nodes}
    return lambda conv, total: _is_dense(nodes[conv], graph) and _is_sum(nodes[total], graph)


def _is_dense(node: QuantNode, graph: QuantGraph) -> bool:
    return (
        node.op.kind == "Conv"
        and node.residual is None
        and not node.op.is_depthwise(node)
        and graph.is_integer(node)
        and node.rescale is not None
    )


def _is_sum(node: QuantNode, graph: QuantGraph) -> bool:
    if node.op.kind != "ElemWise" or node.op.operation != "Sum":
        return False
    if not isinstance(node.form, Aligned) or not graph.is_integer(node):
        return False
    multipliers = [abs(int(m)) for m in node.form.multipliers]
    zeros = [int(m) * graph.type(name).zero_point for m, name in zip(node.form.multipliers, node.inputs, strict=True)]
    reach = max(node.bound, abs(int(node.form.offset[0]) - sum(zeros)), 256 * sum(multipliers))
    return (
        isinstance(node.rescale, (FloatRescale, FixedPointRescale, ShiftRescale)) and node.rescale.count == 1 and reach < _BOUND
    )


def fuse_residual_adds(graph: QuantGraph, pairs: Iterable[tuple[str, str]]) -> QuantGraph:
    """The network with each pair (convolution, sum that alone reads it) as one layer, which has the name of the convolution and
    the output of the sum."""
    nodes = {node.name: node for node in graph.nodes}
    totals = {conv: nodes[total] for conv, total in pairs}
    gone, lost = {total.name for total in totals.values()}, {nodes[conv].output for conv in totals}
    return replace(
        graph,
        tensors={name: tensor for name, tensor in graph.tensors.items() if name not in lost},
        nodes=[
            _fused(node, totals[node.name], graph) if node.name in totals else node
            for node in graph.nodes
            if node.name not in gone
        ],
    )


def _fused(node: QuantNode, total: QuantNode, graph: QuantGraph) -> QuantNode:
    form = total.form_as(Aligned)
    multipliers = {name: int(m) for m, name in zip(form.multipliers, total.inputs, strict=True)}
    residual = next(name for name in total.inputs if name != node.output)
    return replace(
        node,
        inputs=[*node.inputs, residual],
        outputs=list(total.outputs),
        source=[*(node.source or [node.name]), *(total.source or [total.name])],
        residual=ResidualAdd(
            total.name,
            graph.type(node.output),
            multipliers[node.output],
            multipliers[residual],
            int(form.offset[0]),
            total.rescaling,
            total.limits,
            total.bound,
        ),
    )
