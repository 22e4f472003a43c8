"""Clipping thresholds against brute force and known cases."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.quant.histogram import Histogram
from n2d2py.quant.thresholds import activation_threshold


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
