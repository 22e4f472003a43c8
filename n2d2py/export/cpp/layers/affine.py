"""Gain and shift per channel."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of an affine layer."""
    build = LayerBuilder(*layer)
    build.vectors()
    build.pointwise()
    name, weight_type = build.weights(build.node.params["weights"])
    sum_type = build.sum_type()
    bias = build.bias(sum_type)
    config = build.config(
        f"{build.node.name}: gain and shift per channel",
        {
            "Input": build.input_plane,
            "Output": build.output_plane,
            "Weight": weight_type,
            "Sum": sum_type,
            "Epilogue": build.epilogue(),
        },
        {"Serial": build.serial},
    )
    return build.code("affine", f"n2d2::affine<{config}>(in0, out, {name}, {bias});")
