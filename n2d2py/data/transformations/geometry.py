"""Geometric transformations: rescaling, padding, cropping, flipping, reshaping; borders are OpenCV's under N2D2's names."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from n2d2py.data.transformations.base import (
    Inapplicable,
    RandomByKeys,
    Range,
    Transformation,
    by_channel,
    read_interval,
    saturate_cast,
    transformation,
)
from n2d2py.ini import Key, Kind, Values, field_of, parameter

_ONE = 2048


def resize_bilinear(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the image (H, W, C) at height x width, in its type: half-pixel centres, no antialiasing, as OpenCV's INTER_LINEAR.

    Output x reads the input at (x + 1/2) * in/out - 1/2, clamped to the image. Bytes are bit-exact with OpenCV: 11-bit
    coefficients, horizontal sums shifted by 4, vertical products by 16, the sum rounded by 2. Other types are interpolated in
    float32, integers then rounded to even; they differ from OpenCV by a few units of the sixth digit.
    """
    if image.shape[:2] == (height, width):
        return image
    left, right, across = _axis_weights(image.shape[1], width)
    # Beyond the border, OpenCV drops the weights of columns and keeps those of rows: truncation then acts on two products.
    across = np.where(left == right, np.float32(0), across)
    top, bottom, down = _axis_weights(image.shape[0], height)
    if image.dtype == np.uint8:
        return _resize_bytes(image, (left, right, across), (top, bottom, down))
    across, down = across[None, :, None], down[:, None, None]
    wide = image.astype(np.float32, copy=False)
    wide = wide[:, left] * (1 - across) + wide[:, right] * across
    result = wide[top] * (1 - down) + wide[bottom] * down
    return result if image.dtype.kind == "f" else saturate_cast(result.astype(np.float64), image.dtype)


@lru_cache(maxsize=256)
def _axis_weights(size: int, target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each output position, the two input positions and the float32 weight of the second; beyond the border, both
    positions are the same pixel.
    """
    scale = 1.0 / (target / size)
    position = ((np.arange(target) + 0.5) * scale - 0.5).astype(np.float32)
    first = np.floor(position).astype(np.int64)
    weight = position - first.astype(np.float32)
    return np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1), weight


def _fixed_point_weights(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    one = np.float32(_ONE)
    return np.rint((1 - weight) * one).astype(np.int32), np.rint(weight * one).astype(np.int32)


def _resize_bytes(image: np.ndarray, columns: tuple, rows: tuple) -> np.ndarray:
    left, right, weight = columns
    at_left, at_right = (part[None, :, None] for part in _fixed_point_weights(weight))
    top, bottom, weight = rows
    at_top, at_bottom = (part[:, None, None] for part in _fixed_point_weights(weight))
    used, places = np.unique(np.concatenate([top, bottom]), return_inverse=True)
    values = image[used].astype(np.int32)
    across = (values[:, left] * at_left + values[:, right] * at_right) >> 4
    upper, lower = places[: len(top)], places[len(top) :]
    total = ((across[upper] * at_top) >> 16) + ((across[lower] * at_bottom) >> 16)
    return ((total + 2) >> 2).astype(np.uint8)


def resize_labels(labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return labels (H, W) at height x width, from positions floor(i * before / after), as OpenCV's INTER_NEAREST."""
    rows, columns = (np.arange(after) * before // after for before, after in zip(labels.shape, (height, width), strict=True))
    return labels[np.ix_(rows, columns)]


_MODES: dict[str, tuple[Literal["edge", "symmetric", "wrap", "reflect"], str]] = {
    "ReplicateBorder": ("edge", "BORDER_REPLICATE"),
    "ReflectBorder": ("symmetric", "BORDER_REFLECT"),
    "WrapBorder": ("wrap", "BORDER_WRAP"),
    "MinusOneReflectBorder": ("reflect", "BORDER_REFLECT_101"),
}
"""Names of borders in NumPy and OpenCV, other than constant ones."""

BORDERS = ("ConstantBorder", *_MODES, "MeanBorder")
BORDER_KEYS = (
    Key("BorderType", Kind.ENUM, "MinusOneReflectBorder", "Extrapolation beyond the image border.", BORDERS),
    Key("BorderValue", Kind.FLOATS, (), "Values of ConstantBorder: one value, or one per channel. Default: 0."),
)


def add_border(image: np.ndarray, pads: tuple[int, int, int, int], border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """Return the image (H, W, C) enlarged by (top, bottom, left, right) >= 0 pixels.

    For pixels abcd: Replicate aaa|abcd, Reflect cba|abcd, MinusOneReflect dcb|abcd, Wrap bcd|abcd; Constant is `value`, Mean
    the mean of each channel (integers: rounded to even).

    Raises: Inapplicable as `border_values`.
    """
    top, bottom, left, right = pads
    if not any(pads):
        return image
    if border in _MODES:
        return np.pad(image, ((top, bottom), (left, right), (0, 0)), _MODES[border][0])
    height, width, channels = image.shape
    result = np.empty((height + top + bottom, width + left + right, channels), image.dtype)
    result[:] = border_values(image, border, value)
    result[top : top + height, left : left + width] = image
    return result


def border_values(image: np.ndarray, border: str, value: tuple[float, ...]) -> np.ndarray:
    """Return the value of each channel (C,) in a ConstantBorder or MeanBorder, in the type of the image (H, W, C).

    Raises: Inapplicable if `value` has neither one value nor one per channel.
    """
    channels = image.shape[2]
    if border == "MeanBorder":
        return saturate_cast(image.mean((0, 1), np.float64), image.dtype)
    if len(value) not in (0, 1, channels):
        raise Inapplicable(f"BorderValue has {len(value)} values for {channels} channels", "give one value, or one per channel")
    return saturate_cast(np.resize(np.array(value or (0.0,)), channels), image.dtype)


def crop_or_pad(image: np.ndarray, pads: tuple[int, int, int, int], border: str, value: tuple[float, ...] = ()) -> np.ndarray:
    """Return the image enlarged by (top, bottom, left, right) pixels, or cropped for negative values."""
    cut = [max(0, -pad) for pad in pads]
    height, width = image.shape[:2]
    image = image[cut[0] : height - cut[1], cut[2] : width - cut[3]]
    top, bottom, left, right = (max(0, pad) for pad in pads)
    return add_border(image, (top, bottom, left, right), border, value)


MAX_SIDE = 65535
"""Limit of the side of a result, in pixels."""

MAX_SAMPLES = 1 << 24
"""Limit of the samples of a row: sounds are wider than images."""

MAX_PIXELS = 1 << 28
"""Limit of the pixels of a result."""


def _check_area(height: int, width: int) -> None:
    if height * width > MAX_PIXELS:
        raise Inapplicable(f"the result would have {width}x{height} pixels", "give a smaller Width and Height")


def _include_constant(bounds: Range, border: str, value: tuple[float, ...]) -> Range:
    if border != "ConstantBorder":
        return bounds
    values = value or (0.0,)
    return min(bounds[0], *values), max(bounds[1], *values)


def _move_labels(transformation: PadCrop | SliceExtraction, labels: np.ndarray) -> np.ndarray:
    """Return labels (H, W) cropped or padded like the image; -1 for borders that are not part of the image."""
    constant = transformation.border in ("ConstantBorder", "MeanBorder")
    same = replace(transformation, border="ConstantBorder", value=(-1.0,)) if constant else transformation
    return same.apply(labels.astype(np.int32)[:, :, None])[:, :, 0].astype(np.int64)


@transformation("Rescale", doc="Resize bilinearly with half-pixel centers, without antialiasing, as OpenCV's INTER_LINEAR.")
class RescaleTransformation(Transformation):
    """Bilinear rescaling to width x height.

    With `keep_ratio`, both sides are scaled by the smaller (`fit`) or larger ratio and truncated to integers: the size is width
    x height at most, or at least; nothing is padded.
    """

    width: int = parameter("Width", Kind.UINT, doc="Width of the result.", minimum=1, maximum=MAX_SIDE)
    height: int = parameter("Height", Kind.UINT, doc="Height of the result.", minimum=1, maximum=MAX_SIDE)
    keep_ratio: bool = parameter("KeepAspectRatio", Kind.BOOL, False, "Use the same scale for both sides.")
    fit: bool = parameter("ResizeToFit", Kind.BOOL, True, "With KeepAspectRatio. 1: fit into Width x Height. 0: cover it.")

    def target(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of the result for an image of this size."""
        if not self.keep_ratio:
            return self.height, self.width
        ratios = (self.width / width, self.height / height)
        ratio = min(ratios) if self.fit else max(ratios)
        return max(1, int(ratio * height)), max(1, int(ratio * width))

    def apply(self, image: np.ndarray) -> np.ndarray:
        return resize_bilinear(image, *self.target(*image.shape[:2]))

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        return resize_labels(labels, *self.target(*labels.shape))


@transformation("PadCrop", doc="Crop or pad around the center.")
class PadCrop(Transformation):
    """Centre crop to width x height, with borders for a smaller image.

    The difference d of a side is split into ceil(d/2) at the top or left and the rest. With `additive`, width and height are
    added to the image's.
    """

    width: int = parameter("Width", Kind.INT, doc="Width of the result, or difference to it.", maximum=MAX_SAMPLES)
    height: int = parameter("Height", Kind.INT, doc="Height of the result, or difference to it.", maximum=MAX_SIDE)
    additive: bool = parameter("AdditiveWH", Kind.BOOL, False, "Add Width and Height to those of the image.")
    border: str = field_of(BORDER_KEYS[0])
    value: tuple[float, ...] = field_of(BORDER_KEYS[1])

    def apply(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        down = self.height if self.additive else self.height - height
        across = self.width if self.additive else self.width - width
        if height + down < 1 or width + across < 1:
            raise Inapplicable(f"the result would be {width + across}x{height + down}", "give a larger Width and Height")
        _check_area(height + down, width + across)
        top, left = -(-down // 2), -(-across // 2)
        return crop_or_pad(image, (top, down - top, left, across - left), self.border, self.value)

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        return _move_labels(self, labels)

    def map_range(self, bounds: Range) -> Range:
        return _include_constant(bounds, self.border, self.value)


@transformation(
    "SliceExtraction",
    Key("RandomOffsetX", Kind.BOOL, False, "Training only: draw the left edge."),
    Key("RandomOffsetY", Kind.BOOL, False, "Training only: draw the top edge."),
    Key("RandomRotation", Kind.BOOL, False, "Training only: rotate the slice around its center. Requires OpenCV."),
    Key("RandomRotationRange", Kind.FLOATS, (0.0, 360.0), "Range of the rotation in degrees, clockwise."),
    Key("RandomScaling", Kind.BOOL, False, "Training only: draw the size of the slice before rescaling."),
    Key("RandomScalingRange", Kind.FLOATS, (0.8, 1.2), "Range of the scale factor of Width and Height."),
    doc="Cut out a part at a fixed position. In training, the position, rotation and scale can be random.",
)
class SliceExtraction(RandomByKeys):
    """The width x height part of the image at (offset_x, offset_y); 0 means the image's size.

    With `padding`, borders are added for a part that exceeds the image.

    Attributes:
        turned: range of degrees, scaled: range of size factors; None: not random.
    """

    width: int = parameter("Width", Kind.UINT, doc="Width of the slice. 0: width of the image.", maximum=MAX_SAMPLES)
    height: int = parameter("Height", Kind.UINT, doc="Height of the slice. 0: height of the image.", maximum=MAX_SIDE)
    offset_x: int = parameter("OffsetX", Kind.UINT, 0, "Left edge of the slice.")
    offset_y: int = parameter("OffsetY", Kind.UINT, 0, "Top edge of the slice.")
    padding: bool = parameter("AllowPadding", Kind.BOOL, False, "Pad images that are too small.")
    border: str = field_of(BORDER_KEYS[0])
    value: tuple[float, ...] = field_of(BORDER_KEYS[1])

    turned: tuple[float, float] | None = field(default=None, repr=False)
    scaled: tuple[float, float] | None = field(default=None, repr=False)

    @classmethod
    def from_values(cls, values: Values) -> SliceExtraction:
        turned, scaled = (
            read_interval(values, f"{key}Range") if values[key] else None for key in ("RandomRotation", "RandomScaling")
        )
        return replace(super().from_values(values), turned=turned, scaled=scaled)

    @property
    def needs_opencv(self) -> bool:
        return self.turned is not None

    def draw(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        rows, columns = image.shape[:2]
        factor = 1.0 if self.scaled is None else float(random.uniform(*self.scaled))
        height, width = self.height or max(1, int(rows / factor)), self.width or max(1, int(columns / factor))
        taken_height, taken_width = max(1, round(height * factor)), max(1, round(width * factor))
        left = int(random.integers(0, max(columns - taken_width, 0) + 1))
        top = int(random.integers(0, max(rows - taken_height, 0) + 1))
        part = replace(
            self,
            width=taken_width,
            height=taken_height,
            offset_x=left if "RandomOffsetX" in self.random else self.offset_x,
            offset_y=top if "RandomOffsetY" in self.random else self.offset_y,
            random=(),
        )
        if self.turned is None and self.scaled is None:
            return part
        return RotatedSlice(part, 0.0 if self.turned is None else float(random.uniform(*self.turned)), width, height)

    def apply(self, image: np.ndarray) -> np.ndarray:
        bottom, right = self.beyond(image)
        return crop_or_pad(image, (-self.offset_y, bottom, -self.offset_x, right), self.border, self.value)

    def beyond(self, image: np.ndarray) -> tuple[int, int]:
        """Return the distances by which the part exceeds the image (H, W, C): down and to the right, negative inside.

        Raises: Inapplicable if a distance exceeds what padding supports.
        """
        height, width = image.shape[:2]
        right = self.offset_x + (self.width or width) - width
        bottom = self.offset_y + (self.height or height) - height
        if self.offset_x >= width or self.offset_y >= height or (not self.padding and (right > 0 or bottom > 0)):
            what = f"the slice {self.width or width}x{self.height or height} at ({self.offset_x}, {self.offset_y})"
            raise Inapplicable(f"{what} is not inside the {width}x{height} image", "rescale before, or set AllowPadding=1")
        _check_area(self.height or height, self.width or width)
        return bottom, right

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        return _move_labels(self, labels)

    def map_range(self, bounds: Range) -> Range:
        return _include_constant(bounds, self.border, self.value) if self.padding else bounds


@dataclass(frozen=True)
class RotatedSlice(Transformation):
    """A part of the image rotated clockwise by `angle` degrees about its centre, then rescaled to width x height.

    Attributes:
        part: place, size and border before the rotation.
    """

    part: SliceExtraction
    angle: float
    width: int
    height: int

    def apply(self, image: np.ndarray) -> np.ndarray:
        part = self.part
        if self.angle == 0:
            result = part.apply(image)
        else:
            part.beyond(image)
            fills = border_values(image, part.border, part.value).tolist()
            result = by_channel(image, lambda plane, fill: self._rotate(plane, "INTER_LINEAR", part.border, fill), fills)
        return resize_bilinear(result, self.height, self.width)

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        if self.angle == 0:
            result = self.part.apply_to_map(labels)
        else:
            result = self._rotate(labels.astype(np.float64), "INTER_NEAREST", "ConstantBorder", -1.0).astype(np.int64)
        return resize_labels(result, self.height, self.width)

    def _rotate(self, plane: np.ndarray, interpolation: str, border: str, fill: float) -> np.ndarray:
        """Return the rotated part of a channel (H, W), before it is rescaled."""
        import cv2

        part = self.part
        centre = part.offset_x + (part.width - 1) / 2, part.offset_y + (part.height - 1) / 2
        matrix = cv2.getRotationMatrix2D(centre, -self.angle, 1.0)
        matrix[:, 2] -= part.offset_x, part.offset_y
        mode = getattr(cv2, _MODES[border][1] if border in _MODES else "BORDER_CONSTANT")
        size = (part.width, part.height)
        return cv2.warpAffine(plane, matrix, size, flags=getattr(cv2, interpolation), borderMode=mode, borderValue=fill)


@transformation(
    "Flip",
    Key("RandomHorizontalFlip", Kind.BOOL, False, "Training only: flip half of the images horizontally."),
    Key("RandomVerticalFlip", Kind.BOOL, False, "Training only: flip half of the images vertically."),
    doc="Flip the image.",
)
class Flip(RandomByKeys):
    """Mirroring left to right (`horizontal`) and top to bottom (`vertical`)."""

    horizontal: bool = parameter("HorizontalFlip", Kind.BOOL, False, "Flip horizontally.")
    vertical: bool = parameter("VerticalFlip", Kind.BOOL, False, "Flip vertically.")

    def apply(self, image: np.ndarray) -> np.ndarray:
        rows = slice(None, None, -1 if self.vertical else 1)
        columns = slice(None, None, -1 if self.horizontal else 1)
        return image[rows, columns]

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        return self.apply(labels)

    def draw(self, image: np.ndarray, random: np.random.Generator) -> Flip:
        across, down = (random.random(2) < 0.5).tolist()
        horizontal = across if "RandomHorizontalFlip" in self.random else self.horizontal
        return Flip(horizontal, down if "RandomVerticalFlip" in self.random else self.vertical)


@transformation("Reshape", doc="Reshape the values, with rows first and channels last.")
class ReshapeTransformation(Transformation):
    """The same values in row-major (H, W, C) order as rows x columns x channels.

    0 channels or rows: those of the image; 0 columns: the rest.
    """

    rows: int = parameter("NbRows", Kind.UINT, doc="Rows of the result. 0: rows of the image.")
    columns: int = parameter("NbCols", Kind.UINT, 0, "Columns of the result. 0: inferred.")
    channels: int = parameter("NbChannels", Kind.UINT, 0, "Channels of the result. 0: channels of the image.")

    def apply(self, image: np.ndarray) -> np.ndarray:
        rows, channels = self.rows or image.shape[0], self.channels or image.shape[2]
        columns = self.columns or image.size // (rows * channels)
        if rows * columns * channels != image.size:
            what = f"{image.size} values do not make {rows} rows of {channels} channels"
            what += f" and {columns} columns" if self.columns else ""
            raise Inapplicable(what, "check NbRows, NbCols and NbChannels")
        return image.reshape(rows, columns, channels)
