"""Selection of the layers that get low-bit weights."""

from n2d2py.graph import Graph, Node, Precision
from n2d2py.operators import Conv, Fc

SPARED = 0.05
"""The smallest layers, up to this share of all weights, keep the bit width of the network."""

_BYTE = 8


def can_be_narrow(graph: Graph, node: Node) -> bool:
    """True if low-bit weights save memory in a layer; they do not in depthwise and transposed convolutions."""
    if isinstance(node.op, Conv):
        return not (node.op.groups > 1 and node.op.is_depthwise(node))
    return isinstance(node.op, Fc)


def has_narrow(graph: Graph) -> bool:
    """True if any layer has low-bit weights."""
    return any((graph.precision(node).weight_bits or _BYTE) < _BYTE for node in graph.nodes)


def weight_counts(graph: Graph) -> dict[str, int]:
    """Return the number of weights by layer; a recurrent layer counts input and recurrent weights together."""
    counts = {
        node.name: sum(values.size for role, values in node.params.items() if role.endswith("weights")) for node in graph.nodes
    }
    return {name: count for name, count in counts.items() if count}


def with_weight_bits(graph: Graph, bits: dict[str, int]) -> Graph:
    """Return a copy of the graph with these bit widths of weights, by layer name."""
    result = graph.copy()
    for name, width in bits.items():
        result.precisions[name] = Precision(weight_bits=width).over(result.precisions.get(name))
    return result


def with_low_bit_weights(graph: Graph, bits: int) -> Graph:
    """Return the graph with `bits`-bit weights in the layers without a width of their own: 8 bits in all layers, fewer
    where it saves memory.

    Layers that read the inputs of the network, and the smallest layers (`SPARED`), keep the width of the network, since
    errors of few weights average out less.
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
