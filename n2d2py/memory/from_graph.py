"""The memory problem of a typed network, and the network with its plan.

Columns of a tensor that a layer reads are not a tensor of their own: the layer reads them from the whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from n2d2py.graph import QuantGraph, channels, height, layer_macs, width
from n2d2py.memory.access import TensorSpec, access_of
from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.strips import reading_columns


def memory_problem(graph: QuantGraph) -> MemoryProblem:
    """Return the tensors (vectors as 1 x 1 x C) and operators of a typed network, in its order."""
    tensors = {}
    for tensor in graph.tensors.values():
        shape = tensor.shape
        tensors[tensor.name] = TensorSpec(tensor.name, height(shape), width(shape), channels(shape), tensor.type.bytes)
    ops: list[OpSpec] = []
    parts: dict[str, tuple[str, int]] = {}
    for node in graph.nodes:
        if node.op.is_part:
            parts[node.output] = node.inputs[0], node.op.first
            del tensors[node.output]
            continue
        pattern = access_of(node, graph)
        inputs = tuple(parts[name][0] if name in parts else name for name in node.inputs)
        if any(name in parts for name in node.inputs):
            firsts = [parts[name][1] if name in parts else 0 for name in node.inputs]
            pattern = reading_columns(pattern, [tensors[name] for name in inputs], firsts, tensors[node.output])
        ops.append(OpSpec(node.name, pattern, inputs, node.output, layer=node.op.kind))
    return MemoryProblem(tensors, tuple(graph.inputs), tuple(graph.outputs), tuple(ops), graph.states)


def network_macs(graph: QuantGraph, problem: MemoryProblem) -> int:
    """Return the multiply-accumulates of an inference, including fully connected, recurrent and other layers without rows."""
    macs = {node.name: layer_macs(graph, node) for node in graph.nodes}
    return sum(
        op.access.computed(problem.tensors[op.inputs[0]], problem.tensors[op.output]) or macs[op.name] for op in problem.ops
    )


def with_columns(graph: QuantGraph, plan: MemoryPlan) -> MemoryPlan:
    """Return the plan with a plane for each tensor that is a range of columns of another."""
    planes = dict(plan.planes)
    for node in graph.nodes:
        if node.op.is_part:
            planes[node.output] = _columns(planes[node.inputs[0]], node.op.first, node.op.stop)
    return replace(plan, planes=planes)


def _columns(plane: Plane, first: int, stop: int) -> Plane:
    offset, pitch = first * plane.stride, plane.line_bytes
    wrap = plane.wrap_offset + offset if plane.limit is not None else plane.wrap_offset
    return replace(plane, offset=plane.offset + offset, wrap_offset=wrap, length=stop - first, pitch=pitch)


@dataclass(frozen=True)
class PlannedNetwork:
    """The network, the memory problem and its plan."""

    graph: QuantGraph
    problem: MemoryProblem
    plan: MemoryPlan


ScratchPlanner = Callable[[PlannedNetwork], tuple[PlannedNetwork, bool]]
"""The network with workspaces in the budget, and whether every layer got the workspace it needs."""
