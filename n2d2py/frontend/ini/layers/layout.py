"""[section] Type=Reshape and Type=Transpose."""

from __future__ import annotations

from math import prod

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.inputs import WINDOW_KEYS, as_images, require_channels
from n2d2py.frontend.ini.keys import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.graph.shapes import elements, n2d2_dims
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.transpose import Transpose

__all__ = ["LAYER_TYPES"]

_BATCH = 3

_RESHAPE = LAYER.extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key(
        "Dims",
        Kind.INTS,
        doc="dimensions X Y C of the result; 0 keeps that of the input, one -1 takes what is left",
        minimum=-1,
    ),
    name="Reshape",
    doc="The elements in the order x + X * (y + Y * c), in another shape.",
)
_TRANSPOSE = LAYER.extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key(
        "Perm",
        Kind.UINTS,
        doc="for each of the axes X Y C B of the result the axis of the "
        "input that it is, such as 1 0 2 3 to swap X and Y; B (3) stays last",
    ),
    name="Transpose",
    doc="Axes in another order.",
)


def _reshape(context: LayerContext) -> None:
    tensor, dims = context.joined(), list(context.values["Dims"])
    shape = context.graph.shape(tensor)
    if not 1 <= len(dims) <= 3 or dims.count(-1) > 1:
        raise context.fail(
            "E208",
            f"Dims of {len(dims)} values, {dims.count(-1)} of them -1, are no shape",
            "give X Y C, at most one of them -1",
            "Dims",
        )
    if len(dims) == 1:
        dims = [1, 1, dims[0] or shape[1]]  # a vector
    elif len(dims) == 2:
        dims = [dims[0], 1, dims[1]]  # a sequence of X positions
    dims = [given or kept for given, kept in zip(dims, n2d2_dims(shape), strict=True)]
    if -1 in dims:
        dims[dims.index(-1)] = elements(shape) // -prod(dims) or 1
    context.add(Reshape(tuple(reversed(dims))), [tensor])
    require_channels(context, context.name)


def _transpose(context: LayerContext) -> None:
    as_images(context)
    tensor, perm = context.joined(), context.values["Perm"]
    if sorted(perm) != [0, 1, 2, _BATCH] or perm[_BATCH] != _BATCH:
        raise context.fail(
            "E209",
            f"Perm={' '.join(map(str, perm))} does not order the axes X Y C B with B last",
            "give 0, 1 and 2 in some order, then 3",
            "Perm",
        )
    # counted from the end, the axes X Y C B are those of (N, C, H, W)
    context.add(Transpose(tuple(_BATCH - perm[_BATCH - axis] for axis in range(4))), [tensor])
    require_channels(context, context.name)


LAYER_TYPES = (
    LayerType("Reshape", _RESHAPE, CONFIGURATION, _reshape),
    LayerType("Transpose", _TRANSPOSE, CONFIGURATION, _transpose),
)
