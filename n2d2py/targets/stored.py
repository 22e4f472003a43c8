"""Tensors in files that a layer's output is compared with: TargetCompare."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from n2d2py.errors import Location, N2D2Error
from n2d2py.files import read_npy
from n2d2py.ini import wildcard_match

_AXES = "NCHW"


@dataclass
class StoredTensors:
    """The files of a folder, by name: text (numbers, # comments), .npy, or .bin (float32, little-endian).

    Every file holds the tensors of as many stimuli as the first one; only the last may hold fewer.

    Attributes:
        folder, matching: which files; * and ? in `matching`.
        order: axes in the files, such as NCHW or NHWC.
        transposed: height and width are exchanged in the files.
        where: named in messages.
    """

    folder: Path
    matching: str = "*.dat"
    order: str = "NCHW"
    transposed: bool = False
    where: Location | None = None
    _last: tuple[Path, np.ndarray] | None = field(default=None, repr=False)

    def read(self, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The tensors (n, *shape), float64, of the stimuli of these numbers; `shape` is (C, H, W) or (C,).

        Raises:
            N2D2Error: E455 no such folder, no file, none for a stimulus, or one that is unreadable or of another size.
        """
        if not self.folder.is_dir():
            what = f"DataPath={self.folder} is not a folder"
            raise N2D2Error("E455", what, where=self.where, remedy="give the folder with the tensors")
        files = sorted(path for path in self.folder.iterdir() if path.is_file() and wildcard_match(self.matching, path.name))
        if not files:
            what = f"{self.folder} contains no file {self.matching}"
            raise N2D2Error("E455", what, where=self.where, remedy="correct DataPath and Matching")
        size = int(np.prod(shape))
        each = max(self._values(files[0]).size // size, 1)
        result = np.empty((len(indices), *shape))
        for row, index in enumerate(int(index) for index in indices):
            if index // each >= len(files):
                what = f"{self.folder} contains {len(files)} files of {each} tensors, but none for sample {index}"
                raise N2D2Error("E455", what, where=self.where, remedy="use -nb-test with the number of stored samples")
            result[row] = self._tensor(files[index // each], index % each, shape, size)
        return result

    def _values(self, file: Path) -> np.ndarray:
        """All numbers of a file, which the next call may be about too."""
        if self._last is None or self._last[0] != file:
            self._last = (file, _read(file))
        return self._last[1]

    def _tensor(self, file: Path, place: int, shape: tuple[int, ...], size: int) -> np.ndarray:
        values = self._values(file)
        if values.size > size and values.size % size != 0 and not values[size:].any():
            values = values[:size]  # a vector written as a padded matrix
        if values.size % size or (place + 1) * size > values.size:
            what = f"{file.name} contains {values.size} values, but the layer has {size} ({'x'.join(map(str, shape))})"
            raise N2D2Error("E455", what, where=self.where, remedy="correct the layer or TargetFormat")
        flat = values[place * size : (place + 1) * size]
        if len(shape) != 3:
            return flat.reshape(shape)
        sizes = dict(zip("CHW", shape, strict=True))
        if self.transposed:
            sizes["H"], sizes["W"] = sizes["W"], sizes["H"]
        inner = [axis for axis in self.order if axis != "N"]
        tensor = flat.reshape([sizes[axis] for axis in inner]).transpose([inner.index(axis) for axis in "CHW"])
        return tensor.transpose(0, 2, 1) if self.transposed else tensor


def _read(file: Path) -> np.ndarray:
    """All numbers of a file, flat."""
    try:
        if file.suffix == ".npy":
            return read_npy(file).astype(np.float64).reshape(-1)
        if file.suffix == ".bin":
            return np.fromfile(file, "<f4").astype(np.float64)
        lines = file.read_text(encoding="utf-8").splitlines()
        return np.array([float(word) for line in lines for word in line.partition("#")[0].split()])
    except (OSError, ValueError, EOFError) as error:
        what = f"{file} is not a readable tensor: {error}"
        raise N2D2Error("E455", what, remedy="store numbers as text, .npy or float32 .bin") from None
