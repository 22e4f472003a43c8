"""The store of weights by itself: which file is read first, which arrays are taken, and every sentence of its errors.

They look at `n2d2py.frontend.ini.weights`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n2d2py import log
from n2d2py.errors import Location, N2D2Error
from n2d2py.files import marked_file_name
from n2d2py.frontend.ini.weights import WeightStore, open_weights

WHERE = Location("net.ini", 7, "fc")
INITIAL = np.full((2, 3), 9, np.float32)


def error(call) -> str:
    with pytest.raises(N2D2Error) as caught:
        call()
    return f"{caught.value.code} {caught.value.what}"


def load(store: WeightStore, name: str = "weights", initial: np.ndarray = INITIAL, rows=(3, 3), order=()) -> np.ndarray:
    return store.load("fc", name, initial, WHERE, rows, order)


def test_without_files_the_initial_values_stay():
    store = WeightStore(None)
    assert load(store) is INITIAL and load(store, "biases") is INITIAL
    assert store.initial == ["fc", "fc"] and store.recipes is None and not store.ignore_missing
    assert not store.has("fc", "weights")


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.int64, np.float16, np.float64])
def test_arrays_of_numbers_become_float32(kind, tmp_path):
    values = np.array([[0, 1, 1], [1, 0, 1]], kind)
    np.savez(tmp_path / "w.npz", fc_weights=values)
    found = load(WeightStore(tmp_path / "w.npz"))
    assert found.dtype == np.float32 and found.tolist() == [[0, 1, 1], [1, 0, 1]]


@pytest.mark.parametrize(("kind", "name"), [(np.complex64, "complex64"), ("<U2", "<U2"), ("S1", "|S1")])
def test_arrays_of_something_else_are_refused(kind, name, tmp_path):
    np.savez(tmp_path / "w.npz", fc_weights=np.zeros((2, 3), kind))
    path = tmp_path / "w.npz"
    assert error(lambda: load(WeightStore(path))) == f"E422 {path}:fc_weights holds {name}, not numbers"


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_are_finite(value, tmp_path):
    np.savez(tmp_path / "w.npz", fc_weights=np.array([[0, 1, 1], [1, value, 1]], np.float32))
    path = tmp_path / "w.npz"
    assert error(lambda: load(WeightStore(path))) == f"E424 {path}:fc_weights holds values that are not finite"


SHAPES = [
    ((2, 3), (), ""),
    ((2, 3, 1), (), ""),
    ((1, 2, 1, 3), (), ""),
    ((3, 2), (), "has the shape (3, 2), but layer 'fc' needs (2, 3)"),
    ((6,), (), "has the shape (6), but layer 'fc' needs (2, 3)"),
    ((1, 6), (), "has the shape (1, 6), but layer 'fc' needs (2, 3)"),
    ((3, 2), (1, 0), ""),
    ((2, 3), (1, 0), "has the shape (2, 3), but layer 'fc' needs (3, 2)"),
    ((2, 2), (), "holds 4 values, but layer 'fc' needs 6 (2x3)"),
    ((7,), (), "holds 7 values, but layer 'fc' needs 6 (2x3)"),
    ((0,), (), "holds 0 values, but layer 'fc' needs 6 (2x3)"),
]


@pytest.mark.parametrize(("shape", "order", "text"), SHAPES)
def test_shapes_of_arrays(shape, order, text, tmp_path):
    """But for axes of 1; values are given in the order in which they are stored."""
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.save(tmp_path / "fc_weights.npy", values)
    store = WeightStore(tmp_path)
    if text:
        assert error(lambda: load(store, order=order)) == f"E423 {tmp_path / 'fc_weights.npy'} {text}"
    else:
        assert load(store, order=order).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_texts_have_no_shape(tmp_path):
    (tmp_path / "fc_weights.syntxt").write_text("0 1\n2 3\n4 5\n")
    assert load(WeightStore(tmp_path)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_which_file_is_read(tmp_path):
    """The marked name goes before the plain one, .npy before .syntxt, a file of one array before one of both."""
    marked = marked_file_name("fc")
    for number, stem in enumerate((f"{marked}_weights.npy", f"{marked}_weights.syntxt", "fc_weights.npy", "fc_weights.syntxt")):
        values = np.full((2, 3), number, np.float32)
        if stem.endswith("npy"):
            np.save(tmp_path / stem, values)
        else:
            np.savetxt(tmp_path / stem, values)
    for number, stem in enumerate((f"{marked}.syntxt", "fc.syntxt"), 4):
        np.savetxt(tmp_path / stem, np.full((2, 4), number, np.float32))
    found = []
    for name in (
        f"{marked}_weights.npy",
        f"{marked}_weights.syntxt",
        "fc_weights.npy",
        "fc_weights.syntxt",
        f"{marked}.syntxt",
        "fc.syntxt",
    ):
        assert WeightStore(tmp_path).has("fc", "weights") == (len(found) < 4)
        found.append(load(WeightStore(tmp_path))[0, 0])
        (tmp_path / name).unlink()
    assert found == [0, 1, 2, 3, 4, 5]
    assert error(lambda: load(WeightStore(tmp_path))) == f"E421 the weights 'fc_weights' are not in {tmp_path}"


@pytest.mark.parametrize(("length", "taken"), [(228, True), (229, True), (230, False), (231, False)])
def test_the_longest_plain_name(length, taken, tmp_path):
    """A name of 230 bytes with an ending behind it is that of no file."""
    layer = "é" + "a" * (length - 2)
    try:
        np.save(tmp_path / f"{layer}_weights.npy", INITIAL)
    except OSError:
        pytest.skip("the file system has shorter names")
    assert WeightStore(tmp_path).has(layer, "weights") == taken


ONE_FILE = [
    ("weights", "1 2 3 4 5 6", [[1, 2, 3], [4, 5, 6]]),
    ("biases", "1 2 3 4 5 6", None),
    ("weights", "1 2 3 4 5 6 7 8", [[1, 2, 3], [5, 6, 7]]),
    ("biases", "1 2 3 4 5 6 7 8", [4, 8]),
    ("weights", "1 2 3 4 5 6 7", "holds 7 values, but layer 'fc' has 6 weights and 2 biases"),
    ("weights", "1 2 3 4 5 6 7 8 9", "holds 9 values, but layer 'fc' has 6 weights and 2 biases"),
    ("biases", "1 2 3 4 5", "holds 5 values, but layer 'fc' has 6 weights and 2 biases"),
    ("scales", "1 2 3 4 5 6 7 8", None),
    ("means", "1 2", None),
]


@pytest.mark.parametrize(("name", "text", "wanted"), ONE_FILE)
def test_one_file_of_a_layer(name, text, wanted, tmp_path):
    (tmp_path / "fc.syntxt").write_text(text)
    store, initial = WeightStore(tmp_path), INITIAL if name == "weights" else INITIAL[:, 0]
    if wanted is None:
        assert error(lambda: load(store, name, initial)) == f"E421 the weights 'fc_{name}' are not in {tmp_path}"
    elif isinstance(wanted, str):
        assert error(lambda: load(store, name, initial)) == f"E423 {tmp_path / 'fc.syntxt'} {wanted}"
    else:
        assert load(store, name, initial).tolist() == wanted


def test_one_file_of_outputs_of_different_lengths(tmp_path):
    """As many weights as each output is connected to, then its bias."""
    (tmp_path / "fc.syntxt").write_text("1 2 10 3 20 4 5 6 30 40")
    store, rows = WeightStore(tmp_path), (2, 1, 3, 0)
    assert load(store, "weights", np.zeros(6, np.float32), rows).tolist() == [1, 2, 3, 4, 5, 6]
    assert load(store, "biases", np.zeros(4, np.float32), rows).tolist() == [10, 20, 30, 40]


def test_a_missing_array_may_be_ignored(tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda text, *given: notes.append(text % given))
    store = WeightStore(tmp_path, ignore_missing=True)
    assert load(store) is INITIAL and store.initial == []
    assert notes == [f"net.ini:7 [fc]: no 'fc_weights' in {tmp_path}; initial values are kept"]
    assert store.load("fc", "biases", INITIAL, None) is INITIAL
    assert notes[1] == f"fc: no 'fc_biases' in {tmp_path}; initial values are kept"


@pytest.mark.parametrize(("name", "what"), [("fc_weights.npy", ".npy"), ("fc_weights.syntxt", ".syntxt")])
def test_files_that_cannot_be_read(name, what, tmp_path):
    (tmp_path / name).write_bytes(b"\xff\xfe no")
    with pytest.raises(N2D2Error) as caught:
        load(WeightStore(tmp_path))
    assert caught.value.code == "E422" and caught.value.what.startswith(f"not a readable {what} file (")
    assert str(caught.value.where) == str(tmp_path / name)


def test_a_damaged_npz_file(tmp_path):
    (tmp_path / "w.npz").write_bytes(b"PK")
    found = error(lambda: WeightStore(tmp_path / "w.npz"))
    assert found.startswith("E422 not a readable .npz file (")


def test_arrays_of_an_npz_file_by_their_names(tmp_path):
    """Nothing else is looked for."""
    arrays: dict[str, Any] = {"fc_weights": INITIAL, "a/b_weights": INITIAL + 1}
    np.savez(tmp_path / "w.npz", **arrays)
    (tmp_path / "fc.syntxt").write_text("1 2")
    store = WeightStore(tmp_path / "w.npz")
    assert store.has("fc", "weights") and store.has("a/b", "weights") and not store.has("fc", "biases")
    assert store.load("a/b", "weights", INITIAL, None)[0, 0] == 10
    assert (
        error(lambda: load(store, "biases", INITIAL[:, 0])) == f"E421 the weights 'fc_biases' are not in {tmp_path / 'w.npz'}"
    )


def opened(folder: Path, option: str | None, validation: bool = False, ignore: bool = False) -> WeightStore:
    return open_weights(option, has_validation=validation, folder=folder, ignore_missing=ignore)


@pytest.mark.parametrize("ignore", [False, True])
def test_the_option(ignore, tmp_path):
    log.setup(quiet=True)
    (tmp_path / "given").mkdir()
    np.savez(tmp_path / "w.npz", fc_weights=INITIAL)
    for name in ("given", "w.npz"):
        store = opened(tmp_path, str(tmp_path / name), ignore=ignore)
        assert store.path == tmp_path / name and store.ignore_missing == ignore
    assert opened(tmp_path, "/dev/null", ignore=ignore).path is None
    assert opened(tmp_path, None, ignore=ignore).path is None
    (tmp_path / "weights").write_text("a file is no default")
    assert opened(tmp_path, None, ignore=ignore).path is None
    (tmp_path / "weights_validation").mkdir()
    store = opened(tmp_path, None, True, ignore)
    assert store.path == tmp_path / "weights_validation" and store.ignore_missing == ignore
    missing = str(tmp_path / "none")
    assert error(lambda: opened(tmp_path, missing)) == f"E420 the weights {missing} do not exist"


def test_an_option_that_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert error(lambda: opened(tmp_path, str(tmp_path / "pipe"))) == "E422 no regular file"
    (tmp_path / "nothing").symlink_to("/dev/null")
    assert not opened(tmp_path, str(tmp_path / "nothing")).has("fc", "weights")
