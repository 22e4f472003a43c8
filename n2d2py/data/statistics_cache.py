"""Statistics of many files kept for the next run: sp.StimuliData-x/statistics.npz in the output folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from n2d2py.data.database.base import FileItems, Items
from n2d2py.data.statistics import ImageStatistics
from n2d2py.files import DamagedArray, read_npz

SMALLEST = 1000
"""Stimuli from which on the statistics are kept."""


def key_of(items: Items, positions: np.ndarray, steps: str) -> str | None:
    """Dependencies of the statistics: names, sizes and times of the files, and the steps before; None to keep nothing."""
    if not isinstance(items, FileItems) or len(positions) < SMALLEST:
        return None
    digest = hashlib.sha256(steps.encode(errors="surrogateescape"))
    for position in positions:
        name = items.files[int(position)]
        try:
            found = (items.root / name).stat()
        except OSError:
            return None
        digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def load_statistics(file: Path, key: str) -> ImageStatistics | None:
    """The stored statistics of this key; None without any, or where the file is damaged or of another key."""
    try:
        stored = read_npz(file)
        if str(stored["key"]) != key:
            return None
        figures = stored["figures"].tolist()
        sizes = stored["sizes"].tolist()
    except (OSError, DamagedArray, KeyError):
        return None
    if len(sizes) != 7 or len(figures) != 4:
        return None
    matrices = [stored.get(name) for name in ("mean", "deviation")]
    return ImageStatistics(sizes[0], tuple(sizes[1:4]), tuple(sizes[4:7]), *figures, *matrices)


def save_statistics(file: Path, key: str, found: ImageStatistics) -> None:
    """Writes the statistics next to whatever else the folder holds."""
    file.parent.mkdir(parents=True, exist_ok=True)
    matrices = {
        name: data for name, data in (("mean", found.mean_data), ("deviation", found.deviation_data)) if data is not None
    }
    np.savez(
        file,
        key=np.array(key),
        sizes=np.array([found.count, *found.smallest, *found.largest]),
        figures=np.array([found.minimum, found.maximum, found.mean, found.deviation]),
        **matrices,  # pyright: ignore[reportArgumentType]  (to NumPy's stub a name could be allow_pickle)
    )
