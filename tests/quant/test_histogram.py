"""Histograms: exact counts whatever the order of the data; clipping thresholds against brute force and known cases."""

import math

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic.histogram import (
    BINS,
    CLIPPING_MODES,
    WEIGHT_CLIPPING_MODES,
    Histogram,
    activation_threshold,
    kl_threshold,
    mse_threshold,
    quantile_threshold,
)
from n2d2py.arithmetic.weights import LayerWeights


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


@every("first, second", [(0.3, 5.0), (5.0, 0.3), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)])
def test_a_merged_histogram_is_that_of_all_values(first, second):
    parts = [np.array([scale, -scale / 3, 0.0, scale / 7], np.float32) for scale in (first, second)]
    both, merged = _filled(parts), _filled(parts[:1])
    merged.merge(_filled(parts[1:]))
    for role, values in both.to_arrays().items():
        np.testing.assert_array_equal(merged.to_arrays()[role], values)


def _histogram(values):
    histogram = Histogram()
    histogram.add(np.asarray(values, np.float32))
    return histogram


def _squared_error(values, threshold, levels):
    step = threshold / levels
    return float(np.mean((values - np.clip(np.rint(values / step), 0, levels) * step) ** 2))


def test_none_is_the_largest_magnitude():
    assert activation_threshold(_histogram([-3.0, 2.0]), "None", 127) == 3.0
    assert activation_threshold(_histogram([0.0]), "MSE", 127) == 1.0


@pytest.mark.parametrize("levels", [15, 255])
def test_mse_is_near_the_best_threshold(levels):
    values = np.abs(np.random.default_rng(0).normal(size=200_000)).astype(np.float32)
    values[0] = 40.0
    threshold = activation_threshold(_histogram(values), "MSE", levels)
    best = min(_squared_error(values, t, levels) for t in np.linspace(0.5, 40, 400))
    assert threshold < 39.0
    assert _squared_error(values, threshold, levels) <= best * 1.02


def test_mse_keeps_uniform_data():
    values = np.linspace(0, 1, 100_001)
    assert activation_threshold(_histogram(values), "MSE", 255) > 0.98


def test_quantile_counts_values():
    values = np.concatenate([np.full(9900, 1.0), np.full(100, 60.0)])
    assert activation_threshold(_histogram(values), "Quantile", 255, 0.98) == pytest.approx(1.0, abs=0.01)
    assert activation_threshold(_histogram(values), "Quantile", 255, 1.0) == 60.0


def test_kl_drops_a_far_outlier_and_keeps_a_plain_range():
    values = np.abs(np.random.default_rng(2).normal(size=100_000))
    clipped = activation_threshold(_histogram(np.append(values, 50.0)), "KL-Divergence", 127)
    assert 2.0 < clipped < 12.0
    assert activation_threshold(_histogram(np.linspace(0, 1, 100_001)), "KL-Divergence", 255) > 0.9


@pytest.mark.parametrize("levels", [7, 127, 255])
def test_the_least_threshold_is_the_32nd_part_of_the_largest_value(levels):
    """Of very many small values and a single large one the lowest candidate loses least, however low it lies."""
    counts = np.zeros(BINS, np.int64)
    counts[1 : BINS // 64], counts[-1] = 10**9, 1
    assert mse_threshold(counts, np.linspace(0.0, 4.0, BINS + 1), 4.0, levels) == pytest.approx(4.0 / 32, rel=0.05)


def _divergence(bins: list[float], kept: int, levels: int) -> float | None:
    """KL(p || q) of `kept` bins, what lies beyond added to the last one, in plain loops; None where q is empty."""
    p = bins[:kept]
    p[-1] += sum(bins[kept:])
    q = [0.0] * kept
    for level in range(levels):
        members = [at for at in range(kept) if min(at * levels // kept, levels - 1) == level]
        full = [at for at in members if bins[at] > 0]
        for at in full:
            q[at] = sum(bins[each] for each in members) / len(full)
    if not sum(q):
        return None
    return sum(a / sum(p) * math.log((a / sum(p)) / max(b / sum(q), 1e-12)) for a, b in zip(p, q, strict=True) if a > 0)


@every("seed", range(8))
def test_the_kl_threshold_is_the_best_of_all_bins(seed):
    """Of a range of less than 128 bins beyond the levels every end is tried; ties go to the larger one."""
    rng = np.random.default_rng(seed)
    levels, last = int(rng.integers(3, 20)), int(rng.integers(2, 60))
    bins = np.zeros(2048, np.int64)
    bins[:last] = rng.integers(0, 50, last) * (rng.random(last) < 0.8)
    bins[last - 1] = rng.choice([1, 30])
    counts = np.zeros(BINS, np.int64)
    counts[3 :: BINS // 2048] = bins
    wanted, least = last, math.inf
    for kept in range(last, min(levels, last) - 1, -1):
        found = _divergence(list(map(float, bins)), kept, levels)
        if found is not None and found < least - 1e-9:
            wanted, least = kept, found
    found = kl_threshold(counts, np.linspace(0.0, 2.0, BINS + 1), levels)
    at = round(found / 2.0 * 2048)
    divergence = _divergence(list(map(float, bins)), at, levels)
    assert at == wanted or (divergence is not None and abs(divergence - least) < 1e-9)


@every(("quantile", "wanted"), [(0.25, 1), (0.26, 4), (0.75, 4), (0.76, BINS), (0.999, BINS), (1.0, BINS)])
def test_the_quantile_ends_with_the_bin_that_reaches_it(quantile, wanted):
    counts = np.zeros(BINS, np.int64)
    counts[0], counts[3], counts[-1] = 25, 50, 25
    assert quantile_threshold(counts, np.arange(BINS + 1.0), quantile) == wanted


@every("mode", CLIPPING_MODES)
def test_a_threshold_is_at_most_the_largest_value(mode):
    for values in ([0.75], [-0.75], [0.75, 0.0, -0.1], np.linspace(-0.75, 0.5, 1000)):
        assert 0 < activation_threshold(_histogram(values), mode, 255) <= 0.75
    assert activation_threshold(Histogram(), mode, 255) == 1.0


@pytest.mark.parametrize("mode", WEIGHT_CLIPPING_MODES)
def test_weights_of_zero_have_some_scale(mode):
    weights = np.zeros((3, 4), np.float32)
    found = LayerWeights(weights, np.ones(3), 0.5, 255, clipping=mode).quantize()
    assert not found.weights.any() and (found.scales == 1 / 127).all()
    weights[1, 2] = 2.0
    found = LayerWeights(weights, np.ones(3), 0.5, 255, clipping=mode).quantize()
    assert found.weights[1, 2] == 127 and np.count_nonzero(found.weights) == 1
