"""How a transposed convolution goes through memory."""

from __future__ import annotations

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import Access, LineTable, Ranges, memory_access


@memory_access("Deconv")
def _deconv(node: QuantNode, graph: QuantGraph) -> Access:
    """A position gathers what the taps u of the kernel bring from (position + pad - u * dilation) / stride."""
    op, kernel = node.op, node.params["weights"].shape[2:]
    tables: list[Ranges] = []
    for outputs, inputs, k, s, p, d in zip(
        graph.shape(node.output)[2:], graph.shape(node.inputs[0])[2:], kernel, op.stride, op.pads[:2], op.dilation, strict=True
    ):
        ranges = []
        for position in range(outputs):
            reached = [(position + p - u * d) // s for u in range(k) if (position + p - u * d) % s == 0]
            inside = [at for at in reached if 0 <= at < inputs]
            ranges.append((min(inside), max(inside) + 1) if inside else (0, 0))
        tables.append(tuple(ranges))
    return LineTable((tables[0],), (tables[1],))
