"""The module of training against the integers of the simulator, and its gradients against formulas and differences."""

from pathlib import Path

import numpy as np
import pytest
from support.trained_networks import Trained

from n2d2py import log
from n2d2py.arithmetic.trained import RANGES, lsq_weights, sat_gain, sat_weights
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.load import load_stage
from n2d2py.stages.quantize import quantize_stage

torch = pytest.importorskip("torch")
quantizers = pytest.importorskip("n2d2py.training.quantizers")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log.setup(quiet=True)


def both(net: Trained, x: np.ndarray):
    """(module in evaluation, simulated integers by tensor, typed graph) of one INI and folder of weights."""
    from dataclasses import replace

    from n2d2py.training.module import build_module

    Path("net.ini").write_text(net.ini)
    net.write(Path("weights"))
    np.save("x.npy", x)
    path, run = read_command(
        ["net.ini", "-w", "weights", "-seed", "1", "-export", "CPP", "-calib", "-1", "-calib-data", "x.npy"]
    )
    network = load_network(path, run)
    graph = quantize_stage(calibrate_stage(network, run.calibration), run.quantization, ()).graph
    trained = load_stage(path, replace(run.load, training="now"), run.folder)
    assert trained.weights is not None and trained.weights.recipes is not None
    module = build_module(trained.graph, trained.weights.recipes, trained.weights).eval()
    return module, simulate(graph, quantize_inputs(graph, [x]), keep=True), graph


@pytest.mark.parametrize("kind", ["SAT", "LSQ"])
@pytest.mark.parametrize("steps", [3, 15, 255])
def test_integers_of_the_simulator(kind, steps):
    """All layers; an integer may be the next one where a value lies in the middle between two steps."""
    rng = np.random.default_rng(5)
    x = (rng.integers(0, 256, (40, 2, 8, 8)) / 255).astype(np.float32)
    x[0, 0, 0, 0] = 1.0  # the range of the data is that of bytes
    module, simulated, graph = both(Trained(steps=steps, act=15, kind=kind, seed=steps), x)
    compared = 0
    with torch.no_grad():
        found = module(torch.from_numpy(x), ("bn1", "pool1", "bn2"))
    for name, values in found.items():
        if name not in simulated:
            continue
        integers = np.rint(values.numpy() / graph.type(name).scale)
        apart = np.abs(integers - simulated[name])
        assert apart.max() <= 1 and (apart > 0).mean() < 0.004, f"{name}: {(apart > 0).mean():.4f}"
        assert len(np.unique(integers)) > 3
        compared += 1
    assert compared >= 2


@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("grid", ["odd", "symmetric", "full"])
@pytest.mark.parametrize("steps", RANGES)
def test_sat_weights_are_those_of_inference(steps, grid, scaling):
    weights = np.random.default_rng(steps).normal(0, 0.3, (6, 3, 3, 3)).astype(np.float32)
    integers, scale = sat_weights(weights, steps, grid)
    if scaling:
        scale *= sat_gain(integers, scale, 6)
    found = quantizers.SatWeights(steps, grid, True, 6 if scaling else 0)(torch.from_numpy(weights)).detach().numpy()
    assert np.array_equal(found, (integers * np.float64(np.float32(scale))).astype(np.float32))


@pytest.mark.parametrize("steps", RANGES[1:])
def test_lsq_weights_are_those_of_inference(steps):
    weights = np.random.default_rng(steps).normal(0, 0.3, (6, 20)).astype(np.float32)
    step = np.full(6, 0.07, np.float32) * np.arange(1, 7, dtype=np.float32)
    found = quantizers.LsqWeights(steps, torch.from_numpy(step))(torch.from_numpy(weights)).detach().numpy()
    expected = (lsq_weights(weights, steps, step) * step.astype(np.float64)[:, None]).astype(np.float32)
    assert np.array_equal(found, expected)


def test_gradients_of_lsq():
    """Of the paper: round(v) - v inside, the ends outside, times 1 / sqrt(count * top); straight through inside."""
    layer = quantizers.LsqActivation(15, 0.5, False)
    x = torch.tensor([[-1.0, 0.6, 3.3, 7.4, 9.0]], requires_grad=True)
    factors = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    (layer(x) * factors).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 2, 3, 4, 0]]
    v = np.array([1.2, 6.6, 14.8])
    slope = 2 * (1 - v[0]) + 3 * (7 - v[1]) + 4 * (15 - v[2]) + 5 * 15
    assert float(layer.step.grad) == pytest.approx(slope / np.sqrt(5 * 15), rel=1e-4)


def test_gradient_of_lsq_is_the_difference_where_nothing_rounds_otherwise():
    """Beyond the clip the output is linear in the step: the formula is the derivative there."""
    layer, x, h = quantizers.LsqActivation(15, 0.5, False), torch.tensor([[50.0, 60.0, -3.0]]), 1e-3
    layer(x).sum().backward()
    with torch.no_grad():
        low = layer(x).sum()
        layer.step += h
        high = layer(x).sum()
    assert float(layer.step.grad) * np.sqrt(3 * 15) == pytest.approx(float(high - low) / h, rel=1e-3)


def test_gradients_of_sat():
    """CG-PACT: alpha gets Q(u) - u inside, 1 above; DoReFa: the derivative of tanh / max."""
    layer = quantizers.SatActivation(15, 2.0)
    x = torch.tensor([[-1.0, 0.5, 5.0]], requires_grad=True)
    layer(x).sum().backward()
    u = 0.25
    assert float(layer.alpha.grad) == pytest.approx(round(u * 15) / 15 - u + 1, rel=1e-5)
    assert x.grad is not None and x.grad.tolist() == [[0, 1, 0]]
    weights = torch.tensor([[0.3, -0.8, 0.1]], requires_grad=True)
    quantizers.SatWeights(15, "symmetric", True, 0)(weights).sum().backward()
    w = weights.detach().numpy()
    assert weights.grad is not None
    assert np.allclose(weights.grad.numpy(), (1 - np.tanh(w) ** 2) / np.tanh(0.8), rtol=1e-5)
