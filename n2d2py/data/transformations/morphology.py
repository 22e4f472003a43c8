"""Morphology as in OpenCV: erosion, dilation and compositions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from n2d2py.data.transformations.base import Range, Transformation, UnsupportedTransformation, transformation
from n2d2py.data.transformations.borders import saturate_cast
from n2d2py.ini import ON_LABELS, Key, Kind, Values, parameter

_OPERATIONS = ("Erode", "Dilate", "Opening", "Closing", "Gradient", "TopHat", "BlackHat")
_RECONSTRUCTIONS = ("ReconstructionByErosion", "ReconstructionByDilation", "OpeningByReconstruction", "ClosingByReconstruction")
_SHAPES = ("Rectangular", "Elliptic", "Cross")


@lru_cache(maxsize=64)
def element(shape: str, size: int) -> np.ndarray:
    """Return the structuring element, booleans (size, size), with its anchor at size // 2."""
    if shape == "Rectangular":
        return np.ones((size, size), bool)
    centre = size // 2
    index = np.arange(size)
    if shape == "Cross":
        return (index[:, None] == centre) | (index[None, :] == centre)
    inside = np.sqrt(np.maximum(centre**2 - (index - centre) ** 2, 0))
    reach = np.rint(inside).astype(int)
    return np.abs(index[None, :] - centre) <= reach[:, None]


def erode(image: np.ndarray, shape: str, size: int, iterations: int = 1) -> np.ndarray:
    """Return the minimum of the pixels under the element, without those outside of the image."""
    return _repeat_extreme(image, shape, size, iterations, np.minimum, 1)


def dilate(image: np.ndarray, shape: str, size: int, iterations: int = 1) -> np.ndarray:
    """Return the maximum of the pixels under the element, without those outside of the image."""
    return _repeat_extreme(image, shape, size, iterations, np.maximum, -1)


def _repeat_extreme(
    image: np.ndarray, shape: str, size: int, iterations: int, choose: Callable[..., np.ndarray], sign: int
) -> np.ndarray:
    limits = (-np.inf, np.inf) if image.dtype.kind == "f" else (np.iinfo(image.dtype).min, np.iinfo(image.dtype).max)
    neutral = limits[1] if sign > 0 else limits[0]
    parts = [np.ones((1, size), bool), np.ones((size, 1), bool)] if shape == "Rectangular" else [element(shape, size)]
    for _ in range(iterations):
        for part in parts:
            image = _reduce_window(image, part, choose, neutral)
    return image


def _reduce_window(image: np.ndarray, part: np.ndarray, choose: Callable[..., np.ndarray], neutral: float) -> np.ndarray:
    height, width = part.shape
    top, left = height // 2, width // 2
    padded = np.pad(image, ((top, height - 1 - top), (left, width - 1 - left), (0, 0)), constant_values=neutral)
    result = np.full_like(image, neutral)
    for row, column in zip(*np.nonzero(part), strict=True):
        choose(result, padded[row : row + image.shape[0], column : column + image.shape[1]], out=result)
    return result


def _saturated_difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return first - second, saturated in the type of integers."""
    return first - second if first.dtype.kind == "f" else saturate_cast(first.astype(np.float64) - second, first.dtype)


_ON_LABELS = Key("ApplyToLabels", Kind.BOOL, False, "Apply to pixel-wise labels. Not supported.")
_LABEL_KEYS = ON_LABELS.for_keys("LabelsIgnoreDiff", "Label")


@dataclass(frozen=True)
class _Morphology(Transformation):
    """Common base of both types: an operation and a structuring element."""

    operation: str
    size: int = parameter("Size", Kind.UINT, doc="Side of the structuring element.", minimum=1, maximum=1023)
    shape: str = parameter("Shape", Kind.ENUM, "Rectangular", "Shape of the structuring element.", choices=_SHAPES)
    iterations: int = parameter(
        "NbIterations", Kind.UINT, 1, "Number of repetitions of erosion and dilation.", minimum=1, maximum=1000
    )

    @classmethod
    def from_values(cls, values: Values) -> Transformation:
        if values["ApplyToLabels"]:
            raise UnsupportedTransformation("ApplyToLabels=1 acts on pixel-wise labels")
        return cls.of_keys(values)


@transformation("Morphology", _ON_LABELS, accepted=_LABEL_KEYS, doc="Apply a morphological filter.")
class Morphology(_Morphology):
    """Erosion, dilation, opening, closing, gradient, top hat or black hat; the type is kept."""

    operation: str = parameter("Operation", Kind.ENUM, doc="Morphological operation.", choices=_OPERATIONS)

    def apply(self, image: np.ndarray) -> np.ndarray:
        how = (self.shape, self.size, self.iterations)
        if self.operation == "Erode":
            return erode(image, *how)
        if self.operation == "Dilate":
            return dilate(image, *how)
        if self.operation == "Gradient":
            return _saturated_difference(dilate(image, *how), erode(image, *how))
        opened = self.operation in ("Opening", "TopHat")
        first, second = (erode, dilate) if opened else (dilate, erode)
        result = second(first(image, *how), *how)
        if self.operation == "TopHat":
            return _saturated_difference(image, result)
        return _saturated_difference(result, image) if self.operation == "BlackHat" else result

    def map_range(self, bounds: Range) -> Range:
        if self.operation not in ("Gradient", "TopHat", "BlackHat"):
            return bounds
        extent = bounds[1] - bounds[0]
        return -extent, extent


@transformation(
    "MorphologicalReconstruction",
    _ON_LABELS,
    accepted=_LABEL_KEYS,
    doc="Open or close while preserving the shape of the remaining objects.",
)
class MorphologicalReconstruction(_Morphology):
    """Geodesic reconstruction of the image from its erosion (opening) or dilation (closing)."""

    operation: str = parameter("Operation", Kind.ENUM, doc="Operation by reconstruction.", choices=_RECONSTRUCTIONS)

    def apply(self, image: np.ndarray) -> np.ndarray:
        how = (self.shape, self.size)
        if self.operation == "OpeningByReconstruction":
            marker, step, limit = erode(image, *how, self.iterations), dilate, np.minimum
        elif self.operation == "ClosingByReconstruction":
            marker, step, limit = dilate(image, *how, self.iterations), erode, np.maximum
        else:
            return image  # the reconstruction of an image under itself
        while True:
            following = limit(step(marker, *how), image)
            if np.array_equal(following, marker):
                return marker
            marker = following
