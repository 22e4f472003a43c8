"""A convolution and the residual sum after it become one layer.

    ElemWise Sum(Conv(x), r)  =>  Conv(x, r) with the constants of the sum

The layer computes the integers of both: the convolution, clamped and rescaled to its own type, then the sum. The other operand
is added in the epilogue.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, ShiftRescale
from n2d2py.graph import Aligned, QuantGraph, QuantNode, ResidualAdd

_BOUND = 2**31
"""Bound of the products and of their sum with offset and zero points: 32 bits."""


def fusable_pairs(graph: QuantGraph) -> Callable[[str, str], bool]:
    """Return a predicate of two layers, by name: a convolution and an integer sum with one factor that can become one layer."""
    nodes = {node.name: node for node in graph.nodes}
    return lambda conv, total: _is_dense(nodes[conv], graph) and _is_sum(nodes[total], graph)


def _is_dense(node: QuantNode, graph: QuantGraph) -> bool:
    if node.op.kind != "Conv" or node.residual is not None or node.rescale is None:
        return False
    return graph.is_integer(node) and not node.op.is_depthwise(node)


def _is_sum(node: QuantNode, graph: QuantGraph) -> bool:
    if node.op.kind != "ElemWise" or node.op.operation != "Sum":
        return False
    if not isinstance(node.form, Aligned) or not graph.is_integer(node):
        return False
    multipliers = [abs(int(m)) for m in node.form.multipliers]
    zeros = [int(m) * graph.type(name).zero_point for m, name in zip(node.form.multipliers, node.inputs, strict=True)]
    reach = max(node.bound, abs(int(node.form.offset[0]) - sum(zeros)), 256 * sum(multipliers))
    single = isinstance(node.rescale, (FloatRescale, FixedPointRescale, ShiftRescale)) and node.rescale.count == 1
    return single and reach < _BOUND


def fuse_residual_adds(graph: QuantGraph, pairs: Iterable[tuple[str, str]]) -> QuantGraph:
    """Return the network with each pair (convolution, sum that is its only consumer) as one layer, with the name of the
    convolution and the output of the sum."""
    nodes = {node.name: node for node in graph.nodes}
    totals = {conv: nodes[total] for conv, total in pairs}
    gone, lost = {total.name for total in totals.values()}, {nodes[conv].output for conv in totals}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in lost}
    left = [node for node in graph.nodes if node.name not in gone]
    fused = [_fuse_pair(node, totals[node.name], graph) if node.name in totals else node for node in left]
    return replace(graph, tensors=tensors, nodes=fused)


def _fuse_pair(node: QuantNode, total: QuantNode, graph: QuantGraph) -> QuantNode:
    form = total.form_as(Aligned)
    multipliers = {name: int(m) for m, name in zip(form.multipliers, total.inputs, strict=True)}
    kind, factor = graph.type(node.output), multipliers.pop(node.output)
    ((residual, other),) = multipliers.items()
    rescaling = int(form.offset[0]), total.rescaling, total.limits, total.bound
    added = ResidualAdd(total.name, kind, factor, other, *rescaling)
    source = [*(node.source or [node.name]), *(total.source or [total.name])]
    return replace(node, inputs=[*node.inputs, residual], outputs=list(total.outputs), source=source, residual=added)
