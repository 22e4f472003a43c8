"""Small typed networks with tensors of few bits."""

from dataclasses import replace

from n2d2py.arithmetic import NumType
from n2d2py.graph import QuantGraph
from support.export_networks import residual


def narrowed(graph: QuantGraph, limits: dict[str, tuple[int, int]]) -> QuantGraph:
    """The network with these tensors clamped to (least, most)."""
    for name, (least, most) in limits.items():
        tensor = graph.tensors[name]
        kind = NumType(8, least < 0, scale=tensor.type.scale, least=least, most=most)
        graph.tensors[name] = replace(tensor, type=kind)
        for node in graph.nodes:
            if node.output == name and node.clamp is not None:
                node.clamp = (least, most)
    graph.verify()
    return graph


def few() -> QuantGraph:
    """Tensors of 4, 2 and 1 bits, with and without a sign, around a sum; outputs of 4 bits and of 8."""
    return narrowed(residual(True), {"stem": (0, 15), "deep": (-1, 2), "flat": (0, 1), "add": (0, 15), "mean": (0, 15)})
