"""How a convolution goes through memory."""

from __future__ import annotations

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import Access, Window, memory_access


@memory_access("Conv")
def _conv(node: QuantNode, graph: QuantGraph) -> Access:
    """A residual is added where the output is stored, which so takes its place."""
    lines, columns = node.params["weights"].shape[2:]
    op, aliases = node.op, 1 if len(node.inputs) > 1 else None
    return Window((int(lines), int(columns)), op.stride, op.pads, op.dilation, op.groups, aliases=aliases)
