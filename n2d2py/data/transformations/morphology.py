"""Morphology by OpenCV: erosion, dilation and compositions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.data.transformations.base import Range, Transformation, UnsupportedTransformation, by_channel, transformation
from n2d2py.ini import ON_LABELS, Key, Kind, Values, parameter

_OPERATIONS = {
    "Erode": "ERODE",
    "Dilate": "DILATE",
    "Opening": "OPEN",
    "Closing": "CLOSE",
    "Gradient": "GRADIENT",
    "TopHat": "TOPHAT",
    "BlackHat": "BLACKHAT",
}
_SHAPES = {"Rectangular": "RECT", "Elliptic": "ELLIPSE", "Cross": "CROSS"}
"""Names in OpenCV, without MORPH_."""

_RECONSTRUCTIONS = ("ReconstructionByErosion", "ReconstructionByDilation", "OpeningByReconstruction", "ClosingByReconstruction")
_ON_LABELS = Key("ApplyToLabels", Kind.BOOL, False, "Apply to pixel-wise labels. Not supported.")
_LABEL_KEYS = ON_LABELS.for_keys("LabelsIgnoreDiff", "Label")


@dataclass(frozen=True)
class _Morphology(Transformation):
    """Common base of both types: an operation and a structuring element."""

    operation: str
    size: int = parameter("Size", Kind.UINT, doc="Side of the structuring element.", minimum=1, maximum=1023)
    shape: str = parameter("Shape", Kind.ENUM, "Rectangular", "Shape of the structuring element.", choices=tuple(_SHAPES))
    iterations: int = parameter(
        "NbIterations", Kind.UINT, 1, "Number of repetitions of erosion and dilation.", minimum=1, maximum=1000
    )

    @classmethod
    def from_values(cls, values: Values) -> Transformation:
        if values["ApplyToLabels"]:
            raise UnsupportedTransformation("ApplyToLabels=1 acts on pixel-wise labels")
        return cls.of_keys(values)

    def element(self) -> np.ndarray:
        """Return the structuring element, bytes (size, size)."""
        import cv2

        return cv2.getStructuringElement(getattr(cv2, f"MORPH_{_SHAPES[self.shape]}"), (self.size, self.size))


@transformation("Morphology", _ON_LABELS, accepted=_LABEL_KEYS, doc="Apply a morphological filter.", needs_opencv=True)
class Morphology(_Morphology):
    """Erosion, dilation, opening, closing, gradient, top hat or black hat; the type is kept."""

    operation: str = parameter("Operation", Kind.ENUM, doc="Morphological operation.", choices=tuple(_OPERATIONS))

    def apply(self, image: np.ndarray) -> np.ndarray:
        import cv2

        code, element = getattr(cv2, f"MORPH_{_OPERATIONS[self.operation]}"), self.element()
        return by_channel(image, lambda plane: cv2.morphologyEx(plane, code, element, iterations=self.iterations))

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
    needs_opencv=True,
)
class MorphologicalReconstruction(_Morphology):
    """Geodesic reconstruction of the image from its erosion (opening) or dilation (closing)."""

    operation: str = parameter("Operation", Kind.ENUM, doc="Operation by reconstruction.", choices=_RECONSTRUCTIONS)

    def apply(self, image: np.ndarray) -> np.ndarray:
        if self.operation.startswith("Reconstruction"):
            return image  # the reconstruction of an image under itself
        return by_channel(image, self._reconstruct)

    def _reconstruct(self, plane: np.ndarray) -> np.ndarray:
        import cv2

        opens, element = self.operation == "OpeningByReconstruction", self.element()
        begin, step, limit = (cv2.erode, cv2.dilate, np.minimum) if opens else (cv2.dilate, cv2.erode, np.maximum)
        marker = begin(plane, element, iterations=self.iterations)
        while not np.array_equal(following := limit(step(marker, element), plane), marker):
            marker = following
        return marker
