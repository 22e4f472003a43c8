"""Ranges of activations: zero points where they make the error smaller, ranges for what reads the tensor, headroom of 16 bits."""

from functools import cache

import numpy as np
import pytest
from support.model_run import MODELS
from support.onnx_models import ModelBuilder, decibels, runtime_outputs
from support.ops import Activation, Conv, Pool
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram, activation_threshold
from n2d2py.contracts.functions import Clip, Elu, LeakyRectifier
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Node
from n2d2py.passes import fuse
from n2d2py.quant.calibration import observe, prepare, quantize, quantize_observed
from n2d2py.quant.observe.layerwise import expected_error
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.ranges import ValueCounts, interval_type, least_error_interval, least_error_threshold
from n2d2py.reference.engine import FloatEngine


def silu(x: np.ndarray) -> np.ndarray:
    """x times its logistic function."""
    return x / (1 + np.exp(-x))


def histogram_of(values: np.ndarray) -> Histogram:
    histogram = Histogram()
    histogram.add(values.astype(np.float32))
    return histogram


# ---- types of intervals -------------------------------------------------------------------------------
@every("low, high", [(-0.278, 7.3), (-3.0, 3.0), (0.0, 5.0), (-2.0, 0.0), (-1e-7, 1.0), (-1.0, 1e-7), (-5e-3, 3e4)])
def test_an_interval_is_covered_and_zero_is_exact(low, high):
    kind = interval_type(8, low, high)
    lowest, highest = kind.interval
    assert 0 <= kind.zero_point <= 255 and not kind.signed
    assert kind.dequantize(kind.quantize(np.zeros(1)))[0] == 0
    slack = kind.scale / 2 if kind.zero_point in (0, 255) else 1e-12  # an end of less than half a step is rounded away
    assert lowest <= low + slack and highest >= high - slack
    assert highest - lowest <= (high - low) * 1.05 + 1e-12


def test_the_interval_of_least_error_is_near_that_of_a_full_search():
    values = silu(np.random.default_rng(0).normal(0, 2, 20_000))
    counts = ValueCounts.from_histogram(histogram_of(values))
    found = least_error_interval(counts, 8)
    full = min(
        counts.error(interval_type(8, low, high))
        for low in np.linspace(counts.low / 8, counts.low, 24)
        for high in np.linspace(counts.high / 8, counts.high, 96)
    )
    assert counts.error(found) <= 1.02 * full
    symmetric = NumType(8)
    best = symmetric.with_scale(least_error_threshold(counts, symmetric) / 127)
    assert counts.error(found) < 0.35 * counts.error(best)


def test_counts_measure_the_error_of_the_values_themselves():
    values = np.random.default_rng(1).normal(1, 2, 5_000).astype(np.float32)
    kind = interval_type(8, -4.0, 6.0)
    real = np.square(values - kind.dequantize(kind.quantize(values)).astype(np.float64)).sum()
    assert ValueCounts.from_histogram(histogram_of(values)).error(kind) == pytest.approx(real, rel=0.02)


def test_what_the_reading_function_hardly_sees_is_clipped():
    values = np.random.default_rng(2).normal(-2, 6, 20_000)
    plain = least_error_interval(ValueCounts.from_histogram(histogram_of(values)), 8)
    for_silu = least_error_interval(ValueCounts.from_histogram(histogram_of(values), [silu]), 8)
    assert plain.interval[0] < -15  # Gaussian values reach -25
    assert -9 < for_silu.interval[0] < -3  # below, SiLU is nearly 0
    kept, lost = (silu(kind.dequantize(kind.quantize(values)).astype(np.float64)) - silu(values) for kind in (for_silu, plain))
    assert np.square(kept).sum() < 0.5 * np.square(lost).sum()
    rectified = least_error_interval(ValueCounts.from_histogram(histogram_of(values), [Clip(0.0)]), 8)
    assert rectified.zero_point == 0


# ---- ranges of few samples ------------------------------------------------------------------------------
LOUDNESS = {"of one loudness": 0.0, "of different loudness": 0.7}


def samples_of(count: int, deviation: float, seed: int) -> np.ndarray:
    """Laplace noise (count, 64), each sample of its own loudness."""
    generator = np.random.default_rng(seed)
    return (generator.laplace(size=(count, 64)) * np.exp(deviation * generator.normal(size=(count, 1)))).astype(np.float32)


@every("deviation", LOUDNESS.values(), ids=LOUDNESS)
@every("count", [2, 8, 32])
def test_a_range_of_few_samples_is_for_others(count, deviation):
    """The referee are 2,000 other samples: the range of least error for the samples seen loses more there."""
    expected, seen = 0.0, 0.0
    others = ValueCounts.from_histogram(histogram_of(samples_of(2000, deviation, 99)))
    for seed in range(12):
        histogram = histogram_of(samples_of(count, deviation, seed))
        kind, counts = NumType(8), ValueCounts.from_histogram(histogram)
        for_seen = kind.with_scale(least_error_threshold(counts, kind) / kind.qmax)
        for_others = kind.with_scale(activation_threshold(histogram.expected(), "MSE", kind.qmax) / kind.qmax)
        seen += np.log10(others.error(for_seen)) / 12
        expected += np.log10(others.error(for_others)) / 12
    assert expected < seen - 0.1


def test_many_samples_need_little_headroom():
    histogram = histogram_of(np.random.default_rng(1).uniform(-1, 1, (1000, 256)))
    assert activation_threshold(histogram.expected(), "MSE", 127) < 1.04


def test_silent_and_repeated_samples_widen_nothing():
    x = np.random.default_rng(2).uniform(-1, 1, (64, 64)).astype(np.float32)
    plain = activation_threshold(histogram_of(x).expected(), "MSE", 127)
    for more in (np.zeros_like(x), 1e-6 * x[:60], np.tile(x, (4, 1))):
        assert activation_threshold(histogram_of(np.concatenate([x, more])).expected(), "MSE", 127) < 1.01 * plain
    assert activation_threshold(histogram_of(np.zeros((8, 64))).expected(), "MSE", 127) == 1.0


@every("x", [np.ones((1, 1)), np.full((4, 3), -2.0), samples_of(3, 3.0, 5)], ids=["one value", "constant", "few"])
def test_expected_counts_keep_the_number_of_values_and_the_limit(x):
    histogram = histogram_of(x)
    for limit in (histogram.largest, 1.5 * histogram.largest, np.inf):
        expected = histogram.expected(limit)
        assert expected.positive.sum() + expected.negative.sum() + expected.zeros == pytest.approx(x.size)
        assert histogram.largest <= expected.largest <= limit
    assert histogram.expected(histogram.largest).largest == histogram.largest


# ---- networks -----------------------------------------------------------------------------------------
READERS = {
    "conv": [("Conv", ["s", "w3"], {"pads": [1, 1, 1, 1]})],
    "strided": [("Conv", ["s", "w3"], {"pads": [1, 1, 0, 0], "strides": [2, 2]})],
    "depthwise": [("Conv", ["s", "d3"], {"pads": [1, 1, 1, 1], "group": 4})],
    "transposed": [("ConvTranspose", ["s", "t2"], {"strides": [2, 2]})],
    "fully connected": [("Flatten", ["s"], {}), ("Gemm", ["", "f"], {})],
    "max pool": [("MaxPool", ["s"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})],
    "average pool": [("AveragePool", ["s"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1})],
    "average of what is inside": [("AveragePool", ["s"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})],
    "global average": [("GlobalAveragePool", ["s"], {})],
    "sum": [("Add", ["s", "c"], {})],
    "sum of it twice": [("Add", ["s", "s"], {})],
    "product": [("Mul", ["s", "c"], {})],
    "largest": [("Max", ["s", "c"], {})],
    "concatenation": [("Concat", ["s", "c"], {"axis": 1})],
    "concatenation with it": [("Concat", ["s", "s"], {"axis": 1})],
    "nearest": [
        (
            "Resize",
            ["s", "", "scales"],
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        )
    ],
    "bilinear": [("Resize", ["s", "", "scales"], {"mode": "linear", "coordinate_transformation_mode": "half_pixel"})],
    "padding": [("Pad", ["s", "pads"], {}), ("Conv", ["", "w3"], {})],
    "reflected": [("Pad", ["s", "pads"], {"mode": "reflect"})],
    "slice": [("Slice", ["s", "starts", "ends"], {})],
    "transposition": [("Transpose", ["s"], {"perm": [0, 1, 3, 2]})],
    "reshape": [("Reshape", ["s", "shape"], {}), ("Conv", ["", "w1"], {})],
    "depth to space": [("DepthToSpace", ["s"], {"blocksize": 2})],
    "space to depth": [("SpaceToDepth", ["s"], {"blocksize": 2})],
    "function": [("Tanh", ["s"], {})],
    "softmax": [("Softmax", ["s"], {"axis": 1}), ("Conv", ["", "w3"], {})],
    "normalization": [("LRN", ["s"], {"size": 3, "alpha": 0.5})],
    "mean of channels": [("ReduceMean", ["s"], {"axes": [1], "keepdims": 1})],
}


def network(reader: list, activated: bool = True) -> bytes:
    """x (4, 8, 8) -> 1x1 convolution c -> SiLU s -> reader, as an ONNX file; s is the input if it is not `activated`."""
    generator = np.random.default_rng(4)
    constants = {
        "w0": generator.normal(0, 1.2, (4, 4, 1, 1)),
        "w1": generator.normal(0, 0.5, (4, 1, 1, 1)),
        "w3": generator.normal(0, 0.3, (4, 4, 3, 3)),
        "d3": generator.normal(0, 0.5, (4, 1, 3, 3)),
        "t2": generator.normal(0, 0.5, (4, 4, 2, 2)),
        "f": generator.normal(0, 0.1, (256, 5)),
        "scales": np.array([1.0, 1, 2, 2]),
    }
    constants |= {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "starts": [0, 1, 2, 0], "ends": [1, 3, 8, 5], "shape": [1, 1, 16, 16]}
    build = ModelBuilder(opset=13)
    start = "x" if activated else "s"
    build.add("Conv", start, constants["w0"], name="c")
    last = build.add("Mul", "c", build.add("Sigmoid", "c"), name="s") if activated else start
    for index, (kind, (first, *others), attributes) in enumerate(reader, 1 - len(reader)):
        inputs = (first or last, *(constants.get(name, name) for name in others))
        last = build.add(kind, *inputs, name=f"r{index}" if index else "y", **attributes)
    return build.proto({start: [1, 4, 8, 8]}, "y").SerializeToString()


def quantized(file: bytes, stimuli: np.ndarray, tmp_path, options: QuantOptions, **ranges):
    """The integer network of a file, calibrated on `stimuli` (N, C, H, W); `ranges` of inputs are known."""
    path = tmp_path / "readers.onnx"
    path.write_bytes(file)
    graph = prepare(fuse(import_onnx(path), integer=True)[0], True, True)
    batches = [stimuli]
    graph, _ = quantize_observed(observe(graph, batches, batches, ranges, False, ""), options)
    return graph


def simulated_decibels(graph, x: np.ndarray, real: np.ndarray, offset: np.ndarray | float = 0.0) -> float:
    stored = simulate(graph, quantize_inputs(graph, [x]))
    (output,) = graph.outputs
    found = graph.type(output).dequantize(stored[output]).reshape(real.shape).astype(np.float64)
    return decibels(found - offset, real - offset)


@every("name", READERS)
def test_every_reader_of_a_tensor_with_a_zero_point_is_right(name, tmp_path):
    """The referee is ONNX Runtime on the float file: a reader that forgot the zero point would be far off."""
    file = network(READERS[name])
    x = np.random.default_rng(5).normal(0, 1.5, (32, 4, 8, 8)).astype(np.float32)
    (real,) = runtime_outputs(file, x, batch=1)
    found = {}
    for zero_points in (True, False):
        options = QuantOptions(zero_points=zero_points, output_bits=16, wide_concats=False)
        graph = quantized(file, x, tmp_path, options)
        found[zero_points] = simulated_decibels(graph, x, real)
        shifted = [tensor.name for tensor in graph.tensors.values() if tensor.type.zero_point]
        assert bool(shifted) == zero_points, shifted
    assert found[True] > max(28.0, found[False] - 1.0), found


@every("name", READERS)
def test_every_reader_of_an_input_with_a_zero_point_is_right(name, tmp_path):
    """Pictures minus a small mean, whose range is calibrated or known. The referee is ONNX Runtime on the float file."""
    file = network(READERS[name], activated=False)
    x = np.random.default_rng(7).uniform(-0.2, 1, (32, 4, 8, 8)).astype(np.float32)
    (real,) = runtime_outputs(file, x, batch=1)
    for ranges in ({}, {"s": (-0.2, 1.0)})[: 1 + (name == "conv")]:
        graph = quantized(file, x, tmp_path, QuantOptions(output_bits=16), **ranges)
        assert bool(graph.type("s").zero_point) == (name != "transposed")
        assert simulated_decibels(graph, x, real) > 28.0


def test_bytes_around_zero_are_exact_inputs(tmp_path):
    x = np.random.default_rng(8).integers(-128, 128, (32, 4, 8, 8)).astype(np.float32)
    x[0, 0, 0, :2] = -128, 127
    graph = quantized(network(READERS["conv"], activated=False), x, tmp_path, QuantOptions(), s=(-128.0, 127.0))
    (stored,) = quantize_inputs(graph, [x])
    np.testing.assert_array_equal(graph.type("s").dequantize(stored), x)


def test_without_unsigned_types_there_are_no_zero_points(tmp_path):
    x = np.random.default_rng(5).normal(0, 1.5, (8, 4, 8, 8)).astype(np.float32)
    graph = quantized(network(READERS["conv"]), x, tmp_path, QuantOptions(unsigned=False))
    assert all(tensor.type.signed and not tensor.type.zero_point for tensor in graph.tensors.values())


def test_only_a_transposed_convolution_keeps_what_it_reads_symmetric(tmp_path):
    x = np.random.default_rng(5).normal(0, 1.5, (8, 4, 8, 8)).astype(np.float32)
    for name, shifted in (("conv", True), ("transposed", False)):
        graph = quantized(network(READERS[name]), x, tmp_path, QuantOptions())
        (reader,) = [node for node in graph.nodes if node.op.kind in ("Conv", "Deconv") and node.name == "y"]
        assert bool(graph.type(reader.inputs[0]).zero_point) == shifted


@every("draw", [samples_of, lambda count, deviation, seed: np.cos(samples_of(count, deviation, seed))], ids=["loud", "bounded"])
@every("count", [1, 4, 128])
def test_sixteen_bits_hold_other_samples(draw, count, tmp_path):
    """Less than one in a thousand of 200 other samples is clipped; the range is at most twice the largest value seen."""
    x, others = (draw(4 * number, 0.5, seed).reshape(-1, 4, 8, 8) for number, seed in ((count, 6), (200, 7)))
    graph = quantized(network(READERS["conv"]), x, tmp_path, QuantOptions(bits=16))
    reached = graph.type("x").max_abs / np.abs(x).max()
    assert 1 <= reached <= 2 + 1e-6
    assert (np.abs(others) > graph.type("x").max_abs).mean() < 1e-3


SPOILED = {
    "maps around 0": ("Relu", 0.0, 0.5, 8),
    "maps around 20, such as depths": ("Relu", 20.0, 0.5, 16),
    "confident scores": ("Softmax", 0.0, 2.0, 8),
    "scores near 1 / 4": ("Softmax", 0.0, 0.02, 16),
}


@every(("last", "offset", "deviation", "bits"), SPOILED.values(), ids=SPOILED)
def test_outputs_that_8_bits_would_spoil_have_16(tmp_path, last, offset, deviation, bits):
    """The referee is ONNX Runtime on the float file."""
    x = np.random.default_rng(9).normal(0, 1, (32, 4, 8, 8)).astype(np.float32)
    build = ModelBuilder(opset=13)
    weights = np.random.default_rng(4).normal(0, deviation, (4, 4, 1, 1))
    maps = build.add("Conv", "x", weights, np.full(4, offset))
    _ = build.add("Softmax", maps, name="y", axis=1) if last == "Softmax" else build.add(last, maps, name="y")
    file = build.proto({"x": [1, 4, 8, 8]}, "y").SerializeToString()
    (real,) = runtime_outputs(file, x, batch=1)
    graph = quantized(file, x, tmp_path, QuantOptions(output_bits=0))
    assert graph.type(graph.outputs[0]).bits == bits
    assert simulated_decibels(graph, x, real) > (60 if last == "Softmax" and bits == 16 else 35)
    assert quantized(file, x, tmp_path, QuantOptions(output_bits=8)).type(graph.outputs[0]).bits == 8


@every(("classes", "bits"), [(3, 16), (2000, 8)])
def test_an_average_before_a_small_last_layer_has_16_bits(tmp_path, classes, bits):
    """Maps whose means differ little from sample to sample. The referee is ONNX Runtime on the float file."""
    rng, build = np.random.default_rng(2), ModelBuilder(opset=13)
    x = rng.normal(0, 1, (48, 4, 48, 48)).astype(np.float32)
    maps = build.add("Relu", build.add("Conv", "x", rng.normal(0, 0.5, (8, 4, 3, 3))))
    average = build.add("GlobalAveragePool", maps, name="average")
    build.add("Gemm", build.add("Flatten", average), rng.normal(0, 1, (classes, 8)), transB=1, name="y")
    file = build.proto({"x": [1, 4, 48, 48]}, "y").SerializeToString()
    (real,) = runtime_outputs(file, x, batch=1)
    graph = quantized(file, x, tmp_path, QuantOptions(output_bits=0))
    assert graph.type("average").bits == bits
    assert quantized(file, x, tmp_path, QuantOptions(output_bits=8)).type("average").bits == 8
    if bits == 16:  # the mean of each class, which hides its error, is left out
        assert simulated_decibels(graph, x, real, real.mean(axis=0)) > 21


# ---- expected errors ----------------------------------------------------------------------------------
def test_an_error_that_stimuli_agree_on_is_corrected_and_chance_is_not():
    generator = np.random.default_rng(7)
    counts = np.full((40, 3), 50)
    means = np.stack([0.5 + 0.01 * generator.normal(size=40), 0.5 * generator.normal(size=40), np.zeros(40)], axis=1)
    found = expected_error(means * counts, counts)
    plain = means.mean(axis=0)
    assert found[0] == pytest.approx(plain[0], rel=1e-3)
    assert abs(found[1]) < 0.5 * abs(plain[1]) and found[2] == 0


def test_one_stimulus_or_few_values_correct_nothing():
    assert not expected_error(np.array([[5.0, 3.0]]), np.array([[100, 100]])).any()
    assert not expected_error(np.array([[5.0], [5.0]]), np.array([[5], [5]])).any()
    assert not expected_error(np.zeros((4, 2)), np.zeros((4, 2), np.int64)).any()


def test_the_correction_generalises_better_than_the_plain_mean():
    """Over many draws the shrunken mean is nearer to the true error than the mean itself, where errors are small."""
    generator = np.random.default_rng(8)
    true = 0.05 * generator.normal(size=500)
    means = true + 0.3 * generator.normal(size=(8, 500))
    counts = np.full((8, 500), 64)
    found, plain = expected_error(means * counts, counts), means.mean(axis=0)
    assert np.square(found - true).sum() < 0.75 * np.square(plain - true).sum()


MOST_DB = 1.05
"""What the policy may lose against the better of both types: a share of 0.8 is 0.97 dB, beside what histograms round."""
LEAST_DB = 0.9
"""What a zero point must gain at least: its layers take more operations on some kernels."""
FUNCTIONS = {"leaky 0.5": LeakyRectifier(0.5), "leaky 0.7": LeakyRectifier(0.7), "elu of 4": Elu(4.0)}
"""With zero points their results have 0.5 to 0.9 of the squared error."""


@cache
def digits() -> np.ndarray:
    """64 digits of 8 x 8, enlarged, from 0 to 1."""
    data = (MODELS / "data" / "digits" / "t10k-images-idx3-ubyte").read_bytes()
    return (np.frombuffer(data[16:], np.uint8).reshape(-1, 1, 8, 8)[:64] / 255).repeat(4, 2).repeat(4, 3).astype(np.float32)


def lenet(name: str) -> Graph:
    """The first two convolutions of LeNet with another function behind each."""
    stored = np.load(MODELS / "LeNet.npz")
    graph = Graph("digits")
    graph.add_input("x", (1, 1, 32, 32))
    source = "x"
    for layer in ("conv1", "conv2"):
        params = {"weights": stored[f"{layer}_weights"], "bias": stored[f"{layer}_biases"]}
        graph.add(Node(layer, Conv(), [source], [layer], params))
        graph.add(Node(f"{layer}_f", Activation(FUNCTIONS[name]), [layer], [f"{layer}_f"]))
        graph.add(Node(f"{layer}_p", Pool("Average", (2, 2), (2, 2)), [f"{layer}_f"], [f"{layer}_p"]))
        source = f"{layer}_p"
    rng = np.random.default_rng(0)
    params = {"weights": rng.normal(size=(8, 16, 5, 5)).astype(np.float32), "bias": np.zeros(8, np.float32)}
    graph.add(Node("y", Conv(), [source], ["y"], params))
    graph.outputs = ["y"]
    graph.verify()
    return graph


@cache
def ratings(name: str, zero_points: bool | None) -> dict[str, tuple[float, int]]:
    """Signal to error in dB, and the zero point, of what each function and pool gives: by the policy (None), or with zero points or without everywhere."""
    graph = lenet(name)
    histograms = collect(graph, [digits()]).histograms
    for histogram in histograms.values():
        histogram.peaks = np.zeros(0)  # ranges for these samples, on which the error is measured
    with pytest.MonkeyPatch.context() as patch:
        if zero_points:
            patch.setattr("n2d2py.quant.types.ranges._ZERO_POINT_GAIN", 1e9)
        options = QuantOptions(equalize=False, zero_points=zero_points is not False)
        typed, _ = quantize(graph, histograms, options, {"x": (0.0, 1.0)})
    tensors = [node.output for node in graph.nodes if not isinstance(node.op, Conv)]
    found = {}
    for tensor, real in FloatEngine(graph, taps=tensors).run(digits()).items():
        if tensor in tensors:
            kind = typed.type(tensor)
            error = np.square(real - kind.dequantize(kind.quantize(real)).astype(np.float64)).sum()
            found[tensor] = 10 * float(np.log10(np.square(real, dtype=np.float64).sum() / error)), kind.zero_point
    return found


@every("name", FUNCTIONS)
def test_the_policy_loses_little_against_the_better_type(name):
    """A smaller share costs decibels: at 0.7 up to 1.5 of them."""
    chosen, with_one, without = (ratings(name, way) for way in (None, True, False))
    lost = {tensor: max(with_one[tensor][0], without[tensor][0]) - chosen[tensor][0] for tensor in chosen}
    worst = max(lost, key=lost.__getitem__)
    assert lost[worst] <= MOST_DB, f"{worst} loses {lost[worst]:.2f} dB"


@every("name", FUNCTIONS)
def test_a_zero_point_gains_enough(name):
    """A larger share pays for zero points that gain next to nothing."""
    chosen, without = ratings(name, None), ratings(name, False)
    gained = {tensor: chosen[tensor][0] - without[tensor][0] for tensor in chosen if chosen[tensor][1]}
    small = {tensor: f"{gain:.2f} dB" for tensor, gain in gained.items() if gain < LEAST_DB}
    assert not small, f"zero points of little gain: {small}"


def test_both_sides_of_the_policy_are_met():
    """Tensors whose squared error with a zero point is 0.7 to 0.8 of that without, and 0.8 to 0.95: they notice a move of the share."""
    shares = {}
    for name in FUNCTIONS:
        with_one, without = ratings(name, True), ratings(name, False)
        shares |= {(name, tensor): 10 ** ((without[tensor][0] - with_one[tensor][0]) / 10) for tensor in with_one}
    assert any(0.7 < share < 0.78 for share in shares.values()) and any(0.82 < share < 0.95 for share in shares.values())
