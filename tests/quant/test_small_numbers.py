"""Rules of single numbers: what spoils 8 bits, thresholds of one value and of zeros, pictures that are high or wide."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Clip
from n2d2py.quant.calibration import quantize
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.thresholds import mse_threshold
from n2d2py.quant.widths import _is_spoiled
from n2d2py.quant.worst import stimulus_picture


@pytest.mark.parametrize("ratio", [0.9999, 1.0001])
def test_35_decibels_of_127_steps_spoil_an_input(ratio):
    """An error of step^2 / 12 against a signal of deviation^2, with steps of the largest value / 127."""
    deviation = np.sqrt((1 / 127) ** 2 / 12 * 10**3.5) * ratio
    histogram = cast(Any, SimpleNamespace(largest=1.0, deviation=float(deviation)))
    assert _is_spoiled(histogram) == (ratio < 1)


@pytest.mark.parametrize(("height", "width"), [(3000, 4), (4, 3000), (700, 20), (20, 20)])
def test_large_pictures_are_thinned_by_their_longer_side(height, width):
    found = stimulus_picture(np.random.default_rng(0).normal(size=(1, height, width)))
    tall = stimulus_picture(np.random.default_rng(0).normal(size=(1, width, height)))
    assert found is not None and tall is not None
    assert found.shape == tall.shape[::-1] and max(found.shape) <= max(height, width)
    every = -(-max(height, width) // max(found.shape))
    assert found.shape == (-(-height // every), -(-width // every))


@pytest.mark.parametrize("levels", [7, 127])
def test_zeros_take_no_part_in_a_threshold(levels):
    """They cost no error, whatever the step."""
    rng = np.random.default_rng(1)
    counts, edges = rng.integers(0, 50, 64), np.linspace(0, 4, 65)
    counts[0] = 0
    without = mse_threshold(counts, edges, 4.0, levels)
    counts[0] = 10**6
    assert mse_threshold(counts, edges, 4.0, levels) == without


@pytest.mark.parametrize("bits", [8, 16])
def test_a_rectifier_that_lets_nothing_through_has_a_range(bits):
    """Its zeros have every scale: what follows gives its biases."""
    rng, graph, bias = np.random.default_rng(4), Graph("g"), np.array([0.5, -1.0, 0.25], np.float32)
    graph.add_input("x", (1, 2, 4, 4))
    for name, source, function, shift in (("r", "x", Clip(0.0, 0.0), bias), ("y", "r", None, bias)):
        weights = rng.normal(size=(3, graph.shape(source)[1], 1, 1)).astype(np.float32)
        graph.add(Node(name, Conv(), [source], [name], {"weights": weights, "bias": shift}, function))
    graph.outputs = ["y"]
    x = rng.normal(size=(8, 2, 4, 4)).astype(np.float32)
    typed = quantize(graph, collect(graph, [x]).histograms, QuantOptions(bits), {"x": None}, [x])[0]
    values = simulate(typed, quantize_inputs(typed, [x]), keep=True)
    kind = typed.type("y")
    assert not values["r"].any()
    found = (values["y"].astype(np.float64) - kind.zero_point) * kind.scale
    np.testing.assert_allclose(found, np.broadcast_to(bias[:, None, None], found.shape), atol=kind.scale)
