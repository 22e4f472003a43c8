"""User data: a path or arrays, with labels among them or separate."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.data.decode import open_npy, open_npz, read_table
from n2d2py.errors import N2D2Error

_REMEDY = "give a folder of images, or a .npy, .npz or .csv file"


@dataclass(frozen=True)
class InputData:
    """A folder or file, or `arrays` by name with "data" as path; `labels`, if any, replace labels among them.

    `boxes`: labelled boxes of the images of a folder (data/labels.py).
    """

    path: Path
    arrays: Mapping[str, np.ndarray] | None = None
    labels: np.ndarray | None = None
    boxes: Sequence[np.ndarray | None] | None = None

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.name

    def titles(self, count: int) -> list[str]:
        """Return a name for each of `count` samples of an array."""
        return [f"{self.path.name}[{index}]" for index in range(count)]

    @property
    def is_folder(self) -> bool:
        """True if the data are files of a folder."""
        return self.arrays is None and self.path.is_dir()

    def read(self, key: str = "x") -> dict[str, np.ndarray]:
        """Return the arrays by name; `key` is the name for an .npy or CSV file, labels are y.

        Raises: E401, E402, E416 for files, E414 for those of another type.
        """
        if self.arrays is None and not self.path.exists():
            raise N2D2Error("E401", f"{self.path} does not exist", remedy=_REMEDY)
        if self.arrays is not None:
            arrays = dict(self.arrays)
        elif self.path.suffix not in (".csv", ".npy", ".npz") or not self.path.is_file():
            raise N2D2Error("E414", f"{self.path} is neither a folder nor a .npy, .npz or .csv file", remedy=_REMEDY)
        elif self.path.suffix == ".npz":
            arrays = open_npz(self.path)
        elif self.path.suffix == ".csv":
            arrays = {key: read_table(self.path, self.path.name, header=True)[:, :, 0]}
        else:
            arrays = {key: open_npy(self.path)}
        return arrays if self.labels is None else {**arrays, "y": self.labels}


def open_data(
    data: InputData | str | Path | np.ndarray | Mapping[str, np.ndarray], labels: str | Path | np.ndarray | None = None
) -> InputData:
    """Return user data; `labels`: ids (N,), or an .npy file with them. Raises E401, E402 for the file of the labels."""
    if isinstance(data, InputData):
        return data
    ids = open_npy(Path(labels)) if isinstance(labels, (str, Path)) else None if labels is None else np.atleast_1d(labels)
    if isinstance(data, (str, Path)):
        return InputData(Path(data), None, ids)
    arrays = data if isinstance(data, Mapping) else {"x": data}
    return InputData(Path("data"), {name: np.asarray(array) for name, array in arrays.items()}, ids)


def as_array(values: Any) -> np.ndarray:
    """Return the values of an array, a list or a PyTorch tensor on any device. Raise E414 for a list of unlike arrays."""
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except ValueError:
        remedy = "give samples of one shape, and labels as an argument of their own"
        raise N2D2Error("E414", "the arrays of a list differ in shape", remedy=remedy) from None


def as_data(data: Any, most: int = 0) -> str | Path | np.ndarray | Mapping[str, np.ndarray] | None:
    """Return data as a path, an array, or arrays by name (x and y, or one for each input); None stays None.

    Tensors become arrays. An iterable, for example a PyTorch DataLoader, is read once: batches x, (x, y) or {input: x}, or
    samples (x, y) with one number as y. Of an iterator without a length, the first `most` samples are read, all for 0.

    Raises: E414 another type, differing items, or no items.
    """
    if data is None or isinstance(data, (str, Path, np.ndarray)):
        return data
    if isinstance(data, Mapping):
        return {name: as_array(values) for name, values in data.items()}
    if hasattr(data, "__array__") or (
        isinstance(data, (list, tuple)) and not any(isinstance(one, (tuple, Mapping)) for one in data)
    ):
        return as_array(data)
    if not isinstance(data, Iterable):
        what = f"data of type {type(data).__module__}.{type(data).__name__} are not supported"
        remedy = "give a path, an array, arrays by name, a DataLoader, or an iterator of (x, y)"
        raise N2D2Error("E414", what, remedy=remedy)
    items, most = [], 0 if isinstance(data, Sized) else most
    for item in data:
        items.append(_as_batch(item))
        if 0 < most <= sum(len(next(iter(one.values()))) for one in items):
            break
    shapes = [{name: values.shape[1:] for name, values in one.items()} for one in items]
    if not items or any(one != shapes[0] for one in shapes):
        what = "differ in names or shapes" if items else "are none, or were read before"
        raise N2D2Error("E414", f"the batches of the iterator {what}", remedy="give batches that are alike")
    arrays = {name: np.concatenate([one[name] for one in items])[: most or None] for name in items[0]}
    return arrays["x"] if list(arrays) == ["x"] else arrays


def _as_batch(item: Any) -> dict[str, np.ndarray]:
    parts = list(item) if isinstance(item, (tuple, list)) else [item]
    if not 1 <= len(parts) <= 2:
        raise N2D2Error("E414", f"an item of the iterator has {len(parts)} parts", remedy="give x, or (x, y)")
    x = parts[0] if isinstance(parts[0], Mapping) else {"x": parts[0]}
    arrays = {name: np.atleast_1d(as_array(values)) for name, values in x.items()}
    if len(parts) == 2:
        y = as_array(parts[1])
        if y.ndim == 0:
            arrays = {name: values[None] for name, values in arrays.items()}
        arrays["y"] = np.atleast_1d(y)
    return arrays
