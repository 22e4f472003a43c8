"""FlatBuffer reader that checks every offset before it follows it.

The format (https://flatbuffers.dev/internals): a table starts with the signed distance back to its vtable. The vtable has its
own size, the table's size, and for each field its distance from the start of the table, 0 if absent. Vectors, strings and
tables are stored as an unsigned distance from the position of that distance. A vector starts with its length.
"""

from __future__ import annotations

import struct

import numpy as np


class DamagedFile(Exception):
    """An offset or a length points outside the file; the message names it."""


class FlatTable:
    """A table of the buffer `data` that starts at `at`."""

    def __init__(self, data: bytes, position: int):
        self._data, self._at = data, position
        self._vtable = position - int(self._number("<i", position, "a table"))
        size = int(self._number("<H", self._vtable, "a vtable"))
        if size < 4 or size % 2 or self._vtable + size > len(data):
            raise DamagedFile(f"the vtable at {self._vtable} has {size} bytes")
        self._fields = (size - 4) // 2
        self._size = int(self._number("<H", self._vtable + 2, "a vtable"))
        if position + self._size > len(data):
            raise DamagedFile(f"the table at {position} exceeds the file")

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        """Return the root table."""
        if len(data) < 8:
            raise DamagedFile(f"the file has {len(data)} bytes")
        (position,) = struct.unpack_from("<I", data)
        return cls(data, position)

    def _number(self, kind: str, position: int, what: str) -> int | float:
        if position < 0 or position + struct.calcsize(kind) > len(self._data):
            raise DamagedFile(f"{what} is at {position}, outside the {len(self._data)} bytes of the file")
        (number,) = struct.unpack_from(kind, self._data, position)
        return number

    def _place(self, slot: int) -> int | None:
        """Return the position of a field; None if it is absent."""
        if slot >= self._fields:
            return None
        distance = int(self._number("<H", self._vtable + 4 + 2 * slot, "a field"))
        if distance >= self._size:
            raise DamagedFile(f"the field {slot} of the table at {self._at} exceeds it")
        return self._at + distance if distance else None

    def _target(self, slot: int) -> int | None:
        place = self._place(slot)
        return None if place is None else place + int(self._number("<I", place, "an offset"))

    def integer(self, slot: int, kind: str = "<i", default: int = 0) -> int:
        """Return a number of the struct format `kind`."""
        place = self._place(slot)
        return default if place is None else int(self._number(kind, place, "a number"))

    def real(self, slot: int, default: float = 0.0) -> float:
        """Return a float32."""
        place = self._place(slot)
        return default if place is None else float(self._number("<f", place, "a number"))

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

    def _vector(self, slot: int, width: int) -> tuple[int, int]:
        """Return (position of the first element, number of elements)."""
        target = self._target(slot)
        if target is None:
            return 0, 0
        count = int(self._number("<I", target, "a vector"))
        if target + 4 + count * width > len(self._data):
            raise DamagedFile(f"the vector at {target} of {count} elements of {width} bytes exceeds the file")
        return target + 4, count

    def vector(self, slot: int, dtype: str) -> np.ndarray:
        """Return the numbers of a vector, read-only; empty if it is absent."""
        start, count = self._vector(slot, np.dtype(dtype).itemsize)
        return np.frombuffer(self._data, dtype, count, start)

    def tables(self, slot: int, most: int) -> list[FlatTable]:
        """Return the tables of a vector, at most `most`."""
        start, count = self._vector(slot, 4)
        if count > most:
            raise DamagedFile(f"it has {count:,} consecutive tables, more than the limit of {most:,}")
        places = [start + 4 * index for index in range(count)]
        return [FlatTable(self._data, place + int(self._number("<I", place, "an offset"))) for place in places]

    def text(self, slot: int) -> str:
        """Return a string, "" if it is absent."""
        start, count = self._vector(slot, 1)
        try:
            return self._data[start : start + count].decode()
        except UnicodeDecodeError:
            raise DamagedFile(f"the text at {start} is not UTF-8") from None


NO_TABLE = FlatTable(struct.pack("<HHi", 4, 4, 4), 4)
"""A table without fields."""
