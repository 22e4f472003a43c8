"""Max pooling plus a second input."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]

STREAMED = 1 << 18
"""Bytes from which a result in the caller's buffer is stored past the caches: more than half of a usual second level."""


def code(*layer) -> LayerCode:
    """The C++ of a pool with a sum."""
    build = LayerBuilder(*layer)
    plain = build.integer and all(kind.plain for kind in (*build.inputs, build.output))
    if build.serial or (build.integer and not plain):
        raise InternalError(f"{build.node.name}: a PoolSum of integers with scales, or over its input")
    size = int(np.prod(build.output_shape)) * build.output.bytes
    op = build.node.op
    pooled = op.pool.output_shapes([build.input_shape], build.node)[0]
    config = build.config(
        f"{build.node.name}: max pool {op.kernel[0]} x {op.kernel[1]} and sum",
        {
            "Input": build.input_plane,
            "Other": build.identifiers.plane(build.node.inputs[1]),
            "Output": build.output_plane,
            "Epilogue": f"n2d2::Moved<{build.output.cpp}>" if plain else build.epilogue(),
        },
        {
            "KernelHeight": op.kernel[0],
            "KernelWidth": op.kernel[1],
            "StrideHeight": op.stride[0],
            "StrideWidth": op.stride[1],
            "PadTop": op.pads[0],
            "PadLeft": op.pads[1],
            "PooledHeight": pooled[2],
            "PooledWidth": pooled[3],
            "Streaming": size >= STREAMED and build.external,
        },
    )
    return build.code("pool_sum", f"n2d2::poolSum<{config}>(in0, in1, out);")
