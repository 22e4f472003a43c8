"""Fully connected: weights reordered from the flattened C, H, W to the H, W, C of the memory."""

from __future__ import annotations

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.graph.shapes import channels, height, width

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a fully connected layer; weights arrive as (O, C * H * W)."""
    build = LayerBuilder(*layer)
    if build.serial:
        raise InternalError(f"{build.node.name}: the output of a fully connected layer lies over its input")
    shape = build.input_shape
    weights = build.node.params["weights"]
    cube = weights.reshape(len(weights), channels(shape), height(shape), width(shape))
    build.choose("fullyConnected", cube.transpose(0, 2, 3, 1).reshape(len(weights), -1))
    name, weight_type = build.weights(cube.transpose(0, 2, 3, 1))
    sum_type = build.sum_type()
    bias = build.bias(sum_type)
    config = build.config(
        f"{build.node.name}: fully connected, {weights.shape[1]} to {weights.shape[0]}",
        {
            "Input": build.input_plane,
            "Output": build.output_plane,
            "Weight": weight_type,
            "Sum": sum_type,
            "Epilogue": build.epilogue(),
        },
        {"FullWeights": build.full_weights(), "ByteSums": build.byte_sums, "Serial": 0},
    )
    return build.code("fullyconnected", f"n2d2::fullyConnected<{config}>(in0, out, {name}, {bias});")
