"""Softmax, in floating point only."""

from __future__ import annotations

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.graph.shapes import channels

__all__ = ["code"]


def code(*layer) -> LayerCode:
    """The C++ of a softmax.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    build = LayerBuilder(*layer)
    if build.integer:
        raise N2D2Error(
            "E702",
            f"layer '{build.node.name}': Softmax has no integer form",
            where=build.node.location,
            remedy="remove it, its argument has the same largest element, or export with -nbbits -32",
        )
    if build.serial:
        raise InternalError(f"{build.node.name}: the output of a softmax lies over its input")
    group = build.node.op.group_size or channels(build.input_shape)
    config = build.config(
        f"{build.node.name}: softmax over {group} channels",
        {"Input": build.input_plane, "Output": build.output_plane, "Epilogue": build.epilogue()},
        {"Group": group, "Log": build.node.op.log},
    )
    return build.code("softmax", f"n2d2::softmax<{config}>(in0, out);")
