"""Sums in the last stage of a convolution: where one is possible, and the memory problem with them.

Of the two operands of a sum the one that is computed later is a convolution's output that nothing else reads. The convolution then
adds the bytes of the other operand where it stores its own: the sum lies exactly over that operand, which dies at it, and what the
convolution makes by itself is never in memory. No integer changes; two layers are run as one.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Sequence

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, ShiftRescale
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import TYPES, Access
from n2d2py.memory.problem import MemoryProblem, OpSpec

__all__ = ["ResidualSum", "residual_sums", "folded_offset", "with_sums"]

_BOUND = 2 ** 30
"""What the sum and its offset with the zero points stay below, so that every order of adding them fits into 32 bits."""


@dataclass(frozen=True)
class ResidualSum:
    """A convolution and the sum that it does: layer names, the tensor that is added."""

    conv: str
    sum: str
    residual: str


def residual_sums(graph: QuantGraph, problem: MemoryProblem, typed: bool = True) -> list[ResidualSum]:
    """Every sum that a convolution can do where it stores; not `typed`: the tensors will have bytes of integers.

    The order of the layers is that of the graph: whatever else reads the residual runs before the convolution.
    """
    made = {node.output: (at, node) for at, node in enumerate(graph.nodes) if len(node.outputs) == 1}
    readers: dict[str, list[tuple[int, QuantNode]]] = {}
    for at, node in enumerate(graph.nodes):
        for name in node.inputs:
            readers.setdefault(name, []).append((at, node))
    views = {op.name for op in problem.ops if TYPES[op.type] is Access.VIEW}
    kept = {*graph.inputs, *graph.outputs}
    found = []
    for node in graph.nodes:
        if not _is_sum(node, graph, typed) or node.output in kept or any(name not in made for name in node.inputs):
            continue
        residual, own = sorted(node.inputs, key=lambda name: made[name][0])
        at, conv = made[own]
        others = [(place, reader) for place, reader in readers[residual] if reader is not node]
        if (_is_dense(conv, graph, typed) and not {residual, own} & kept and len(readers[own]) == 1
                and made[residual][1].name not in views and all(place < at for place, _ in others)
                and not views & {reader.name for _, reader in (*others, *readers.get(node.output, ()))}):
            found.append(ResidualSum(conv.name, node.name, residual))
    return found


def _is_sum(node: QuantNode, graph: QuantGraph, typed: bool) -> bool:
    """Whether a layer adds two tensors of its own shape, in integers of bytes and by one power of two."""
    if node.op.kind != "ElemWise" or node.op.operation != "Sum" or len(set(node.inputs)) != 2 or len(node.inputs) != 2:
        return False
    if any(graph.shape(name) != graph.shape(node.output) for name in node.inputs):
        return False
    if not typed:
        return True
    if any(graph.type(name).bytes != 1 or graph.type(name).is_float for name in (*node.inputs, node.output)):
        return False
    if "multipliers" not in node.params or "scales" in node.params:
        return False
    return (isinstance(node.rescale, (FloatRescale, FixedPointRescale, ShiftRescale)) and node.rescale.count == 1
            and all(abs(int(m)) <= 32767 for m in node.params["multipliers"])
            and max(node.bound, abs(folded_offset(node, graph)), *(abs(int(m)) * 256 for m in node.params["multipliers"])) < _BOUND)


def _is_dense(node: QuantNode, graph: QuantGraph, typed: bool) -> bool:
    """Whether a layer is a convolution over channels, whose kernels can add a residual."""
    return node.op.kind == "Conv" and not node.op.is_depthwise(node) and (
        not typed or graph.is_integer(node) and node.rescale is not None)


def folded_offset(node: QuantNode, graph: QuantGraph) -> int:
    """What a sum adds to its products where these are of the stored integers: the zero points are in it."""
    zeros = sum(int(m) * graph.type(name).zero_point for m, name in zip(node.params["multipliers"], node.inputs))
    return int(node.params["offset"][0]) - zeros


def with_sums(problem: MemoryProblem, sums: Sequence[ResidualSum]) -> MemoryProblem:
    """The problem with each of the sums done by its convolution; the sum is a view of what that stores."""
    by_conv, by_sum = {each.conv: each for each in sums}, {each.sum: each for each in sums}
    stored = {op.name: op.output for op in problem.ops}
    ops = []
    for op in problem.ops:
        if op.name in by_conv:
            each = by_conv[op.name]
            op = replace(op, attributes={**op.attributes, "residual": each.residual, "sum": each.sum})
        elif op.name in by_sum:
            op = OpSpec(op.name, "reshape", (stored[by_sum[op.name].conv],), op.output)
        ops.append(op)
    return replace(problem, ops=tuple(ops))
