"""Reading and writing loadable files.

The reader checks every offset against the file, so that a damaged file gives one E901 and nothing else. The writer
leaves the encoding to the `flatbuffers` package. `read_loadable(write_loadable(x)) == x`.
"""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

from n2d2py.errors import N2D2Error
from n2d2py.files import read_regular
from n2d2py_nvdla.tables import IDENTIFIER, Loadable

__all__ = ["Loadable", "parse_loadable", "read_loadable", "write_loadable"]

_FORMAT = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i2": "h", "i4": "i"}
_SIZE = {kind: struct.calcsize(code) for kind, code in _FORMAT.items()}


class _Damaged(Exception):
    """An offset or a length that leaves the file; the message says of what."""


class _Reader:
    """Reads tables of a FlatBuffer; every access is checked against its length."""

    def __init__(self, data: bytes):
        self._data = data

    def scalar(self, kind: str, at: int, what: str) -> int:
        if at < 0 or at + _SIZE[kind] > len(self._data):
            raise _Damaged(f"{what} lies outside of the file")
        return struct.unpack_from("<" + _FORMAT[kind], self._data, at)[0]

    def follow(self, at: int, what: str) -> int:
        return at + self.scalar("u4", at, what)

    def vector(self, at: int, size: int, what: str) -> tuple[int, int]:
        """First byte and number of elements of `size` bytes of the vector that the offset at `at` names."""
        start = self.follow(at, what)
        count = self.scalar("u4", start, what)
        if start + 4 + count * size > len(self._data):
            raise _Damaged(f"{what} has {count} elements, more than the file holds")
        return start + 4, count

    def string(self, at: int, what: str) -> str:
        start, count = self.vector(at, 1, what)
        try:
            return bytes(self._data[start : start + count]).decode("utf-8")
        except UnicodeDecodeError:
            raise _Damaged(f"{what} is not UTF-8 text") from None

    def table(self, cls: type, at: int, what: str) -> Any:
        """Return the table of class `cls` at byte `at`."""
        vtable = at - self.scalar("i4", at, what)
        size = self.scalar("u2", vtable, f"the vtable of {what}")
        if size < 4 or size % 2 or vtable + size > len(self._data):
            raise _Damaged(f"the vtable of {what} is malformed")
        made = cls()
        for number, one in enumerate(dataclasses.fields(cls)):
            entry = 4 + 2 * number
            if entry >= size:
                break
            offset = self.scalar("u2", vtable + entry, f"the vtable of {what}")
            if offset:
                setattr(made, one.name, self._value(one.metadata["kind"], at + offset, f"{what}.{one.name}"))
        return made

    def _value(self, kind: Any, at: int, what: str) -> Any:
        if isinstance(kind, type):
            start, count = self.vector(at, 4, what)
            return [self.table(kind, self.follow(start + 4 * i, f"{what}[{i}]"), f"{what}[{i}]") for i in range(count)]
        if kind == "string":
            return self.string(at, what)
        if kind == "strings":
            start, count = self.vector(at, 4, what)
            return [self.string(start + 4 * i, f"{what}[{i}]") for i in range(count)]
        if kind == "bytes":
            start, count = self.vector(at, 1, what)
            return memoryview(self._data)[start : start + count]
        if kind == "version":
            return tuple(self.scalar("u1", at + i, what) for i in range(3))
        if kind.startswith("["):
            element = kind[1:-1]
            start, count = self.vector(at, _SIZE[element], what)
            return list(struct.unpack_from(f"<{count}{_FORMAT[element]}", self._data, start))
        return self.scalar(kind, at, what)


def parse_loadable(data: bytes, name: str = "loadable") -> Loadable:
    """Return the loadable in `data`; `name` stands in messages. Blobs' bytes are views of `data`.

    Raises:
        N2D2Error: E901 for a file that is not a loadable, or a damaged one.
    """
    reader = _Reader(data)
    try:
        found = reader.table(Loadable, reader.follow(0, "the root table"), "Loadable")
    except _Damaged as problem:
        raise N2D2Error(
            "E901", f"no NVDLA loadable, or a damaged one: {problem}", where=name, remedy="compile or copy it again"
        ) from None
    named = data[4:8] == IDENTIFIER
    if not found.task_list or not found.memory_list or (not named and not found.blobs):
        missing = "tasks" if not found.task_list else "memories" if not found.memory_list else "blobs"
        raise N2D2Error("E901", f"no NVDLA loadable: it has no {missing}", where=name, remedy="compile or copy it again")
    return found


def unreadable(path: Path | str, error: OSError) -> N2D2Error:
    """E902: a file that the system does not let us read."""
    what = f"the file cannot be read: {error.strerror or error}"
    return N2D2Error("E902", what, where=str(path), remedy="check the path and its permissions")


def read_loadable(path: Path | str) -> Loadable:
    """Return the loadable in a file.

    Raises:
        N2D2Error: E901 for a file that is not a loadable or a damaged one, E902 for a file that cannot be read.
    """
    try:
        data = read_regular(Path(path))
    except OSError as error:
        raise unreadable(path, error) from None
    return parse_loadable(data, str(path))


def write_loadable(loadable: Loadable) -> bytes:
    """Return the bytes of a file that holds `loadable`, with the identifier that NVIDIA's compilers write."""
    import flatbuffers

    builder = flatbuffers.Builder(1024 + sum(len(blob.data) for blob in loadable.blobs))
    builder.Finish(_write_table(builder, loadable), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _write_table(builder: Any, table: Any) -> int:
    kinds = [(number, one.metadata["kind"], getattr(table, one.name)) for number, one in enumerate(dataclasses.fields(table))]
    offsets = {
        number: _write_referenced(builder, kind, value)
        for number, kind, value in kinds
        if isinstance(kind, type) or kind in ("string", "strings", "bytes") or kind.startswith("[")
    }
    builder.StartObject(len(kinds))
    for number, kind, value in kinds:
        if number in offsets:
            builder.PrependUOffsetTRelativeSlot(number, offsets[number], 0)
        elif kind == "version":
            builder.Prep(1, 3)
            for part in reversed(value):
                builder.PrependUint8(part)
            builder.PrependStructSlot(number, builder.Offset(), 0)
        else:
            prepend = getattr(
                builder,
                {
                    "u1": "PrependUint8Slot",
                    "u2": "PrependUint16Slot",
                    "u4": "PrependUint32Slot",
                    "u8": "PrependUint64Slot",
                    "i2": "PrependInt16Slot",
                    "i4": "PrependInt32Slot",
                }[kind],
            )
            prepend(number, value, 0)
    return builder.EndObject()


def _write_referenced(builder: Any, kind: Any, value: Any) -> int:
    if kind == "string":
        return builder.CreateString(value)
    if kind == "bytes":
        return builder.CreateByteVector(bytes(value))
    if isinstance(kind, type):
        return _write_offsets(builder, [_write_table(builder, one) for one in value])
    if kind == "strings":
        return _write_offsets(builder, [builder.CreateString(one) for one in value])
    element = kind[1:-1]
    builder.StartVector(_SIZE[element], len(value), _SIZE[element])
    prepend = getattr(builder, {"u2": "PrependUint16", "u8": "PrependUint64"}[element])
    for one in reversed(value):
        prepend(one)
    return builder.EndVector()


def _write_offsets(builder: Any, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for one in reversed(offsets):
        builder.PrependUOffsetTRelative(one)
    return builder.EndVector()
