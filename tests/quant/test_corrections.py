"""Corrections of the integers: rounding for the outputs, bias correction, ranges by channel; each must lower the error."""

from dataclasses import replace

import numpy as np
import pytest
from support.ops import ArrayRecurrent, Conv, Fc
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import ChannelClip, Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import activation_clamp
from n2d2py.graph import Graph, Node, Tensor
from n2d2py.operators.arrays.recurrent import GATES
from n2d2py.quant.calibration import observe as observe_graph
from n2d2py.quant.calibration import quantize, quantize_observed
from n2d2py.quant.correct.channels import channel_factors, scale_channels
from n2d2py.quant.observe import covariance, layerwise, moments
from n2d2py.quant.observe.covariance import DenseCovariance, shrunk_covariance
from n2d2py.quant.observe.moments import Moments, observe, products
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.weights.narrow import with_weight_bits
from n2d2py.quant.weights.rounding import CompensatedRounding, descend, round_compensated
from n2d2py.reference.engine import FloatEngine


def _network(seed: int = 0, high: float = np.inf) -> Graph:
    """Dense 3x3, depthwise 3x3, dense 1x1, Fc; channels of very different ranges."""
    generator = np.random.default_rng(seed)
    spread = np.geomspace(0.02, 1.0, 12)
    graph = Graph("net")
    graph.inputs, graph.outputs = ["x"], ["y"]
    shapes = {"x": (1, 3, 10, 10), "a": (1, 12, 10, 10), "b": (1, 12, 10, 10), "c": (1, 8, 10, 10), "y": (1, 5)}
    graph.tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}

    def params(shape, gain=None):
        weights = generator.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        if gain is not None:
            weights = weights * gain.reshape((-1,) + (1,) * (len(shape) - 1))
        return {"weights": weights.astype(np.float32), "bias": generator.normal(size=shape[0]).astype(np.float32) * 0.02}

    relu = Clip(0.0, high)
    graph.nodes = [
        Node("a", Conv(pads=(1, 1, 1, 1)), ["x"], ["a"], params((12, 3, 3, 3), 4 * spread), relu),
        Node("b", Conv(pads=(1, 1, 1, 1), groups=12), ["a"], ["b"], params((12, 1, 3, 3), 2 / spread), relu),
        Node("c", Conv(), ["b"], ["c"], params((8, 12, 1, 1)), relu),
        Node("y", Fc(), ["c"], ["y"], params((5, 800))),
    ]
    graph.verify()
    return graph


def _data(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, size=(count, 3, 10, 10)).astype(np.float32)


def _error(graph: Graph, options: QuantOptions, reference: Graph | None = None) -> float:
    """Root of the mean squared error of the outputs over stimuli that calibration has not seen."""
    samples = [_data(8, seed) for seed in range(8)]
    histograms = collect(graph, samples).histograms
    quantized, _ = quantize(graph, histograms, options, {"x": (-1.0, 1.0)}, samples)
    x = _data(64, 99)
    real = FloatEngine(reference or graph).run(x)["y"]
    stored = simulate(quantized, quantize_inputs(quantized, [x]))["y"]
    return float(np.sqrt(np.mean((quantized.type("y").dequantize(stored) - real) ** 2)))


@pytest.mark.parametrize("seed", range(3))
def test_adaptive_rounding_lowers_the_error_of_the_outputs(seed):
    """With weights of four bits, whose error is more than that of the activations."""
    plain, graph = QuantOptions(output_bits=16, bits=8), with_weight_bits(_network(seed), dict.fromkeys("abcy", 4))
    assert _error(graph, replace(plain, adaptive_rounding=True)) < 0.96 * _error(graph, plain)


def test_rounding_is_better_than_nearest_where_inputs_are_correlated():
    generator = np.random.default_rng(1)
    x = generator.normal(size=(4000, 3)) @ generator.normal(size=(3, 24)) + 0.1 * generator.normal(size=(4000, 24))
    square = (x.T @ x)[None] / len(x) + 1e-6 * np.eye(24)
    target = generator.normal(size=(1, 10, 24)) * 20
    error = [
        np.mean(((q - target)[0] @ x.T) ** 2)
        for q in (np.rint(target), round_compensated(target, DenseCovariance(square), 127))
    ]
    assert error[1] < 0.5 * error[0]


def test_weights_on_the_grid_are_left_alone():
    generator = np.random.default_rng(2)
    rows = generator.integers(-127, 128, size=(6, 27)).astype(np.float64)
    node = Node("n", Conv(), ["x"], ["y"], {"weights": rows.reshape(6, 3, 3, 3)})
    stored = generator.integers(0, 256, size=(2, 3, 9, 9)).astype(np.uint8)
    rounding = CompensatedRounding(observe(node, [stored], [NumType(8, False)], 2))
    scales = np.full(6, 0.25)
    assert np.array_equal(rounding(rows * 0.25, scales, 127), rows)


def test_steps_of_weights_are_units_of_their_inputs():
    generator = np.random.default_rng(6)
    x, units = generator.normal(size=(500, 40)) @ generator.normal(size=(40, 40)), generator.choice([0.25, 1.0, 4.0], size=40)
    target, square = generator.normal(size=(1, 5, 40)) * 30, (x.T @ x)[None] / 500
    coarse = square * units * units[:, None]
    given = np.broadcast_to(units, target.shape)
    first = round_compensated(target * units, DenseCovariance(square), 99, given)
    assert np.array_equal(first, round_compensated(target, DenseCovariance(coarse), 99))
    assert np.array_equal(descend(target * units, first, square, 99, given), descend(target, first, coarse, 99))


@every(("groups", "size"), [(1, 230), (2, 97), (3, 96), (40, 9)])
def test_weights_are_rounded_one_after_the_other_for_the_least_error(groups, size):
    """The definition, a weight at a time, with NumPy's factorization."""
    generator = np.random.default_rng(size)
    x = generator.normal(size=(groups, 2 * size, size)) * generator.uniform(1, 9, size=size)
    square = np.matmul(x.transpose(0, 2, 1), x)
    target = generator.normal(size=(groups, 5, size)) * 60
    found = round_compensated(target, DenseCovariance(square), 127)
    assert np.abs(found).max() == 127
    for group in range(groups):
        order = np.argsort(-np.diag(square[group]), kind="stable")
        back = order[::-1]
        factor = np.linalg.cholesky(square[group][np.ix_(back, back)])[::-1, ::-1]
        errors = np.zeros((5, size))
        for k, place in enumerate(order):
            real = target[group, :, place]
            wanted = np.rint(real + errors[:, :k] @ factor[:k, k] / factor[k, k])
            assert np.array_equal(found[group, :, place], np.clip(wanted, -127, 127))
            errors[:, k] = real - found[group, :, place]


def _no_file(**options):
    raise OSError(28, "No space left on device")


@every(
    "changes",
    [
        {(layerwise, "_LARGE"): 1},
        {(layerwise, "_SPILLED"): 1},
        {(layerwise, "_SPILLED"): 1, (layerwise, "TemporaryFile"): _no_file},
    ],
)
def test_stimuli_worked_on_alone_or_in_files_give_the_same_integers(changes, monkeypatch):
    graph, samples = _network(), [_data(4, 0), _data(4, 1)]
    histograms = collect(graph, samples).histograms
    options = QuantOptions(adaptive_rounding=True, correct_bias=True)
    whole = quantize(graph, histograms, options, samples=samples)[0]
    for (module, name), value in changes.items():
        monkeypatch.setattr(module, name, value)
    alone = quantize(graph, histograms, options, samples=samples)[0]
    for first, second in zip(whole.nodes, alone.nodes, strict=True):
        for role, values in first.params.items():
            assert np.array_equal(values, second.params[role]), (first.name, role)


@every(("groups", "count", "inputs"), [(1, 40, 200), (3, 7, 65), (2, 1, 31), (1, 5, 32)])
def test_few_samples_give_the_integers_of_all_products(groups, count, inputs):
    generator = np.random.default_rng(count)
    columns = generator.integers(0, 256, size=(groups, count, inputs)).astype(np.float32)
    columns[:, :, 1::7] = columns[:, :, ::7][:, :, : columns[:, :, 1::7].shape[2]]  # equal variances keep their order
    target = generator.normal(size=(groups, 9, inputs)) * 40
    square = np.matmul(columns.transpose(0, 2, 1), columns).astype(np.float64)
    few, dense = shrunk_covariance(Moments(count, columns=columns)), shrunk_covariance(Moments(count, square))
    assert type(few) is not type(dense)
    np.testing.assert_allclose(few.matrix(), dense.matrix(), rtol=1e-12)
    assert np.array_equal(few.diagonal, dense.diagonal)
    assert np.array_equal(round_compensated(target, few, 127), round_compensated(target, dense, 127))


def test_bias_correction_brings_the_means_of_outputs_nearer():
    """On stimuli that it has not seen; some of the networks are better without, which those held back tell."""
    away, used = np.zeros(2), []
    x = np.concatenate([_data(8, one) for one in range(100, 150)])
    for seed in (4, 5, 6):
        graph, samples = _network(seed), [_data(8, one) for one in range(24)]
        histograms = collect(graph, samples).histograms
        real = FloatEngine(graph).run(x)["y"].mean(axis=0)
        for index, options in enumerate((QuantOptions(output_bits=16), QuantOptions(output_bits=16, correct_bias=True))):
            quantized, types = quantize(graph, histograms, options, {"x": (-1.0, 1.0)}, samples)
            stored = simulate(quantized, quantize_inputs(quantized, [x]))["y"]
            away[index] += np.abs(quantized.type("y").dequantize(stored).mean(axis=0) - real).mean()
        used.append(types.biases is not None and types.biases.used)
    assert away[1] < 0.9 * away[0], away
    assert set(used) == {False, True}


@pytest.mark.parametrize("asked", ["correct_bias", "sequential"])
def test_corrections_without_stimuli_are_left_out(asked):
    graph = _network(4)
    histograms = collect(graph, [_data(8, 0)]).histograms
    plain, corrected = (
        quantize(graph, histograms, QuantOptions(**{asked: given}), {"x": (-1.0, 1.0)})[0] for given in (False, True)
    )
    for before, after in zip(plain.nodes, corrected.nodes, strict=True):
        assert before.params.keys() == after.params.keys()
        assert all(np.array_equal(before.params[role], after.params[role]) for role in before.params)


@pytest.mark.parametrize("high", [np.inf, 0.6])
def test_scaled_channels_leave_the_function_and_lower_the_error(high):
    graph = _network(5, high)
    samples = [_data(8, seed) for seed in range(8)]
    factors = channel_factors(graph, samples)
    assert "a" in factors and factors["a"].min() == 1.0 and factors["a"].max() > 1.5
    scaled = scale_channels(graph, factors)
    x = _data(16, 50)
    assert np.allclose(FloatEngine(scaled).run(x)["y"], FloatEngine(graph).run(x)["y"], atol=1e-5)
    assert np.allclose(FloatEngine(scaled, dtype=np.float64).run(x)["y"], FloatEngine(graph).run(x)["y"], atol=1e-5)
    options = QuantOptions(output_bits=16)
    assert _error(scaled, options, graph) < (0.9 if high == np.inf else 1.05) * _error(graph, options)


def test_limits_by_channel_never_cut_the_integers():
    graph = scale_channels(_network(6, 0.6), {"a": np.geomspace(1.0, 8.0, 12)})
    assert isinstance(graph.nodes[0].activation, ChannelClip)
    histograms = collect(graph, [_data(8, 0)]).histograms
    quantized, types = quantize(graph, histograms, QuantOptions(act_clipping="None"), {"x": (-1.0, 1.0)})
    assert types.thresholds["a"] <= 0.6 * (1 + 1e-6)
    assert quantized.nodes[0].clamp == activation_clamp(graph.nodes[0], quantized.type("a")) == (0, 255)


def test_inputs_that_8_bits_would_spoil_get_16():
    graph = _network(7)
    plain = collect(graph, [_data(8, 0)]).histograms
    outlier = np.zeros((1, 3, 10, 10), np.float32)
    outlier[0, 0, 0, 0] = 60.0
    wide = {**plain, "x": collect(graph, [_data(8, 0), outlier]).histograms["x"]}
    cases = [(plain, {}, 0, 8), (wide, {}, 0, 16), (wide, {"x": (-60.0, 60.0)}, 0, 8), (plain, {}, 16, 16), (wide, {}, 8, 8)]
    for histograms, ranges, asked, expected in cases:
        quantized, _ = quantize(graph, histograms, QuantOptions(input_bits=asked), ranges)
        assert quantized.type("x").bits == expected
        assert all(quantized.type(name).bits == 8 for name in "abcy")


def _walks(count: int, steps: int, seed: int) -> np.ndarray:
    """Sequences (count, steps * 6) whose features belong together, as those of speech do."""
    generator = np.random.default_rng(seed)
    mixed = np.random.default_rng(0).normal(size=(2, 6))
    walks = np.cumsum(generator.normal(size=(count, steps, 2)), axis=1) @ mixed / 8
    return (walks + 0.05 * generator.normal(size=walks.shape)).clip(-2, 2).astype(np.float32).reshape(count, -1)


def _recurrent(cell: str, reverse: bool) -> Graph:
    generator, steps, size, hidden = np.random.default_rng(4), 12, 6, 16
    rows = GATES[cell] * hidden
    params = {
        "input_weights": generator.normal(size=(rows, size)),
        "recurrent_weights": generator.normal(size=(rows, hidden)) / 4,
        "gate_bias": generator.normal(size=rows) / 4,
        "recurrent_bias": generator.normal(size=hidden) / 4,
        "initial_h": np.zeros(hidden),
        "initial_c": np.zeros(hidden),
    }
    graph = Graph("net")
    graph.inputs, graph.outputs = ["x"], ["y"]
    graph.tensors = {"x": Tensor("x", (1, steps * size)), "y": Tensor("y", (1, steps * hidden))}
    op = ArrayRecurrent(cell, steps, size, hidden, reverse, linear_before_reset=True)
    graph.nodes = [Node("y", op, ["x"], ["y"], {role: value.astype(np.float32) for role, value in params.items()})]
    graph.verify()
    return graph


@every(("cell", "reverse"), [("LSTM", False), ("GRU", False), ("GRU", True)])
@every("bits", [8, 4])
def test_weights_of_recurrent_layers_are_rounded_for_their_gates(cell, reverse, bits):
    graph, x, errors = _recurrent(cell, reverse), _walks(40, 12, 9), []
    narrow = with_weight_bits(graph, {"y": bits}) if bits < 8 else graph
    samples = [_walks(8, 12, seed) for seed in range(8)]
    for adaptive in (False, True):
        options = QuantOptions(input_bits=16, output_bits=16, adaptive_rounding=adaptive)
        typed, _ = quantize_observed(observe_graph(narrow, samples, samples, {"x": (-2.0, 2.0)}, False, ""), options)
        stored = simulate(typed, quantize_inputs(typed, [x]))["y"]
        errors.append(np.square(typed.type("y").dequantize(stored) - graph.nodes[0].op.run([x], graph.nodes[0])[0]).mean())
    assert errors[1] < (0.2 if bits == 8 else 0.4) * errors[0]


@pytest.mark.parametrize("size", [97, 200, 331])
def test_two_threads_make_the_same_triangles_and_products(size, monkeypatch):
    rng = np.random.default_rng(size)
    columns = rng.integers(-128, 128, (2, 50, size)).astype(np.float32)
    order = np.stack([rng.permutation(size) for _ in range(2)])
    square = products(columns)
    alone = DenseCovariance(square + 1e3 * np.eye(size)).factor(order, 3)
    monkeypatch.setattr(covariance, "_SHARED", 1)
    monkeypatch.setattr(moments, "_SHARED", 1)
    assert np.array_equal(products(columns), square) and np.array_equal(square, np.einsum("gnk,gnl->gkl", columns, columns))
    shared = DenseCovariance(square + 1e3 * np.eye(size)).factor(order, 3)
    for start in range(0, size, covariance.BLOCK):
        stop = min(start + covariance.BLOCK, size)
        assert np.allclose(alone.block(start, stop), shared.block(start, stop), rtol=1e-12, atol=1e-9)
    errors = rng.normal(size=(2, size, 3))
    found = []
    for factor in (alone, shared):
        factor.add(0, size - 1, errors[:, : size - 1])
        found.append(factor.pending(size - 1, size))
    assert np.allclose(*found, rtol=1e-9, atol=1e-9)
