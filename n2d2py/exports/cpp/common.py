"""C++ forms that several operators share: moved values."""

from __future__ import annotations

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import moving_epilogue
from n2d2py.exports.cpp.layer import Layer
from n2d2py.graph.shapes import Shape

_AXES = {2: (0,), 3: (0, 2), 4: (0, 1, 2)}


def move(layer: Layer, kernel: str, constants: dict[str, int]) -> LayerCode:
    """Return the call of a kernel that moves values."""
    config = layer.config(kernel, {**layer.planes, "Epilogue": moving_epilogue(layer)}, constants)
    return layer.code(kernel, layer.call(kernel, config))


def image_axes(layer: Layer, shape: Shape) -> tuple[int, ...]:
    """Return, for each axis after the batch, whether it is channel (0), row (1) or column (2).

    Raises:
        N2D2Error: E703 for more than three axes.
    """
    if len(shape) not in _AXES:
        raise layer.beyond_axes(shape)
    return _AXES[len(shape)]


def copy(layer: Layer) -> LayerCode:
    """Return the C++ of an identity, or of a float activation function."""
    layer = layer.pointwise()
    return move(layer, "copy", {"Serial": layer.serial})
