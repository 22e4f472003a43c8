"""Transformations of values: affine maps, normalization, clipping, thresholds, equalization."""

from __future__ import annotations

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, require_bytes, saturate_cast, transformation
from n2d2py.data.transformations.color import convert
from n2d2py.ini import Kind, Values, parameter

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
        "FirstValue", Kind.FLOATS, doc="Value of the first operation: one, or one per channel in the order at this point."
    )
    second_operator: str = parameter("SecondOperator", Kind.ENUM, "Plus", "Second operation.", choices=tuple(OPERATORS))
    second: tuple[float, ...] = parameter(
        "SecondValue", Kind.FLOATS, (), "Value of the second operation. Without it, only the first operation is applied."
    )
    truncate: bool = parameter("Truncate", Kind.BOOL, False, "Truncate to integers.")

    @classmethod
    def from_values(cls, values: Values) -> Transformation:
        steps = (("FirstOperator", "FirstValue"), ("SecondOperator", "SecondValue"))
        for operator, value in steps:
            if values[operator] == "Divides" and 0.0 in values[value]:
                raise values.fail("E417", f"{value} divides by 0", "give a value other than 0", value)
        if not values["FirstValue"]:
            raise values.fail("E417", "FirstValue is empty", "give one value, or one per channel", "FirstValue")
        return cls.of_keys(values)

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
        ends = np.repeat(np.array(bounds, np.float32)[:, None], channels, axis=1)
        for operator, values in self._steps():
            ends = operator(ends, np.array(values, np.float32))
        ends = np.trunc(ends) if self.truncate else ends
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
        wide = image.astype(np.float64)
        axes = (0, 1) if self.per_channel else (0, 1, 2)
        if self.norm == "MinMax":
            low, high = wide.min(axis=axes), wide.max(axis=axes)
            small, large = min(self.low, self.high), max(self.low, self.high)
            extent = high - low
            scale = np.where(extent > _TINY, (large - small) / np.maximum(extent, _TINY), 0.0)
            return ((wide - low) * scale + small).astype(np.float32)
        size = {
            "L1": np.abs(wide).sum(axis=axes),
            "L2": np.sqrt((wide * wide).sum(axis=axes)),
            "Linf": np.abs(wide).max(axis=axes),
        }[self.norm]
        scale = np.where(size > _TINY, self.value / np.maximum(size, _TINY), 0.0)
        return (wide * scale).astype(np.float32)

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
    def from_values(cls, values: Values) -> Transformation:
        low, high = values["RangeMin"], values["RangeMax"]
        if low is not None and high is not None and low >= high:
            raise values.fail("E417", f"RangeMin={low:g} is not below RangeMax={high:g}", "swap both values", "RangeMin")
        return cls.of_keys(values)

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

    method: str = parameter(
        "Method", Kind.ENUM, "Standard", "Standard: the whole image. CLAHE: adaptively.", choices=("Standard", "CLAHE")
    )
    clip: float = parameter("CLAHE_ClipLimit", Kind.FLOAT, 40.0, "Contrast limit of CLAHE.", minimum=0)
    grid: int = parameter("CLAHE_GridSize", Kind.UINT, 8, "Tiles per side of CLAHE.", minimum=1, maximum=1024)

    def apply(self, image: np.ndarray) -> np.ndarray:
        require_bytes(image, 1, 3, 4)
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
