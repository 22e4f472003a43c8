"""FlatBuffers written field by field, and the tables of .tflite files in them: any number in any slot, valid or not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Fields = dict[int, Any]
"""A table by its slots. A tuple is (format of struct, number); a dict a table, a list one of tables, an array one of numbers."""


def flat_file(root: Fields, identifier: bytes = b"TFL3") -> bytes:
    """A buffer that starts with this table. One that stands in a list several times is written once."""
    data = bytearray(struct.pack("<I4s", 0, identifier))
    struct.pack_into("<I", data, 0, _add(data, root))
    return bytes(data)


def _add(data: bytearray, value: Any) -> int:
    """Appends a table, a vector or a text; where it starts."""
    if isinstance(value, dict):
        return _add_table(data, value)
    at = len(data)
    if isinstance(value, list):
        data += struct.pack("<I", len(value)) + bytes(4 * len(value))
        places: dict[int, int] = {}
        for index, one in enumerate(value):
            if id(one) not in places:
                places[id(one)] = _add(data, one)
            link = at + 4 + 4 * index
            struct.pack_into("<I", data, link, places[id(one)] - link)
        return at
    stored = value.encode() if isinstance(value, str) else bytes(value.tobytes())
    data += struct.pack("<I", len(stored) if isinstance(value, str) else value.size) + stored
    return at


def _add_table(data: bytearray, fields: Fields) -> int:
    slots = max(fields, default=-1) + 1
    at = len(data) + 4 + 2 * slots
    distances, body, links = [0] * slots, bytearray(struct.pack("<i", 4 + 2 * slots)), []
    for slot, one in fields.items():
        distances[slot] = len(body)
        if isinstance(one, tuple):
            body += struct.pack(*one)
        else:
            links.append((at + len(body), one))
            body += bytes(4)
    data += struct.pack(f"<HH{slots}H", 4 + 2 * slots, len(body), *distances) + body
    for place, one in links:
        struct.pack_into("<I", data, place, _add(data, one) - place)
    return at


def ints(*values: int, kind: str = "<i4") -> np.ndarray:
    """A vector of numbers."""
    return np.array(values, kind)


def flat_tensor(
    shape: Sequence[int] = (2, 3), kind: int = 0, buffer: int = 0, name: str = "", more: Fields | None = None
) -> Fields:
    """A tensor; `kind`: the number of its type."""
    named = {3: name} if name else {}
    return {0: ints(*shape), 1: ("<b", kind), 2: ("<I", buffer), **named, **(more or {})}


def flat_grid(scale: Sequence[float], zero: Sequence[int] = (), axis: int = 0) -> Fields:
    """Slots of a tensor with scales and zero points."""
    return {4: {2: np.array(scale, "<f4"), 3: np.array(zero, "<i8"), 6: ("<i", axis)}}


def flat_operator(code: int, inputs: Sequence[int], outputs: Sequence[int], more: Fields | None = None) -> Fields:
    """An operator; `code`: the position of its code in the list of the file."""
    return {0: ("<I", code), 1: ints(*inputs), 2: ints(*outputs), **(more or {})}


def flat_graph(tensors: list[Fields], operators: list[Fields], inputs: Sequence[int], outputs: Sequence[int]) -> Fields:
    """A graph."""
    return {0: tensors, 1: ints(*inputs), 2: ints(*outputs), 3: operators}


def flat_model(graphs: list[Fields], codes: Sequence[int] = (), buffers: Sequence[bytes] = (b"",), version: int = 3) -> Fields:
    """A file of graphs; `codes`: numbers of operators."""
    return {
        0: ("<I", version),
        1: [{0: ("<b", min(code, 127)), 3: ("<i", code)} for code in codes],
        2: graphs,
        4: [{0: np.frombuffer(each, np.uint8)} if each else {} for each in buffers],
    }


def write_flat(folder: Path, model: Fields) -> Path:
    """The file."""
    path = folder / "m.tflite"
    path.write_bytes(flat_file(model))
    return path
