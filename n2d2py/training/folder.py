"""Trained weights as N2D2's folders have them, from which `-w` reads them again. No PyTorch here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from n2d2py.files import file_names, write_text


def write_weights(folder: Path, layers: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Write <layer>_<name>.syntxt for all arrays of all layers, and weights.npz with them together, instead of the folder.

    A line holds the values of an output; nine digits give each float32 again. An interrupted run leaves the old folder.
    """
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    stems = file_names(layers)
    for layer, arrays in layers.items():
        for name, array in arrays.items():
            lines = (" ".join(f"{value:.9g}" for value in row) for row in array.reshape(len(array), -1))
            write_text(beside / f"{stems[layer]}_{name}.syntxt", "\n".join(lines) + "\n")
    np.savez(
        beside / "weights.npz",
        **{f"{layer}_{name}": array for layer, arrays in layers.items() for name, array in arrays.items()},  # type: ignore[arg-type]
    )
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    beside.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
