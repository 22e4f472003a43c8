"""Max pooling plus a second input."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import epilogue
from n2d2py.export.cpp.layer import Layer, cpp, window

__all__ = ["lower"]

STREAMED = 1 << 18
"""Bytes from which a result in the caller's buffer is stored past the caches: more than half of a usual second level."""


@cpp("PoolSum")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a pool with a sum."""
    plain = layer.integer and all(kind.plain for kind in (*layer.inputs, layer.output))
    if layer.serial or (layer.integer and not plain):
        raise InternalError(f"{layer.name}: a PoolSum of integers with scales, or over its input")
    size = int(np.prod(layer.output_shape)) * layer.output.bytes
    op, (first, other) = layer.op, layer.input_planes
    pooled = op.pool.output_shapes([layer.input_shape], layer.node)[0]
    config = layer.config(
        f"max pool {op.kernel[0]} x {op.kernel[1]} and sum",
        {
            "Input": first,
            "Other": other,
            "Output": layer.output_plane,
            "Epilogue": f"n2d2::Moved<{layer.output.cpp}>" if plain else epilogue(layer),
        },
        {
            **window(op.kernel, op.stride, op.pads),
            "PooledHeight": pooled[2],
            "PooledWidth": pooled[3],
            "Streaming": size >= STREAMED and layer.external,
        },
    )
    return layer.code("pool_sum", layer.call("poolSum", config, inputs=layer.bases))
