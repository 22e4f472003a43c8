"""Weights of 16 bits: which layers get them with `-quality best`, and how fine they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.branched_networks import data, error, network
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.graph import Node, Precision
from n2d2py.operators.fc import Fc
from n2d2py.quant.calibration import choose, observe, prepare, quantize_observed, settle
from n2d2py.quant.contract import LayerTypes, quantize_layer
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.search.mixed import Roundings
from n2d2py.quant.search.wide_weights import weight_costs, wide_layers
from n2d2py.stages.options import CalibrationOptions, QuantizationOptions, quant_options

BEST = QuantOptions(input_bits=16, output_bits=16, adaptive_rounding=True, mixed=True, wide_weights=True)


def observed(precisions: dict[str, Precision] | None = None, spoiled: str = "b"):
    """The branched network, the weights of one layer coarse because one of each output is large."""
    graph = network(precisions)
    node = graph.node(spoiled)
    weights = node.params["weights"].copy()
    weights[:, 0, 0, 0] = 30.0
    node.params = {**node.params, "weights": weights}
    samples = [data(4, seed) for seed in range(4)]
    return observe(prepare(graph, True, False), samples, samples, {"x": (-1.0, 1.0)}, False, "")


def widths(found) -> dict[str, int | None]:
    return {name: found.graph.precision(found.graph.node(name)).weight_bits for name in "abc"}


def test_layers_that_gain_most_for_their_weights_come_first():
    costs, counts = {"a": 4.0, "b": 4.0, "c": 1.0}, {"a": 100, "b": 10, "c": 1}
    roundings = Roundings(frozenset(), 11.0, 1.0)  # 20 in all, 10 left
    assert wide_layers(costs, counts, roundings, 0.5) == frozenset()
    assert wide_layers(costs, counts, roundings, 0.45) == {"c"}
    assert wide_layers(costs, counts, roundings, 0.3) == {"b", "c"}
    assert wide_layers(costs, counts, roundings, 0.1) == {"a", "b", "c"}
    assert wide_layers({}, {}, roundings) == frozenset()


def test_coarse_weights_cost_more_than_those_beside_them():
    found = observed()
    types = choose(found, replace(BEST, mixed=False))
    costs = weight_costs(found.graph, types, found.samples, data(8, 3), BEST)
    assert set(costs) == {"a", "b", "c"} and min(costs.values()) >= 0
    assert costs["b"] > costs["c"]  # a feeds both outputs
    own = observed({"b": Precision(weight_bits=8)})
    assert set(weight_costs(own.graph, types, own.samples, data(8, 3), BEST)) == {"a", "c"}


def test_best_widens_weights_where_these_are_what_is_left():
    plain = observed()
    found, options = settle(plain, BEST)
    assert widths(found)["b"] == 16 and not options.mixed and not options.wide_weights and options.wide
    assert settle(found, options) == (found, options)
    graph, _ = quantize_observed(plain, BEST)
    assert graph.nodes[1].params["weights"].dtype == np.int16
    bytes_only, _ = quantize_observed(plain, replace(BEST, wide_weights=False))
    assert error(plain.graph, graph, "add") < 0.5 * error(plain.graph, bytes_only, "add")


def test_what_a_section_says_stays():
    found, _ = settle(observed({"b": Precision(weight_bits=8)}), BEST)
    assert widths(found)["b"] == 8


def test_without_samples_or_mixed_precision_no_weights_are_widened():
    for found, options in ((replace(observed(), samples=[]), BEST), (observed(), replace(BEST, mixed=False))):
        same, plain = settle(found, options)
        assert same == found and widths(found) == dict.fromkeys("abc") and not plain.mixed and not plain.wide


@every(
    ("target", "quality", "asked", "wanted"),
    [
        ("CPP", "best", {}, True),
        ("CPP", "default", {}, False),
        ("CPP", "default", {"mixed": True}, False),
        ("CPP", "best", {"mixed": False}, False),
        ("CPP", "best", {"weight_bits": 8}, False),
        ("CPP", "best", {"flash_budget": 1000}, False),
        ("CPP", "best", {"bits": 16}, False),
        ("TFLite", "best", {}, False),
    ],
)
def test_who_asks_for_wide_weights(target, quality, asked, wanted):
    options = quant_options(CalibrationOptions(quality=quality), QuantizationOptions(**asked), target, {})
    assert options.wide_weights == wanted


@every(
    ("bits", "kind", "inputs", "finest"),
    [
        (8, NumType(8, False), 100, 32767),
        (8, NumType(8, False), 1000, 8421),  # 2^31 / (1000 * 255)
        (8, NumType(16), 30, 2184),
        (8, NumType(16), 250, 262),
        (8, NumType(16), 260, 32767),  # below 9 bits
        (16, NumType(16), 30, 2184),
        (16, NumType(16), 33, 32767),  # below 12 bits
    ],
)
def test_wide_weights_are_coarser_rather_than_their_sums_wider(bits, kind, inputs, finest):
    node = Node("y", Fc(), ["x"], ["y"], {"weights": np.ones((1, inputs), np.float32), "bias": np.zeros(1, np.float32)})
    found = quantize_layer(node, LayerTypes([kind.with_scale(0.01)], NumType(16), QuantOptions(bits=bits), weight_bits=16))
    assert int(found.params["weights"].max()) == pytest.approx(finest, rel=0.01)
    assert (found.bound < 2**31) == (finest < 32767 or inputs * 32767 * kind.qmax < 2**31)
