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
    stored = epilogue(layer, selection, centred=False)
    types = {**layer.planes, "Weight": weight, "Sum": layer.sum_type(), "Epilogue": stored}
    config = layer.config(title, types, order, selection)
    axes = [
        _axis(layer, role, before, after, weight)
        for role, before, after in zip(("lines", "columns"), layer.input_shape[2:], op.size, strict=True)
    ]
    call = Call("n2d2::resizeBilinear", (config,), ("in0", "out", "lines", "columns"), tuple(axes))
    return layer.code("resize", call, selection=selection)


def _axis(layer: Layer, role: str, inputs: int, outputs: int, weight: str) -> Expression:
    """The declaration of the struct that points to the tables of an axis."""
    op = layer.op
    first, second, fraction = op.taps(inputs, outputs)
    weights = op.integer_weights(inputs, outputs) if layer.integer else np.stack([1 - fraction, fraction])
    arrays = [
        layer.array(f"{role}_first", first, "std::uint16_t"),
        layer.array(f"{role}_second", second, "std::uint16_t"),
        layer.array(f"{role}_weights", weights, weight),
    ]
    return Expression.of(f"const n2d2::ResizeAxis<{weight}> {role} = {{{', '.join(map(str, arrays))}}};", *arrays)
