"""Preparation of layer inputs: vectors as images, input windows."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext
from n2d2py.graph.shapes import channels, height, width
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.base import make_operator

WINDOW_KEYS = (
    Key("InputOffsetX", Kind.UINT, 0, "Left edge of the input region."),
    Key("InputOffsetY", Kind.UINT, 0, "Top edge of the input region."),
    Key("InputWidth", Kind.UINT, 0, "Width of the input region. 0: up to the right edge."),
    Key("InputHeight", Kind.UINT, 0, "Height of the input region. 0: down to the bottom edge."),
)


def as_images(context: LayerContext) -> None:
    """Give the layer inputs height and width: a vector becomes one pixel, a sequence one row."""
    for index, (name, tensor) in enumerate(context.parents):
        shape = context.graph.shape(tensor)
        if len(shape) < 4:
            dims = (channels(shape), height(shape), width(shape))
            context.parents[index] = (name, context.add_helper(f"image{index}", make_operator("Reshape", dims), [tensor]))


def crop_inputs(context: LayerContext) -> None:
    """Crop the inputs to the layer's window, if its section has one.

    Raises:
        N2D2Error: E233 if the window exceeds an input.
    """
    values = context.values
    if "InputOffsetX" not in values:
        return
    x, y, columns, lines = (values[key.name] for key in WINDOW_KEYS)
    if not (x or y or columns or lines):
        return
    as_images(context)
    for index, (name, tensor) in enumerate(context.parents):
        h, w = context.graph.shape(tensor)[2:]
        right, bottom = w - x - (columns or w - x), h - y - (lines or h - y)
        if x >= w or y >= h or right < 0 or bottom < 0:
            raise context.fail(
                "E233",
                f"the region of {columns or 'all'}x{lines or 'all'} at {x},{y} exceeds the input of {w}x{h} (width x height)",
                "reduce or move the region",
                next(key.name for key in WINDOW_KEYS if values.is_given(key.name)),
            )
        if right or bottom or x or y:
            cropped = context.add_helper(f"window{index}", make_operator("Padding", (-y, -x, -bottom, -right)), [tensor])
            context.parents[index] = (name, cropped)


def require_channels(context: LayerContext, tensor: str) -> int:
    """Return the number of channels of a tensor.

    Raises:
        N2D2Error: E216 if it differs from NbOutputs.
    """
    count, outputs = channels(context.graph.shape(tensor)), context.values["NbOutputs"]
    if count != outputs:
        what = "result" if tensor == context.name else "input"
        remedy = f"set NbOutputs to {count}"
        raise context.fail("E216", f"NbOutputs={outputs}, but the {what} has {count} channels", remedy, "NbOutputs")
    return count
