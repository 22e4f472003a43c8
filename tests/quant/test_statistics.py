"""Statistics of parts of the data: merged in any order those of all data, as files the same bytes; what is no histogram is refused."""

import zipfile
from itertools import permutations

import numpy as np
import pytest
from support.branched_networks import data, network
from support.errors import error_line, refused
from support.ops import Activation
from support.tables import every

from n2d2py.arithmetic.histogram import BINS, Histogram
from n2d2py.contracts.functions import Sqrt
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, Precision
from n2d2py.quant.statistics import Statistics, collect
from n2d2py.quant.types.float_fallback import insert_conversions


def stored(statistics: Statistics, path) -> bytes:
    """The bytes of a statistics file, tensors in the order of the graph."""
    names = sorted(statistics.histograms)
    Statistics({name: statistics.histograms[name] for name in names}, statistics.stimuli, "key").save(path)
    return path.read_bytes()


def test_shards_merge_exactly_in_every_order(tmp_path):
    graph, x = network(), data(60) * np.linspace(0.01, 50, 60, dtype=np.float32)[:, None, None, None]
    whole = stored(collect(graph, [x]), tmp_path / "whole.npz")
    shards = [collect(graph, [part]) for part in np.split(x, [1, 7, 30])]
    for number, order in enumerate(permutations(range(4))):
        merged = Statistics()
        for k in order:
            merged.merge(shards[k])
        assert stored(merged, tmp_path / f"{number}.npz") == whole
    nested = Statistics()
    for pair in ((3, 0), (2, 1)):
        half = Statistics()
        for k in pair:
            half.merge(shards[k])
        nested.merge(half)
    assert stored(nested, tmp_path / "nested.npz") == whole


@pytest.mark.parametrize("size", [1, 3, 64])
def test_batches_do_not_matter(tmp_path, size):
    graph, x = network(), data(50)
    parts = [x[start : start + size] for start in range(0, 50, size)]
    assert stored(collect(graph, parts), tmp_path / "a.npz") == stored(collect(graph, [x]), tmp_path / "b.npz")


def test_merging_leaves_the_shards_as_they_are(tmp_path):
    graph = network()
    first, second = collect(graph, [data(4)]), collect(graph, [data(4, 1) * 100])
    before = stored(second, tmp_path / "before.npz")
    first.merge(second)
    first.merge(second)
    assert stored(second, tmp_path / "after.npz") == before and first.stimuli == 12


def test_another_key_is_refused(tmp_path):
    statistics = collect(network(), [data(2)], "one")
    statistics.save(tmp_path / "s.npz")
    assert Statistics.load(tmp_path / "s.npz", "one").stimuli == 2
    assert "E503" in error_line(Statistics.load, tmp_path / "s.npz", "two")


@pytest.mark.parametrize("size", [1, 3, 64])
def test_the_values_of_the_stimuli_are_compared(tmp_path, size):
    x, path = data(50), tmp_path / "s.npz"
    collect(network(), [x[:20], x[20:]], "one").save(path)
    statistics = Statistics.load(path, "one")
    statistics.check_data(path, (x[start : start + size] for start in range(0, 50, size)))
    changed = x.copy()
    changed[-1, 0, 0, 0] += 1e-3
    for other in (changed, x[:-1], x[::-1]):
        assert refused(r"E503.*other stimuli", statistics.check_data, path, [other])


def test_a_real_output_that_is_not_a_number_during_calibration():
    """It has no range to measure, but no error of the network could be told from it."""
    graph = Graph("roots")
    graph.add_input("x", (1, 3, 2, 2))
    graph.add(Node("y", Activation(Sqrt()), ["x"], ["y"]))
    graph.outputs, graph.precisions = ["y"], {"y": Precision(quantize=False)}
    converted, values = insert_conversions(graph), np.ones((2, 3, 2, 2), np.float32)
    assert collect(converted, [values]).stimuli == 2
    values[1, 2, 0, 1] = -1
    with pytest.raises(N2D2Error, match="'y'") as caught:
        collect(converted, [values])
    assert caught.value.code == "E504"


def test_factors_of_channels_are_kept(tmp_path):
    histogram = Histogram()
    histogram.add(np.array([1.0, -2.0], np.float32))
    factors = {"a": np.array([1.0, 2.5]), "b/c": np.array([3.0])}
    Statistics({"x": histogram}, 7, "key", "data", factors).save(tmp_path / "s.npz")
    found = Statistics.load(tmp_path / "s.npz", "key")
    assert found.factors.keys() == factors.keys() and (found.stimuli, found.data) == (7, "data")
    assert all(np.array_equal(found.factors[name], array) for name, array in factors.items())


def record(**changes) -> dict[str, np.ndarray]:
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
        Histogram.from_arrays(record(**change))


@every("change", [{}, {"zeros": 0}, {"zeros": 4}, {"limit": 0.0}, {"count": 1}])
def test_what_is_sound_is_read(change):
    arrays = record(**change)
    again = Histogram.from_arrays(arrays).to_arrays()
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)


def test_files_of_statistics_carry_no_time(tmp_path):
    """The first moment that a ZIP file can name stands in all of them."""
    statistics = Statistics({"x": Histogram.from_arrays(record())}, 3, "key", "data", {"y": np.ones(3)})
    for name in ("one.npz", "two.npz"):
        statistics.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
