"""Histograms: exact counts whatever the order and the split of the data."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.quant.observe.histogram import BINS, Histogram


def _filled(parts):
    histogram = Histogram()
    for part in parts:
        histogram.add(part)
    return histogram


def test_order_and_split_do_not_matter():
    generator = np.random.default_rng(1)
    data = [generator.normal(scale=s, size=5000).astype(np.float32) for s in (0.01, 1.0, 30.0)]
    data.append(np.array([0.0, 1.0, -1.0, 2.0, -4.0, 0.0], np.float32))
    one, other = _filled(data), _filled(data[::-1])
    merged = _filled(data[:2])
    merged.merge(_filled(data[2:]))
    for histogram in (other, merged):
        assert np.array_equal(one.positive, histogram.positive)
        assert np.array_equal(one.negative, histogram.negative)
        assert (one.limit, one.minimum, one.maximum, one.zeros) == (
            histogram.limit,
            histogram.minimum,
            histogram.maximum,
            histogram.zeros,
        )


def test_counts_are_complete_and_in_place():
    values = np.array([0.0, 0.0, 0.25, -0.5, 0.75], np.float32)
    histogram = _filled([values])
    assert histogram.limit == 1.0 and histogram.zeros == 2
    assert histogram.positive[BINS // 4] == 1 and histogram.positive[3 * BINS // 4] == 1
    assert histogram.negative[BINS // 2 - 1] == 1
    counts, edges = histogram.magnitudes()
    assert counts.sum() == 5 and counts[0] == 2 and edges[-1] == 1.0
    assert abs(histogram.mean - 0.1) <= 1 / BINS
    assert abs(histogram.deviation - values.std()) <= 1 / BINS


def test_values_in_the_middle_of_bins_have_their_own_mean_and_deviation():
    values = np.array([0.5, -5.5, 100.5, BINS - 0.5, -8192.5], np.float32) / BINS
    histogram = _filled([values])
    assert histogram.mean == pytest.approx(values.mean(dtype=np.float64), rel=1e-12)
    assert histogram.deviation == pytest.approx(values.std(dtype=np.float64), rel=1e-12)


def test_zero_tensor_then_values():
    histogram = _filled([np.zeros(10, np.float32), np.array([3.0], np.float32)])
    assert histogram.largest == 3.0 and histogram.count == 11 and histogram.magnitudes()[0][0] == 10


def test_storage_round_trip():
    histogram = _filled([np.array([1.0, -2.5, 0.0], np.float32)])
    again = Histogram.from_arrays(histogram.to_arrays())
    assert again.limit == histogram.limit and again.deviation == histogram.deviation
    assert np.array_equal(again.positive, histogram.positive)


def test_values_that_are_not_finite_are_refused():
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="values that are not finite"):
            Histogram().add(np.array([1.0, value, 2.0], np.float32))


def test_blocks_give_the_counts_of_one_piece():
    values = np.random.default_rng(7).normal(size=300_001).astype(np.float32)
    whole = _filled([values])
    bins = np.floor(np.abs(values[values > 0]).astype(np.float64) * BINS / whole.limit).astype(int)
    assert np.array_equal(whole.positive, np.bincount(bins, minlength=BINS))
    assert whole.positive.sum() + whole.negative.sum() + whole.zeros == whole.count == values.size


def test_an_empty_histogram_has_neither_mean_nor_deviation():
    empty = Histogram()
    assert (empty.mean, empty.deviation, empty.largest, empty.count) == (0.0, 0.0, 0.0, 0)
    empty.add(np.zeros((0, 3), np.float32))
    empty.merge(Histogram())
    assert (empty.limit, empty.minimum, empty.maximum, empty.deviation) == (0.0, np.inf, -np.inf, 0.0)
    counts, edges = empty.magnitudes()
    assert not counts.any() and edges[-1] == 1.0


@every(
    "change",
    [
        {"positive": np.zeros(BINS + 1, np.int64)},
        {"negative": np.zeros((BINS, 1), np.int64)},
        {"positive": np.zeros(BINS)},
        {"negative": np.array([-1, *[0] * (BINS - 1)])},
        {"negative": np.array([*[0] * (BINS - 1), -1])},
        {"numbers": np.array([-1.0, 0.0, 1.0])},
        {"numbers": np.array([np.inf, 0.0, 1.0])},
        {"numbers": np.array([1.0, np.nan, 1.0])},
        {"numbers": np.array([1.0, 0.0, np.nan])},
        {"counts": np.array([3, 4])},
        {"counts": np.array([3, -1])},
    ],
)
def test_damaged_arrays_are_refused(change):
    good = _filled([np.array([1.0, -2.5, 0.0], np.float32)]).to_arrays()
    with pytest.raises(ValueError, match="a histogram's (counts|limits) are damaged"):
        Histogram.from_arrays({**good, **change})


@pytest.mark.parametrize("change", [{"counts": np.array([3, 3])}, {"counts": np.array([3, 0])}, {"numbers": np.zeros(3)}])
def test_arrays_at_the_limits_are_read(change):
    good = _filled([np.array([1.0, -2.5, 0.0], np.float32)]).to_arrays()
    found = Histogram.from_arrays({**good, **change})
    for role, values in change.items():
        np.testing.assert_array_equal(found.to_arrays()[role], values)


@every("first, second", [(0.3, 5.0), (5.0, 0.3), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)])
def test_a_merged_histogram_is_that_of_all_values(first, second):
    parts = [np.array([scale, -scale / 3, 0.0, scale / 7], np.float32) for scale in (first, second)]
    both, merged = _filled(parts), _filled(parts[:1])
    merged.merge(_filled(parts[1:]))
    for role, values in both.to_arrays().items():
        np.testing.assert_array_equal(merged.to_arrays()[role], values)
