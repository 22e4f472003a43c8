"""Statistics of a set of images: sizes, range, mean and deviation, overall and by value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

Size = tuple[int, int, int]


@dataclass(frozen=True)
class ImageStatistics:
    """Of `count` images; the deviations are those of the whole population.

    Attributes:
        smallest, largest: width, height, channels.
        minimum, maximum, mean, deviation: of all values of all images.
        mean_data, deviation_data: of each value over the images, float64 (H, W, C); None when not
            asked for or when the images differ in size.
    """

    count: int
    smallest: Size
    largest: Size
    minimum: float
    maximum: float
    mean: float
    deviation: float
    mean_data: np.ndarray | None = None
    deviation_data: np.ndarray | None = None

    def __str__(self) -> str:
        sides = ", ".join(
            f"{what} {low}" if low == high else f"{what} {low} to {high}"
            for what, low, high in zip(("width", "height", "channels"), self.smallest, self.largest, strict=True)
        )
        return (
            f"{self.count} stimuli, {sides}, values {self.minimum:g} to {self.maximum:g}, "
            f"mean {self.mean:g}, standard deviation {self.deviation:g}"
        )


def _each(choose: Callable[[int, int], int], one: Size, other: Size) -> Size:
    width, height, channels = map(choose, one, other)
    return width, height, channels


def statistics(images: Iterable[np.ndarray], mean_data: bool = False, deviation_data: bool = False) -> ImageStatistics | None:
    """The statistics of images (H, W, C), in one pass in float64; None for no image.

    Means and sums of squared differences are merged image by image (Chan, Golub and LeVeque), so
    that nothing is lost where the mean is large and the deviation small.
    """
    count, size, mean, squares = 0, 0, 0.0, 0.0
    low, high = np.inf, -np.inf
    smallest: Size = (0, 0, 0)
    largest: Size = (0, 0, 0)
    moments: tuple[np.ndarray, np.ndarray] | None = None
    for image in images:
        wide = image.astype(np.float64)
        sides = (image.shape[1], image.shape[0], image.shape[2])
        smallest, largest = _each(min, smallest, sides) if count else sides, _each(max, largest, sides)
        count += 1
        low, high = min(low, float(wide.min())), max(high, float(wide.max()))
        own = float(wide.mean())
        difference, total = own - mean, size + wide.size
        squares += float(((wide - own) ** 2).sum()) + difference**2 * size * wide.size / total
        mean += difference * wide.size / total
        size = total
        if (mean_data or deviation_data) and smallest == largest:
            means, deviations = moments or (np.zeros_like(wide), np.zeros_like(wide))
            change = wide - means
            means = means + change / count
            moments = means, deviations + change * (wide - means)
    if not count:
        return None
    means, deviations = moments if moments is not None and smallest == largest else (None, None)
    return ImageStatistics(
        count,
        smallest,
        largest,
        low,
        high,
        mean,
        float(np.sqrt(squares / size)),
        means if mean_data else None,
        np.sqrt(deviations / count) if deviation_data and deviations is not None else None,
    )
