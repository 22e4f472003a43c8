"""Transformations of values: affine maps, also by matrices, normalization, clipping, thresholds, equalization. Filters of labels."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from n2d2py.data.decode import read_bytes, read_stimulus
from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, require_image, saturate_cast, transformation
from n2d2py.data.transformations.color import convert
from n2d2py.errors import InternalError, N2D2Error, suggest
from n2d2py.ini import Kind, Values, parameter, resolve_path

OPERATORS = {"Plus": np.add, "Minus": np.subtract, "Multiplies": np.multiply, "Divides": np.divide}
_THRESHOLDS = ("Binary", "BinaryInverted", "Truncate", "ToZero", "ToZeroInverted")
_TINY = float(np.finfo(np.float64).eps)


@transformation("RangeAffine", doc="Apply one or two operations to each value. The result is float.")
class RangeAffine(Transformation):
    """(x first_operator first) second_operator second, in float32; per channel or equal for all.

    `truncate` then drops the fractions.
    """

    first_operator: str = parameter("FirstOperator", Kind.ENUM, doc="First operation.", choices=tuple(OPERATORS))
    first: tuple[float, ...] = parameter(
        "FirstValue", Kind.FLOATS, doc="Value of the first operation: one, or one per channel."
    )
    second_operator: str = parameter("SecondOperator", Kind.ENUM, "Plus", "Second operation.", choices=tuple(OPERATORS))
    second: tuple[float, ...] = parameter("SecondValue", Kind.FLOATS, (), "Value of the second operation. Without it, none.")
    truncate: bool = parameter("Truncate", Kind.BOOL, False, "Truncate to integers.")

    @classmethod
    def from_values(cls, values: Values) -> RangeAffine:
        steps = (("FirstOperator", "FirstValue"), ("SecondOperator", "SecondValue"))
        for operator, value in steps:
            if values[operator] == "Divides" and 0.0 in values[value]:
                raise values.fail("E417", f"{value} divides by 0", "give a value other than 0", value)
        if not values["FirstValue"]:
            raise values.fail("E417", "FirstValue is empty", "give one value, or one per channel", "FirstValue")
        return super().from_values(values)

    def _steps(self) -> list[tuple[np.ufunc, tuple[float, ...]]]:
        steps = [(OPERATORS[self.first_operator], self.first)]
        return steps + ([(OPERATORS[self.second_operator], self.second)] if self.second else [])

    def apply(self, image: np.ndarray) -> np.ndarray:
        result = image.astype(np.float32)
        for operator, values in self._steps():
            if len(values) not in (1, image.shape[2]):
                what = f"there are {len(values)} values for {image.shape[2]} channels"
                raise Inapplicable(what, "give one value, or one per channel")
            result = operator(result, np.array(values, np.float32))
        return np.trunc(result) if self.truncate else result

    def map_range(self, bounds: Range) -> Range:
        channels = max(len(values) for _, values in self._steps())
        ends = self.apply(np.tile(np.array(bounds, np.float32)[:, None, None], channels))
        return float(ends.min()), float(ends.max())


@transformation("Normalize", doc="Scale each image to the same norm or range. The result is float.")
class NormalizeTransformation(Transformation):
    """Division by the image's norm and multiplication by `value`, or mapping from its range to [low, high].

    Images with an empty range or zero norm become `low` or 0. Over the whole image, or channel by channel.
    """

    norm: str = parameter("Norm", Kind.ENUM, "MinMax", "Norm to use.", choices=("L1", "L2", "Linf", "MinMax"))
    value: float = parameter("NormValue", Kind.FLOAT, 1.0, "Norm of the result for L1, L2 and Linf.")
    low: float = parameter("NormMin", Kind.FLOAT, 0.0, "Minimum of the result for MinMax.")
    high: float = parameter("NormMax", Kind.FLOAT, 1.0, "Maximum of the result for MinMax.")
    per_channel: bool = parameter("PerChannel", Kind.BOOL, False, "Normalize each channel separately.")

    def apply(self, image: np.ndarray) -> np.ndarray:
        columns = image.astype(np.float64).reshape(-1, image.shape[2] if self.per_channel else 1)
        start, target, offset = np.zeros(1), self.value, 0.0
        if self.norm == "MinMax":
            start, offset = columns.min(axis=0), min(self.low, self.high)
            size, target = columns.max(axis=0) - start, max(self.low, self.high) - offset
        else:
            size = np.linalg.norm(columns, {"L1": 1, "L2": 2, "Linf": np.inf}[self.norm], axis=0)
        scale = np.where(size > _TINY, target / np.maximum(size, _TINY), 0.0)
        return ((columns - start) * scale + offset).astype(np.float32).reshape(image.shape)

    def map_range(self, bounds: Range) -> Range:
        if self.norm == "MinMax":
            return min(self.low, self.high), max(self.low, self.high)
        if self.value < 0:
            return self.value, -self.value
        return (0.0 if bounds[0] >= 0 else -self.value), self.value


@transformation("RangeClipping", doc="Clip values to a range and map the range to [0, 1].")
class RangeClipping(Transformation):
    """Values clipped to [low, high] and mapped to [0, 1]; missing bounds are the image's own."""

    low: float | None = parameter("RangeMin", Kind.FLOAT, None, "Lower bound. Default: minimum of the image.")
    high: float | None = parameter("RangeMax", Kind.FLOAT, None, "Upper bound. Default: maximum of the image.")

    @classmethod
    def from_values(cls, values: Values) -> RangeClipping:
        low, high = values["RangeMin"], values["RangeMax"]
        if low is not None and high is not None and low >= high:
            raise values.fail("E417", f"RangeMin={low:g} is not below RangeMax={high:g}", "swap both values", "RangeMin")
        return super().from_values(values)

    def apply(self, image: np.ndarray) -> np.ndarray:
        wide = image.astype(np.float64)
        low = wide.min() if self.low is None else self.low
        high = wide.max() if self.high is None else self.high
        if high <= low:
            return np.zeros(image.shape, np.float32)
        return ((np.clip(wide, low, high) - low) / (high - low)).astype(np.float32)

    def map_range(self, bounds: Range) -> Range:
        return 0.0, 1.0


@transformation("Threshold", doc="Apply a threshold.")
class Threshold(Transformation):
    """Where x > threshold: `maximum`, else 0 (Binary), or by the operation; type unchanged.

    With `otsu`, the threshold best separates the histogram of the (8-bit, one-channel) image into two classes.
    """

    threshold: float = parameter("Threshold", Kind.FLOAT, doc="Threshold. Values above it are high.")
    otsu: bool = parameter("OtsuMethod", Kind.BOOL, False, "Determine the threshold by Otsu's method. Requires OpenCV.")
    operation: str = parameter("Operation", Kind.ENUM, "Binary", "Result for high and low values.", choices=_THRESHOLDS)
    maximum: float = parameter("MaxValue", Kind.FLOAT, 1.0, "Value of the Binary result for high values.")

    @property
    def needs_opencv(self) -> bool:
        return self.otsu

    def apply(self, image: np.ndarray) -> np.ndarray:
        threshold, maximum = self.threshold, self.maximum
        if self.otsu:
            if image.dtype != np.uint8 or image.shape[2] != 1:
                raise Inapplicable("Otsu's method is defined on 8-bit images of one channel", "convert the image before")
            import cv2

            threshold, _ = cv2.threshold(image, 0, 255, cv2.THRESH_OTSU)
        if image.dtype.kind != "f":
            limits = np.iinfo(image.dtype)
            threshold, maximum = float(np.floor(threshold)), float(saturate_cast(np.array(maximum), image.dtype))
            if not limits.min <= threshold <= limits.max and self.operation == "Truncate":
                what = f"the threshold {threshold:g} is outside {image.dtype}"
                raise Inapplicable(what, "give a threshold within the values of the image")
        high = image > threshold
        low_value, high_value = {
            "Binary": (0, maximum),
            "BinaryInverted": (maximum, 0),
            "Truncate": (image, threshold),
            "ToZero": (0, image),
            "ToZeroInverted": (image, 0),
        }[self.operation]
        return np.where(high, high_value, low_value).astype(image.dtype)

    def map_range(self, bounds: Range) -> Range:
        if self.operation.startswith("Binary"):
            return min(0.0, self.maximum), max(0.0, self.maximum)
        if self.operation == "Truncate":
            low, high = bounds
            return (low, high) if self.otsu else (min(low, self.threshold), min(high, self.threshold))
        return min(0.0, bounds[0]), max(0.0, bounds[1])


@transformation("Equalize", doc="Equalize the histogram of 8-bit images.", needs_opencv=True)
class Equalize(Transformation):
    """Histogram equalization of a gray image, or of the lightness (CIELab) of a colour image."""

    method: str = parameter("Method", Kind.ENUM, "Standard", "CLAHE: adaptively, by tiles.", choices=("Standard", "CLAHE"))
    clip: float = parameter("CLAHE_ClipLimit", Kind.FLOAT, 40.0, "Contrast limit of CLAHE.", minimum=0)
    grid: int = parameter("CLAHE_GridSize", Kind.UINT, 8, "Tiles per side of CLAHE.", minimum=1, maximum=1024)

    def apply(self, image: np.ndarray) -> np.ndarray:
        require_image(image, 1, 3, 4, in_bytes=True)
        if image.shape[2] == 1:
            return self._equalize(image[:, :, 0])[:, :, None]
        lab = convert(image, "BGR2Lab")
        lab[:, :, 0] = self._equalize(lab[:, :, 0])
        return convert(lab, "Lab2BGR")

    def _equalize(self, plane: np.ndarray) -> np.ndarray:
        import cv2

        plane = np.ascontiguousarray(plane)
        if self.method == "Standard":
            return cv2.equalizeHist(plane)
        if min(plane.shape) < self.grid:
            what = f"{self.grid} tiles do not fit {plane.shape[1]}x{plane.shape[0]}"
            raise Inapplicable(what, "give a smaller CLAHE_GridSize")
        return cv2.createCLAHE(self.clip, (self.grid, self.grid)).apply(plane)

    def map_range(self, bounds: Range) -> Range:
        return 0.0, 255.0


@transformation("Affine", doc="Apply one or two operations with matrices, such as `[sp.StimuliData-x]_MeanData`.")
class AffineTransformation(Transformation):
    """(x first_operator first) second_operator second, element-wise with two matrices.

    Real if the image or a matrix is; integers of one type are saturated, quotients rounded, and quotients by 0 are 0.
    """

    first_operator: str = parameter("FirstOperator", Kind.ENUM, doc="First operation.", choices=tuple(OPERATORS))
    first: str = parameter("FirstValue", Kind.PATH, doc="Matrix of the first operation: N2D2's .bin, an image, or a .npy file.")
    second_operator: str = parameter("SecondOperator", Kind.ENUM, "Plus", "Second operation.", choices=tuple(OPERATORS))
    second: str = parameter("SecondValue", Kind.PATH, "", "Matrix of the second operation. Without it, there is none.")
    values: Values | None = field(default=None, repr=False, compare=False)
    matrices: tuple[np.ndarray, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def from_values(cls, values: Values) -> AffineTransformation:
        return replace(super().from_values(values), values=values)

    def with_matrices(self, matrices: Mapping[str, np.ndarray]) -> AffineTransformation:
        found = []
        for key, text in (("FirstValue", self.first), ("SecondValue", self.second)):
            if text in matrices:
                found.append(matrices[text])
            elif text or key == "FirstValue":
                if self.values is None:
                    raise InternalError(f"{key}={text} is neither a known matrix nor of a section")
                path = resolve_path(text, self.values.section.document.folder)
                if path is None:
                    remedy = "give the path of a matrix, absolute or relative to the INI file"
                    raise self.values.fail("E401", f"{key}={text} does not exist", remedy, key)
                found.append(read_matrix(path))
        return replace(self, matrices=tuple(found))

    def apply(self, image: np.ndarray) -> np.ndarray:
        for operator, matrix in zip((self.first_operator, self.second_operator), self.matrices, strict=False):  # one or two
            image = self._operate(image, operator, matrix)
        return image

    def _operate(self, image: np.ndarray, operator: str, matrix: np.ndarray) -> np.ndarray:
        if matrix.shape != image.shape:
            sizes = ["x".join(map(str, (one.shape[1], one.shape[0], one.shape[2]))) for one in (matrix, image)]
            remedy = "put a RescaleTransformation before, or give another matrix"
            raise Inapplicable(f"the matrix is {sizes[0]}, the image {sizes[1]}", remedy)
        if "f" in (image.dtype.kind, matrix.dtype.kind):
            with np.errstate(divide="ignore", invalid="ignore"):
                return OPERATORS[operator](image.astype(np.float64), matrix).astype(np.float32)
        if image.dtype != matrix.dtype:
            remedy = "give a matrix of the type of the image, or a real one"
            raise Inapplicable(f"the matrix is {matrix.dtype}, the image {image.dtype}", remedy)
        if operator == "Divides":
            wide = np.divide(image, matrix, where=matrix != 0, dtype=np.float64, out=np.zeros(image.shape))
        else:
            wide = OPERATORS[operator](image.astype(np.float64), matrix.astype(np.float64))
        return saturate_cast(wide, image.dtype)

    def map_range(self, bounds: Range) -> Range | None:
        return None

    def __str__(self) -> str:
        second = f", {self.second_operator} {self.second}" if self.second else ""
        return f"Affine({self.first_operator} {self.first}{second})"


_DEPTHS = ("u1", "i1", "<u2", "<i2", "<i4", "<f4", "<f8")
_HEADER = struct.Struct("<iii")


def read_matrix(path: Path) -> np.ndarray:
    """Return the matrix (H, W, C) of a file: N2D2's binary form of OpenCV matrices (utils/BinaryCvMat), an image or .npy.

    The binary form has three little-endian 32-bit integers, the rows, the columns and OpenCV's type (depth + 8 (channels - 1)),
    then the values in row-major order, channels last.

    Raises: E401 unreadable, E402 or E403 damaged, E406 an unknown extension.
    """
    if path.suffix != ".bin":
        return read_stimulus(path)
    data = read_bytes(path)
    if len(data) >= _HEADER.size:
        rows, columns, kind = _HEADER.unpack_from(data)
        depth, channels = kind & 7, (kind >> 3) + 1
        if rows > 0 and columns > 0 and 0 < channels <= 512 and depth < len(_DEPTHS):
            dtype = np.dtype(_DEPTHS[depth])
            if len(data) - _HEADER.size == rows * columns * channels * dtype.itemsize:
                values = np.frombuffer(data, dtype, offset=_HEADER.size)
                return values.reshape(rows, columns, channels).astype(dtype.newbyteorder("="))
    what = f"{path} is not a matrix in the format of N2D2"
    raise N2D2Error("E402", what, remedy="write it again, or give an image or a .npy file")


def write_matrix(path: Path, matrix: np.ndarray) -> None:
    """Write a matrix (H, W, C) of an OpenCV type. Raises InternalError for another type."""
    kinds = {np.dtype(text): depth for depth, text in enumerate(_DEPTHS)}
    little = matrix.dtype.newbyteorder("<")
    if little not in kinds:
        raise InternalError(f"a matrix of {matrix.dtype}")
    kind = kinds[little] + 8 * (matrix.shape[2] - 1)
    path.write_bytes(_HEADER.pack(*matrix.shape[:2], kind) + matrix.astype(little).tobytes())


def label_id(label: str, names: tuple[str, ...]) -> int:
    """Return the id of a label, whose leading slash may be omitted. Raises Inapplicable if the database does not have it."""
    for candidate in (label, f"/{label}"):
        if candidate in names:
            return names.index(candidate)
    raise Inapplicable(f"label '{label}' is not in the database", suggest(label, names, "correct Labels"))


@transformation("LabelFilter", doc="Exclude labels from the score, or merge them.")
class LabelFilter(Transformation):
    """Default label for stimuli with the labels (Remove), or with all others (Keep); with Merge, the first of the labels.

    Images are unchanged.
    """

    labels: tuple[str, ...] = parameter("Labels", Kind.STRINGS, doc="Names of database labels.")
    filter: str = parameter("Filter", Kind.ENUM, "Remove", "Operation on these labels.", choices=("Keep", "Remove", "Merge"))
    default: int = parameter("DefaultLabel", Kind.INT, -2, "Label id of removed labels. -1, -2: not scored.", minimum=-2)

    def apply(self, image: np.ndarray) -> np.ndarray:
        return image

    def map_labels(self, labels: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        ids = [label_id(label, names) for label in self.labels]
        if self.default >= len(names):
            what = f"DefaultLabel={self.default}, the database has {len(names)} labels"
            raise Inapplicable(what, "give the id of a label, or -1")
        matches = np.isin(labels, ids)
        if self.filter == "Merge":
            return np.where(matches, ids[0] if ids else -1, labels)
        return np.where(matches == (self.filter == "Remove"), max(self.default, -1), labels)


@transformation("ExpandLabel", doc="Assign the label of the stimulus to each of its pixels.")
class ExpandLabel(Transformation):
    """The label of the stimulus for every pixel; images and pixel-wise labels are unchanged."""

    expands_labels: ClassVar[bool] = True

    def apply(self, image: np.ndarray) -> np.ndarray:
        return image
