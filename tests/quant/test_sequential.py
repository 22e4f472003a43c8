"""Ranges chosen again on what the integers of the layers before give."""

from __future__ import annotations

import numpy as np
import pytest
from support.branched_networks import data, error, network, quantized

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Clip
from n2d2py.quant.calibration import quantize
from n2d2py.quant.correct.sequential import refinable_tensors, refined_type
from n2d2py.quant.observe.histogram import Histogram
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.statistics import collect

NODE = Node("a", Conv(), ["x"], ["a"])


def test_a_range_that_is_too_small_grows_and_one_that_is_too_large_shrinks():
    values = np.random.default_rng(0).uniform(0, 10, 20000)
    for scale, wanted in ((10 / 255, 1.0), (10 / 255 / 1.2, 1.2), (10 / 255 / 0.7, 0.7)):
        kind = refined_type(NODE, NumType(8, False, scale=scale), [(values, values)])
        assert kind.scale / scale == pytest.approx(wanted, rel=0.04)
        assert (kind.bits, kind.signed) == (8, False)


def test_a_good_range_stays_as_it_is():
    values = np.random.default_rng(0).uniform(-1, 1, 20000)
    kind = NumType(8, True, scale=1 / 127)
    assert refined_type(NODE, kind, [(values, values + 1e-4)]) is kind


def test_what_the_layers_before_add_counts():
    """Values that the integers before push beyond the range of the float network need no room of their own."""
    exact = np.random.default_rng(0).uniform(0, 1, 20000)
    reached = np.where(exact > 0.99, 4.0, exact)
    kind = refined_type(NODE, NumType(8, False, scale=1.25 / 255), [(exact, reached)])
    assert kind.scale * 255 == pytest.approx(1.0, rel=0.05)


def test_outputs_and_what_a_max_pool_reads_are_left_alone():
    graph, _, types = quantized(network(), output_bits=8)
    assert set(refinable_tensors(graph, types)) == {"a", "b"}


def test_a_range_that_the_statistics_missed_is_found():
    """The statistics saw a part of the range; the samples show the rest."""
    graph = network()
    x = data(16)
    histograms = collect(graph, [x]).histograms
    seen, histograms["b"] = histograms["b"].maximum, Histogram()
    histograms["b"].add(np.random.default_rng(0).uniform(0, 0.85 * seen, 1000))
    found = {}
    for sequential in (False, True):
        typed = quantize(
            graph,
            dict(histograms),
            QuantOptions(sequential=sequential, correct_bias=True),
            {"x": (-1.0, 1.0)},
            [data(4, seed) for seed in range(4)],
        )[0]
        typed.verify()
        found[sequential] = error(graph, typed, "add"), typed.type("b").scale
    assert found[True][1] > 1.05 * found[False][1] and found[True][0] < found[False][0]


def test_tensors_that_hold_the_same_integers_change_together():
    from n2d2py.operators.padding import Padding

    graph, rng = Graph("net"), np.random.default_rng(0)
    graph.add_input("x", (1, 2, 6, 6))
    for name, source in (("a", "x"), ("b", "p")):
        graph.add(
            Node(
                name,
                Conv(),
                [source],
                [name],
                {"weights": rng.normal(size=(2, 2, 1, 1)).astype(np.float32), "bias": np.zeros(2, np.float32)},
                Clip(0.0),
            )
        )
        if name == "a":
            graph.add(Node("p", Padding((1, 1, 1, 1)), ["a"], ["p"]))
    graph.outputs = ["b"]
    x = rng.uniform(0, 1, (8, 2, 6, 6)).astype(np.float32)
    histograms = collect(graph, [x]).histograms
    seen, histograms["a"] = histograms["a"].maximum, Histogram()
    histograms["a"].add(np.linspace(0, 0.9 * seen, 1000))
    typed, types = quantize(graph, histograms, QuantOptions(sequential=True, act_clipping="None"), {"x": (0.0, 1.0)}, [x])
    typed.verify()
    assert typed.type("a") == typed.type("p") == types.types["a"]
    assert types.thresholds["a"] == pytest.approx(typed.type("a").scale * 255)
