"""Data that are given beside the network: a path or arrays, with labels of their own or apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py.data.arrays import open_npy, open_npz


@dataclass(frozen=True)
class GivenData:
    """A folder or file, or `arrays` by name with "data" as path; `labels`, if any, take the place of labels among them."""

    path: Path
    arrays: Mapping[str, np.ndarray] | None = None
    labels: np.ndarray | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    @property
    def is_folder(self) -> bool:
        """Whether they are the files of a folder."""
        return self.arrays is None and self.path.is_dir()

    def read(self, key: str = "x") -> dict[str, np.ndarray]:
        """The arrays by name; that of an .npy file is `key`, labels are y.

        Raises:
            N2D2Error: E401, E402, E416 for files.
        """
        if self.arrays is not None:
            arrays = dict(self.arrays)
        else:
            arrays = {key: open_npy(self.path)} if self.path.suffix == ".npy" else open_npz(self.path)
        return self.labelled(arrays)

    def labelled(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """`arrays` with the labels given apart as y."""
        return arrays if self.labels is None else {**arrays, "y": self.labels}


def given_data(
    data: GivenData | str | Path | np.ndarray | Mapping[str, np.ndarray], labels: str | Path | np.ndarray | None = None
) -> GivenData:
    """What was given; `labels` are ids (N,), or an .npy file that holds them.

    Raises:
        N2D2Error: E401, E402 for the file of the labels.
    """
    if isinstance(data, GivenData):
        return data
    ids = open_npy(Path(labels)) if isinstance(labels, (str, Path)) else None if labels is None else np.atleast_1d(labels)
    if isinstance(data, (str, Path)):
        return GivenData(Path(data), None, ids)
    arrays = data if isinstance(data, Mapping) else {"x": data}
    return GivenData(Path("data"), {name: np.asarray(array) for name, array in arrays.items()}, ids)
