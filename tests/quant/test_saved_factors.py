"""Statistics with factors of channels are read as they were written."""

from __future__ import annotations

import numpy as np

from n2d2py.quant.observe.histogram import Histogram
from n2d2py.quant.statistics import Statistics


def test_factors_of_channels_are_kept(tmp_path):
    histogram = Histogram()
    histogram.add(np.array([1.0, -2.0], np.float32))
    factors = {"a": np.array([1.0, 2.5]), "b/c": np.array([3.0])}
    Statistics({"x": histogram}, 7, "key", "data", factors).save(tmp_path / "s.npz")
    found = Statistics.load(tmp_path / "s.npz", "key")
    assert found.factors.keys() == factors.keys() and (found.stimuli, found.data) == (7, "data")
    assert all(np.array_equal(found.factors[name], array) for name, array in factors.items())
