"""How a resampling goes through memory."""

from __future__ import annotations

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.access import Access, LineTable, Upsample, memory_access


@memory_access("Resize")
def _resize(node: QuantNode, graph: QuantGraph) -> Access:
    """Nearest by whole factors repeats pixels; another resampling reads the two neighbours of each position."""
    op, shape = node.op, graph.shape(node.inputs[0])
    factors = [new // old for new, old in zip(op.size, shape[2:], strict=True)]
    if op.mode == "Nearest" and all(f * old == new for f, old, new in zip(factors, shape[2:], op.size, strict=True)):
        return Upsample((factors[0], factors[1]))
    lines, columns = (
        tuple((int(a), int(b) + 1) for a, b in zip(*op.taps(old, new)[:2], strict=True))
        for old, new in zip(shape[2:], op.size, strict=True)
    )
    return LineTable((lines,), (columns,))
