"""Resampling of images: nearest neighbour, or bilinear from tables of positions and weights."""

from __future__ import annotations

import numpy as np

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a resampling layer."""
    build = LayerBuilder(*layer)
    op = build.node.op
    title = f"{build.node.name}: {op.mode.lower()} resampling to {op.size[0]} x {op.size[1]}"
    types = {"Input": build.input_plane, "Output": build.output_plane}
    if op.mode == "Nearest":
        config = build.config(title, {**types, "Epilogue": build.moving_epilogue(clamped=True)}, {"Serial": build.serial})
        return build.code("resize", f"n2d2::resizeNearest<{config}>(in0, out);")
    build.vectors()
    weight = "std::int16_t" if build.integer else build.output.cpp
    config = build.config(
        title,
        {**types, "Weight": weight, "Sum": build.sum_type(), "Epilogue": build.epilogue(centred=False)},
        {"Serial": build.serial},
    )
    axes = [
        _axis(build, role, before, after, weight)
        for role, before, after in zip(("lines", "columns"), build.input_shape[2:], op.size, strict=True)
    ]
    declared = "\n".join(axes)
    return build.code("resize", f"{declared}\nn2d2::resizeBilinear<{config}>(in0, out, lines, columns);")


def _axis(build: LayerBuilder, role: str, inputs: int, outputs: int, weight: str) -> str:
    """Adds the tables of an axis; returns the declaration of the struct that points to them."""
    op = build.node.op
    first, second, fraction = op.taps(inputs, outputs)
    weights = op.integer_weights(inputs, outputs) if build.integer else np.stack([1 - fraction, fraction])
    names = [
        build.array(f"{role}_first", first, "std::uint16_t"),
        build.array(f"{role}_second", second, "std::uint16_t"),
        build.array(f"{role}_weights", weights, weight),
    ]
    return f"const n2d2::ResizeAxis<{weight}> {role} = {{{', '.join(names)}}};"
