"""Layers in the network and alone, the worst stimuli, and the steps that are used."""

from dataclasses import replace

import numpy as np
import pytest
from support.branched_networks import data, network, quantized
from support.ops import Activation, Affine, ElemWise, Softmax
from support.small_graphs import graph_of
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import FUNCTIONS, Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.data.stimuli import Stimuli
from n2d2py.graph import Node
from n2d2py.quant.calibration import quantize
from n2d2py.quant.observe.compare import Accumulator, Difference, LevelCounts, first_difference
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.simulator import run_node, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.compare import compare_stage


def stimuli(count: int = 10, seed: int = 5) -> Stimuli:
    x = data(count, seed)
    return Stimuli([f"s{k}" for k in range(count)], np.full(count, -1), x.shape[1:], lambda position: x[position])


def by_layer(graph, typed, given=None):
    return {c.layer: c for c in compare_stage(graph, typed, given or stimuli(), None).layers}


def test_a_layer_alone_loses_no_more_than_in_the_network():
    graph, typed, _ = quantized(network())
    found = by_layer(graph, typed)
    assert found["a"].alone_db == pytest.approx(found["a"].sqnr_db) and found["a"].alone_error == found["a"].max_error
    for name in ("b", "c", "add"):
        assert found[name].alone_db > found[name].sqnr_db


def test_only_the_wrong_layer_is_wrong_alone():
    graph, typed, _ = quantized(network())
    before = by_layer(graph, typed)
    layer = next(node for node in typed.nodes if node.name == "a")
    layer.form = replace(layer.form, weights=np.roll(layer.form.weights, 1, axis=0))
    after = by_layer(graph, typed)
    assert after["a"].alone_db < 5 < before["a"].alone_db
    assert after["add"].sqnr_db < before["add"].sqnr_db - 10
    assert [after[name].alone_db for name in ("b", "c", "add")] == [before[name].alone_db for name in ("b", "c", "add")]


def test_the_worst_stimulus_is_named():
    graph, typed, _ = quantized(network())
    x = data(10, 5)
    x[7] *= 3  # beyond what was calibrated: clipped
    given = Stimuli([f"s{k}" for k in range(10)], np.full(10, -1), x.shape[1:], lambda position: x[position])
    comparison = compare_stage(graph, typed, given, None)
    worst = comparison.stimuli[0]
    assert (worst.name, worst.position) == ("s7", 7) and len(comparison.stimuli) == 10
    errors = [one.error for one in comparison.stimuli]
    assert errors == sorted(errors, reverse=True)
    assert {c.worst for c in comparison.layers} == {7}
    assert worst.image is None, "two channels are no picture"


def test_a_floating_point_export_has_no_isolation_and_no_levels():
    graph = network()
    for c in compare_stage(graph, float_graph(graph, -32), stimuli(), None).layers:
        assert c.alone_db is None and c.levels is None and c.unused == 0 and c.sqnr_db > 100


def test_the_unused_part_of_a_range():
    graph, typed, _ = quantized(network(), act_clipping="None")
    tensor = typed.tensors["b"]
    used = by_layer(graph, typed)["b"].unused
    typed.tensors["b"] = replace(tensor, type=tensor.type.with_scale(tensor.type.scale * 4))
    layer = next(node for node in typed.nodes if node.name == "b")
    layer.rescale = type(layer.rescale)(layer.rescale.factors / 4)
    assert by_layer(graph, typed)["b"].unused == pytest.approx(1 - (1 - used) / 4, abs=0.02)


@every(
    "kind",
    [
        NumType(8, False, scale=0.1),
        NumType(8, True, scale=2.0),
        NumType(16, True, scale=1e-3),
        NumType(8, True, scale=0.5, zero_point=3),
    ],
)
def test_levels_count_every_value_where_its_integer_is(kind):
    rng = np.random.default_rng(1)
    stored = rng.integers(kind.qmin, kind.qmax, 5000, endpoint=True).astype(kind.dtype)
    levels = LevelCounts(kind)
    for part in np.split(stored, 5):
        levels.add(kind.dequantize(part), part)
    assert np.array_equal(levels.real, levels.stored) and levels.real.sum() == 5000 and len(levels.real) <= 128
    real = kind.dequantize(stored)
    expected, _ = np.histogram(real, levels.edges)
    assert np.array_equal(expected, levels.stored)
    levels.add(np.array([1e6]), np.array([kind.qmax], kind.dtype))
    assert levels.unused == 0 or levels.lowest > kind.qmin


FLOAT32 = NumType(32, signed=True, is_float=True)


def row(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


def test_masked_elements_are_not_compared():
    kind = NumType(8, signed=True)
    expected = np.arange(12, dtype=np.int8).reshape(1, 1, 4, 3)
    missing = np.zeros(expected.shape, bool)
    missing[:, :, 1] = True
    found = np.ma.masked_array(np.where(missing, 0, expected), missing)
    assert first_difference(expected, found, kind) is None
    found[0, 0, 2, 1] = 99
    difference = first_difference(expected, found, kind)
    assert (difference.index, difference.expected, difference.found) == ((0, 0, 2, 1), 7, 99)
    layer = Accumulator("a", "a", kind)
    layer.add(expected.astype(float), expected, found)
    assert (layer.result().identical, layer.result().missing) == (False, 3)


def test_figures_of_nan_are_nan():
    layer = Accumulator("a", "a", FLOAT32)
    layer.add(row(1, np.nan), row(1, np.nan), row(1, np.nan))
    found = layer.result()
    assert found.identical and all(map(np.isnan, (found.sqnr_db, found.cosine, found.max_error)))


@pytest.mark.parametrize("beyond, differs", [(-128, False), (-126, True)])
def test_real_numbers_of_a_target_are_held_within_the_integers_that_they_are_made_of(beyond, differs):
    """Runtimes cut at -128 where the tool cuts at -127; another step is a difference."""
    graph = graph_of(
        {"x": (1, 2, 4, 4)},
        Node("a", Activation(FUNCTIONS["Tanh"]()), ["x"], ["a"]),
        Node("s", Softmax(log=True), ["a"], ["s"]),
        Node("b", Activation(Clip(0.25)), ["s"], ["b"]),
    )
    graph = insert_conversions(graph)
    x = np.linspace(-4, 4, 10 * 32, dtype=np.float32).reshape(10, 2, 4, 4)
    typed, _ = quantize(graph, collect(graph, [x]).histograms, QuantOptions(unsigned=False, equalize=False, output_bits=8))

    class Target:
        """Python's values, but for the real numbers of the least integers of the function."""

        def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
            stored = simulate(typed, list(inputs), keep=True)
            real = {node.output: typed.type(node.output).dequantize(stored[node.output]) for node in typed.nodes}
            kind = typed.type("a")
            assert stored["a"].min() == kind.qmin == -127
            real["a_float"] = np.where(stored["a"] == kind.qmin, np.float32(beyond * kind.scale), real["a_float"])
            return real

    given = Stimuli([f"s{k}" for k in range(10)], np.full(10, -1), x.shape[1:], lambda position: x[position])
    found = {c.layer: c for c in compare_stage(graph, typed, given, Target(), slack=1 / 170).layers}
    assert (found["a_float"].difference is not None) == differs


def test_a_difference_in_an_edge_sample_alone_changes_no_figure():
    graph, typed, _ = quantized(network())

    class Target:
        """Python's integers, but for one of the layer "b" where all inputs are zeros."""

        def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
            stored = simulate(typed, list(inputs), keep=True)
            silent = (inputs[0] == typed.type("x").zero_point).all(axis=(1, 2, 3))
            found = {node.name: stored[node.output].copy() for node in typed.nodes}
            found["b"][silent, 0, 0, 1] += 1
            return found

    before, after = by_layer(graph, typed), {c.layer: c for c in compare_stage(graph, typed, stimuli(), Target()).layers}
    assert after["b"].identical is False and after["a"].identical is True
    assert (after["b"].difference.index, after["b"].difference.sample) == ((0, 0, 1), "the sample of zeros")
    for name, one in before.items():
        assert (one.sqnr_db, one.cosine, one.saturated) == (after[name].sqnr_db, after[name].cosine, after[name].saturated)


@pytest.mark.parametrize("error, differs", [(0.0, False), (1.0, True)])
def test_a_difference_of_numbers_that_a_target_never_rounds(error, differs):
    """`error`: steps of the inputs by which the target's difference is wrong; half a step is many of the result."""
    graph = graph_of(
        {"x": (1, 2, 4, 4)},
        Node("a", Affine(), ["x"], ["a"], {"weights": np.full(2, 1.01, np.float32), "bias": np.zeros(2, np.float32)}),
        Node("b", Affine(), ["x"], ["b"], {"weights": np.full(2, 0.99, np.float32), "bias": np.zeros(2, np.float32)}),
        Node("y", ElemWise("Sum", (1.0, -1.0)), ["a", "b"], ["y"]),
    )
    x = np.linspace(-4, 4, 10 * 32, dtype=np.float32).reshape(10, 2, 4, 4)
    typed, _ = quantize(graph, collect(graph, [x]).histograms, QuantOptions(equalize=False, output_bits=8))
    assert typed.type("a").scale > 20 * typed.type("y").scale

    class Target:
        """Real numbers that are rounded nowhere."""

        def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
            real = FloatEngine(graph, taps=["a", "b", "y"]).run(typed.type("x").dequantize(inputs[0]).astype(np.float32))
            return {**real, "y": real["y"] + np.float32(error * (typed.type("a").scale + typed.type("b").scale))}

    given = Stimuli([f"s{k}" for k in range(10)], np.full(10, -1), x.shape[1:], lambda position: x[position])
    found = {c.layer: c for c in compare_stage(graph, typed, given, Target(), slack=1.5 / 255).layers}
    assert [found[name].difference is not None for name in ("a", "b", "y")] == [False, False, differs]


def test_what_a_target_leaves_to_the_next_layer_is_rounded_by_its_rule():
    """Real numbers in the middle of two integers, which the target rounds away from zero in the layer behind them."""
    graph = graph_of(
        {"x": (1, 2, 4, 4)},
        Node("s", Softmax(log=True), ["x"], ["s"]),
        Node("y", Affine(), ["s"], ["y"], {"weights": np.full(2, 1.5, np.float32), "bias": np.zeros(2, np.float32)}),
    )
    prepared = insert_conversions(graph)
    x = np.linspace(-4, 4, 10 * 32, dtype=np.float32).reshape(10, 2, 4, 4)
    typed, _ = quantize(prepared, collect(prepared, [x]).histograms, QuantOptions(unsigned=False, output_bits=16))
    (made,) = [node for node in typed.nodes if node.op.kind == "Convert" and not node.op.to_float and "s" in node.inputs]
    step = np.float32(0.0078125)
    typed.tensors[made.output] = replace(typed.tensors[made.output], type=typed.type(made.output).with_scale(float(step)))
    made.rescale = pytest.importorskip("n2d2py_ncnn.arithmetic").AwayRescale(np.array([1 / step], np.float32))
    (last,) = [node for node in typed.nodes if node.output == "y"]

    class Target:
        def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
            halves = ((np.arange(inputs[0].size) % 80 + np.float32(0.5)) * step).astype(np.float32).reshape(inputs[0].shape)
            (whole,) = run_node(typed, made, [halves])
            real = typed.type("x").dequantize(inputs[0])
            return {
                "x_float": real,
                "s": halves,
                made.output: halves,
                "y": typed.type("y").dequantize(run_node(typed, last, [whole])[0]),
            }

    given = Stimuli([f"s{k}" for k in range(10)], np.full(10, -1), x.shape[1:], lambda position: x[position])
    found = {c.layer: c for c in compare_stage(prepared, typed, given, Target(), slack=1e-5).layers}
    assert found["y"].difference is None and found["y"].identical
    assert found[made.name].identical is None


@pytest.mark.parametrize(
    "kind", [NumType(8).with_scale(0.05), NumType(8, False).with_scale(0.02), NumType(16).with_scale(0.001)], ids=str
)
def test_every_figure_is_that_of_all_batches_together(kind):
    """By their definitions, over the values of three batches of three, two and one stimuli."""
    rng = np.random.default_rng(6)
    real = rng.normal(0.4, 3.0, (6, 3, 4))
    stored = kind.quantize(real + rng.normal(0, 0.05, real.shape))
    compiled, alone = stored.copy(), kind.quantize(real)
    stored[4, 1, 2], compiled[4, 1, 2], compiled[5, 0, 0] = 5, 4, stored[5, 0, 0] + 1
    found = Accumulator("a layer", "a tensor", kind)
    for part in (slice(0, 3), slice(3, 5), slice(5, 6)):
        found.add(real[part], stored[part], compiled[part], alone=alone[part])
    figures, values = found.result(), kind.dequantize(stored).astype(np.float64)

    def rated(signal, error) -> float:
        return 10 * np.log10(np.sum(signal**2) / np.sum(error**2))

    assert (figures.layer, figures.tensor) == ("a layer", "a tensor")
    assert figures.sqnr_db == pytest.approx(rated(real, real - values))
    assert figures.cosine == pytest.approx(np.sum(real * values) / np.sqrt(np.sum(real**2) * np.sum(values**2)))
    assert figures.max_error == pytest.approx(np.abs(real - values).max())
    ends = (stored == kind.qmax) | (kind.signed & (stored == kind.qmin))
    assert figures.saturated == pytest.approx(ends.mean()) and (ends.any() or kind.bits == 16)
    lost = real - kind.dequantize(alone)
    assert figures.alone_db == pytest.approx(rated(real, lost)) and figures.alone_error == pytest.approx(np.abs(lost).max())
    assert figures.unused == pytest.approx(1 - (int(stored.max()) - int(stored.min())) / (kind.qmax - kind.qmin))
    each = [rated(one, one - other) for one, other in zip(real, values, strict=True)]
    assert figures.worst == int(np.argmin(each)) and figures.worst_db == pytest.approx(min(each))
    assert (figures.identical, figures.exact, figures.missing) == (False, False, 0)
    assert figures.difference == Difference((4, 1, 2), 5.0, 4.0)
