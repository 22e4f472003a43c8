"""Weights that lie in files of an export, in the order of its kernels."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.files import open_regular

FOLDER = "dnn/parameters"
_PANEL = 16


@dataclass(frozen=True)
class StoredRows:
    """An array in a file of `FOLDER`.

    Attributes:
        file, type: its name, and the type of the elements in it.
        shape, axes: those of the array with its inputs as (channels, height, width), and the order of its axes in the rows.
        flat: whether the array has its inputs in one axis.
        panels: (rows, inputs of a row, rows of a group, inputs that lie together, 1 where the last panel is filled up), as in
            `exports.cpp.parts.PanelOrder`; none where the file has row after row.
        offset, bytes: where it lies in the file.
        sha256: of these bytes.
    """

    file: str
    type: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    flat: bool = False
    panels: tuple[int, ...] = ()
    offset: int = 0
    bytes: int = 0
    sha256: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def of(fields: dict[str, Any]) -> StoredRows:
        lists = {name: tuple(map(int, fields[name])) for name in ("shape", "axes", "panels")}
        return StoredRows(**{**fields, **lists})

    def read(self, folder: Path) -> np.ndarray:
        """The array, from the files of the export `folder`.

        Raises:
            ValueError: when the file is another one; OSError: when it is missing.
        """
        if Path(self.file).name != self.file:
            raise ValueError(f"{self.file} is not a file of {FOLDER}")
        with open_regular(folder / FOLDER / self.file) as file:
            file.seek(self.offset)
            data = file.read(self.bytes)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ValueError(f"{FOLDER}/{self.file} was changed since it was written")
        values = np.frombuffer(data, self.type)
        rows = rows_of_panels(values, *self.panels) if self.panels else values
        if math.prod(self.shape) != rows.size or sorted(self.axes) != list(range(len(self.shape))):
            raise ValueError(f"{FOLDER}/{self.file} holds {rows.size} elements, not {self.shape}")
        ordered = rows.reshape([self.shape[axis] for axis in self.axes])
        values = np.ascontiguousarray(ordered.transpose(np.argsort(self.axes)))
        return values.reshape(len(values), -1) if self.flat else values


def rows_of_panels(panels: np.ndarray, rows: int, inputs: int, outputs: int, each: int, filled: int) -> np.ndarray:
    """(rows, inputs) of panels in the order that `StoredRows.panels` says.

    Raises:
        ValueError: when there are too few.
    """
    made, depth, at = np.empty((rows, inputs), panels.dtype), -(-inputs // each) * each, 0
    for group in range(0, rows, outputs):
        for first in range(group, group + outputs, _PANEL):
            there = min(_PANEL, group + outputs - first)
            width = _PANEL if filled else there
            panel = panels[at : at + depth * width].reshape(-1, width, each)[:, :there]
            made[first : first + there] = panel.transpose(1, 0, 2).reshape(there, depth)[:, :inputs]
            at += depth * width
    return made
