"""The table of the tensors of few bits: which are held packed, and why the others are not."""

from __future__ import annotations

from n2d2py.graph import QuantGraph
from n2d2py.passes.integer.pack_activations import few_bits
from n2d2py.targets import text_table


def packing_text(graph: QuantGraph) -> str:
    """One line per tensor of at most 4 bits of a network with packed ones; "" for another network."""
    if not graph.packed:
        return ""
    rows = [
        [
            one.name,
            "packed" if one.packed else "bytes: " + (one.refused or "packing it does not reduce the arena"),
            str(one.bits),
            f"{one.bytes:,}",
            f"{one.packed_bytes:,}",
        ]
        for one in few_bits(graph)
    ]
    return text_table(["tensor", "held as", "bits", "bytes", "packed"], rows, left=2)
