"""Figures of the quantization of a few numbers, counted by hand: comparisons, levels, histograms, intervals, weights, choices."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.graph import Graph, Node, Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import FUNCTIONS, Clip
from n2d2py.operators.linear import scale_inputs
from n2d2py.quant.compare import Accumulator, Difference, decibels, first_difference
from n2d2py.quant.corrections import BiasCorrections
from n2d2py.quant.equalize import equalize, takes_channels
from n2d2py.quant.held_back import split
from n2d2py.quant.histogram import BINS, Histogram
from n2d2py.quant.level_counts import LevelCounts
from n2d2py.quant.mixed import measuring_stimuli, wide_tensors
from n2d2py.quant.narrow import can_be_narrow, has_narrow, narrowed, weight_counts, with_weight_bits
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.ranges import Counts, interval_type
from n2d2py.quant.states import KeptStates, recurrent_reach
from n2d2py.quant.thresholds import activation_threshold, quantile_threshold
from n2d2py.quant.types import nonnegative_tensors
from n2d2py.quant.weights import quantize_weights, range_nearest, round_nearest
from n2d2py.quant.widths import width

BYTE = NumType(8)


# ---- comparisons -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("signal", "error", "wanted"), [(100.0, 1.0, 20.0), (1.0, 10.0, -10.0), (0.0, 0.0, math.inf), (0.0, 1.0, -3000.0)]
)
def test_decibels(signal, error, wanted):
    assert decibels(signal, error) == pytest.approx(wanted)


def test_the_figures_of_a_layer_over_two_batches():
    """Steps of 0.5: 3 and 4 are stored as 6 and 7, that is 3.0 and 3.5; then 0 and 1 as 0 and 2; then 8 bits end at 63.5."""
    found = Accumulator("a", "t", BYTE.with_scale(0.5))
    found.add(np.array([[3.0, 4.0]]), np.array([[6, 7]], np.int8), alone=np.array([[6, 9]], np.int8))
    found.add(
        np.array([[0.0, 1.0], [100.0, -2.0]]), np.array([[0, 2], [127, -127]], np.int8), alone=np.array([[0, 3], [127, -4]])
    )
    result = found.result()
    signal, error = 9 + 16 + 1 + 10000 + 4, 0.25 + 36.5**2 + 61.5**2
    assert result.sqnr_db == pytest.approx(10 * math.log10(signal / error)) and result.max_error == 61.5
    power = 9 + 3.5**2 + 1 + 2 * 63.5**2
    assert result.cosine == pytest.approx((9 + 14 + 1 + 6350 + 127) / math.sqrt(signal * power))
    assert result.saturated == pytest.approx(2 / 6) and result.identical is None and result.exact is None
    alone = 0.25 + 0.25 + 36.5**2
    assert result.alone_db == pytest.approx(10 * math.log10(signal / alone)) and result.alone_error == 36.5
    assert (result.worst, result.missing, result.merged) == (2, 0, ())
    assert result.worst_db == pytest.approx(10 * math.log10(10004 / (36.5**2 + 61.5**2)))
    assert result.unused == 0 and (result.layer, result.tensor) == ("a", "t")


def test_an_exact_layer_has_no_error():
    found = Accumulator("a", "t", NumType(8, signed=False, scale=0.5))
    found.add(np.array([[3.0, 0.0]]), np.array([[6, 0]], np.uint8), compiled=np.ma.array([[6, 0]], mask=[[False, True]]))
    result = found.result()
    assert (result.sqnr_db, result.cosine, result.max_error, result.saturated) == (math.inf, 1.0, 0.0, 0.0)
    assert (result.identical, result.exact, result.missing, result.worst_db) == (True, True, 1, None)
    assert (result.alone_db, result.alone_error) == (None, None)


def test_the_first_difference_is_of_the_stimulus_among_all():
    found = Accumulator("a", "t", BYTE)
    for stored, compiled in (
        ([[1, 2]], [[1, 2]]),
        ([[3, 4], [5, 6]], [[3, 4], [5, 8]]),
        ([[7, 7]], [[0, 7]]),
        ([[1, 1]], [[1, 1]]),
    ):
        found.add(np.array(stored, float), np.array(stored, np.int8), compiled=np.array(compiled, np.int8))
    assert found.result().difference == Difference((2, 1), 6.0, 8.0) and found.result().identical is False
    slack = Accumulator("a", "t", BYTE)
    slack.add(np.array([[1.0]]), np.array([[1]], np.int8), compiled=np.array([[2]], np.int8), slack=0.001)
    assert (slack.result().identical, slack.result().exact) == (True, False)


@pytest.mark.parametrize(
    ("expected", "found", "kind", "slack", "differs"),
    [
        ([1, 2], [1, 2], BYTE, 0.0, None),
        ([1, 2], [1, 3], BYTE, 0.0, (1, 2.0, 3.0)),
        ([1, 2], [1, 3], BYTE, 0.001, None),  # by one at least
        ([1, 2], [1, 4], BYTE, 0.001, (1, 2.0, 4.0)),
        ([1, 2], [1, 27], BYTE, 0.1, None),  # 25 of 254
        ([1, 2], [1, 28], BYTE, 0.1, (1, 2.0, 28.0)),
        ([1.0, 100.0], [1.0099, 100.0], FLOAT32, 0.0, None),
        ([1.0, 100.0], [1.0101, 100.0], FLOAT32, 0.0, (0, 1.0, 1.0101)),
        ([1.0, 100.0], [2.9, 100.0], FLOAT32, 0.02, None),
        ([1.0, 100.0], [3.1, 100.0], FLOAT32, 0.02, (0, 1.0, 3.1)),
        ([math.inf, 1.0], [math.inf, 1.0], FLOAT32, 0.0, None),
        ([math.inf, 1.0], [-math.inf, 1.0], FLOAT32, 0.0, (0, math.inf, -math.inf)),
        ([math.nan, 1.0], [math.nan, 1.00009], FLOAT32, 0.0, None),
        ([1.0, math.nan], [1.0, 1.0], FLOAT32, 0.0, (1, math.nan, 1.0)),
        ([0.0], [9e-11], FLOAT32, 0.0, None),
        ([0.0], [2e-10], FLOAT32, 0.0, (0, 0.0, 2e-10)),
    ],
)
def test_where_two_arrays_differ_first(expected, found, kind, slack, differs):
    dtype = np.float64 if kind.is_float else np.int16
    result = first_difference(np.array(expected, dtype), np.array(found, dtype), kind, slack)
    if differs is None:
        assert result is None
    else:
        assert result is not None and result.index == (differs[0],)
        assert np.array_equal([result.expected, result.found], differs[1:], equal_nan=True)


@pytest.mark.parametrize(
    ("kind", "bins", "group", "first", "last"),
    [
        (NumType(8, scale=2.0), 128, 2, -255.0, 257.0),
        (NumType(8, signed=False, scale=2.0, zero_point=100), 128, 2, -201.0, 311.0),
        (NumType(4, scale=0.5), 15, 1, -3.75, 3.75),
        (NumType(16, False), 128, 512, -0.5, 65535.5),
    ],
)
def test_bins_of_whole_steps(kind, bins, group, first, last):
    found = LevelCounts(kind)
    assert (len(found.real), len(found.stored), found.group) == (bins, bins, group)
    assert (found.edges[0], found.edges[-1], len(found.edges)) == (first, last, bins + 1)
    assert found.unused == 1.0


def test_counts_of_levels():
    """Integers -127 to 127 of 0.5 each, in bins of two."""
    found = LevelCounts(NumType(8, scale=0.5))
    found.add(np.array([-99.0, -3.3, 0.2, 0.3, 63.5]), np.array([[-128, -6, 0], [0, 1, 999]]))
    assert {int(at): int(found.real[at]) for at in np.flatnonzero(found.real)} == {0: 1, 60: 1, 63: 1, 64: 1, 127: 1}
    assert {int(at): int(found.stored[at]) for at in np.flatnonzero(found.stored)} == {0: 1, 60: 1, 63: 2, 64: 1, 127: 1}
    assert (found.lowest, found.highest, found.unused) == (-127, 127, 0.0)
    few = LevelCounts(NumType(8))
    few.add(np.zeros(1), np.array([2]))
    assert few.unused == 1.0
    few.add(np.zeros(1), np.array([-5]))
    assert (few.lowest, few.highest, few.unused) == (-5, 2, 1 - 7 / 254)


# ---- bias corrections and stimuli ----------------------------------------------------------------
def test_what_is_said_of_corrections():
    shifts = {"a": np.zeros(1)}
    kept = BiasCorrections(7, ("a", "b"), ("c",), 0.125, 0.25, shifts)
    assert kept.used and kept.error == 0.125
    assert kept.line() == (
        "bias correction kept: error at the outputs on 7 held-back stimuli 0.125 with it (2 of 3 layers), 0.25 without"
    )
    dropped = BiasCorrections(7, ("a",), (), 0.5, 0.25)
    assert (
        not dropped.used
        and dropped.error == 0.25
        and dropped.line().startswith("bias correction dropped: error at the outputs")
    )
    assert BiasCorrections(0, ("a",), (), 0.0, 0.0, shifts).line() == (
        "bias correction: 1 of 1 layers, not verified: fewer than three stimuli leave none to hold back"
    )
    assert kept.as_dict() == {
        "used": True,
        "stimuli": 7,
        "error_corrected": 0.125,
        "error_plain": 0.25,
        "kept_layers": ["a", "b"],
        "dropped_layers": ["c"],
    }


@pytest.mark.parametrize(
    ("count", "held"),
    [
        (1, []),
        (2, []),
        (3, [2]),
        (5, [4]),
        (6, [2, 5]),
        (8, [3, 7]),
        (9, [2, 5, 8]),
        (96, [*range(2, 96, 3)]),
        (128, [*range(3, 128, 4)]),
    ],
)
def test_stimuli_that_are_held_back(count, held):
    first, second = split([np.arange(1)[:, None], np.arange(1, count)[:, None]])
    found = [int(x) for batch in second for x in batch[:, 0]]
    assert found == held
    assert [int(x) for batch in first for x in batch[:, 0]] == [n for n in range(count) if n not in held]


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        (1, [0]),
        (3, [0, 1, 2]),
        (16, list(range(16))),
        (17, [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16]),
        (31, list(range(0, 31, 2))),
        (151, list(range(0, 151, 10))),
    ],
)
def test_sixteen_stimuli_at_even_distances_are_measured(count, wanted):
    stimuli = np.arange(count)[:, None]
    assert measuring_stimuli([stimuli[:1], stimuli[1:]])[:, 0].tolist() == wanted


@pytest.mark.parametrize(
    ("costs", "remaining", "wide"),
    [
        ({"a": 8.0, "b": 1.0, "c": 1.0}, 0.25, "a"),
        ({"a": 8.0, "b": 1.0, "c": 1.0}, 0.125, "ab"),  # at most: 1 of 10 is left
        ({"c": 1.0, "b": 1.0, "a": 1.0, "d": 1.0}, 0.5, "ab"),
        ({"a": 0.0, "b": 0.0}, 0.1, ""),
        ({"a": 1.0, "b": 3.0}, 0.0, "ab"),
        ({"a": 1.0, "b": 3.0}, 1.0, ""),
        ({}, 0.1, ""),
    ],
)
def test_the_fewest_tensors_that_leave_a_share(costs, remaining, wide):
    assert wide_tensors(costs, remaining) == frozenset(wide)


# ---- histograms, intervals, thresholds -----------------------------------------------------------
def test_mean_and_deviation_of_a_few_values():
    found = Histogram()
    assert (found.mean, found.deviation, found.largest, found.limit) == (0.0, 0.0, 0.0, 0.0)
    half = 2.0 / BINS / 2
    found.add(np.array([1.5 + half, -0.5 - half, 0.0, 1.5 + half], np.float32))
    assert (found.limit, found.count, found.zeros, found.minimum, found.maximum) == (2.0, 4, 1, -0.5 - half, 1.5 + half)
    values = [1.5 + half, -0.5 - half, 0.0, 1.5 + half]  # the middles of their bins
    assert found.mean == pytest.approx(sum(values) / 4, rel=1e-12) and found.largest == 1.5 + half
    assert found.deviation == pytest.approx(float(np.std(values)), rel=1e-9)
    found.add(np.array([-5.0 - half], np.float32))
    assert (found.limit, found.minimum, found.largest) == (8.0, -5.0 - half, 5.0 + half)
    assert np.flatnonzero(found.positive).tolist() == [1.5 * BINS / 8]
    assert np.flatnonzero(found.negative).tolist() == [0.5 * BINS / 8, 5 * BINS / 8]


@pytest.mark.parametrize(
    ("bits", "low", "high", "zero", "scale"),
    [
        (8, -1.0, 3.0, 64, 3 / 191),
        (8, -3.0, 1.0, 191, 3 / 191),
        (8, 0.0, 5.1, 0, 5.1 / 255),
        (8, -5.1, 0.0, 255, 5.1 / 255),
        (8, -0.001, 5.0, 0, 5 / 255),
        (8, -5.0, 0.001, 255, 5 / 255),
        (4, -1.0, 1.0, 8, 1 / 7),
        (4, -1.0, 2.0, 5, 0.2),
    ],
)
def test_integers_over_an_interval(bits, low, high, zero, scale):
    kind = interval_type(bits, low, high)
    assert (kind.bits, kind.signed, kind.zero_point) == (bits, False, zero) and kind.scale == pytest.approx(scale, rel=1e-12)


def test_the_error_of_integers_at_values_and_at_what_reads_them():
    counts = Counts(np.array([-1.2, 0.3, 9.0]), np.array([2.0, 1.0, 3.0]), -1.2, 9.0)
    assert counts.error(NumType(3)) == pytest.approx(2 * 0.2**2 + 0.3**2 + 3 * 6**2)
    assert counts.error(NumType(3, signed=False, zero_point=1)) == pytest.approx(2 * 0.2**2 + 0.3**2 + 3 * 3**2)
    double = Counts(counts.x, counts.p, -1.2, 9.0, (lambda x: 2 * x, lambda x: np.minimum(x, 0)))
    assert double.error(NumType(3)) == pytest.approx(2 * (0.4**2 + 0.2**2) + 0.6**2 + 3 * 12**2)


@pytest.mark.parametrize(
    ("quantile", "wanted"),
    [(0.2, 0.25), (0.25, 0.25), (0.26, 0.5), (0.75, 0.5), (0.76, 1.0), (0.99, 1.0), (1.0, 2.0), (1.5, 2.0)],
)
def test_the_bin_at_which_a_share_is_reached(quantile, wanted):
    """A quarter of the values in the first of 8 bins, half in the second, the rest in the fourth; none behind it."""
    counts = np.array([1, 2, 0, 1, 0, 0, 0, 0])
    assert quantile_threshold(counts, np.linspace(0, 2, 9), quantile) == wanted


def test_no_threshold_is_above_the_largest_value():
    histogram = Histogram()
    histogram.add(np.array([0.3, 0.1], np.float32))
    assert activation_threshold(histogram, "Quantile", 127, 1.0) == histogram.largest == np.float32(0.3)


def test_the_range_of_a_hidden_state():
    assert recurrent_reach(None, 0.7) == 0.7
    node = Node("n", Conv(), ["x"], ["y"], {})
    assert recurrent_reach(node, 3.5) == 3.5


# ---- weights -------------------------------------------------------------------------------------
def test_integers_of_weights_by_hand():
    """Rows of largest magnitudes 1.27, 0.635 and 0: steps of 0.01, 0.005 and, for none, of the largest one or 1."""
    weights = np.array([[1.27, -0.5, 0.016], [0.635, 0.0, -0.01], [0.0, 0.0, 0.0]])
    bias = np.array([1.0, -2.0, 0.5])
    found = quantize_weights(weights, bias, 0.5, 10, bits=8, per_output=True)
    assert found.weights.tolist() == [[127, -50, 2], [127, 0, -2], [0, 0, 0]] and found.weights.dtype == np.int8
    assert found.scales.tolist() == pytest.approx([0.01, 0.005, 1.27 / 127])
    assert found.bias.tolist() == [200, -800, 100] and found.bias.dtype == np.int64
    assert (found.bound, found.widened, found.reduced) == (129 * 10 + 800, 0, 1.0)  # of the second one
    one = quantize_weights(weights, bias, 0.5, 10, bits=8, per_output=False)
    assert one.scales.tolist() == pytest.approx([0.01] * 3) and one.weights[1].tolist() == [64, 0, -1]
    wide = quantize_weights(weights, bias, 0.5, 10, bits=16, per_output=True)
    assert wide.weights.dtype == np.int16 and wide.weights[:, 0].tolist() == [32767, 32767, 0]


def test_a_sum_that_is_too_large_widens_its_scale_alone():
    weights = np.array([[1.0, 1.0], [1.0, 0.0]])
    found = quantize_weights(weights, np.zeros(2), 1.0, 10, bits=8, per_output=True, limit=2000)
    assert found.widened == 1 and found.scales[1] == 1 / 127 and found.bound <= 2000
    assert found.scales[0] == pytest.approx(1.27 * 1.01 / 127) and found.weights[0].tolist() == [99, 99]
    same = quantize_weights(weights, np.zeros(2), 1.0, 10, bits=8, per_output=False, limit=2000)
    assert same.widened == 1 and same.scales[0] == same.scales[1] == pytest.approx(2540 / 2000 * 1.01 / 127)
    just = quantize_weights(weights, np.zeros(2), 1.0, 10, bits=8, per_output=True, limit=2540)
    assert just.widened == 0 and just.bound == 2540


def test_rounding_to_the_nearest_keeps_to_the_levels():
    rows = np.array([[0.5, 1.5, -2.5, 9.0], [1.0, 3.0, 5.0, -99.0]])
    assert round_nearest(rows, np.array([1.0, 2.0]), 7).tolist() == [[0, 2, -2, 7], [0, 2, 2, -8]]
    each = np.array([[1.0, 3.0, 1.0, 9.0], [1.0, 1.0, 5.0, 11.0]])
    wide = np.array([[-200.0, -127.6, 200.0]])
    assert round_nearest(wide, np.ones(1), 127).tolist() == [[-127, -127, 127]], "bytes are symmetric"
    assert round_nearest(wide, np.ones(1), 63).tolist() == [[-64, -64, 63]], "fewer bits have one value more below"
    assert round_nearest(np.array([[-9.0, -1.6, 9.0]]), np.ones(1), 1).tolist() == [[-2, -2, 1]]
    assert round_nearest(rows, each, 7).tolist() == [[0, 0, -2, 1], [1, 3, 1, -8]]


def test_the_range_of_few_levels_is_at_least_half_of_the_largest():
    """One weight of 4 beside many of 1: with one level, 2 costs 4 for the first and 0 for the others where they round to 0 or 2."""
    rows = np.array([[4.0, 0.0, 0.0], [4.0, 2.0, 2.0]])
    assert range_nearest(rows, np.array([4.0, 4.0]), 1)[0] == 4.0
    second = range_nearest(rows, np.array([4.0, 4.0]), 1)[1]
    assert second == min(
        (np.linspace(4, 2, 51)).tolist(), key=lambda s: ((rows[1] - np.clip(np.rint(rows[1] / s), -2, 1) * s) ** 2).sum()
    )


# ---- equalization and widths ---------------------------------------------------------------------
def two_layers(activation=None, second: str = "conv", groups: int = 1) -> Graph:
    graph = Graph("net")
    graph.add_input("x", (1, 2, 1, 1))
    first = np.array([[4.0, -1.0], [0.5, 0.25]], np.float32).reshape(2, 2, 1, 1)
    graph.add(
        Node("a", Conv(), ["x"], ["a"], {"weights": first, "bias": np.array([8.0, 1.0], np.float32)}, activation=activation)
    )
    if second == "fc":
        weights, op = np.array([[1.0, -2.0], [0.5, 8.0], [0.1, 0.1]], np.float32), Fc()
    elif groups > 1:
        weights, op = np.array([1.0, 8.0], np.float32).reshape(2, 1, 1, 1), Conv(groups=groups)
    else:
        weights, op = np.array([[1.0, -2.0], [0.5, 8.0], [0.1, 0.1]], np.float32).reshape(3, 2, 1, 1), Conv()
    graph.add(Node("b", op, ["a"], ["b"], {"weights": weights, "bias": np.zeros(len(weights), np.float32)}))
    graph.outputs = ["b"]
    return graph


@pytest.mark.parametrize("second", ["conv", "fc", "depthwise"])
@pytest.mark.parametrize("activation", [None, Clip(0.0)])
def test_ranges_of_two_layers_become_equal(second, activation):
    """4 and 1 become 2 and 2: half; 0.5 and 8 become 2 and 2: four times."""
    graph = two_layers(activation, second, 2 if second == "depthwise" else 1)
    found = equalize(graph)
    assert np.allclose(found.node("a").params["weights"].reshape(2, 2), [[2, -0.5], [2, 1]])
    assert np.allclose(found.node("a").params["bias"], [4, 4])
    wanted = [2, 2] if second == "depthwise" else [[2, -0.5], [1, 2], [0.2, 0.025]]
    assert np.allclose(found.node("b").params["weights"].reshape(np.shape(wanted)), wanted)
    assert graph.node("a").params["bias"].tolist() == [8, 1]  # the graph is left as it is


@pytest.mark.parametrize("activation", [Clip(0.0, 6.0), Clip(-1.0)])
def test_other_rectifiers_are_left_alone(activation):
    found = equalize(two_layers(activation))
    assert found.node("a").params["bias"].tolist() == [8, 1]


def test_who_takes_channels_scaled():
    graph = two_layers()
    reader = graph.node("b")
    assert takes_channels(reader, "a") and not takes_channels(reader, "x")
    reader.inputs = ["a", "a"]
    assert not takes_channels(reader, "a")
    assert takes_channels(two_layers(None, "fc").node("b"), "a") and takes_channels(two_layers(None, "conv", 2).node("b"), "a")


def test_what_each_channel_meets_is_scaled():
    fc = Node("b", Fc(), ["a"], ["b"], {"weights": np.ones((2, 6), np.float32), "bias": np.zeros(2, np.float32)})
    scale_inputs(fc, np.array([2.0, 3.0]))
    assert fc.params["weights"].tolist() == [[2, 2, 2, 3, 3, 3]] * 2
    grouped = Node(
        "b", Conv(groups=2), ["a"], ["b"], {"weights": np.ones((4, 1, 1, 2), np.float32), "bias": np.zeros(4, np.float32)}
    )
    scale_inputs(grouped, np.array([2.0, 3.0]))
    assert grouped.params["weights"][:, 0, 0].tolist() == [[2, 2], [2, 2], [3, 3], [3, 3]]
    dense = Node("b", Conv(), ["a"], ["b"], {"weights": np.ones((3, 2, 1, 2), np.float32), "bias": np.zeros(3, np.float32)})
    scale_inputs(dense, np.array([2.0, 3.0]))
    assert dense.params["weights"][:, :, 0].tolist() == [[[2, 2], [3, 3]]] * 3


def chain(*sizes: int) -> Graph:
    """Fully connected layers f0, f1, ... behind x."""
    graph = Graph("net")
    graph.add_input("x", (1, sizes[0], 1, 1))
    source = "x"
    for number, (before, size) in enumerate(pairwise(sizes)):
        params = {"weights": np.ones((size, before), np.float32), "bias": np.zeros(size, np.float32)}
        graph.add(Node(f"f{number}", Fc(), [source], [f"f{number}"], params))
        source = f"f{number}"
    graph.outputs = [source]
    return graph


@pytest.mark.parametrize(
    ("sizes", "bits", "wanted"),
    [
        ((10, 10, 10, 10), 4, {"f1": 4, "f2": 4}),
        ((10, 10, 10, 10), 8, {"f0": 8, "f1": 8, "f2": 8}),
        ((10, 10, 38, 1), 4, {"f1": 4, "f2": 4}),  # 518 weights: 38 are more than a twentieth
        ((10, 20, 26, 2), 4, {"f1": 4, "f2": 4}),  # 52 of 772
        ((10, 40, 26, 2), 4, {"f1": 4}),  # 52 of 1,492
        ((20, 19, 40, 1), 4, {"f1": 4}),  # 40 of 1,180
        ((10, 5, 5, 1), 4, {"f1": 4, "f2": 4}),  # 5 of 80
        ((10, 7, 5, 1), 4, {"f1": 4}),  # 5 of 110
        ((95, 1, 1, 4), 4, {}),  # 1 and 4 of 100: just a twentieth
        ((94, 1, 1, 4), 4, {"f2": 4}),  # of 99
    ],
)
def test_layers_that_get_few_bits(sizes, bits, wanted):
    graph = narrowed(chain(*sizes), bits)
    found = {name: precision.weight_bits for name, precision in graph.precisions.items() if precision.weight_bits}
    assert found == wanted and has_narrow(graph) == (bits < 8 and bool(wanted))


def test_layers_with_a_width_of_their_own_keep_it():
    graph = with_weight_bits(chain(10, 10, 10, 10), {"f1": 8})
    assert narrowed(graph, 4).precision(graph.node("f1")).weight_bits == 8 and not has_narrow(graph)
    assert narrowed(graph, 4).precision(graph.node("f2")).weight_bits == 4
    graph.precisions["f2"] = Precision(bits=16)
    assert with_weight_bits(graph, {"f2": 7}).precision(graph.node("f2")) == Precision(bits=16, weight_bits=7)
    assert has_narrow(with_weight_bits(graph, {"f2": 7}))


def test_what_takes_less_memory_in_few_bits():
    graph = two_layers(None, "conv", 2)
    assert can_be_narrow(graph, graph.node("a")) and not can_be_narrow(graph, graph.node("b"))
    assert weight_counts(graph) == {"a": 4, "b": 2} and weight_counts(chain(2, 3, 4)) == {"f0": 6, "f1": 12}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, False),
        ({"correct_bias": True}, True),
        ({"adaptive_rounding": True}, True),
        ({"sequential": True}, True),
        ({"mixed": True}, False),
    ],
)
def test_what_needs_stimuli_layer_by_layer(changes, wanted):
    assert QuantOptions(**changes).needs_samples is wanted


def test_an_operator_that_says_so_is_never_negative():
    """As a plugin declares it, whatever its function."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 3, 4))
    for name, known in (("plain", False), ("squares", True)):
        kind = type("Declared", (Activation,), {"nonnegative": known})
        graph.add(Node(name, kind(FUNCTIONS["Tanh"]()), ["x"], [name], {}))
    assert nonnegative_tensors(graph, set()) == {"squares"}


@pytest.mark.parametrize(("outputs", "wanted"), [(["dead", "y"], 16), (["y"], 8)])
def test_scores_that_are_no_output_are_as_those_inside(outputs, wanted):
    """Nothing reads them."""
    graph = chain(4, 3)
    params = {"weights": np.ones((3, 4), np.float32), "bias": np.zeros(3, np.float32)}
    graph.add(Node("dead", Fc(), ["x"], ["dead"], params))
    graph.outputs = [name.replace("y", "f0") for name in outputs]
    source = {name: name for name in ("x", "f0", "dead")}
    found = width(graph, "dead", source, set(graph.outputs), {"dead": Histogram()}, None, QuantOptions(output_bits=0))
    assert found == wanted


def test_a_state_is_joined_in_the_type_of_the_widest_other_part():
    kept = KeptStates((), frozenset(), {"j": ("a", "b", "c")})
    types = {name: NumType(8).with_scale(scale) for name, scale in (("a", 0.5), ("b", 2.0), ("c", 1.0))}
    assert kept.of_join("j", types) == types["b"]
    assert kept.of_join("a", types) is None
