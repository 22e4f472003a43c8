"""Tables of a FlatBuffer, written byte by byte: what is read, and that nothing behind the end of the file is."""

import struct
from collections.abc import Callable

import numpy as np
import pytest
from support.tables import every

from n2d2py.frontend.tflite.schema import DamagedFile, FlatTable

TABLE = 20
"""Where the table of `table` starts, behind a vtable of six fields at 4."""


def table(fields: bytes, distances: list[int], tail: bytes = b"", size: int | None = None, vtable: int | None = None) -> bytes:
    """A file whose root is a table of these fields; `distances` (six) say where each starts in it, 0 for none."""
    size = 4 + len(fields) if size is None else size
    head = struct.pack("<IHH6H", TABLE, 16 if vtable is None else vtable, size, *distances)
    return head + struct.pack("<i", TABLE - 4) + fields + tail


def damage(read: Callable[[], object]) -> str:
    with pytest.raises(DamagedFile) as caught:
        read()
    return str(caught.value)


def test_numbers():
    one = FlatTable.root(table(struct.pack("<ifBb", -7, 1.5, 1, -3), [4, 8, 12, 13, 0, 0]))
    assert (one.integer(0), one.real(1), one.flag(2), one.integer(3, "<b")) == (-7, 1.5, True, -3)
    assert [one.has(slot) for slot in range(8)] == [True] * 4 + [False] * 4
    assert (one.integer(4), one.integer(5, default=9), one.integer(6, default=8)) == (0, 9, 8)
    assert (one.real(4), one.real(7, 2.5), one.flag(4), one.flag(4, True)) == (0.0, 2.5, False, True)


def test_a_number_that_ends_with_the_file():
    data = table(struct.pack("<i", 5), [4, 0, 0, 0, 0, 0])
    assert FlatTable.root(data).integer(0) == 5
    assert "refers to" in damage(lambda: FlatTable.root(data).integer(0, "<q"))


@every("kind", ["u1", "<i2", "<f4", "<i8"])
@every("count", [0, 1, 3])
def test_a_vector_ends_where_the_file_does(kind, count):
    values = np.arange(1, count + 1).astype(kind)
    data = table(struct.pack("<I", 4), [4, 0, 0, 0, 0, 0], tail=struct.pack("<I", count) + values.tobytes())
    found = FlatTable.root(data).vector(0, kind)
    assert found.dtype == np.dtype(kind) and np.array_equal(found, values) and not found.flags.writeable
    assert FlatTable.root(data).vector(1, kind).size == 0
    if count:
        assert "refers to" in damage(lambda: FlatTable.root(data[:-1]).vector(0, kind))


def test_texts():
    data = table(struct.pack("<I", 4), [4, 0, 0, 0, 0, 0], tail=struct.pack("<I", 4) + "naïv".encode()[:4] + b"\xff")
    assert FlatTable.root(data[:-1]).text(0) == "naï" and FlatTable.root(data).text(1) == ""
    wrong = data[:-2] + b"\xff"
    assert "UTF-8" in damage(lambda: FlatTable.root(wrong).text(0))


def test_tables_in_a_row():
    """Each place in the vector holds the distance to a table; both are the root here."""
    places = [(TABLE - (32 + 4 * at)) & 0xFFFFFFFF for at in range(2)]
    data = table(struct.pack("<I", 4), [4, 0, 0, 0, 0, 0], tail=struct.pack("<3I", 2, *places))
    assert "they" not in damage(lambda: FlatTable.root(data).tables(0, 1)) and len(FlatTable.root(data).tables(1, 0)) == 0
    assert damage(lambda: FlatTable.root(data).tables(0, 1)) == "it has 2 consecutive tables, more than the limit of 1"
    inner = struct.pack("<HHHHi", 4, 4, 0, 0, 8)
    data = table(struct.pack("<I", 4), [4, 0, 0, 0, 0, 0], tail=struct.pack("<3I", 2, 16, 12) + inner)
    found = FlatTable.root(data).tables(0, 2)
    assert len(found) == 2 and not any(each.has(0) for each in found)
    assert not FlatTable.root(data).table(1).has(0)


@every("data", [bytes(3), bytes(0), struct.pack("<II", 5, 0), table(bytes(4), [0] * 6, vtable=26), struct.pack("<Ii", 4, 100)])
def test_tables_that_lead_out_of_the_file(data):
    damage(lambda: FlatTable.root(data))


@pytest.mark.parametrize("vtable", [4, 16, 24])
def test_a_vtable_may_reach_the_end_of_the_file(vtable):
    assert not FlatTable.root(table(bytes(4), [0] * 6, size=8, vtable=vtable)).has(0)
