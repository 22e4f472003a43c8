"""A layer that only applies an activation function: a table of integers, lines between its entries, or the function itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.identifiers import Identifiers
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.export.cpp.layers.moves import copy_code
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.memory.plan import Plane

__all__ = ["code"]


def _complete(table: np.ndarray, kind: NumType) -> np.ndarray:
    """One entry for each value of the input type: a symmetric range lacks the lowest, which gets its neighbour's."""
    return np.concatenate([table[:1], table]) if kind.signed and not kind.full else table


def code(node: QuantNode, graph: QuantGraph, planes: Mapping[str, Plane], identifiers: Identifiers) -> LayerCode:
    """The C++ of an activation layer."""
    build = LayerBuilder(node, graph, planes, identifiers)
    build.pointwise()
    if not build.integer:
        if node.activation is not None:
            raise InternalError(f"{node.name}: an activation layer carries another activation")
        return copy_code(replace(node, activation=node.op.function), graph, planes, identifiers)
    kind = build.inputs[0]
    types = {"Input": build.input_plane, "Output": build.output_plane, "Epilogue": f"n2d2::Moved<{build.output.cpp}>"}
    if "knots" in node.params:
        knots = node.params["knots"]
        name = build.array("knots", knots, "std::int32_t")
        config = build.config(
            f"{node.name}: {node.op.function.kind} by a table of {knots.size} knots",
            types,
            {"Serial": build.serial, "Segments": knots.size - 1, "Low": build.output.qmin, "High": build.output.qmax},
        )
        return build.code("lookup", f"n2d2::interpolated<{config}>(in0, out, {name});")
    table = _complete(node.params["table"], kind)
    if table.size != 2**kind.bits:
        raise InternalError(f"{node.name}: a table of {table.size} entries for {kind.name}")
    name = build.array("table", table, build.output.cpp)
    build.table()
    config = build.config(f"{node.name}: {node.op.function.kind} by table", types, {"Serial": build.serial})
    return build.code("lookup", f"n2d2::lookup<{config}>(in0, out, {name});")
