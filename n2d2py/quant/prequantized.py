"""Integers of a pre-quantized model, from its own scales.

Each computed tensor has one Quantize (`quant/types/insert_requantize.py`), which its layer takes over (`prequantized` of the
quantizers). Layers between an input and its first Quantize, and those with float weights, compute in floating point, as in the
file.
"""

from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import QUANTIZERS, LayerTypes, prequantize_layer, refused
from n2d2py.errors import ErrorList, N2D2Error, join_names
from n2d2py.graph import OTHER, Graph, Node, QuantGraph, QuantTensor
from n2d2py.operators import Activation, Affine, Quantize, values_source
from n2d2py.quant.quantize import form_layer
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.quant.types.insert_requantize import insert_missing_quantizes

_WHOLE = 1e-4
"""Tolerance, in steps, for a shift to count as an integer: the rest comes from scales in float32."""


def quantize_prequantized(graph: Graph, options: QuantOptions) -> tuple[QuantGraph, Graph]:
    """Return the integer network of a fused graph with Quantize layers, and the float graph with one after every layer. Raises
    N2D2Error (E514 and E51x, all layers that cannot compute in integers together)."""
    graph, real = _with_float_layers(_with_integer_inputs(graph))
    graph, types, errors = insert_missing_quantizes(graph, options.file_types, real)
    result = QuantGraph.without_layers(graph, 8, {})
    reads: dict[str, str] = {}
    remarks: dict[str, list[str]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Quantize):
            source = node.inputs[0]
            if source not in types:
                continue  # the layer before it has taken it over
            if source in graph.inputs and types[source] == node.op.type and node.output not in graph.outputs:
                reads[node.output] = result.aliases[node.output] = source
                continue
        layer = _with_quantize(graph, node, types, reads)
        kinds = [types[name] for name in layer.inputs]
        try:
            chosen = LayerTypes(kinds, types[layer.output], options, input_shape=graph.shape(node.inputs[0]))
            result.nodes.append(form_layer(layer, None) if node.name in real else prequantize_layer(layer, chosen))
            if layer.rounding == OTHER and node.name not in real:
                chosen.remark(layer, "LiteRT rounds it differently")
            for reason in chosen.remarks:
                remarks.setdefault(reason, []).append(layer.name)
        except N2D2Error as error:
            errors.append(error)
        if layer.output != node.output:
            result.aliases[node.output] = layer.output
    ErrorList.raise_if(errors)
    used = {name for node in result.nodes for name in (*node.inputs, *node.outputs)} | {*result.inputs, *result.outputs}
    result.tensors = {name: QuantTensor(name, graph.shape(name), types[name]) for name in graph.tensors if name in used}
    result.verify()
    log.notice("the model is already quantized: its scales are kept, and no calibration is needed")
    for reason, layers in remarks.items():
        log.notice("results may be a step off those of LiteRT's kernels: %s (%s)", join_names(layers), reason)
    return result, graph


def _with_integer_inputs(graph: Graph) -> Graph:
    """Return a copy with a Quantize after each input that is integer in the file, possibly before a gain g and a shift b.

    round((g x + b) / s) + z = round(x / (s / g)) + z + b / s, if g is one positive number, b / s whole and z + b / s an integer
    of the type.
    """
    graph = graph.copy()
    for name, port in zip(graph.user_inputs, graph.user_input_ports, strict=True):
        if graph.kind(name) or name in graph.outputs or _is_rounded(graph, name):
            continue
        kind = _type_before_gain(graph, name) or (port.type if port.type is not None and port.type.bits == 8 else None)
        if kind is not None:
            readers, op = graph.consumers(name), Quantize(replace(kind, plain=False, full=kind.signed))
            rounded = graph.fresh_name(f"{name}_quantized")
            graph.add(Node(rounded, op, [name], [rounded], location=readers[0].location, helper=True), at=0)
            for node in readers:
                node.inputs = [rounded if one == name else one for one in node.inputs]
    return graph


def _gain_before_quantize(graph: Graph, name: str) -> tuple[Node, NumType] | None:
    """Return the layer with the only gain and shift between a tensor and its only Quantize, and the quantized type; else
    None."""
    node = graph.sole_consumer(name)
    while node is not None and values_source(graph, node.output) != node.output and node.output not in graph.outputs:
        node = graph.sole_consumer(node.output)
    if node is None or not isinstance(node.op, Affine) or node.activation is not None or node.output in graph.outputs:
        return None
    last = graph.sole_consumer(node.output)
    return (node, last.op.type) if last is not None and isinstance(last.op, Quantize) else None


def _type_before_gain(graph: Graph, name: str) -> NumType | None:
    """Return the type whose integers, before the gain of a tensor, equal those of the Quantize after it; None without one."""
    gain = _gain_before_quantize(graph, name)
    if gain is None:
        return None
    (node, kind), gains = gain, gain[0].params["weights"]
    shifts = node.params["bias"].astype(np.float64) / kind.scale
    zero_point = kind.zero_point + round(float(shifts[0]))
    exact = np.all(gains == gains[0]) and np.abs(shifts - np.rint(shifts[0])).max() <= _WHOLE
    if not exact or not gains[0] > 0 or not kind.qmin <= zero_point <= kind.qmax:
        return None
    return replace(kind, scale=float(np.float32(kind.scale / gains[0])), zero_point=zero_point)


def _with_float_layers(graph: Graph) -> tuple[Graph, set[str]]:
    """Return the graph with conversions around the layers that the file leaves in floating point, and their names."""
    inputs = [name for name in graph.user_inputs if not graph.kind(name) and graph.consumers(name)]
    graph.float_inputs = frozenset(name for name in inputs if not _is_rounded(graph, name))
    chosen, real = set(), set(graph.float_inputs)
    for node in graph.nodes:
        if isinstance(node.op, Quantize):
            real.update(node.outputs if node.helper and _gain_before_quantize(graph, node.output) is None else ())
        elif not real.isdisjoint(node.inputs) or not _has_integers(node):
            chosen.add(node.name)
            real.update(node.outputs)
    return insert_conversions(graph, chosen), chosen


def _is_rounded(graph: Graph, name: str) -> bool:
    readers = [node.op for node in graph.consumers(name)]
    return all(isinstance(op, Quantize) and op == readers[0] for op in readers)


def _has_integers(node: Node) -> bool:
    known = QUANTIZERS.get(node.op.kind)
    return refused(node) is None and (known is None or known.in_files(node))


def _with_quantize(graph: Graph, node: Node, types: dict, reads: dict[str, str]) -> Node:
    """Return the layer with its Quantize fused, reading network inputs directly."""
    inputs = [reads.get(name, name) for name in node.inputs]
    if node.output in types:
        return replace(node, inputs=inputs)
    (rounding,) = graph.consumers(node.output)
    types[rounding.output] = rounding.op.type
    name = rounding.name if node.name == f"{rounding.name}_real" else node.name  # an operator on integers, expanded
    return replace(node, name=name, inputs=inputs, outputs=[rounding.output], source=node.source + rounding.source)


def without_rounding(graph: Graph) -> Graph:
    """Return the network in floating point: quantized values are only clipped to the range of their integers."""
    graph = graph.copy()
    for node in graph.nodes:
        if isinstance(node.op, Quantize):
            node.op = Activation(Clip(*node.op.type.interval))
    return graph
