"""The error that the equalization of activation ranges expects, against loops over single weights, and against rounding itself."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip
from n2d2py.quant.channels import _expected_error, _factors
from n2d2py.quant.equalize import equalize


def reader(op, weights: np.ndarray) -> Node:
    return Node("r", op, ["x"], ["r"], {"weights": weights.astype(np.float32), "bias": np.zeros(len(weights), np.float32)})


@pytest.mark.parametrize("kind", ["conv", "one output", "fc"])
def test_the_expected_error_of_a_dense_layer(kind):
    rng = np.random.default_rng(1)
    outputs, channels, taps = (1 if kind == "one output" else 5), 3, (4 if kind == "fc" else 6)
    weights = rng.normal(size=(outputs, channels, taps)).astype(np.float32)
    node = (
        reader(Fc(), weights.reshape(outputs, -1)) if kind == "fc" else reader(Conv(), weights.reshape(outputs, channels, 2, 3))
    )
    factors, power, widest = np.array([1.0, 2.5, 7.0]), np.array([0.3, 4.0, 0.02]), 6.0
    wanted = 0.0
    for o in range(outputs):
        scaled = weights[o].astype(np.float64) / factors[:, None]
        step = np.abs(scaled).max() / 127
        for c in range(channels):
            for t in range(taps):
                lost = (scaled[c, t] - round(scaled[c, t] / step) * step) * factors[c]
                wanted += lost**2 * power[c]
                wanted += float(weights[o, c, t]) ** 2 * (widest / factors[c] / 255) ** 2 / 12
    assert _expected_error(node, factors, widest, power) == pytest.approx(wanted, rel=1e-6)


def test_the_expected_error_of_a_depthwise_layer():
    """Its weights have a scale each: only its inputs are rounded, and only the order of the errors counts."""
    weights = np.random.default_rng(2).normal(size=(3, 1, 2, 2)).astype(np.float32)
    node = reader(Conv(groups=3), weights)
    factors, widest = np.array([1.0, 2.0, 5.0]), 4.0
    wanted = sum(float(np.sum(weights[c].astype(np.float64) ** 2)) * (widest / factors[c]) ** 2 for c in range(3))
    assert _expected_error(node, factors, widest, np.ones(3)) == pytest.approx(wanted, rel=1e-6)


@every("seed", range(4))
def test_what_is_expected_is_what_rounding_loses(seed):
    """The mean squared error of the outputs over random inputs; of one weight tensor, so to a factor of two."""
    rng = np.random.default_rng(seed)
    largest = np.array([8.0, 0.5, 1.0, 0.1])
    weights = rng.normal(size=(16, 4)).astype(np.float32)
    x = rng.uniform(0, 1, (20_000, 4)) * largest
    node, power = reader(Fc(), weights), (x**2).mean(axis=0)

    def lost(factors: np.ndarray) -> float:
        step = 8.0 / 255
        inputs = np.rint(x * factors / step) * step
        scaled = weights / factors
        steps = np.abs(scaled).max(axis=1, keepdims=True) / 127
        return float(((inputs @ (np.rint(scaled / steps) * steps).T - x @ weights.T) ** 2).mean(axis=0).sum())

    for factors in (np.ones(4), np.sqrt(8 / largest), 8 / largest):
        expected = _expected_error(node, factors, 8.0, power)
        assert 0.5 < expected / lost(factors) < 2
    found = _factors(node, largest, power)
    assert found is not None and lost(found) < 0.98 * lost(np.ones(4)) and found[0] == 1.0


def test_channels_without_values_take_no_part():
    node = reader(Fc(), np.ones((2, 3)))
    assert _factors(node, np.zeros(3), np.zeros(3)) is None
    assert _factors(node, np.ones(3), np.ones(3)) is None
    found = _factors(reader(Conv(groups=3), np.ones((3, 1, 2, 2))), np.array([4.0, 0.0, 1.0]), np.ones(3))
    assert found is not None and found[1] == 1.0 and found[2] > found[0] == 1.0


@pytest.mark.parametrize("dead", ["weights", "readers"])
def test_channels_without_a_range_are_left_alone(dead):
    """Those of which one side is 0 have no factor: neither their shift nor what reads them changes, bit for bit."""
    rng = np.random.default_rng(4)
    graph = Graph("net")
    graph.add_input("x", (1, 3, 4, 4))
    first, second = rng.normal(size=(4, 3, 1, 1)), rng.normal(size=(5, 4, 1, 1))
    (first[2:3] if dead == "weights" else second[:, 2])[:] = 0
    for name, source, weights, activation in (("a", "x", first, Clip(0.0)), ("y", "a", second, None)):
        params = {"weights": weights.astype(np.float32), "bias": rng.normal(size=len(weights)).astype(np.float32)}
        graph.add(Node(name, Conv(), [source], [name], params, activation))
    graph.outputs = ["y"]
    before = {node.name: dict(node.params) for node in graph.nodes}
    after = equalize(graph)
    a, y = (after.node(name).params for name in "ay")
    for role in ("weights", "bias"):
        np.testing.assert_array_equal(a[role][2], before["a"][role][2])
    np.testing.assert_array_equal(y["weights"][:, 2], before["y"]["weights"][:, 2])
    assert not np.array_equal(a["weights"], before["a"]["weights"])
