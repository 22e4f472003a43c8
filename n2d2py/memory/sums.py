"""Sums in the last stage of a convolution: where one is possible, and the memory problem with them.

Of the two operands of a sum the one that is computed later is a convolution's output that nothing else reads. The convolution then
adds the bytes of the other operand where it stores its own: the sum lies exactly over that operand, which dies at it, and what the
convolution makes by itself is never in memory. No integer changes; two layers are run as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, ShiftRescale
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import TYPES, Access
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem, OpSpec

__all__ = ["ResidualSum", "folded_offset", "plan_with_sums", "residual_sums", "summing_layers", "with_sums"]

_BOUND = 2**30
"""What the sum and its offset with the zero points stay below, so that every order of adding them fits into 32 bits."""

Fits = Callable[[str, str], bool]
"""Whether the convolution of one name can do the sum of another one's."""


@dataclass(frozen=True)
class ResidualSum:
    """A convolution and the sum that it does: layer names, the tensor that is added."""

    conv: str
    sum: str
    residual: str


def residual_sums(problem: MemoryProblem, fits: Fits = lambda conv, sum: True) -> list[ResidualSum]:
    """Every sum of two tensors of bytes that a convolution can do where it stores, of those that `fits` allows.

    In the order of the operators, whatever else reads the residual runs before the convolution. Inputs and outputs of the network,
    whose place is the caller's choice, and tensors that views share are left alone.
    """
    made = {op.output: at for at, op in enumerate(problem.ops)}
    readers: dict[str, list[int]] = {}
    for at, op in enumerate(problem.ops):
        for name in op.inputs:
            readers.setdefault(name, []).append(at)
    views = {at for at, op in enumerate(problem.ops) if TYPES[op.type] is Access.VIEW}
    kept = {*problem.inputs, *problem.outputs}
    found = []
    for at, op in enumerate(problem.ops):
        tensors = [problem.tensors[name] for name in (op.output, *op.inputs)]
        if (
            op.type != "add"
            or len(set(op.inputs)) != 2
            or len(op.inputs) != 2
            or kept & {op.output, *op.inputs}
            or any((t.shape, t.element_bytes) != (tensors[0].shape, 1) for t in tensors)
        ):
            continue
        residual, own = sorted(op.inputs, key=made.__getitem__)
        conv, others = problem.ops[made[own]], [reader for reader in readers[residual] if reader != at]
        if (
            conv.type == "conv"
            and readers[own] == [at]
            and made[residual] not in views
            and all(other < made[own] for other in others)
            and not views & {*others, *readers.get(op.output, ())}
            and fits(conv.name, op.name)
        ):
            found.append(ResidualSum(conv.name, op.name, residual))
    return found


def summing_layers(graph: QuantGraph, typed: bool = True) -> Fits:
    """What the kernels can do: sums in integers with one power of two, in convolutions over channels; not `typed`: the network
    will have such types."""
    nodes = {node.name: node for node in graph.nodes}
    return lambda conv, sum: _is_dense(nodes[conv], graph, typed) and _is_sum(nodes[sum], graph, typed)


def _is_dense(node: QuantNode, graph: QuantGraph, typed: bool) -> bool:
    return (
        node.op.kind == "Conv"
        and not node.op.is_depthwise(node)
        and (not typed or (graph.is_integer(node) and node.rescale is not None))
    )


def _is_sum(node: QuantNode, graph: QuantGraph, typed: bool) -> bool:
    if node.op.kind != "ElemWise" or node.op.operation != "Sum":
        return False
    if not typed:
        return True
    if "multipliers" not in node.params or "scales" in node.params or not graph.is_integer(node):
        return False
    multipliers = [abs(int(m)) for m in node.params["multipliers"]]
    reach = max(node.bound, abs(folded_offset(node, graph)), 256 * sum(multipliers))
    return (
        isinstance(node.rescale, (FloatRescale, FixedPointRescale, ShiftRescale))
        and node.rescale.count == 1
        and max(multipliers) <= 32767
        and reach < _BOUND
    )


def folded_offset(node: QuantNode, graph: QuantGraph) -> int:
    """What a sum adds to its products where these are of the stored integers: the zero points are in it."""
    zeros = sum(int(m) * graph.type(name).zero_point for m, name in zip(node.params["multipliers"], node.inputs, strict=True))
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


def plan_with_sums(
    problem: MemoryProblem, fused: MemoryProblem, plan: Callable[[MemoryProblem], MemoryPlan]
) -> tuple[MemoryProblem, MemoryPlan]:
    """The problem with sums in convolutions, and its plan, where that needs no more memory than the one without."""
    found, other = plan(problem), plan(fused)
    return (fused, other) if other.arena_bytes <= found.arena_bytes else (problem, found)
