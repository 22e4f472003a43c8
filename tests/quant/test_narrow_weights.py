"""Weights of fewer than 8 bits without training: rounding, ranges, which layers, and the search for bits under a budget.

They look at `n2d2py.quant.correct.layers` and `n2d2py.quant.weights.narrow`.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import needs_compiler
from support.errors import error_line
from support.onnx_models import ModelBuilder, runtime_outputs
from support.ops import Conv, Fc
from support.programs import run_command
from support.tables import every

import n2d2py
from n2d2py.arithmetic.weights import LayerWeights
from n2d2py.cli import main
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node, Tensor
from n2d2py.quant.calibration import quantize
from n2d2py.quant.observe.covariance import DenseCovariance, shrunk_covariance
from n2d2py.quant.observe.moments import Moments
from n2d2py.quant.search.bits import WidthChoice, front
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.weights.narrow import with_low_bit_weights, with_weight_bits
from n2d2py.quant.weights.rounding import CompensatedRounding, descend, round_compensated
from n2d2py.reference.engine import FloatEngine


def _covariance(size: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(4 * size, size)) @ np.random.default_rng(seed + 1).normal(size=(size, size))
    return (rows.T @ rows / len(rows))[None]


def _cost(target: np.ndarray, found: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    error = target - found
    return np.einsum("gok,gkl,gol->go", error, covariance, error)


@every("seed", range(5))
def test_descent_ends_where_no_single_weight_can_be_better(seed):
    covariance, levels = _covariance(40, seed), 3
    target = np.random.default_rng(seed).uniform(-4, 4, (1, 6, 40))
    start = np.clip(np.rint(target), -levels - 1, levels)
    found = start
    for _ in range(20):
        found = descend(target, found, covariance, levels)
    assert found.max() == levels and found.min() == -levels - 1 and np.array_equal(found, np.rint(found))
    assert (_cost(target, found, covariance) < _cost(target, start, covariance)).all()
    for k, step in product(range(40), (-1, 1)):
        other = found.copy()
        other[:, :, k] = np.clip(other[:, :, k] + step, -levels - 1, levels)
        assert (_cost(target, other, covariance) >= _cost(target, found, covariance) - 1e-9).all()


def test_descent_improves_what_compensation_found():
    covariance = _covariance(60, 3)
    target = np.random.default_rng(4).uniform(-1.5, 1.5, (1, 32, 60))
    first = round_compensated(target, DenseCovariance(covariance), 1)
    second = descend(target, first, covariance, 1)
    before, after = (_cost(target, each, covariance) for each in (first, second))
    assert (after <= before + 1e-9).all() and after.sum() < 0.98 * before.sum()


def _moments(groups: int, size: int) -> Moments:
    """Of correlated inputs above 0."""
    generator = np.random.default_rng(size)
    x = np.maximum(generator.normal(size=(groups, 900, size)) @ generator.normal(size=(groups, size, size)), 0)
    return Moments(900, np.matmul(x.transpose(0, 2, 1), x))


@every(("groups", "size"), [(1, 48), (6, 9)])
@every("bits", [2, 3, 4])
def test_ranges_are_those_of_weights_rounded_together(bits, groups, size):
    """The errors of the outputs are near to the least of 91 shares of the largest magnitude, tried one by one."""
    levels = 2 ** (bits - 1) - 1
    moments = _moments(groups, size)
    rows = np.random.default_rng(bits).standard_t(4, (12, size)) * np.geomspace(0.01, 3, 12)[:, None]
    largest, covariance = np.abs(rows).max(axis=1), shrunk_covariance(moments)
    shaped = rows.reshape(groups, -1, size)

    def cost(magnitudes: np.ndarray) -> np.ndarray:
        scales = (magnitudes / levels).reshape(groups, -1, 1)
        return _cost(shaped, round_compensated(shaped / scales, covariance, levels) * scales, covariance.matrix()).reshape(-1)

    found = CompensatedRounding(moments).magnitudes(rows, largest, levels)
    tried = np.min([cost(largest * share) for share in np.arange(30, 121) / 100], axis=0)
    assert np.median(cost(found) / tried) < 1.05 and cost(found).sum() < 1.1 * tried.sum()


def test_ranges_of_nothing_are_nothing():
    found = CompensatedRounding(_moments(1, 8)).magnitudes(np.zeros((2, 8)), np.zeros(2), 7)
    assert (found == 0).all()


@every("bits", range(2, 8))
def test_weights_stay_within_their_bits(bits):
    weights = np.random.default_rng(bits).standard_t(3, (5, 4, 3, 3))
    found = LayerWeights(weights, np.zeros(5), 0.01, 255, bits=bits).quantize()
    top = 2 ** (bits - 1) - 1
    assert found.weights.dtype == np.int8 and 0 < found.weights.max() <= top and found.weights.min() == -top - 1
    largest = np.abs(weights).reshape(5, -1).max(axis=1) / top
    error = np.square(found.weights * found.scales.reshape(-1, 1, 1, 1) - weights).sum()
    plain = np.clip(np.rint(weights / largest.reshape(-1, 1, 1, 1)), -top, top) * largest.reshape(-1, 1, 1, 1)
    assert error < np.square(plain - weights).sum(), "a clipped range must be better than the whole one here"


def _network(seed: int = 0) -> Graph:
    """3x3, depthwise, 1x1 twice, Fc."""
    generator = np.random.default_rng(seed)
    graph = Graph("net")
    graph.inputs, graph.outputs = ["x"], ["y"]
    shapes = {"x": (1, 3, 4, 4), "a": (1, 16, 4, 4), "b": (1, 16, 4, 4), "c": (1, 32, 4, 4), "d": (1, 32, 4, 4), "y": (1, 5)}
    graph.tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}

    def params(*shape):
        weights = generator.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        return {"weights": 2 * weights.astype(np.float32), "bias": generator.normal(size=shape[0]).astype(np.float32) * 0.1}

    relu, pads = Clip(0.0, np.inf), (1, 1, 1, 1)
    graph.nodes = [
        Node("a", Conv(pads=pads), ["x"], ["a"], params(16, 3, 3, 3), relu),
        Node("b", Conv(pads=pads, groups=16), ["a"], ["b"], params(16, 1, 3, 3), relu),
        Node("c", Conv(), ["b"], ["c"], params(32, 16, 1, 1), relu),
        Node("d", Conv(pads=pads), ["c"], ["d"], params(32, 32, 3, 3), relu),
        Node("y", Fc(), ["d"], ["y"], params(5, 512)),
    ]
    graph.verify()
    return graph


def _widths(graph: Graph) -> dict[str, int | None]:
    return {node.name: graph.precision(node).weight_bits for node in graph.nodes}


def test_first_depthwise_and_small_layers_keep_their_width():
    assert _widths(with_low_bit_weights(_network(), 4)) == {"a": None, "b": None, "c": None, "d": 4, "y": 4}
    assert set(_widths(with_low_bit_weights(_network(), 8)).values()) == {8}
    own = with_weight_bits(_network(), {"d": 3, "b": 2})
    assert _widths(with_low_bit_weights(own, 4)) == {"a": None, "b": 2, "c": None, "d": 3, "y": 4}


def _snr(bits: int, options: QuantOptions) -> float:
    graph = with_low_bit_weights(_network(), bits)
    samples = [np.random.default_rng(seed).uniform(-1, 1, (8, 3, 4, 4)).astype(np.float32) for seed in range(8)]
    typed, _ = quantize(graph, collect(graph, samples).histograms, options, {"x": (-1.0, 1.0)}, samples)
    if bits < 8:
        weights = next(node for node in typed.nodes if node.name == "d").params["weights"]
        assert weights.max() == 2 ** (bits - 1) - 1 and weights.min() == -(2 ** (bits - 1))
    x = np.random.default_rng(99).uniform(-1, 1, (64, 3, 4, 4)).astype(np.float32)
    real = FloatEngine(graph).run(x)["y"]
    found = typed.type("y").dequantize(simulate(typed, quantize_inputs(typed, [x]))["y"])
    return 10 * float(np.log10(np.square(real).sum() / np.square(found - real).sum()))


@pytest.mark.parametrize("bits", [4, pytest.param(2, marks=pytest.mark.slow)])
def test_adaptive_rounding_is_better_than_nearest(bits):
    nearest = _snr(bits, QuantOptions(output_bits=16, correct_bias=True))
    adaptive = _snr(bits, QuantOptions(output_bits=16, correct_bias=True, adaptive_rounding=True))
    assert adaptive > nearest + 1.0, f"{adaptive:.1f} dB, nearest {nearest:.1f} dB"


def test_the_front_is_that_of_all_choices():
    generator = np.random.default_rng(7)
    choices = {
        name: [WidthChoice(bits, 10 * bits * int(size), float(error) / 4**bits) for bits in (8, 4, 2)]
        for name, size, error in zip("abcdef", generator.integers(1, 50, 6), generator.uniform(1, 100, 6), strict=True)
    }
    found = front(choices, 17)
    every = [
        (
            17 + sum(one.bytes for one in way),
            sum(one.error for one in way),
            {n: o.bits for n, o in zip(choices, way, strict=True)},
        )
        for way in product(*choices.values())
    ]
    for budget in range(0, 20000, 37):
        fitting = [one for one in every if one[0] <= budget]
        place = found.within(budget)
        assert (place is None) == (not fitting)
        if place is not None:
            size, error = int(found.bytes[place]), float(found.errors[place])
            assert error == pytest.approx(min(one[1] for one in fitting))
            assert size <= budget and (size, found.widths(place)) in [(one[0], one[2]) for one in every]


def _model(folder):
    """A small network as ONNX, with its data."""
    build, tensor = ModelBuilder(opset=13), "x"
    *convolutions, last = _network().nodes
    for node in convolutions:
        window = {"group": node.op.groups, "pads": list(node.op.pads)}
        tensor = build.add("Relu", build.add("Conv", tensor, *node.params.values(), name=node.name, **window))
    build.add("Gemm", build.add("Flatten", tensor), *last.params.values(), name="y", transB=1)
    path = build.save(folder / "net.onnx", {"x": [1, 3, 4, 4]}, "y")
    return path, np.random.default_rng(1).uniform(-1, 1, (24, 3, 4, 4)).astype(np.float32)


def _taken(folder) -> int:
    """The bytes of the choice that was exported."""
    lines = (folder / "statistics" / "bits" / "front.txt").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("taken")).split()[1].replace(",", ""))


def _export(tmp_path):
    path, x = _model(tmp_path)
    options = n2d2py.QuantizationOptions(flash_budget=8_000, ram_budget=100_000)
    return n2d2py.export(path, data=x, labels=np.arange(24) % 5, folder=tmp_path, quantization=options, test=True)


@needs_compiler
@pytest.mark.slow
def test_a_budget_is_used_and_met_by_the_linker(tmp_path):
    result = _export(tmp_path)
    folder = tmp_path / "export_CPP_int8"
    assert 6_800 < _taken(folder) <= 8_000, "the bits are chosen so that the budget is used"
    packed = json.loads((folder / "manifest.json").read_text())["details"]["packed_weights"]
    assert packed and all(one["bytes"] < one["bytes_unpacked"] and one["bits"] in (2, 4) for one in packed.values())
    assert (folder / "statistics" / "bits" / "front.svg").read_text().startswith("<svg")
    assert "budget: 8,000 bytes" in (folder / "statistics" / "report.html").read_text()
    made = run_command("make", "-s", "size", cwd=folder).splitlines()
    assert int(next(line.split()[1] for line in made if line.startswith("constants"))) <= _taken(folder)
    n2d2py.compare(result, 8).check()


@pytest.mark.parametrize(
    "options, code",
    [
        ({"flash_budget": 2000}, "E520"),
        ({"ram_budget": 100}, "E521"),
        ({"flash_budget": 20000, "weight_bits": 4}, "E007"),
        ({"weight_bits": 1}, "E003"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, options, code):
    path, x = _model(tmp_path)
    line = error_line(n2d2py.export, path, data=x, folder=tmp_path, quantization=n2d2py.QuantizationOptions(**options))
    assert code in line
    assert not (tmp_path / "export_CPP_int8").exists()


def two_chains(path: Path, first: int) -> Path:
    """Two chains of three layers each that share nothing but the input; the outputs of one are a thousand times larger."""
    build, ends = ModelBuilder(4, opset=13), []
    for gain in (1000.0, 1.0):
        source = "x"
        for inputs, outputs in ((16, 48), (48, 48), (48, 8)):
            weights = build.rng.normal(size=(outputs, inputs, 1, 1)) * (2 / inputs) ** 0.5
            source = build.add("Conv", source, weights * (gain if outputs == 8 else 1))
            source = source if outputs == 8 else build.add("Relu", source)
        ends.append(source)
    return build.save(path, {"x": [1, 16, 4, 4]}, ends[first], ends[1 - first])


def test_every_output_counts_whichever_comes_first(tmp_path):
    """Judged by the first output alone, it had 25.5 dB and the other one 10.3 dB in either order. ONNX Runtime is the referee."""
    x = np.random.default_rng(5).normal(size=(64, 16, 4, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x[:48])
    words = [*"-export CPP -calib -1 -calib-data".split(), str(tmp_path / "x.npy"), *"-flash-budget 5200 -db-export 0".split()]
    decibels = []
    for first in (0, 1):
        path = two_chains(tmp_path / f"net{first}.onnx", first)
        assert main([str(path), *words, "-quiet", "-o", str(tmp_path / f"out{first}")]) == 0
        real = runtime_outputs(path, x[48:], batch=1)
        found = n2d2py.load_simulator(tmp_path / f"out{first}" / "export_CPP_int8")(x[48:])
        errors = [np.square(a - b.reshape(a.shape)).mean() / a.var() for a, b in zip(real, found, strict=True)]
        decibels.append(-10 * np.log10(errors))
    assert decibels[0] == pytest.approx(decibels[1][::-1], abs=0.5) and np.min(decibels) > 11, decibels
