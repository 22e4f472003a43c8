"""Creation of the QuantGraph: layers in integers of chosen types, or in floating point."""

from collections.abc import Mapping

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, plain_type
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import QUANTIZERS, LayerTypes, computes_plain, quantize_layer
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.graph import Graph, Moved, Node, QuantGraph, QuantNode, Real, TargetForm
from n2d2py.operators import Convert
from n2d2py.quant.types.choose import TensorTypes

HALF_LAYERS = ("Conv", "Fc", "Deconv")
"""Operators whose kernels accept weights in binary16."""


def form_integers(graph: Graph, types: TensorTypes, options: QuantOptions, layers: Mapping[str, QuantNode]) -> QuantGraph:
    """Return the integer network for a prepared float graph; `layers` are layers, by name, that already have their integers.
    Raises N2D2Error (E51x, all layers without integer arithmetic together)."""
    result = typed_graph(graph, types, options)
    errors: list[N2D2Error] = []
    for node in graph.nodes:
        try:
            result.nodes.append(layers.get(node.name) or form_layer(node, layer_types(graph, node, types, options)))
        except N2D2Error as error:
            errors.append(error)
    ErrorList.raise_if(errors)
    result.verify()
    log.detail("quantized %d layers to %d bits", len(result.nodes), options.bits)
    return result


def typed_graph(graph: Graph, types: TensorTypes, options: QuantOptions) -> QuantGraph:
    """Return the tensors of the integer network, without its layers."""
    return QuantGraph.without_layers(graph, options.bits, types.types)


def layer_types(graph: Graph, node: Node, types: TensorTypes, options: QuantOptions) -> LayerTypes | None:
    """Return the input of a layer's quantizer; None for a float layer."""
    kinds = [types.types[name] for name in (*node.inputs, *node.outputs)]
    quantizer = QUANTIZERS.get(node.op.kind)
    computed = kinds[len(node.inputs) :] if quantizer is not None and quantizer.reads_plain else kinds
    sums = graph.precision(node).target is TargetForm.SUMS
    if not sums and not isinstance(node.op, Convert) and any(kind.is_float or kind.plain for kind in computed):
        return None
    weight_bits, shape = graph.precision(node).weight_bits, graph.shape(node.inputs[0])
    ends = kinds[: len(node.inputs)], types.types[node.output]
    return LayerTypes(*ends, options, cell=types.cells.get(node.output), weight_bits=weight_bits, input_shape=shape)


def form_layer(node: Node, types: LayerTypes | None) -> QuantNode:
    """Return one layer in integers, or in floating point without `types`. Raises N2D2Error (E51x without integer form)."""
    return _float_layer(node, FLOAT32) if types is None else quantize_layer(node, types)


def float_graph(graph: Graph, bits: int) -> QuantGraph:
    """Return the network with floating-point types on every edge; bits is -16, -32 or -64.

    With -16, weights of convolutions and fully connected layers are rounded to and stored in binary16; the layers compute in
    float32. With 32, every tensor holds unscaled 32-bit integers. Raises N2D2Error (E519 weights beyond binary16, E510 layers
    that cannot compute with unscaled integers).
    """
    if bits == 32:
        return _plain_graph(graph)
    kind = FLOAT64 if bits == -64 else FLOAT32
    types = {name: plain_type(tensor.kind) if tensor.kind else kind for name, tensor in graph.tensors.items()}
    result = QuantGraph.without_layers(graph, bits, types)
    result.nodes = [_float_layer(node, kind) for node in graph.nodes]
    if bits == -16:
        ErrorList.raise_if([error for node in result.nodes for error in _round_to_half(node)])
    result.verify()
    return result


def _round_to_half(node: QuantNode) -> list[N2D2Error]:
    """Round the weights of a layer to binary16, ties to even; E519 where one is too large."""
    if node.op.kind not in HALF_LAYERS:
        return []
    weights = node.params["weights"]
    largest = float(np.abs(weights).max(initial=0))
    if not largest < 65520:
        what = f"layer '{node.name}' has a weight of magnitude {largest:.6g}, which exceeds the float16 limit of 65504"
        return [N2D2Error("E519", what, where=node.location, remedy="export with -nbbits -32")]
    node.form = Real({**node.params, "weights": weights.astype(np.float16)})
    return []


def _plain_graph(graph: Graph) -> QuantGraph:
    kind = plain_type("int32")
    result = QuantGraph.without_layers(graph, 32, dict.fromkeys(graph.tensors, kind))
    remedy = "use -nbbits 8, 16 or -32; -nbbits 32 supports max pools, an addition after them, and data movement"
    text = "is not supported in 32-bit integers without scales"
    whats = {node: f"layer '{node.name}' ({node.op.kind}) {text}" for node in graph.nodes if not computes_plain(node)}
    ErrorList.raise_if([N2D2Error("E510", what, where=node.location, remedy=remedy) for node, what in whats.items()])
    result.nodes = [QuantNode.of(node, Moved(), clamp=(kind.qmin, kind.qmax)) for node in graph.nodes]
    result.verify()
    return result


def _float_layer(node: Node, kind: NumType) -> QuantNode:
    params = {
        role: np.asarray(array, kind.dtype if array.dtype.kind == "f" else array.dtype) for role, array in node.params.items()
    }
    return QuantNode.of(node, Real(params), activation=node.activation)
