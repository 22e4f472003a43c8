"""Layers that move values: identity, padding, reshape, transpose."""

from __future__ import annotations

from n2d2py.export.cpp.code import LayerCode
from n2d2py.export.cpp.epilogue import moving_epilogue
from n2d2py.export.cpp.layer import Layer, cpp
from n2d2py.graph.shapes import Shape

__all__ = ["copy", "padding", "reshape", "transpose"]

_AXES = {2: (0,), 3: (0, 2), 4: (0, 1, 2)}
"""Rank -> which of channel (0), line (1), column (2) each axis after the batch is."""


def _move(layer: Layer, kernel: str, constants: dict[str, int]) -> LayerCode:
    config = layer.config(kernel, {**layer.planes, "Epilogue": moving_epilogue(layer)}, constants)
    return layer.code(kernel, layer.call(kernel, config))


def _axes(layer: Layer, shape: Shape) -> tuple[int, ...]:
    if len(shape) not in _AXES:
        raise layer.beyond_axes(shape)
    return _AXES[len(shape)]


@cpp("Identity")
def copy(layer: Layer) -> LayerCode:
    """The C++ of an identity, or of an activation function in floating point."""
    layer = layer.pointwise()
    return _move(layer, "copy", {"Serial": layer.serial})


@cpp("Padding")
def padding(layer: Layer) -> LayerCode:
    """The C++ of a padding or a crop."""
    top, left = layer.op.pads[:2]
    zero = layer.inputs[0].zero_point
    return _move(layer, "padding", {"PadTop": top, "PadLeft": left, "InputZero": zero, "Serial": layer.serial})


@cpp("Reshape")
def reshape(layer: Layer) -> LayerCode:
    """The C++ of a reshape that is not a view.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    for shape in (layer.apart().input_shape, layer.output_shape):
        _axes(layer, shape)
    return _move(layer, "reshape", {"Serial": 0})


@cpp("Transpose")
def transpose(layer: Layer) -> LayerCode:
    """The C++ of a transposition.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    axes = _axes(layer, layer.apart().input_shape)
    along = {0: 0, 1: 1, 2: 2}
    for axis, source in zip(axes, layer.op.perm[1:], strict=True):
        along[axis] = axes[source - 1]
    return _move(layer, "transpose", {"AxisC": along[0], "AxisH": along[1], "AxisW": along[2]})
