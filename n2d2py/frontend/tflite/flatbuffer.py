"""FlatBuffer reader; an offset outside the file raises ValueError.

The format (https://flatbuffers.dev/internals): a table starts with the signed distance back to its vtable. The vtable has its
own size, the table's size, and for each field its distance from the start of the table, 0 if absent. Vectors, strings and
tables are stored as an unsigned distance from the position of that distance. A vector starts with its length.
"""

from __future__ import annotations

import struct

import numpy as np


class DamagedFile(ValueError):
    """A contradiction in the file. NumPy raises ValueError for an offset or a length outside of it."""


class FlatTable:
    """The table of the buffer `data` that starts at `position`; types of numbers are those of NumPy."""

    def __init__(self, data: bytes, position: int):
        self._data, self._at = data, position
        vtable = position - self._number("<i", position)
        self._fields = np.frombuffer(data, "<H", self._number("<H", vtable) // 2, vtable)[2:]

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        """Return the root table."""
        return cls(data, int.from_bytes(data[:4], "little"))

    def _number(self, kind: str, position: int) -> int:
        return int(np.frombuffer(self._data, kind, 1, position)[0])

    def _place(self, slot: int) -> int | None:
        """Return the position of a field; None if it is absent."""
        distance = int(self._fields[slot]) if slot < len(self._fields) else 0
        return self._at + distance if distance else None

    def _target(self, slot: int) -> int | None:
        place = self._place(slot)
        return None if place is None else place + self._number("<I", place)

    def integer(self, slot: int, kind: str = "<i", default: int = 0) -> int:
        """Return a number."""
        place = self._place(slot)
        return default if place is None else self._number(kind, place)

    def real(self, slot: int, default: float = 0.0) -> float:
        """Return a float32."""
        place = self._place(slot)
        return default if place is None else float(np.frombuffer(self._data, "<f", 1, place)[0])

    def flag(self, slot: int, default: bool = False) -> bool:
        """Return a Boolean."""
        return bool(self.integer(slot, "<B", int(default)))

    def has(self, slot: int) -> bool:
        """True if the field is present."""
        return self._place(slot) is not None

    def table(self, slot: int) -> FlatTable:
        """Return a table, an empty one if it is absent."""
        target = self._target(slot)
        return NO_TABLE if target is None else FlatTable(self._data, target)

    def vector(self, slot: int, kind: str) -> np.ndarray:
        """Return the numbers of a vector, read-only; empty if it is absent."""
        target = self._target(slot)
        if target is None:
            return np.empty(0, kind)
        return np.frombuffer(self._data, kind, self._number("<I", target), target + 4)

    def tables(self, slot: int, most: int) -> list[FlatTable]:
        """Return the tables of a vector, at most `most`."""
        distances, first = self.vector(slot, "<u4"), (self._target(slot) or 0) + 4
        if len(distances) > most:
            raise DamagedFile(f"it has {len(distances):,} consecutive tables, more than the limit of {most:,}")
        return [FlatTable(self._data, first + 4 * index + distance) for index, distance in enumerate(distances.tolist())]

    def text(self, slot: int) -> str:
        """Return a string, "" if it is absent."""
        return self.vector(slot, "u1").tobytes().decode()


NO_TABLE = FlatTable(struct.pack("<HHi", 4, 4, 4), 4)
"""A table without fields."""
