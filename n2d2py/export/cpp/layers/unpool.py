"""Max unpooling."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.errors import InternalError
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import moving_epilogue
from n2d2py.export.cpp.layer import Layer, cpp, window

__all__ = ["lower"]


@cpp("Unpool")
def lower(layer: Layer) -> LayerCode:
    """The C++ of an unpooling layer; its second input is what the pool read."""
    op, first, kind = layer.op, layer.inputs[0], layer.output
    if layer.integer and (first.bits, first.signed, first.zero_point) != (kind.bits, kind.signed, kind.zero_point):
        raise InternalError(f"{layer.name} moves values, but its tensors have different types")
    # What the pool read only says where the values go; its type may be another.
    stored = moving_epilogue(replace(layer, inputs=(first,)), clamped=True)
    config = layer.config(
        f"unpooling {op.kernel[0]} x {op.kernel[1]}",
        {"Input": layer.input_planes[0], "Pooled": layer.input_planes[1], "Output": layer.output_plane, "Epilogue": stored},
        {**window(op.kernel, op.stride, op.pads), "OutputZero": kind.zero_point, "Serial": layer.serial},
    )
    return layer.code("unpool", layer.call("unpool", config, inputs=layer.bases))
