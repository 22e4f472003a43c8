"""Corrections that are kept where they help on other stimuli, and ranges chosen again on what the integers before give."""

import numpy as np
import pytest
from support.branched_networks import data, error, network, quantized
from support.ops import Conv
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node
from n2d2py.quant.calibration import quantize
from n2d2py.quant.correct.layers import gain, refinable_tensors, refined_type, split
from n2d2py.quant.observe.layerwise import SAMPLE_BATCH
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.reference.engine import FloatEngine


def batches(stimuli: np.ndarray) -> list[np.ndarray]:
    return [stimuli[k : k + SAMPLE_BATCH] for k in range(0, len(stimuli), SAMPLE_BATCH)]


def integers(stimuli: np.ndarray, **options):
    """(float network, integers, types) of the branched network; inputs have the range -1..1."""
    graph = insert_conversions(network())
    histograms = collect(graph, [data(16)]).histograms
    return graph, *quantize(graph, histograms, QuantOptions(**options), {"x": (-1.0, 1.0)}, batches(stimuli))


def error_of(graph, typed, x: np.ndarray) -> float:
    """Root of squared error by power, mean of the squares over outputs."""
    real, stored = FloatEngine(graph).run(x), simulate(typed, quantize_inputs(typed, [x]))
    shares = [
        np.square(typed.type(name).dequantize(stored[name]).astype(np.float64) - real[name]).sum()
        / np.square(real[name], dtype=np.float64).sum()
        for name in graph.outputs
    ]
    return float(np.sqrt(np.mean(shares)))


@every("count, held", [(1, 0), (2, 0), (3, 1), (8, 2), (48, 16), (100, 32), (300, 32)])
def test_the_stimuli_are_parted(count, held):
    stimuli = np.arange(count, dtype=np.float32).reshape(-1, 1, 1, 1)
    parts = split(batches(stimuli))
    found = [np.concatenate(part).ravel().tolist() if part else [] for part in parts]
    assert len(found[1]) == held and sorted(found[0] + found[1]) == list(range(count))
    assert all(len(batch) <= SAMPLE_BATCH for part in parts for batch in part)
    assert held < 2 or max(np.diff(found[1])) <= -(-count // held)  # spread evenly


def test_the_gain_is_what_the_squared_error_loses():
    generator = np.random.default_rng(1)
    errors, inside = generator.normal(0.2, 1, (6, 3, 50)), generator.random((6, 3, 50)) < 0.8
    found = [((errors * inside)[k : k + 2].sum(2), inside[k : k + 2].sum(2)) for k in (0, 2, 4)]
    shift = np.array([0.3, -0.1, 0.0])
    after = errors - shift[None, :, None]
    lost = (np.square(errors) * inside).sum() - (np.square(after) * inside).sum()
    assert gain(shift, found) == pytest.approx(lost)


def test_the_figure_without_corrections_is_that_of_the_simulator():
    """Nearest rounding does not depend on the stimuli, so that the plain way is the network without corrections."""
    stimuli = data(96, 4)
    graph, _, types = integers(stimuli, correct_bias=True)
    plain = integers(stimuli)[1]
    held = np.concatenate(split(batches(stimuli))[1])
    assert types.biases is not None and types.biases.stimuli == len(held) == 32
    assert types.biases.plain == pytest.approx(error_of(graph, plain, held), rel=1e-6)


def test_the_figure_with_corrections_is_that_of_the_simulator():
    stimuli = data(96, 4)
    graph, typed, types = integers(stimuli, correct_bias=True)
    assert types.biases.used and set(types.biases.shifts) == set(types.biases.kept)
    held = np.concatenate(split(batches(stimuli))[1])
    assert types.biases.corrected == pytest.approx(error_of(graph, typed, held), rel=1e-6)
    assert types.biases.corrected < types.biases.plain
    fresh = data(64, 11)
    assert error_of(graph, typed, fresh) < error_of(graph, integers(stimuli)[1], fresh)


@pytest.mark.parametrize("count", [24, 96])
def test_corrections_that_others_contradict_are_dropped(count):
    """Stimuli that correct are positive, those held back negative: what rounding adds to the one it takes from the other."""
    stimuli = np.abs(data(count, 5)) * 0.9 + 0.1
    held = min(count // 3, 32)
    stimuli[[(k + 1) * count // held - 1 for k in range(held)]] *= -1
    _, typed, types = integers(stimuli, correct_bias=True)
    assert "a" in types.biases.dropped and "a" not in types.biases.shifts
    plain = integers(stimuli)[1]
    pairs = {
        p.name: (p.params["bias"], q.params["bias"])
        for p, q in zip(plain.nodes, typed.nodes, strict=True)
        if "bias" in p.params
    }
    unchanged = {name for name, (first, second) in pairs.items() if np.array_equal(first, second)}
    assert "a" in unchanged and set(pairs) - unchanged == set(types.biases.shifts)


def test_few_stimuli_correct_and_are_held_back_in_turn():
    _, typed, types = integers(data(12, 6), correct_bias=True)
    assert types.biases.stimuli == 4 and "held-back" in types.biases.line()
    again = integers(data(12, 6), correct_bias=True)[1]
    assert all(
        np.array_equal(p.params[r], q.params[r]) for p, q in zip(typed.nodes, again.nodes, strict=True) for r in p.params
    )
    few = integers(data(2, 6), correct_bias=True)[2]
    assert few.biases.stimuli == 0 and "not verified" in few.biases.line()


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
