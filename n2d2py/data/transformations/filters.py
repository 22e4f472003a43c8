"""Filters by OpenCV: N2D2's kernels, gradients, the Wallis filter, morphology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, Unbounded, by_channel, transformation
from n2d2py.ini import ON_LABELS, Ignored, Key, Kind, Values, parameter

_ON_LABELS = Key("ApplyToLabels", Kind.BOOL, False, "Apply to pixel-wise labels. Not supported.")
_UNSUPPORTED = {"ApplyToLabels": "acts on pixel-wise labels"}


def _grid(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of each element, from the centre."""
    y, x = np.mgrid[:height, :width]
    return x - (width - 1) / 2, y - (height - 1) / 2


def _zero_sum(kernel: np.ndarray) -> np.ndarray:
    """Return the kernel with positive values scaled to sum 1 and negative ones to sum -1."""
    above, below = kernel[kernel > 0].sum(), -kernel[kernel <= 0].sum()
    return kernel / np.where(kernel > 0, above if above > 0 else 1.0, below if below > 0 else 1.0)


def gaussian(width: int, height: int, sigma: float) -> np.ndarray:
    """Return exp(-(x^2 + y^2) / (2 sigma^2)) / (2 pi sigma^2), truncated to the size and not normalized again."""
    x, y = _grid(width, height)
    return np.exp(-(x * x + y * y) / (2 * sigma**2)) / (2 * np.pi * sigma**2)


def laplacian_of_gaussian(width: int, height: int, sigma: float) -> np.ndarray:
    """Return -(1 - r) exp(-r) with r = (x^2 + y^2) / (2 sigma^2), of zero sum."""
    x, y = _grid(width, height)
    radius = (x * x + y * y) / (2 * sigma**2)
    return _zero_sum(-(1 - radius) * np.exp(-radius) / (np.pi * sigma**4))


def difference_of_gaussians(width: int, height: int, sigma1: float, sigma2: float) -> np.ndarray:
    """Return exp(-d / 2 sigma1^2) / sigma1 - exp(-d / 2 sigma2^2) / sigma2, d = x^2 + y^2, of zero sum."""
    x, y = _grid(width, height)
    distance = x * x + y * y
    return _zero_sum(
        (np.exp(-distance / (2 * sigma1**2)) / sigma1 - np.exp(-distance / (2 * sigma2**2)) / sigma2) / np.sqrt(2 * np.pi)
    )


def gabor(width: int, height: int, theta: float, sigma: float, wavelength: float, psi: float, gamma: float) -> np.ndarray:
    """Return a wave of this length, phase psi and direction theta (radians) times a Gaussian, of zero sum.

    The Gaussian has the deviation sigma along the wave and sigma / gamma across.
    """
    x, y = _grid(width, height)
    along = x * np.cos(theta) + y * np.sin(theta)
    across = -x * np.sin(theta) + y * np.cos(theta)
    wide = sigma / gamma
    envelope = np.exp(-0.5 * ((along / sigma) ** 2 + (across / wide) ** 2))
    return _zero_sum(envelope * np.cos(2 * np.pi / wavelength * along + psi) / (2 * np.pi * sigma * wide))


_KERNELS = {
    "Gaussian": (gaussian, ("Sigma",)),
    **dict.fromkeys(("LoG", "LaplacianOfGaussian"), (laplacian_of_gaussian, ("Sigma",))),
    **dict.fromkeys(("DoG", "DifferenceOfGaussian"), (difference_of_gaussians, ("Sigma1", "Sigma2"))),
    "Gabor": (gabor, ("Theta", "Sigma", "Lambda", "Psi", "Gamma")),
}
"""Function of width, height and these keys, without `Kernel.`."""

_SIGMA = float(np.sqrt(2.0))


@transformation(
    "Filter",
    Key("Kernel", Kind.ENUM, doc="Name of the kernel. * selects the values of Kernel.Mat.", choices=("*", *_KERNELS)),
    Key("Kernel.SizeX", Kind.UINT, 0, "Width of the kernel.", maximum=1023),
    Key("Kernel.SizeY", Kind.UINT, 0, "Height of the kernel.", maximum=1023),
    Key("Kernel.Mat", Kind.FLOATS, (), "Kernel values in row-major order, for Kernel=*. Without sizes, the kernel is square."),
    Key("Kernel.Positive", Kind.BOOL, True, "0: negate Gaussian, LoG and DoG."),
    Key("Kernel.Sigma", Kind.FLOAT, _SIGMA, "Standard deviation of Gaussian, LoG and Gabor."),
    Key("Kernel.Sigma1", Kind.FLOAT, 2.0, "Standard deviation of the first Gaussian of DoG."),
    Key("Kernel.Sigma2", Kind.FLOAT, 1.0, "Standard deviation of the second Gaussian of DoG."),
    Key("Kernel.Theta", Kind.FLOAT, None, "Orientation of Gabor in degrees."),
    Key("Kernel.Lambda", Kind.FLOAT, 10.0, "Wavelength of Gabor."),
    Key("Kernel.Psi", Kind.FLOAT, 90.0, "Phase of Gabor in degrees."),
    Key("Kernel.Gamma", Kind.FLOAT, 0.5, "Aspect ratio of Gabor."),
    accepted=(
        Ignored(
            "Orientation",
            "orientations of filters",
            "gives the filter an orientation",
            "remove it, and give the angle as Kernel.Theta",
            changes=True,
            same=("0", "0.0"),
        ),
    ),
    doc="Filter with a kernel, as OpenCV's filter2D.",
    needs_opencv=True,
)
class Filter(Transformation):
    """Correlation with a kernel (rows of numbers), with reflected borders, in the image's type."""

    kernel: tuple[tuple[float, ...], ...]
    name: str = "*"

    @classmethod
    def from_values(cls, values: Values) -> Filter:
        name = values["Kernel"]
        matrix = _explicit_kernel(values) if name == "*" else _named_kernel(name, values)
        return cls(tuple(tuple(map(float, row)) for row in matrix), name)

    def apply(self, image: np.ndarray) -> np.ndarray:
        import cv2

        return by_channel(image, lambda plane: cv2.filter2D(plane, -1, np.array(self.kernel)))

    def map_range(self, bounds: Range) -> Range:
        values = np.array(self.kernel)
        above, below = float(values[values > 0].sum()), float(values[values < 0].sum())
        return bounds[0] * above + bounds[1] * below, bounds[1] * above + bounds[0] * below

    def __str__(self) -> str:
        return f"Filter({self.name}, {len(self.kernel[0])}x{len(self.kernel)})"


def _explicit_kernel(values: Values) -> np.ndarray:
    numbers = np.array(values["Kernel.Mat"])
    width, height = values["Kernel.SizeX"], values["Kernel.SizeY"]
    if not width and not height:
        width = height = int(np.sqrt(len(numbers)))
    width, height = width or len(numbers) // height, height or len(numbers) // width
    if not len(numbers) or width * height != len(numbers):
        what = f"Kernel.Mat has {len(numbers)} values for a {width}x{height} kernel"
        raise values.fail("E417", what, "give Kernel.SizeX, Kernel.SizeY and all values", "Kernel.Mat")
    return numbers.reshape(height, width)


def _named_kernel(name: str, values: Values) -> np.ndarray:
    for key in ("Kernel.SizeX", "Kernel.SizeY", *(("Kernel.Theta",) if name == "Gabor" else ())):
        if not values.is_given(key) or (key != "Kernel.Theta" and not values[key]):
            raise values.fail("E417", f"Kernel={name} requires {key}", f"add {key}", "Kernel")
    for key in ("Kernel.Sigma", "Kernel.Sigma1", "Kernel.Sigma2", "Kernel.Lambda", "Kernel.Gamma"):
        if values[key] <= 0:
            raise values.fail("E417", f"{key}={values[key]:g} is not positive", "give a value above 0", key)
    function, keys = _KERNELS[name]
    numbers = [np.deg2rad(values[f"Kernel.{key}"]) if key in ("Theta", "Psi") else values[f"Kernel.{key}"] for key in keys]
    kernel = function(values["Kernel.SizeX"], values["Kernel.SizeY"], *numbers)
    return kernel if values["Kernel.Positive"] or name == "Gabor" else -kernel


@transformation(
    "GradientFilter",
    _ON_LABELS,
    accepted=ON_LABELS.for_keys("InvThreshold", "Threshold", "Label", "GradientScale"),
    doc="Compute the strength of edges. The result is float.",
    needs_opencv=True,
)
class GradientFilter(Unbounded):
    """(|dx| + |dy|) / 2 of Sobel or Scharr, or the absolute Laplacian, of values divided by their type's largest one.

    Each derivative is multiplied by `scale`, plus `delta`. Real.
    """

    filter: str = parameter("GradientFilter", Kind.ENUM, "Sobel", "Filter.", choices=("Sobel", "Scharr", "Laplacian"))
    size: int = parameter("KernelSize", Kind.UINT, 3, "Size of Sobel and Laplacian, an odd number.", minimum=1, maximum=31)
    scale: float = parameter("Scale", Kind.FLOAT, 1.0, "Scale factor of each derivative.")
    delta: float = parameter("Delta", Kind.FLOAT, 0.0, "Offset added to each derivative.")
    unsupported: ClassVar = _UNSUPPORTED

    @classmethod
    def from_values(cls, values: Values) -> GradientFilter:
        if values["KernelSize"] % 2 == 0:
            raise values.fail("E417", f"KernelSize={values['KernelSize']} is even", "give an odd number", "KernelSize")
        return super().from_values(values)

    def apply(self, image: np.ndarray) -> np.ndarray:
        unit = 1.0 if image.dtype.kind == "f" else float(np.iinfo(image.dtype).max)
        return by_channel(image / unit, self._strength, dtype=np.dtype(np.float32))

    def _strength(self, plane: np.ndarray) -> np.ndarray:
        import cv2

        if self.filter == "Laplacian":
            return abs(cv2.Laplacian(plane, -1, ksize=self.size, scale=self.scale, delta=self.delta))
        size = -1 if self.filter == "Scharr" else self.size
        orders = ((1, 0), (0, 1))
        across, down = (cv2.Sobel(plane, -1, *one, ksize=size, scale=self.scale, delta=self.delta) for one in orders)
        return (abs(across) + abs(down)) / 2


@transformation(
    "WallisFilter", doc="Normalize the contrast locally or globally. The result is float. With a Size, it requires OpenCV."
)
class WallisFilter(Unbounded):
    """(x - m) / s, m and s the mean and deviation of the surrounding size x size pixels, by channel.

    With size 0: the image shifted and scaled to `mean` and `deviation`, as a whole or by channel. Real.
    """

    size: int = parameter("Size", Kind.UINT, doc="Side of the neighborhood. 0: the whole image.", maximum=1023)
    mean: float = parameter("Mean", Kind.FLOAT, 0.0, "Mean of the result for Size=0.")
    deviation: float = parameter("StdDev", Kind.FLOAT, 1.0, "Standard deviation of the result for Size=0.")
    per_channel: bool = parameter("PerChannel", Kind.BOOL, False, "For Size=0: normalize each channel separately.")

    @property
    def needs_opencv(self) -> bool:
        return self.size > 0

    def apply(self, image: np.ndarray) -> np.ndarray:
        if self.size:
            return by_channel(image, self._normalize_locally, dtype=np.dtype(np.float32))
        wide = image.astype(np.float64)
        axes = (0, 1) if self.per_channel else (0, 1, 2)
        deviation = wide.std(axis=axes)
        if not np.all(deviation > 0):
            raise Inapplicable("the image is all of one value: it has no contrast to scale", "remove the stimulus")
        result = (wide - wide.mean(axis=axes)) * (self.deviation / deviation) + self.mean
        return result.astype(np.float32)

    def _normalize_locally(self, plane: np.ndarray) -> np.ndarray:
        import cv2

        size = (self.size, self.size)
        mean, square = (cv2.blur(each, size, borderType=cv2.BORDER_REPLICATE) for each in (plane, plane * plane))
        return (plane - mean) / np.sqrt(np.maximum(square - mean * mean, 1e-6))


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
_LABEL_KEYS = ON_LABELS.for_keys("LabelsIgnoreDiff", "Label")


@dataclass(frozen=True)
class _Morphology(Transformation):
    """Common base of both types: an operation and a structuring element."""

    operation: str
    size: int = parameter("Size", Kind.UINT, doc="Side of the structuring element.", minimum=1, maximum=1023)
    shape: str = parameter("Shape", Kind.ENUM, "Rectangular", "Shape of the structuring element.", choices=tuple(_SHAPES))
    iterations: int = parameter("NbIterations", Kind.UINT, 1, "Number of erosions and dilations.", minimum=1, maximum=1000)

    unsupported: ClassVar = _UNSUPPORTED

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
