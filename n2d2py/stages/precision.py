"""Precisions of single layers: what the export parameters say overrules what the INI says."""

from __future__ import annotations

from n2d2py.graph import Graph, Precision
from n2d2py.ini.params import Params


def with_layer_precisions(graph: Graph, params: Params) -> Graph:
    """A copy of the graph that knows the precisions of the `[layer]` sections of the export parameters.

    A section may name a layer of the graph, or one that was merged into it.
    """
    asked = {}
    for name in params.layer_names():
        values = params.layer_precision(name)
        if any(value is not None for value in values.values()):
            asked[name] = Precision.of(values)
    if not asked:
        return graph
    result = graph.copy()
    for name, precision in asked.items():
        result.precisions[name] = precision.over(result.precisions.get(name))
    return result
