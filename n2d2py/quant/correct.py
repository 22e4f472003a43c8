"""Corrections of the integers, layer after layer, on stimuli that pass through the layers already formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, QuantNode
from n2d2py.quant.contract import LayerTypes, quantize_layer
from n2d2py.quant.layerwise import LayerwiseRun
from n2d2py.quant.moments import has_moments
from n2d2py.quant.narrow import has_narrow
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.quantize import form_layer, layer_types, typed_graph
from n2d2py.quant.rounding import CompensatedRounding, Remembered
from n2d2py.quant.sequential import refinable_tensors, refined_type
from n2d2py.quant.types import TensorTypes


@dataclass(frozen=True)
class Corrected:
    """The types of all tensors, and by name the layers whose integers were formed for the least error of their outputs."""

    types: TensorTypes
    layers: Mapping[str, QuantNode] = field(default_factory=dict)


def correct(graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions) -> Corrected:
    """Rounds the weights of each layer, corrects its bias and chooses its range again, as the options ask for.

    Without samples nothing is corrected; so is what follows a layer that has no integers, which `form_integers` refuses.
    """
    if not samples or not options.needs_samples:
        return Corrected(types)
    types = TensorTypes(dict(types.types), dict(types.thresholds), types.coarse)
    typed = typed_graph(graph, types, options)
    run = LayerwiseRun(graph, typed, samples)
    refinable = refinable_tensors(graph, types) if options.sequential else {}
    layers: dict[str, QuantNode] = {}
    narrow = has_narrow(graph)
    for node in graph.nodes:
        if not set(node.outputs).isdisjoint(refinable):
            kind = refined_type(node, types.types[node.output], run.reached(node))
            for name in refinable[node.output]:
                types.types[name] = kind
                typed.tensors[name] = replace(typed.tensors[name], type=kind)
            types.thresholds[node.output] = kind.reach
        layer = layer_types(graph, node, types, options)
        try:
            layers[node.name] = _corrected(node, layer, run, narrow) if layer else _advanced(node, form_layer(node, None), run)
        except N2D2Error:
            break
        run.forget()
    return Corrected(types, layers)


def alternatives(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, widths: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, QuantNode]]:
    """Forms of layers by name and by the bits of their weights, those of `widths`, the largest first.

    Each is formed on the inputs that layers of the largest width before it give.
    """
    run = LayerwiseRun(graph, typed_graph(graph, types, options), samples)
    found: dict[str, dict[int, QuantNode]] = {}
    for node in graph.nodes:
        layer = layer_types(graph, node, types, options)
        if layer is not None and node.name in widths:
            if options.adaptive_rounding and has_moments(node):
                rounding = CompensatedRounding(run.moments(node, True))
                layer = replace(layer, rounding=rounding, ranging=rounding.magnitudes)
            found[node.name] = {bits: quantize_layer(node, replace(layer, weight_bits=bits)) for bits in widths[node.name]}
            run.advance(node, next(iter(found[node.name].values())))
        else:
            run.advance(node, form_layer(node, layer))
        run.forget()
    return found


def _advanced(node: Node, typed: QuantNode, run: LayerwiseRun) -> QuantNode:
    run.advance(node, typed)
    return typed


def _corrected(node: Node, layer: LayerTypes, run: LayerwiseRun, narrow: bool) -> QuantNode:
    """The integer form of the next layer of the run, with the corrections that the options ask for; `narrow`: the network
    has weights of few bits."""
    options = layer.options
    if options.adaptive_rounding and has_moments(node):
        rounding = CompensatedRounding(run.moments(node, narrow))
        layer = replace(layer, rounding=Remembered(rounding), ranging=rounding.magnitudes)
    typed = quantize_layer(node, layer)
    error = run.advance(node, typed)
    if options.correct_bias and error is not None:
        bias = node.params["bias"] + error
        typed = quantize_layer(replace(node, params={**node.params, "bias": bias}), layer)
        run.redo(typed)
    return typed
