"""Max unpooling."""

from __future__ import annotations

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of an unpooling layer; its second input is what the pool read."""
    build = LayerBuilder(*layer)
    node, op = build.node, build.node.op
    first, kind = build.inputs[0], build.output
    if build.integer and (first.bits, first.signed, first.zero_point) != (kind.bits, kind.signed, kind.zero_point):
        raise InternalError(f"{node.name} moves values, but its tensors have different types")
    build.inputs = [first]  # what the pool read only says where the values go; its type may be another
    config = build.config(
        f"{node.name}: unpooling {op.kernel[0]} x {op.kernel[1]}",
        {
            "Input": build.input_plane,
            "Pooled": build.identifiers.plane(node.inputs[1]),
            "Output": build.output_plane,
            "Epilogue": build.moving_epilogue(clamped=True),
        },
        {
            "KernelHeight": op.kernel[0],
            "KernelWidth": op.kernel[1],
            "StrideHeight": op.stride[0],
            "StrideWidth": op.stride[1],
            "PadTop": op.pads[0],
            "PadLeft": op.pads[1],
            "OutputZero": kind.zero_point,
            "Serial": build.serial,
        },
    )
    return build.code("unpool", f"n2d2::unpool<{config}>(in0, in1, out);")
