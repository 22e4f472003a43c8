"""Which layers get low-bit weights when a network is asked for them."""

from __future__ import annotations

from n2d2py.graph import Graph, Node, Precision
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc

SPARED = 0.05
"""Share of the weights, at most, in the smallest layers, which keep the width of the network."""

_BYTE = 8


def can_be_narrow(graph: Graph, node: Node) -> bool:
    """True if a layer's weights take less memory in fewer than 8 bits: those of depthwise and transposed convolutions do not."""
    if isinstance(node.op, Conv):
        return not (node.op.groups > 1 and node.op.is_depthwise(node))
    return isinstance(node.op, Fc)


def has_narrow(graph: Graph) -> bool:
    """True if any layer has weights of fewer than 8 bits."""
    return any((graph.precision(node).weight_bits or _BYTE) < _BYTE for node in graph.nodes)


def weight_counts(graph: Graph) -> dict[str, int]:
    """Number of weights of each layer that has any, by name: those of inputs and of states together in recurrent ones."""
    counts = {
        node.name: sum(values.size for role, values in node.params.items() if role.endswith("weights")) for node in graph.nodes
    }
    return {name: count for name, count in counts.items() if count}


def with_weight_bits(graph: Graph, bits: dict[str, int]) -> Graph:
    """A copy of the graph whose layers have weights of so many bits, by name."""
    result = graph.copy()
    for name, width in bits.items():
        result.precisions[name] = Precision(weight_bits=width).over(result.precisions.get(name))
    return result


def narrowed(graph: Graph, bits: int) -> Graph:
    """The graph with weights of `bits` bits where they have no width of their own: of 8 in all layers, of fewer in those that gain.

    The layers that read the inputs of the network, and the smallest ones that together hold at most `SPARED` of the weights, keep
    the width of the network: few weights make up less for each other.
    """
    weighted = [node for node in graph.nodes if "weights" in node.params]
    open_ = [node for node in weighted if graph.precision(node).weight_bits is None]
    if bits >= _BYTE:
        return with_weight_bits(graph, {node.name: bits for node in open_})
    able = [node for node in open_ if can_be_narrow(graph, node) and not set(node.inputs) & set(graph.inputs)]
    left = SPARED * sum(node.params["weights"].size for node in weighted)
    chosen = {node.name: bits for node in able}
    for node in sorted(able, key=lambda node: node.params["weights"].size):
        left -= node.params["weights"].size
        if left < 0:
            break
        del chosen[node.name]
    return with_weight_bits(graph, chosen)
