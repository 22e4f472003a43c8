"""The magnitude of a complex spectrum, spelled as squares, a sum and a root, is one layer."""

import numpy as np
import pytest
from support.ops import Activation, Conv, ElemWise, IndexSelect

from n2d2py.contracts.functions import Clip, Sqrt
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.passes.idioms import fuse_magnitude
from n2d2py.quant.calibration import quantize
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.reference.executor import run_graph


def parts(b, total=None, square=None, x="x"):
    """Real and imaginary parts, the halves of the channels; their squares, sum and root."""
    b.layer("re", IndexSelect(((0, 1, 2, 3), None, None)), x)
    b.layer("im", IndexSelect(((4, 5, 6, 7), None, None)), x)
    b.layer("re2", ElemWise("Prod"), ["re", "re"], None, square)
    b.layer("im2", ElemWise("Prod"), ["im", "im"])
    b.layer("sum", total or ElemWise("Sum"), ["re2", "im2"])
    return b.layer("y", Activation(Sqrt()), "sum")


@pytest.mark.parametrize("weights", [(), (2.0, 0.5)])
def test_it_is_one_layer(build, run, run_all, kinds, weights):
    graph = build(8, 3, 4)
    parts(graph, ElemWise("Sum", weights))
    done = graph.done("y")
    after, _ = run(done, fuse_magnitude)
    assert kinds(after) == [("re", "IndexSelect"), ("im", "IndexSelect"), ("y", "ElemWise")]
    assert after.node("y").op.operation == "EuclideanSum" and after.node("y").inputs == ["re", "im"]
    np.testing.assert_allclose(after.node("y").op.weights, np.sqrt(weights))
    assert ("sum", "ElemWise") not in kinds(run_all(done, integer=True)[0])
    assert ("sum", "ElemWise") in kinds(run_all(done, integer=False)[0])


def test_what_others_read_stays_beside_it(build, run, kinds):
    graph = build(8, 3, 4)
    parts(graph)
    assert ("sum", "ElemWise") in kinds(run(graph.done("y", "sum"), fuse_magnitude)[0])


@pytest.mark.parametrize("total", [ElemWise("Sum", (1.0, -1.0)), ElemWise("Sum", (), (0.0, 0.25))])
def test_other_sums_stay(build, total):
    made = build(8, 3, 4)
    parts(made, total)
    graph = made.done("y")
    found = fuse_magnitude.rule(graph, graph.node("y"))
    assert isinstance(found, str)


def test_a_square_that_is_limited_stays(build, run):
    graph = build(8, 3, 4)
    parts(graph, square=Clip(0.0, 2.0))
    assert run(graph.done("y"), fuse_magnitude)[0].node("y").op.kind == "Activation"


def test_eight_bits_hold_a_spectrum(build, run_all):
    """A spectrum has 16 bits where it is made, and its magnitude where one step in 255 would spoil it; targets of 8 bits have 8."""
    graph = build(1, 1, 64)
    spectrum = np.stack([f(2 * np.pi * np.outer(np.arange(1, 5), np.arange(64)) / 64) for f in (np.cos, np.sin)])
    params = {"weights": spectrum.reshape(8, 1, 1, 64).astype(np.float32), "bias": np.zeros(8, np.float32)}
    graph.layer("stft", Conv(), "x", params)
    parts(graph, x="stft")
    weights = {"weights": graph.array(3, 4, 1, 1), "bias": graph.array(3)}
    graph.layer("scores", Conv(), "y", weights)
    fused = run_all(graph.done("scores"), integer=True)[0]
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(200, 1, 1, 64)) * rng.choice([0.01, 1.0], (200, 1, 1, 1), p=[0.98, 0.02])).astype(np.float32)
    histograms, ranges = collect(fused, [x]).histograms, {"x": None}
    typed = quantize(fused, histograms, QuantOptions(input_bits=0), ranges, [x])[0]
    assert [typed.type(name).bits for name in ("stft", "re", "im", "y")] == [16] * 4 and typed.type("scores").bits == 8
    plain = quantize(fused, histograms, QuantOptions(wide_concats=False), ranges, [x])[0]
    assert plain.type("stft").bits == plain.type("y").bits == 8
    real = run_graph(fused, {"x": x}, ["y"])["y"]

    def off(graph) -> np.ndarray:
        stored = simulate(graph, quantize_inputs(graph, [x]), keep=True)["y"]
        return np.abs(graph.type("y").dequantize(stored) - real)

    assert off(typed).max() <= 0.004 * real.max(), "weights of 8 bits"
    assert off(plain).mean() >= 4 * off(typed).mean()


@pytest.mark.parametrize("at", [0, 1, None])
def test_a_third_power_is_no_square(build, run, kinds, at):
    """Of one of the parts, or of both."""
    b = build(4, 3, 4)
    for number, name in enumerate("ab"):
        b.layer(name, Activation(Clip(0.0, 2.0 + number)), "x")
        b.layer(f"{name}2", ElemWise("Prod"), [name] * (3 if at in (None, number) else 2))
    b.layer("sum", ElemWise("Sum"), ["a2", "b2"])
    b.layer("y", Activation(Sqrt()), "sum")
    assert ("sum", "ElemWise") in kinds(run(b.done("y"), fuse_magnitude)[0])
