"""Resampling of images: nearest neighbour, or bilinear from tables of positions and weights."""

from __future__ import annotations

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue, moving_epilogue
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Call, Expression
from n2d2py.exports.cpp.selection import vectors


@cpp("Resize")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a resampling layer."""
    op = layer.op
    title, order = f"{op.mode.lower()} resampling to {op.size[0]} x {op.size[1]}", {"Serial": layer.serial}
    if op.mode == "Nearest":
        config = layer.config(title, {**layer.planes, "Epilogue": moving_epilogue(layer, clamped=True)}, order)
        return layer.code("resize", layer.call("resizeNearest", config))
    selection, weight = vectors(layer), "std::int16_t" if layer.integer else layer.output.cpp
    stored = epilogue(layer, selection)
    types = {**layer.planes, "Weight": weight, "Sum": layer.sum_type(), "Epilogue": stored}
    config = layer.config(title, types, {**order, "Zero": layer.inputs[0].zero_point if layer.integer else 0}, selection)
    size = layer.input_shape[2:]
    weights = op.integer_weights(size) if layer.integer else (None, None)
    axes = [
        _axis(layer, role, op.taps(before, after), exact, weight)
        for role, before, after, exact in zip(("lines", "columns"), size, op.size, weights, strict=True)
    ]
    call = Call("n2d2::resizeBilinear", (config,), ("in0", "out", "lines", "columns"), tuple(axes))
    return layer.code("resize", call, selection=selection)


def _axis(layer: Layer, role: str, taps: tuple[np.ndarray, ...], exact: np.ndarray | None, weight: str) -> Expression:
    """The declaration of the struct that points to the tables of an axis."""
    first, second, fraction = taps
    weights = np.stack([1 - fraction, fraction]) if exact is None else exact
    arrays = [
        layer.array(f"{role}_first", first, "std::uint16_t"),
        layer.array(f"{role}_second", second, "std::uint16_t"),
        layer.array(f"{role}_weights", weights, weight),
    ]
    return Expression.of(f"const n2d2::ResizeAxis<{weight}> {role} = {{{', '.join(map(str, arrays))}}};", *arrays)
