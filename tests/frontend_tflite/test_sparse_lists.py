"""Lists of sparse tensors, field by field: what they become, and each way in which they do not fit.

They look at `n2d2py.frontend.tflite.sparse` and `n2d2py.frontend.tflite.flatbuffer`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from support.flat_files import Fields, flat_file, flat_graph, flat_model, flat_tensor, ints, write_flat

from n2d2py.errors import N2D2Error
from n2d2py.frontend.tflite.file import read_tflite
from n2d2py.frontend.tflite.flatbuffer import DamagedFile, FlatTable


def dense(size: int) -> Fields:
    return {0: ("<b", 0), 1: ("<i", size)}


def rows(begins: Sequence[int], indices: Sequence[int], kinds: tuple[int, int] = (1, 1)) -> Fields:
    """A compressed axis; `kinds`: types of both lists, 1 of int32, 2 of uint16, 3 of uint8."""
    stored = [
        ints(*values, kind={1: "<i4", 2: "<u2", 3: "u1"}[kind]) for values, kind in zip((begins, indices), kinds, strict=True)
    ]
    return {0: ("<b", 1), 2: ("<B", kinds[0]), 3: {0: stored[0]}, 4: ("<B", kinds[1]), 5: {0: stored[1]}}


def sparse(order: Sequence[int], axes: list[Fields], blocked: Sequence[int] = ()) -> Fields:
    return {6: {0: ints(*order), 1: ints(*blocked), 2: axes}}


def read(folder, shape: Sequence[int], lists: Fields, stored: Sequence[float], kind: str = "<f4") -> np.ndarray:
    tensor = flat_tensor(shape, {"<f4": 0, "i1": 9}[kind], 1, "w", lists)
    path = write_flat(folder, flat_model([flat_graph([tensor], [], [], [])], buffers=(b"", np.array(stored, kind).tobytes())))
    (found,) = read_tflite(path).tensors
    assert found.values is not None and found.values.dtype == np.dtype(kind) and found.values.shape == tuple(shape)
    return found.values


def damage(folder, shape: Sequence[int], lists: Fields, stored: Sequence[float]) -> str:
    with pytest.raises(N2D2Error) as caught:
        read(folder, shape, lists, stored)
    head = "the file is damaged or truncated (the sparse tensor 'w' "
    assert caught.value.code == "E302" and caught.value.what.startswith(head)
    return caught.value.what[len(head) : -1]


SIX = [1, 2, 3, 4, 5, 6]
TAKEN = {
    "all dense": ((2, 3), sparse([0, 1], [dense(2), dense(3)]), SIX, [[1, 2, 3], [4, 5, 6]]),
    "all dense, columns first": ((2, 3), sparse([1, 0], [dense(3), dense(2)]), SIX, [[1, 3, 5], [2, 4, 6]]),
    "rows": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 3], [2, 0, 1])]), [7, 8, 9], [[0, 0, 7], [8, 9, 0]]),
    "an empty row": ((3, 2), sparse([0, 1], [dense(3), rows([0, 1, 1, 2], [0, 1])]), [7, 8], [[7, 0], [0, 0], [0, 8]]),
    "columns": ((2, 3), sparse([1, 0], [dense(3), rows([0, 1, 1, 3], [1, 0, 1])]), [7, 8, 9], [[0, 0, 8], [7, 0, 9]]),
    "both listed": ((3, 4), sparse([0, 1], [rows([0, 2], [0, 2]), rows([0, 1, 3], [3, 0, 1])]), [7, 8, 9],
                    [[0, 0, 0, 7], [0, 0, 0, 0], [8, 9, 0, 0]]),
    "listed, then dense": ((3, 2), sparse([0, 1], [rows([0, 2], [0, 2]), dense(2)]), [7, 8, 9, 6], [[7, 8], [0, 0], [9, 6]]),
    "nothing listed": ((2, 3), sparse([0, 1], [dense(2), rows([0, 0, 0], [])]), [], [[0, 0, 0], [0, 0, 0]]),
    "nothing listed first": ((2, 3), sparse([0, 1], [rows([0, 0], []), rows([0], [])]), [], [[0, 0, 0], [0, 0, 0]]),
    "everything listed": ((2, 2), sparse([0, 1], [rows([0, 2], [0, 1]), rows([0, 2, 4], [0, 1, 0, 1])]), [1, 2, 3, 4], [[1, 2], [3, 4]]),
    "blocks of columns": ((2, 4), sparse([0, 1, 2], [dense(2), rows([0, 1, 2], [1, 0]), dense(2)], [1]), [1, 2, 3, 4],
                          [[0, 0, 1, 2], [3, 4, 0, 0]]),
    "blocks of rows": ((4, 2), sparse([0, 1, 2], [dense(2), rows([0, 1, 2], [1, 0]), dense(2)], [0]), [1, 2, 3, 4],
                       [[0, 1], [0, 2], [3, 0], [4, 0]]),
    "blocks of one": ((2, 2), sparse([0, 1, 2], [dense(2), dense(2), dense(1)], [1]), [1, 2, 3, 4], [[1, 2], [3, 4]]),
    "blocks of all": ((2, 2), sparse([0, 1, 2], [dense(2), dense(1), dense(2)], [1]), [1, 2, 3, 4], [[1, 2], [3, 4]]),
    "blocks of both axes": ((4, 6), sparse([0, 1, 2, 3], [dense(2), rows([0, 1, 1], [1]), dense(2), dense(3)], [0, 1]), SIX,
                            [[0, 0, 0, 1, 2, 3], [0, 0, 0, 4, 5, 6], [0] * 6, [0] * 6]),
    "blocks of both axes, the second first": (
        (4, 6), sparse([0, 1, 2, 3], [dense(2), rows([0, 1, 1], [1]), dense(3), dense(2)], [1, 0]), SIX,
        [[0, 0, 0, 1, 3, 5], [0, 0, 0, 2, 4, 6], [0] * 6, [0] * 6]),
    "one axis": ((5,), sparse([0], [rows([0, 2], [1, 4])]), [7, 8], [0, 7, 0, 0, 8]),
    "three axes": ((2, 2, 3), sparse([2, 0, 1], [dense(3), dense(2), rows([0, 1, 1, 1, 2, 2, 3], [1, 0, 1])]), [7, 8, 9],
                   [[[0, 0, 0], [7, 0, 0]], [[0, 8, 0], [0, 0, 9]]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["<f4", "i1"])
@pytest.mark.parametrize("name", TAKEN)
def test_listed_values(name, kind, tmp_path):
    shape, lists, stored, wanted = TAKEN[name]
    assert read(tmp_path, shape, lists, stored, kind).tolist() == wanted


@pytest.mark.parametrize("kinds", [(1, 1), (1, 2), (2, 1), (3, 2), (2, 3), (3, 3)])
def test_lists_of_other_types(kinds, tmp_path):
    lists = sparse([0, 1], [dense(2), rows([0, 1, 2], [200, 1], kinds)])
    found = read(tmp_path, (2, 201), lists, [7, 8])
    assert found[0, 200] == 7 and found[1, 1] == 8 and np.count_nonzero(found) == 2


def _without(slot: int) -> Fields:
    axis = rows([0, 1, 2], [0, 1])
    del axis[slot]
    return axis


TWO = [dense(2), dense(3)]
DAMAGED = {
    "an axis twice": ((2, 3), sparse([0, 0], TWO), SIX, "of 2 axes and 0 blocks is stored in the order [0, 0]"),
    "an axis too few": ((2, 3), sparse([0], [dense(2)]), SIX, "of 2 axes and 0 blocks is stored in the order [0]"),
    "an axis too many": ((2, 3), sparse([0, 1, 2], [*TWO, dense(1)]), SIX, "of 2 axes and 0 blocks is stored in the order [0, 1, 2]"),
    "an axis without entry": ((2, 3), sparse([0, 1], TWO[:1]), SIX, "of 2 axes and 0 blocks is stored in the order [0, 1]"),
    "a block without axis": ((2, 3), sparse([0, 1], TWO, [1]), SIX, "of 2 axes and 1 blocks is stored in the order [0, 1]"),
    "an axis from 1 on": ((2, 3), sparse([1, 2], TWO), SIX, "of 2 axes and 0 blocks is stored in the order [1, 2]"),
    "many axes": ((2, 3), sparse(range(20), [dense(1)] * 20), SIX,
                  f"of 2 axes and 0 blocks is stored in the order {list(range(16))}"),
    "a block twice": ((2, 4), sparse([0, 1, 2, 3], [dense(2), dense(1), dense(2), dense(2)], [1, 1]), SIX, "has blocks of the axes [1, 1]"),
    "a block of no axis": ((2, 4), sparse([0, 1, 2], [dense(2), dense(2), dense(2)], [2]), SIX, "has blocks of the axes [2]"),
    "a block of an axis and one of none": (
        (2, 4), sparse([0, 1, 2, 3], [dense(2), dense(2), dense(2), dense(1)], [1, 2]), SIX, "has blocks of the axes [1, 2]"
    ),
    "a block before the first axis": ((2, 4), sparse([0, 1, 2], [dense(2), dense(2), dense(2)], [-1]), SIX, "has blocks of the axes [-1]"),
    "a block of 0": ((2, 4), sparse([0, 1, 2], [dense(2), dense(4), dense(0)], [1]), SIX, "has blocks of 0 in an axis of 4"),
    "a block of -1": ((2, 4), sparse([0, 1, 2], [dense(2), dense(4), dense(-1)], [1]), SIX, "has blocks of -1 in an axis of 4"),
    "a block that does not divide": ((2, 4), sparse([0, 1, 2], [dense(2), dense(1), dense(3)], [1]), SIX, "has blocks of 3 in an axis of 4"),
    "a listed block": ((2, 4), sparse([0, 1, 2], [dense(2), dense(2), rows([0, 1], [0])], [1]), SIX, "has blocks of 0 in an axis of 4"),
    "a first axis of another size": ((2, 3), sparse([0, 1], [dense(3), dense(3)]), SIX, "has a dense axis of 3, not 2"),
    "a last axis of another size": ((2, 3), sparse([0, 1], [dense(2), dense(4)]), SIX, "has a dense axis of 4, not 3"),
    "an outer axis of another size": ((2, 4), sparse([0, 1, 2], [dense(2), dense(4), dense(2)], [1]), SIX, "has a dense axis of 4, not 2"),
    "sizes exchanged": ((2, 3), sparse([1, 0], TWO), SIX, "has a dense axis of 2, not 3"),
    "no type of the places": ((2, 3), sparse([0, 1], [dense(2), _without(2)]), SIX, "lacks a list of indices"),
    "no places": ((2, 3), sparse([0, 1], [dense(2), _without(3)]), SIX, "lacks a list of indices"),
    "no type of the indices": ((2, 3), sparse([0, 1], [dense(2), _without(4)]), SIX, "lacks a list of indices"),
    "no indices": ((2, 3), sparse([0, 1], [dense(2), _without(5)]), SIX, "lacks a list of indices"),
    "another type": ((2, 3), sparse([0, 1], [dense(2), {**rows([0, 1, 2], [0, 1]), 2: ("<B", 4)}]), SIX, "lacks a list of indices"),
    "an index behind the last": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 2], [0, 3])]), [1, 2], "has an index outside of 3"),
    "an index before the first": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 2], [-1, 2])]), [1, 2], "has an index outside of 3"),
    "one place too few": ((2, 3), sparse([0, 1], [dense(2), rows([0, 2], [0, 1])]), [1, 2], "lists the indices of 1 places, not 2"),
    "one place too many": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 2, 2], [0, 1])]), [1, 2], "lists the indices of 3 places, not 2"),
    "places that go back": ((2, 3), sparse([0, 1], [dense(2), rows([0, 3, 2], [0, 1])]), [1, 2], "lists the indices of 2 places, not 2"),
    "a start behind the first": ((2, 3), sparse([0, 1], [dense(2), rows([1, 1, 2], [0, 1])]), [1, 2], "lists the indices of 2 places, not 2"),
    "an end before the last": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 1], [0, 1])]), [1, 2], "lists the indices of 2 places, not 2"),
    "an end behind the last": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 3], [0, 1])]), [1, 2], "lists the indices of 2 places, not 2"),
    "no places of nothing": (
        (2, 3),
        sparse([0, 1], [rows([0, 0], []), rows([], [])]),
        [],
        "lists the indices of 0 places, not 0",
    ),
    "no axis": ((), sparse([], []), [7], "of 0 axes and 0 blocks is stored in the order []"),
    "a value too many": ((2, 3), sparse([0, 1], [dense(2), rows([0, 1, 2], [0, 1])]), [1, 2, 3], "lists 2 places for 3 values"),
    "a value too few": ((2, 3), sparse([0, 1], TWO), SIX[:5], "lists 6 places for 5 values"),
    "values without a place": ((2, 3), sparse([0, 1], [rows([0, 0], []), rows([0], [])]), [1], "lists 0 places for 1 values"),
    "many values": ((2, 600), sparse([0, 1], [dense(2), dense(600)]), [1] * 1300, "lists 1,200 places for 1,300 values"),
    "a place too many": ((1, 3), sparse([0, 1], [rows([0, 4], [0, 0, 0, 0]), dense(3)]), SIX, "lists more places than it has"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_lists_that_do_not_fit(name, tmp_path):
    shape, lists, stored, text = DAMAGED[name]
    assert damage(tmp_path, shape, lists, stored) == text


def test_places_are_listed_as_often_as_there_are_places(tmp_path):
    """One index several times is taken, the last value stays."""
    lists = sparse([0, 1], [dense(1), rows([0, 3], [0, 0, 2])])
    assert read(tmp_path, (1, 3), lists, [7, 8, 9]).tolist() == [[8, 0, 9]]


def test_places_beyond_the_lists_are_not_made(tmp_path):
    """Of two thousand million elements, none of which the file lists; it would take their indices."""
    text = damage(tmp_path, (1 << 15, 1 << 15), sparse([0, 1], [dense(1 << 15), dense(1 << 15)]), [7])
    assert text == "has more places than the file lists"


def test_stored_bytes_that_are_no_values(tmp_path):
    tensor = flat_tensor((2,), 0, 1, "w", sparse([0], [dense(2)]))
    path = write_flat(tmp_path, flat_model([flat_graph([tensor], [], [], [])], buffers=(b"", bytes(9))))
    with pytest.raises(N2D2Error, match=r"\(the tensor 'w' of 2 float32 has 9 bytes, not 8\)"):
        read_tflite(path)


# ---- tables at the ends of a file -------------------------------------------------------------------
def test_a_vtable_at_the_start_of_a_file():
    """The distance to the root is the size of the vtable, and of a table without fields."""
    assert not FlatTable.root(struct.pack("<Ii", 4, 4)).has(0)


@pytest.mark.parametrize(("back", "place"), [(5, -1), (-1, 5), (-4, 8), (-3, 7)])
def test_a_vtable_outside_of_a_file(back, place):
    inside = place <= 6
    with pytest.raises(DamagedFile) as caught:
        FlatTable.root(struct.pack("<Ii", 4, back))
    found = str(caught.value)
    text = (
        f"the vtable at {place} has"
        if inside and place >= 0
        else f"a vtable is at {place}, behind or before the 8 bytes of the file"
    )
    assert found.startswith(text)


@pytest.mark.parametrize(("slot", "text"), [(0, "a number is at"), (1, "an offset is at")])
def test_what_is_read_is_named(slot, text):
    """The field is the last of the file, and one byte of it is missing."""
    data = flat_file({0: ("<i", 5)} if slot == 0 else {1: ("<I", 9)})
    table = FlatTable.root(data)
    short = FlatTable(data, table._at)
    short._data = data[:-1]
    with pytest.raises(DamagedFile) as caught:
        short.integer(0) if slot == 0 else short.table(1)
    assert str(caught.value) == f"{text} {len(data) - 4}, behind or before the {len(data) - 1} bytes of the file"


def test_what_is_left_out_is_empty():
    table = FlatTable.root(flat_file({2: ("<i", 5)}))
    assert (table.integer(0), table.integer(0, "<q", 7), table.real(1), table.flag(0), table.text(0), table.table(1)) == (
        0,
        7,
        0.0,
        False,
        "",
        None,
    )
    assert table.tables(0, 0) == [] and table.vector(1, "<f4").tolist() == [] and table.has(2) and not table.has(3)
    assert (table.flag(2), table.integer(2), table.integer(3)) == (True, 5, 0)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_text_ends_within_the_file(missing):
    data = flat_file({0: "abcd"})
    data = data[: len(data) - missing]
    if not missing:
        assert FlatTable.root(data).text(0) == "abcd"
        return
    with pytest.raises(DamagedFile, match="the vector at [0-9]+ of 4 elements of 1 bytes ends behind the file"):
        FlatTable.root(data).text(0)
