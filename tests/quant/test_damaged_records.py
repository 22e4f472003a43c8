"""Statistics as files: the same bytes for the same numbers, and what is no histogram is refused."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from support.tables import every

from n2d2py.quant.observe.histogram import BINS, Histogram
from n2d2py.quant.statistics import save_arrays


def stored(**changes) -> dict[str, np.ndarray]:
    """A histogram of some values as arrays, with `limit`, `minimum`, `maximum`, `count`, `zeros` or whole arrays changed."""
    histogram = Histogram()
    histogram.add(np.array([0.0, 0.5, -3.0, 2.0], np.float32))
    arrays = {name: np.array(array) for name, array in histogram.to_arrays().items()}
    for key, value in changes.items():
        for name, names in (("numbers", ("limit", "minimum", "maximum")), ("counts", ("count", "zeros"))):
            if key in names:
                arrays[name] = arrays[name].copy()
                arrays[name][names.index(key)] = value
        if key in arrays:
            arrays[key] = value
    return arrays


DAMAGED = [
    {"limit": -1.0},
    {"limit": np.inf},
    {"limit": np.nan},
    {"zeros": -1},
    {"zeros": 5},
    {"minimum": np.nan},
    {"maximum": np.nan},
    {"positive": np.zeros(BINS - 1, np.int64)},
    {"negative": np.zeros((BINS, 1), np.int64)},
    {"positive": np.zeros(BINS, np.float32)},
    {"negative": np.full(BINS, -1, np.int64)},
    {"positive": np.arange(BINS) - 1},
]


@every("change", DAMAGED, ids=lambda change: ", ".join(change))
def test_damaged_histograms_are_refused(change):
    with pytest.raises(ValueError, match="damaged"):
        Histogram.from_arrays(stored(**change))


@every("change", [{}, {"zeros": 0}, {"zeros": 4}, {"limit": 0.0}, {"count": 1}])
def test_what_is_sound_is_read(change):
    arrays = stored(**change)
    again = Histogram.from_arrays(arrays).to_arrays()
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)


def test_files_of_arrays_carry_no_time(tmp_path):
    """The first moment that a ZIP file can name stands in all of them."""
    arrays = {"a": np.arange(5), "b": np.zeros((2, 3), np.float32)}
    save_arrays(tmp_path / "one.npz", arrays)
    save_arrays(tmp_path / "two.npz", arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    with np.load(tmp_path / "one.npz") as found:
        assert all(np.array_equal(found[name], array) and found[name].dtype == array.dtype for name, array in arrays.items())
