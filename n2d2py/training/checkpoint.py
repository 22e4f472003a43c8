"""Trained weights in N2D2's folder layout, which `-w` reads, and checkpoints: arrays in an .npz file.

Every array is checked before use, and nothing is unpickled. This module needs no PyTorch.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.files import DamagedArray, file_names, read_npz, write_text


def write_weights(folder: Path, layers: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Replace the folder by one with <layer>_<name>.syntxt for each array, and weights.npz with all arrays.

    A line has the values of one output, in nine digits, which restore a float32. If interrupted, the old folder stays.
    """
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    stems = file_names(layers)
    for layer, arrays in layers.items():
        for name, array in arrays.items():
            lines = (" ".join(f"{value:.9g}" for value in row) for row in array.reshape(len(array), -1))
            write_text(temporary / f"{stems[layer]}_{name}.syntxt", "\n".join(lines) + "\n")
    np.savez(
        temporary / "weights.npz",
        **{f"{layer}_{name}": array for layer, arrays in layers.items() for name, array in arrays.items()},  # type: ignore[arg-type]
    )
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def write_checkpoint(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays into a file with their check sums. If interrupted, the old file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.new.npz")
    np.savez(temporary, **arrays)  # type: ignore[arg-type]
    temporary.replace(path)


def read_checkpoint(path: Path, like: Mapping[str, np.ndarray], grows: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint, with the names, shapes and types of those in `like`.

    The first axis of the array `grows` may have any length. Raises E433 for a missing, damaged or other checkpoint.
    """
    if not path.is_file():
        raise N2D2Error("E433", "the checkpoint does not exist", where=str(path), remedy="remove -learn-resume")
    try:
        arrays = read_npz(path)
    except (OSError, DamagedArray) as error:
        raise checkpoint_error(path, f"is damaged: {error}") from None
    odd = min(arrays.keys() ^ like.keys(), default=None)
    if odd is not None:
        raise checkpoint_error(path, f"does not fit the network: it has {'an' if odd in arrays else 'no'} array '{odd}'")
    for name, array in arrays.items():
        wanted, first = like[name], 1 if name == grows else 0
        if array.dtype != wanted.dtype or array.ndim != wanted.ndim or array.shape[first:] != wanted.shape[first:]:
            raise checkpoint_error(path, f"does not fit the network: '{name}' is {array.dtype} {array.shape}")
    return arrays


def checkpoint_error(path: Path, why: str) -> N2D2Error:
    """Return the error for a checkpoint that cannot be resumed; `why` completes "the checkpoint ..."."""
    return N2D2Error("E433", f"the checkpoint {why}", where=str(path), remedy="train again without -learn-resume")
