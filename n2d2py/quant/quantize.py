"""Builds the QuantGraph: integer from statistics, or floating point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, plain_type
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode, QuantTensor
from n2d2py.graph.forms import Real
from n2d2py.operators.convert import Convert
from n2d2py.quant.histogram import Histogram
from n2d2py.quant.joins import warn_of_coarse_joins
from n2d2py.quant.layers import LayerTypes, quantize_layer
from n2d2py.quant.moments import has_moments
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.rounding import CompensatedRounding, Remembered
from n2d2py.quant.sequential import refinable_tensors, refined_type
from n2d2py.quant.types import TensorTypes, choose_types
from n2d2py.quant.walk import Walk

__all__ = ["float_graph", "quantize"]

HALF_LAYERS = ("Conv", "Fc", "Deconv")
"""Operators whose kernels take weights in binary16."""


def quantize(
    graph: Graph,
    histograms: dict[str, Histogram],
    options: QuantOptions,
    ranges: dict[str, tuple[float, float] | None] | None = None,
    samples: Sequence[np.ndarray] = (),
) -> tuple[QuantGraph, TensorTypes]:
    """The integer network for a fused float graph and the histograms of its calibrated tensors.

    `samples` are batches (n, C, H, W) of the only input, for the corrections that `options` ask for;
    without any, these are left out.

    Raises:
        N2D2Error: E51x, all layers without integer arithmetic together.
    """
    types = choose_types(graph, histograms, ranges or {}, options)
    warn_of_coarse_joins(types.coarse)
    result = QuantGraph(
        graph.name, options.bits, inputs=list(graph.inputs), outputs=list(graph.outputs), aliases=dict(graph.aliases)
    )
    result.tensors = {name: QuantTensor(name, t.shape, types.types[name]) for name, t in graph.tensors.items()}
    errors: list[N2D2Error] = []
    walk = Walk(graph, result, samples) if samples and options.needs_samples else None
    refinable = refinable_tensors(graph, types) if walk and options.sequential else {}
    for node in graph.nodes:
        if not isinstance(node.op, Convert) and any(
            types.types[name].is_float or types.types[name].plain for name in (*node.inputs, *node.outputs)
        ):
            result.nodes.append(_float_layer(node, FLOAT32))
            if walk and not errors:
                walk.advance(node, result.nodes[-1])
                walk.forget()
            continue
        if walk and not errors and not set(node.outputs).isdisjoint(refinable):
            _refine(node, result, types, refinable[node.output], walk)
        layer = LayerTypes(
            [types.types[name] for name in node.inputs],
            types.types[node.output],
            options,
            weight_bits=graph.precision(node).weight_bits,
            input_shape=graph.shape(node.inputs[0]),
        )
        try:
            result.nodes.append(_corrected(node, layer, walk) if walk and not errors else quantize_layer(node, layer))
        except N2D2Error as error:
            errors.append(error)
    ErrorList.raise_if(errors)
    result.verify()
    log.detail("quantized %d layers to %d bits", len(result.nodes), options.bits)
    return result, types


def _refine(node: Node, result: QuantGraph, types: TensorTypes, held: list[str], walk: Walk) -> None:
    """Chooses the range of the next layer's output again, for all tensors that share its integers."""
    kind = refined_type(node, types.types[node.output], walk.reached(node))
    for name in held:
        types.types[name] = kind
        result.tensors[name] = replace(result.tensors[name], type=kind)
    types.thresholds[node.output] = kind.scale * kind.qmax


def _corrected(node: Node, layer: LayerTypes, walk: Walk) -> QuantNode:
    """The integer form of the next layer of the walk, with the corrections that the options ask for."""
    options = layer.options
    if options.adaptive_rounding and has_moments(node):
        layer = replace(layer, rounding=Remembered(CompensatedRounding(walk.moments(node))))
    typed = quantize_layer(node, layer)
    error = walk.advance(node, typed)
    if options.correct_bias and error is not None:
        bias = node.params["bias"] + error
        typed = quantize_layer(replace(node, params={**node.params, "bias": bias}), layer)
        walk.redo(typed)
    walk.forget()
    return typed


def float_graph(graph: Graph, bits: int) -> QuantGraph:
    """The same network with floating-point types on every edge; bits is -16, -32 or -64.

    With -16 the weights of convolutions and fully connected layers are rounded to binary16, and kept so; the layers compute
    in float32. With 32 every tensor holds 32-bit integers as they are.

    Raises:
        N2D2Error: E519 weights beyond binary16, E510 layers that cannot compute in plain integers.
    """
    if bits == 32:
        return _plain_graph(graph)
    kind = FLOAT64 if bits == -64 else FLOAT32
    result = QuantGraph(graph.name, bits, inputs=list(graph.inputs), outputs=list(graph.outputs), aliases=dict(graph.aliases))
    result.tensors = {
        name: QuantTensor(name, t.shape, plain_type(t.kind) if t.kind else kind) for name, t in graph.tensors.items()
    }
    result.nodes = [_float_layer(node, kind) for node in graph.nodes]
    if bits == -16:
        ErrorList.raise_if([error for node in result.nodes for error in _halve(node)])
    result.verify()
    return result


def _halve(node: QuantNode) -> list[N2D2Error]:
    """Rounds the weights of a layer to binary16, ties to even; E519 where one is too large."""
    if node.op.kind not in HALF_LAYERS:
        return []
    weights = node.params["weights"]
    largest = float(np.abs(weights).max(initial=0))
    if not largest < 65520:
        return [
            N2D2Error(
                "E519",
                f"layer '{node.name}' has a weight of magnitude {largest:.6g}, beyond the 65504 of binary16",
                where=node.location,
                remedy="export with -nbbits -32",
            )
        ]
    node.form = Real({**node.params, "weights": weights.astype(np.float16)})
    return []


def _plain_graph(graph: Graph) -> QuantGraph:
    """32-bit integers without scales, for layers that compare, add and move them."""
    kind = plain_type("int32")
    result = QuantGraph(graph.name, 32, inputs=list(graph.inputs), outputs=list(graph.outputs), aliases=dict(graph.aliases))
    result.tensors = {name: QuantTensor(name, t.shape, kind) for name, t in graph.tensors.items()}
    wrong = [
        node
        for node in graph.nodes
        if node.activation is not None
        or (
            node.op.kind != "PoolSum"
            and not (node.op.moves_values and node.op.kind in ("Pool", "Identity", "Reshape", "Transpose"))
        )
    ]
    ErrorList.raise_if(
        [
            N2D2Error(
                "E510",
                f"layer '{node.name}' ({node.op.kind}) does not compute in 32-bit integers as they are",
                where=node.location,
                remedy="use -nbbits 8, 16 or -32; 32 takes max pools, a sum behind one, and moves",
            )
            for node in wrong
        ]
    )
    result.nodes = [
        QuantNode(
            node.name,
            node.op,
            list(node.inputs),
            list(node.outputs),
            clamp=(kind.qmin, kind.qmax),
            location=node.location,
            source=list(node.source),
        )
        for node in graph.nodes
    ]
    result.verify()
    return result


def _float_layer(node: Node, kind: NumType) -> QuantNode:
    """A layer in floating point, its constants in type `kind`."""
    params = {
        role: np.asarray(array, kind.dtype if array.dtype.kind == "f" else array.dtype) for role, array in node.params.items()
    }
    return QuantNode(
        node.name,
        node.op,
        list(node.inputs),
        list(node.outputs),
        Real(params),
        activation=node.activation,
        location=node.location,
        source=list(node.source),
    )
