"""[section] Type=Transformation: transformations as layers: point-wise functions, crops, flips, reshapes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.contracts.ini.keys import NB_OUTPUTS, WINDOW_KEYS
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.graph.shapes import channels
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.conv import Conv
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import OPERATIONS, Activation, Affine, threshold_function, uniform_gain
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Identity, Reshape
from n2d2py.operators.resize import Resize

_FILTERS = {"Erode": (-1,), "Dilate": (1,), "Opening": (-1, 1), "Closing": (1, -1)}
"""Morphological filters: minimum (-1) or maximum (1) over a window."""
_OPERATIONS = (*OPERATIONS, *_FILTERS)
_SIGNS = ("Plus", "Minus", "Multiplies", "Divides")


# ---- transformations ----------------------------------------------------------------------------
@ini(
    "Transformation",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key(
        "Transformation",
        Kind.STRING,
        doc="Name of the transformation: RangeAffine, RangeClipping, Threshold, Rescale, PadCrop, SliceExtraction, Flip, "
        "ColorSpace, ChannelExtraction, Morphology or Reshape. Its keys are keys of this section.",
    ),
    Key("FirstOperator", Kind.ENUM, None, "RangeAffine: first operation.", _SIGNS),
    Key("FirstValue", Kind.FLOATS, (), "RangeAffine: value of the first operation, one or one per channel."),
    Key("SecondOperator", Kind.ENUM, "Plus", "RangeAffine: second operation.", _SIGNS),
    Key("SecondValue", Kind.FLOATS, (), "RangeAffine: value of the second operation. Empty: no second operation."),
    Key("RangeMin", Kind.FLOAT, None, "RangeClipping: value mapped to 0."),
    Key("RangeMax", Kind.FLOAT, None, "RangeClipping: value mapped to 1."),
    Key("Threshold", Kind.FLOAT, None, "Threshold: threshold. Values above it are high."),
    Key("Operation", Kind.ENUM, "Binary", "Threshold: result for high and low values. Morphology: filter.", _OPERATIONS),
    Key("Size", Kind.UINT, None, "Morphology: width and height of the window.", minimum=1),
    Key("Shape", Kind.ENUM, "Rectangular", "Morphology: shape of the window.", ("Rectangular",)),
    Key("NbIterations", Kind.UINT, 1, "Morphology: how often its maxima and minima are taken.", minimum=1, maximum=100),
    Key("MaxValue", Kind.FLOAT, 1.0, "Threshold: Binary result for high values."),
    Key("Width", Kind.INT, None, "Rescale, PadCrop, SliceExtraction: width of the result."),
    Key("Height", Kind.INT, None, "Rescale, PadCrop, SliceExtraction: height of the result."),
    Key("AdditiveWH", Kind.BOOL, False, "PadCrop: add Width and Height to the size of the input."),
    Key("BorderType", Kind.STRING, "MinusOneReflectBorder", "PadCrop: kind of padding. ConstantBorder pads with zeros."),
    Key("OffsetX", Kind.UINT, 0, "SliceExtraction: left edge."),
    Key("OffsetY", Kind.UINT, 0, "SliceExtraction: top edge."),
    Key("HorizontalFlip", Kind.BOOL, False, "Flip: flip horizontally."),
    Key("VerticalFlip", Kind.BOOL, False, "Flip: flip vertically."),
    Key("ColorSpace", Kind.STRING, "", "ColorSpace: RGB, RGB_to_BGR or BGR_to_RGB swap channels 0 and 2. BGR has no effect."),
    Key("CSChannel", Kind.STRING, "", "ChannelExtraction: Blue, Green, Red or Gray of a BGR input."),
    Key("NbRows", Kind.UINT, None, "Reshape: rows of the result."),
    Key("NbCols", Kind.UINT, 0, "Reshape: columns of the result. 0: inferred."),
    doc="Apply a transformation of stimuli as a layer.",
)
def _build_transformation(context: LayerContext) -> None:
    given = context.values["Transformation"]
    name = given.removesuffix("Transformation")
    if name not in _TRANSFORMATIONS:
        what = f"Transformation={given} cannot be a layer"
        remedy = "apply it to the stimuli in [sp.Transformation], or use one of " + ", ".join(_TRANSFORMATIONS)
        raise context.fail("E234", what, remedy, "Transformation")
    add, *required = _TRANSFORMATIONS[name]
    for key in required:
        if context.values[key] in (None, ()):
            raise context.fail("E234", f"Transformation={given} requires {key}", f"add {key}", "Transformation")
    context.as_images()
    add(context, context.concat_inputs(), *(context.values[key] for key in required))
    context.require_channels(context.name)


def _range_affine(context: LayerContext, tensor: str, *_: object) -> None:
    values, count = context.values, channels(context.graph.shape(tensor))
    gain, shift = np.ones(count), np.zeros(count)
    for which in ("First", "Second"):
        operands: Sequence[float] = values[f"{which}Value"]
        if not operands:
            continue
        if len(operands) not in (1, count) or (values[f"{which}Operator"] == "Divides" and 0.0 in operands):
            what = f"{which}Value has {len(operands)} values for {count} channels, or divides by 0"
            raise context.fail("E234", what, "give one value, or one per channel", f"{which}Value")
        operand, operator = np.broadcast_to(np.array(operands), count), values[f"{which}Operator"]
        if operator in ("Plus", "Minus"):
            shift = shift + (operand if operator == "Plus" else -operand)
        else:
            factor = operand if operator == "Multiplies" else 1.0 / operand
            gain, shift = gain * factor, shift * factor
    context.add(Affine(), [tensor], {"weights": gain.astype(np.float32), "bias": shift.astype(np.float32)})


def _range_clipping(context: LayerContext, tensor: str, low: float, high: float) -> None:
    if low >= high:
        raise context.fail("E234", f"RangeMin={low:g} is not below RangeMax={high:g}", "swap both values", "RangeMin")
    count, gain = channels(context.graph.shape(tensor)), 1 / (high - low)
    context.add(Affine(), [tensor], uniform_gain(count, gain, -low / (high - low)), Clip(0.0, 1.0))


def _threshold_transformation(context: LayerContext, tensor: str, threshold: float) -> None:
    values = context.values
    _check_operation(context, OPERATIONS)
    context.add(Activation(threshold_function(values["Operation"], threshold, values["MaxValue"])), [tensor])


def _check_operation(context: LayerContext, known: Iterable[str]) -> None:
    operation, name = context.values["Operation"], context.values["Transformation"]
    if operation not in known:
        raise context.fail("E234", f"{name} has no Operation={operation}", f"use one of {', '.join(known)}", "Operation")


def _morphology(context: LayerContext, tensor: str, size: int) -> None:
    """Add a maximum over a window around each position; a minimum is computed as the maximum of -x."""
    _check_operation(context, _FILTERS)
    before, count = size // 2, channels(context.graph.shape(tensor))
    pool = Pool("Max", (size, size), pads=(before, before, size - 1 - before, size - 1 - before))
    negative = uniform_gain(count, -1.0)
    for step, sign in enumerate(_FILTERS[context.values["Operation"]]):
        if sign < 0:
            tensor = context.add_helper(f"negative{step}", Affine(), [tensor], negative)
        for iteration in range(context.values["NbIterations"]):
            tensor = context.add_helper(f"maximum{step}_{iteration}", pool, [tensor])
        if sign < 0:
            tensor = context.add_helper(f"minimum{step}", Affine(), [tensor], negative)
    context.add(Identity(), [tensor])


def _rescale(context: LayerContext, tensor: str, width: int, height: int) -> None:
    if min(width, height) < 1:
        raise context.fail("E234", f"the size {width}x{height} is empty", "give at least 1", "Width")
    context.add(Resize((height, width), "Bilinear", "HalfPixel"), [tensor])


def _pad_crop(context: LayerContext, tensor: str, width: int, height: int) -> None:
    h, w = context.graph.shape(tensor)[2:]
    down, across = (height, width) if context.values["AdditiveWH"] else (height - h, width - w)
    if max(down, across) > 0 and context.values["BorderType"] != "ConstantBorder":
        what = f"BorderType={context.values['BorderType']} is not supported in a layer"
        raise context.fail("E234", what, "use ConstantBorder", "BorderType")
    top, left = -(-down // 2), -(-across // 2)
    context.add(Padding((top, left, down - top, across - left)), [tensor])


def _slice(context: LayerContext, tensor: str, width: int, height: int) -> None:
    x, y = context.values["OffsetX"], context.values["OffsetY"]
    h, w = context.graph.shape(tensor)[2:]
    width, height = width or w - x, height or h - y
    if width < 1 or height < 1 or x + width > w or y + height > h:
        what = f"the slice of {width}x{height} at {x},{y} exceeds the input of {w}x{h}"
        raise context.fail("E234", what, "reduce or move the slice", "Width")
    context.add(Padding((-y, -x, y + height - h, x + width - w)), [tensor])


def _flip(context: LayerContext, tensor: str) -> None:
    h, w = context.graph.shape(tensor)[2:]
    rows = tuple(reversed(range(h))) if context.values["VerticalFlip"] else None
    columns = tuple(reversed(range(w))) if context.values["HorizontalFlip"] else None
    context.add(IndexSelect((None, rows, columns)), [tensor])


_GRAY = (0.114, 0.587, 0.299)
"""Weights of blue, green and red, as in OpenCV."""


def _check_colors(context: LayerContext, tensor: str, key: str, known: Sequence[str], example: str) -> str:
    """Return the value of a key that is about the channels of a color image."""
    value, count = context.values[key], channels(context.graph.shape(tensor))
    if value not in known:
        remedy = f"use {example}, or convert the stimuli in [sp.Transformation]"
        raise context.fail("E234", f"{key}={value} is not supported in a layer", remedy, "Transformation")
    if count != 3:
        what = f"{key}={value} requires 3 channels, but the input has {count}"
        raise context.fail("E234", what, "correct the layer before it", key)
    return value


def _color_space(context: LayerContext, tensor: str) -> None:
    space = _check_colors(context, tensor, "ColorSpace", ("BGR", "RGB", "RGB_to_BGR", "BGR_to_RGB"), "RGB")
    context.add(Identity() if space == "BGR" else IndexSelect(((2, 1, 0), None, None)), [tensor])


def _channel_extraction(context: LayerContext, tensor: str) -> None:
    names = ("Blue", "Green", "Red", "Gray")
    name = _check_colors(context, tensor, "CSChannel", names, "Blue, Green, Red or Gray")
    if name != "Gray":
        context.add(IndexSelect(((names.index(name),), None, None)), [tensor])
        return
    weights = np.array(_GRAY, np.float32).reshape(1, 3, 1, 1)
    context.add(Conv(), [tensor], {"weights": weights, "bias": np.zeros(1, np.float32)})


def _reshape(context: LayerContext, tensor: str, rows: int) -> None:
    _, count, h, w = context.graph.shape(tensor)
    columns = context.values["NbCols"] or h * w // max(rows, 1)
    if rows * columns != h * w:
        what = f"{h * w} positions cannot form {rows} rows of {columns}"
        raise context.fail("E234", what, "correct NbRows and NbCols", "NbRows")
    context.add(Reshape((count, rows, columns)), [tensor])


_TRANSFORMATIONS: dict[str, tuple[Any, ...]] = {
    "RangeAffine": (_range_affine, "FirstOperator", "FirstValue"),
    "RangeClipping": (_range_clipping, "RangeMin", "RangeMax"),
    "Threshold": (_threshold_transformation, "Threshold"),
    "Morphology": (_morphology, "Size"),
    "Rescale": (_rescale, "Width", "Height"),
    "PadCrop": (_pad_crop, "Width", "Height"),
    "SliceExtraction": (_slice, "Width", "Height"),
    "Flip": (_flip,),
    "ColorSpace": (_color_space,),
    "ChannelExtraction": (_channel_extraction,),
    "Reshape": (_reshape, "NbRows"),
}
"""Function that adds the layer, and the keys that it requires: their values are its last arguments."""
