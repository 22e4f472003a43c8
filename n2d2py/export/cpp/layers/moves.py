"""Layers that move values: identity, padding, reshape, transpose."""

from __future__ import annotations

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.layers.builder import LayerBuilder
from n2d2py.graph.shapes import Shape

__all__ = ["copy_code", "padding_code", "reshape_code", "transpose_code"]

_AXES = {2: (0,), 3: (0, 2), 4: (0, 1, 2)}
"""Rank -> which of channel (0), line (1), column (2) each axis after the batch is."""


def _move(build: LayerBuilder, kernel: str, description: str, constants: dict[str, int]) -> LayerCode:
    config = build.config(
        f"{build.node.name}: {description}",
        {"Input": build.input_plane, "Output": build.output_plane, "Epilogue": build.moving_epilogue()},
        constants,
    )
    return build.code(kernel, f"n2d2::{kernel}<{config}>(in0, out);")


def _axes(build: LayerBuilder, shape: Shape) -> tuple[int, ...]:
    if len(shape) not in _AXES:
        raise N2D2Error(
            "E703",
            f"layer '{build.node.name}': {build.node.op.kind} of a tensor of rank {len(shape)} ({'x'.join(map(str, shape))})",
            where=build.node.location,
            remedy="the C++ export holds tensors of at most channels, height and width",
        )
    return _AXES[len(shape)]


def _apart(build: LayerBuilder) -> None:
    if build.serial:
        raise InternalError(f"{build.node.name}: the output of a {build.node.op.kind} lies over its input")


def copy_code(*layer) -> LayerCode:
    """The C++ of an identity, or of an activation function in floating point."""
    build = LayerBuilder(*layer)
    build.pointwise()
    return _move(build, "copy", "copy", {"Serial": build.serial})


def padding_code(*layer) -> LayerCode:
    """The C++ of a padding or a crop."""
    build = LayerBuilder(*layer)
    pads = build.node.op.pads
    return _move(
        build,
        "padding",
        "padding",
        {"PadTop": pads[0], "PadLeft": pads[1], "InputZero": build.inputs[0].zero_point, "Serial": build.serial},
    )


def reshape_code(*layer) -> LayerCode:
    """The C++ of a reshape that is not a view.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    build = LayerBuilder(*layer)
    _apart(build)
    for shape in (build.input_shape, build.output_shape):
        _axes(build, shape)
    return _move(build, "reshape", "reshape", {"Serial": 0})


def transpose_code(*layer) -> LayerCode:
    """The C++ of a transposition.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    build = LayerBuilder(*layer)
    _apart(build)
    axes = _axes(build, build.input_shape)
    along = {0: 0, 1: 1, 2: 2}
    for axis, source in zip(axes, build.node.op.perm[1:], strict=True):
        along[axis] = axes[source - 1]
    return _move(build, "transpose", "transpose", {"AxisC": along[0], "AxisH": along[1], "AxisW": along[2]})
