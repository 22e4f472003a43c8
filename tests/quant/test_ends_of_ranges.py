"""Values at the ends of what is searched and of what integers hold."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.quant.calibration import quantize
from n2d2py.quant.histogram import BINS, Histogram
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.sensitivity import layer_losses
from n2d2py.quant.statistics import collect
from n2d2py.quant.thresholds import activation_threshold, kl_threshold


def test_no_threshold_is_below_a_thirty_second_of_the_largest():
    """One step, nearly all values at 1, one of them far away."""
    for largest, least in ((33.0, 1.0), (40.0, 1.25)):
        histogram = Histogram()
        histogram.add(np.append(np.full(300_000, 1.0), largest).astype(np.float32))
        found = activation_threshold(histogram, "MSE", 1)
        assert max(least, largest / 32) == pytest.approx(found, rel=0.001)


@pytest.mark.parametrize("levels", [2046, 1500, 1030, 1025, 3])
def test_a_histogram_of_hardly_more_bins_than_levels_has_a_threshold(levels):
    """Even counts over 1,030 of the 2,048 bins: nothing need be clipped, and nothing is gained by it."""
    counts = np.zeros(BINS, np.int64)
    counts[: 1030 * 8] = 1
    edges = np.linspace(0, 2.0, BINS + 1)
    assert kl_threshold(counts, edges, levels) == edges[1030 * 8]


def _gain(weight: float) -> Graph:
    graph = Graph("net")
    graph.add_input("x", (1, 1, 1, 4))
    params = {"weights": np.full((1, 1, 1, 1), weight, np.float32), "bias": np.zeros(1, np.float32)}
    graph.add(Node("y", Conv(), ["x"], ["y"], params))
    graph.outputs = ["y"]
    return graph


@pytest.mark.parametrize(("steps", "share"), [(126.9, 0.0), (127.4, 0.0), (127.6, 0.25), (-127.4, 0.0), (-127.6, 0.25)])
def test_a_value_is_clipped_half_a_step_beyond_the_last_integer(steps, share):
    graph = _gain(1.0)
    seen = np.array([[[[1.0, -1.0, 0.5, 0.25]]]], np.float32)
    quantized, _ = quantize(graph, collect(graph, [seen]).histograms, QuantOptions())
    stimulus = seen.copy()
    stimulus[0, 0, 0, 3] = steps * quantized.type("y").scale
    (loss,) = layer_losses(graph, quantized, stimulus)
    assert loss.saturated == share
    assert loss.cause != "clipping" if share == 0 else loss.cause in ("clipping", "inputs")
