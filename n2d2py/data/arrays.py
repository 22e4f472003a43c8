"""Arrays in .npy and .npz files, memory-mapped if possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.data.text import unreadable_error
from n2d2py.errors import N2D2Error
from n2d2py.files import DamagedArray, map_npy, map_npz

ArraysT = TypeVar("ArraysT")
_TYPES = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32)
_WIDE = (np.int64, np.uint32, np.uint64)
"""NumPy's default integer types, for example of token ids."""


def open_npy(path: Path, name: str | None = None) -> np.ndarray:
    """Return the array of a .npy file, memory-mapped read-only.

    Raises:
        N2D2Error: E401 missing or unreadable, E402 damaged or with Python objects.
    """
    return _open(map_npy, path, name or str(path))


def open_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by key, in file order; their checksums are verified.

    Members stored without compression (np.savez) are memory-mapped; compressed ones are read into memory.

    Raises:
        N2D2Error: E401 missing or unreadable, E402 damaged, with Python objects or too large, E416 empty.
    """
    arrays = _open(map_npz, path, str(path))
    if not arrays:
        raise N2D2Error("E416", f"{path} contains no array", remedy="store the arrays x and y")
    return arrays


def check_type(array: np.ndarray, name: str) -> None:
    """Raise E414 unless `to_sample_type` converts the array to a number type of the pipeline."""
    if array.dtype.kind not in "bf" and array.dtype.newbyteorder("=") not in (*_TYPES, *_WIDE):
        raise N2D2Error("E414", f"{name}: samples of type {array.dtype} are not supported", remedy="store integers or float32")


def check_integers(x: np.ndarray, kind: NumType | None, name: str) -> None:
    """Raise E414 for integers out of the range of an input's type; bytes may be pixels of images."""
    if kind is None or x.dtype.kind not in "iu" or x.dtype in (kind.dtype, np.uint8):
        return
    low, high = int(x.min(initial=0)), int(x.max(initial=0))
    if not kind.qmin <= low <= high <= kind.qmax:
        what = f"{name} contains integers from {low} to {high}, but the input is {kind.name}"
        raise N2D2Error("E414", what, remedy=f"store {kind.name} values from {kind.qmin} to {kind.qmax}")


def to_sample_type(sample: np.ndarray) -> np.ndarray:
    """Return a copy in memory: booleans as uint8, reals as float32, integers in native byte order, those above 32 bits as
    int32.

    Raises:
        N2D2Error: E414 for an integer that int32 cannot represent.
    """
    if sample.dtype.newbyteorder("=") in _WIDE:
        limits = np.iinfo(np.int32)
        for value in (sample.min(initial=0), sample.max(initial=0)):
            if not limits.min <= value <= limits.max:
                what = f"a sample contains {value}, which exceeds 32 bits"
                raise N2D2Error("E414", what, remedy="store float32 or smaller integers")
        return np.array(sample, np.int32)
    kinds = {"b": np.dtype(np.uint8), "f": np.dtype(np.float32)}
    with np.errstate(over="ignore"):
        return np.array(sample, kinds.get(sample.dtype.kind, sample.dtype.newbyteorder("=")))


def _open(read: Callable[[Path], ArraysT], path: Path, name: str) -> ArraysT:
    try:
        return read(path)
    except OSError as error:
        raise unreadable_error(name, error) from None
    except DamagedArray as error:
        raise N2D2Error("E402", f"{name} is not a valid {path.suffix} file: {error}", remedy=error.remedy) from None
