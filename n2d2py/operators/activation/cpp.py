"""A layer that only applies an activation function: a table of integers, lines between its entries, or the function itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.errors import InternalError
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.common import copy
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.selection import table


def _complete(values: np.ndarray, kind: NumType) -> np.ndarray:
    """One entry for each value that the input's storage can hold: those beyond its range get their neighbour's."""
    lowest = -(2 ** (kind.bits - 1)) if kind.signed else 0
    before = kind.qmin - lowest
    return np.pad(values, (before, 2**kind.bits - before - values.size), "edge")


@cpp("Activation")
def lower(layer: Layer) -> LayerCode:
    """The C++ of an activation layer."""
    layer, node, kind = layer.pointwise(), layer.node, layer.inputs[0]
    if not layer.integer:
        if node.activation is not None:
            raise InternalError(f"{node.name}: an activation layer carries another activation")
        return copy(replace(layer, node=replace(node, activation=layer.op.function)))
    function, selection = layer.op.function.kind, layer.portable
    types = {**layer.planes, "Epilogue": f"n2d2::Moved<{layer.output.cpp}>"}
    constants: dict[str, int] = {"Serial": layer.serial}
    if layer.has("knots"):
        knots = layer.values("knots")
        kernel, array = "interpolated", layer.array("knots", knots, "std::int32_t")
        text = f"{function} by a table of {knots.size} knots"
        constants.update(Segments=knots.size - 1, Low=layer.output.qmin, High=layer.output.qmax)
    else:
        values = _complete(layer.values("table"), kind)
        if values.size != 2**kind.bits:
            raise InternalError(f"{node.name}: a table of {values.size} entries for {kind.name}")
        kernel, array = "lookup", layer.array("table", values, layer.output.cpp)
        text, selection = f"{function} by table", table(layer)
    config = layer.config(text, types, constants, selection)
    return layer.code("lookup", layer.call(kernel, config, constants=(array,)), selection=selection)
