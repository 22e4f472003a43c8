"""How a pool goes through memory."""

from __future__ import annotations

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import Access, PoolWindow, memory_access


@memory_access("Pool")
def _pool(node: QuantNode, graph: QuantGraph) -> Access:
    op = node.op
    if "scales" in node.params and op.order(graph.shape(node.inputs[0])[2:]) == "lanes":  # no sums of lines
        return PoolWindow(op.kernel, op.stride, op.pads, mode=op.mode.lower(), by_lines=False)
    return PoolWindow(op.kernel, op.stride, op.pads, mode=op.mode.lower(), partial_bytes=_partial_bytes(node, graph))


def _partial_bytes(node: QuantNode, graph: QuantGraph) -> int:
    """Bytes of what a channel of a pool is reduced to before the output is computed from it."""
    kind = graph.type(node.inputs[0])
    if node.op.mode == "Max":
        return kind.bytes
    if kind.is_float:
        return graph.type(node.output).bytes
    reach = max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin, abs(kind.qmax))
    bound = max(node.op.kernel[0] * node.op.kernel[1] * reach, node.bound)
    return 4 if bound < 2**31 else 8
