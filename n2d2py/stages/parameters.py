"""Export parameters of layers, and those that are given and change nothing."""

from __future__ import annotations

from typing import Any

from n2d2py import log
from n2d2py.errors import suggest
from n2d2py.exports import Target
from n2d2py.graph import Graph, Precision, QuantGraph
from n2d2py.ini.params import GENERAL, PRECISION_KEYS, Params


def warn_without_effect(params: Params, target: Target[Any], graph: QuantGraph) -> None:
    """Warn W109 for each export parameter, and each parameter of a layer, that has no effect on the export, W102 for keys of
    layers that it does not know. A default value is not a demand.
    """
    overruled = target.overruled(params.as_dict(), graph)
    for key in params.schema.keys:
        if params.is_given(key.name) and params[key.name] != key.default:
            if target.parameters.key(key.name) is None and GENERAL.key(key.name) is None:
                _warn(params, key.name, f"the {target.name} export does not read it")
            elif key.name in overruled:
                _warn(params, key.name, overruled[key.name])
    for name in params.foreign:
        _warn(params, name, f"the {target.name} export does not read it")
    for layer in params.layers:
        _check_layer(params, layer, target, graph)


def _warn(params: Params, name: str, why: str, layer: str | None = None) -> None:
    where = params.where(name) if layer is None else params.where_layer(layer)
    log.warning("W109", f"{name} has no effect: {why}", where=where, remedy="remove it")


def _check_layer(params: Params, layer: str, target: Target[Any], graph: QuantGraph) -> None:
    node = next((node for node in graph.nodes if layer in (node.name, *node.source)), None)
    if node is None:
        return  # that is another warning
    precision = params.layer_precision(layer)
    for name in params.layers[layer]:
        known = [key.name for key in (*PRECISION_KEYS, *target.layer_parameters.keys)]
        if name not in known:
            what = f"key '{name}' is unknown for a layer of the {target.name} export; it is ignored"
            remedy = suggest(name, known)
            log.warning("W102", what, where=params.where_layer(layer), remedy=remedy)
        elif precision.get(name) is None:
            continue
        elif graph.bits <= 0 or graph.bits > 16:
            _warn(params, name, "the export has no integers of 8 or 16 bits", layer)
        elif name == "QuantWeightBits" and "weights" not in node.params:
            _warn(params, name, f"{node.op.kind} has no weights", layer)


def with_layer_precisions(graph: Graph, params: Params) -> Graph:
    """Return a copy of the graph that knows the precisions of the `[layer]` sections of the export parameters.

    A section may name a layer of the graph, or one that was merged into it.
    """
    asked = {}
    for name in params.layers:
        values = params.layer_precision(name)
        if any(value is not None for value in values.values()):
            asked[name] = Precision.of(values)
    if not asked:
        return graph
    result = graph.copy()
    for name, precision in asked.items():
        result.precisions[name] = precision.over(result.precisions.get(name))
    return result
