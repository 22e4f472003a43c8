"""The integers of a network that comes quantized: its own scales, no statistics.

Every tensor that a layer computes is rounded by one Quantize behind it (`quant/complete.py`), which the layer takes
over (`prequantized` of the quantizers).
"""

from __future__ import annotations

from dataclasses import replace

from n2d2py import log
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.graph import Graph, Node, QuantGraph, QuantTensor
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Clip
from n2d2py.operators.quantize import Quantize
from n2d2py.quant.contract import LayerTypes, prequantize_layer
from n2d2py.quant.insert_requantize import complete
from n2d2py.quant.options import QuantOptions


def quantize_prequantized(graph: Graph, options: QuantOptions) -> tuple[QuantGraph, Graph]:
    """The integer network of a fused graph with Quantize layers, and the float graph with one behind every layer.

    Raises:
        N2D2Error: E514 and E51x, all layers that cannot be computed in integers together.
    """
    graph, types, errors = complete(graph, options.file_types)
    result = QuantGraph.ends_of(graph, 8)
    reads: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.op, Quantize):
            source = node.inputs[0]
            if source not in types:
                continue  # the layer before it has taken it over
            if source in graph.inputs and types[source] == node.op.type and node.output not in graph.outputs:
                reads[node.output] = result.aliases[node.output] = source
                continue
        layer = _typed(graph, node, types, reads)
        kinds = [types[name] for name in layer.inputs]
        try:
            chosen = LayerTypes(kinds, types[layer.output], options, input_shape=graph.shape(node.inputs[0]))
            result.nodes.append(prequantize_layer(layer, chosen))
        except N2D2Error as error:
            errors.append(error)
        if layer.output != node.output:
            result.aliases[node.output] = layer.output
    ErrorList.raise_if(errors)
    used = {name for node in result.nodes for name in (*node.inputs, *node.outputs)} | {*result.inputs, *result.outputs}
    result.tensors = {name: QuantTensor(name, graph.shape(name), types[name]) for name in graph.tensors if name in used}
    result.verify()
    log.notice("the model is already quantized: its scales are kept, and no calibration is needed")
    return result, graph


def _typed(graph: Graph, node: Node, types: dict, reads: dict[str, str]) -> Node:
    """The layer with the rounding behind it, reading network inputs directly."""
    inputs = [reads.get(name, name) for name in node.inputs]
    if node.output in types:
        return replace(node, inputs=inputs)
    (rounding,) = graph.consumers(node.output)
    types[rounding.output] = rounding.op.type
    name = rounding.name if node.name == f"{rounding.name}_real" else node.name  # an operator on integers, expanded
    return replace(node, name=name, inputs=inputs, outputs=[rounding.output], source=node.source + rounding.source)


def without_rounding(graph: Graph) -> Graph:
    """The network in floating point: what is rounded is only kept within the range of its integers."""
    graph = graph.copy()
    for node in graph.nodes:
        if isinstance(node.op, Quantize):
            kind = node.op.type
            low, high = ((limit - kind.zero_point) * kind.scale for limit in (kind.qmin, kind.qmax))
            node.op = Activation(Clip(low, high))
    return graph
