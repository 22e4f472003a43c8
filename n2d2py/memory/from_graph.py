"""The memory problem of a typed network: its tensors in HWC and how its layers go through them."""

from __future__ import annotations

from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph
from n2d2py.graph.shapes import channels, height, width
from n2d2py.memory.access import MEMORY_ACCESSES, TensorSpec
from n2d2py.memory.problem import MemoryProblem, OpSpec


def memory_problem(graph: QuantGraph) -> MemoryProblem:
    """Tensors (vectors as 1 x 1 x C) and operators of a typed network, in its order."""
    tensors = {}
    for tensor in graph.tensors.values():
        shape = tensor.shape
        tensors[tensor.name] = TensorSpec(tensor.name, height(shape), width(shape), channels(shape), tensor.type.bytes)
    ops = []
    for node in graph.nodes:
        access = MEMORY_ACCESSES.get(node.op.kind)
        if access is None:
            raise InternalError(f"no memory access for {node.op.kind}")
        ops.append(OpSpec(node.name, access(node, graph), tuple(node.inputs), node.output, layer=node.op.kind))
    return MemoryProblem(tensors, tuple(graph.inputs), tuple(graph.outputs), tuple(ops))
