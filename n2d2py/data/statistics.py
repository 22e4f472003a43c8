"""Statistics of images: sizes, range, mean and deviation, overall and by position. Those of many files are cached."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py.data.database.base import FileItems, Items
from n2d2py.files import DamagedArray, read_npz

Size = Sequence[int]
MIN_CACHED = 1000
"""Number of stimuli from which on the statistics are cached."""


@dataclass(frozen=True)
class ImageStatistics:
    """Statistics of `count` images; deviations are of the whole population.

    Attributes:
        smallest, largest: width, height, channels.
        minimum, maximum, mean, deviation: of all values of all images.
        mean_data, deviation_data: of each position over the images, float64 (H, W, C); None if not requested or if sizes differ.
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


def compute_statistics(
    images: Iterable[np.ndarray], mean_data: bool = False, deviation_data: bool = False
) -> ImageStatistics | None:
    """Return the statistics of images (H, W, C), in one pass in float64; None without images.

    Means and sums of squared differences are merged image by image (Chan, Golub and LeVeque), which avoids cancellation for a
    large mean and a small deviation.
    """
    count, size, mean, squares = 0, 0, 0.0, 0.0
    low, high = np.inf, -np.inf
    smallest = largest = (0, 0, 0)
    moments: tuple[np.ndarray, np.ndarray] | None = None
    for image in images:
        wide = image.astype(np.float64)
        sides = (image.shape[1], image.shape[0], image.shape[2])
        smallest = tuple(map(min, smallest, sides)) if count else sides
        largest = tuple(map(max, largest, sides))
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
    deviation, means = float(np.sqrt(squares / size)), means if mean_data else None
    by_place = np.sqrt(deviations / count) if deviation_data and deviations is not None else None
    return ImageStatistics(count, smallest, largest, low, high, mean, deviation, means, by_place)


def statistics_key(items: Items, positions: np.ndarray, steps: str) -> str | None:
    """Return the cache key: names, sizes and times of the files, and the steps before; None to disable caching."""
    if not isinstance(items, FileItems) or len(positions) < MIN_CACHED:
        return None
    digest = hashlib.sha256(steps.encode(errors="surrogateescape"))
    for position in positions:
        name = items.files[int(position)]
        try:
            status = (items.root / name).stat()
        except OSError:
            return None
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def load_statistics(file: Path, key: str) -> ImageStatistics | None:
    """Return the cached statistics of this key; None if there are none, or the file is damaged or has another key."""
    try:
        stored = read_npz(file)
        if str(stored.pop("key")) != key:
            return None
        return ImageStatistics(**{name: data if data.ndim == 3 else data.tolist() for name, data in stored.items()})
    except (OSError, DamagedArray, KeyError, TypeError):
        return None


def save_statistics(file: Path, key: str, statistics: ImageStatistics) -> None:
    """Write the statistics, an array for each attribute; other content of the folder stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.array(value) for name, value in vars(statistics).items() if value is not None}
    np.savez(file, key=np.array(key), **arrays)  # pyright: ignore[reportArgumentType]  (to NumPy's stub a name could be allow_pickle)
