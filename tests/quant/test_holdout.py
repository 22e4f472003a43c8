"""Corrections of biases are kept where they lower the error on stimuli that they were not estimated from."""

from __future__ import annotations

import numpy as np
import pytest
from support.branched_networks import data, network
from support.tables import every

from n2d2py.quant.calibration import quantize
from n2d2py.quant.correct.holdout import gain, split
from n2d2py.quant.observe.layerwise import SAMPLE_BATCH
from n2d2py.quant.options import QuantOptions
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
