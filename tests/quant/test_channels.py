"""The error that the equalization of activation ranges expects, against loops over single weights, and against rounding itself."""

import numpy as np
import pytest
from support.ops import ArrayMatMul, Conv, ElemWise, Fc, MemoryView, Normalize
from support.small_graphs import graph_of
from support.tables import every

from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node
from n2d2py.quant.calibration import observe, quantize_observed
from n2d2py.quant.correct.channels import _best_factors, _expected_error, _Scalable, channel_factors, equalize
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.executor import run_graph


def reader(op, weights: np.ndarray) -> Node:
    return Node("r", op, ["x"], ["r"], {"weights": weights.astype(np.float32), "bias": np.zeros(len(weights), np.float32)})


def scalable(node: Node, channels: int) -> _Scalable:
    """A rectified layer of these channels that the node reads."""
    return _Scalable(Node("p", Fc(), ["i"], ["x"], {}, Clip(0.0)), [(node, np.arange(channels))], "x")


@every("seed", range(4))
def test_what_is_expected_is_what_rounding_loses(seed):
    """The mean squared error of the outputs over random inputs; of one weight tensor, so to a factor of two."""
    rng = np.random.default_rng(seed)
    largest = np.array([8.0, 0.5, 1.0, 0.1])
    weights = rng.normal(size=(16, 4)).astype(np.float32)
    x = rng.uniform(0, 1, (20_000, 4)) * largest
    node, power = reader(Fc(), weights), (x**2).mean(axis=0)

    def lost(factors: np.ndarray) -> float:
        step = 8.0 / 255
        inputs = np.rint(x * factors / step) * step
        scaled = weights / factors
        steps = np.abs(scaled).max(axis=1, keepdims=True) / 127
        return float(((inputs @ (np.rint(scaled / steps) * steps).T - x @ weights.T) ** 2).mean(axis=0).sum())

    for factors in (np.ones(4), np.sqrt(8 / largest), 8 / largest):
        expected = _expected_error(node, factors, 8.0 / 255, power)
        assert 0.5 < expected / lost(factors) < 2
    found = _best_factors(scalable(node, 4), largest, power)
    assert found is not None and lost(found) < 0.98 * lost(np.ones(4)) and found[0] == 1.0


def test_channels_without_values_take_no_part():
    node = reader(Fc(), np.ones((2, 3)))
    assert _best_factors(scalable(node, 3), np.zeros(3), np.zeros(3)) is None
    assert _best_factors(scalable(node, 3), np.ones(3), np.ones(3)) is None
    found = _best_factors(scalable(reader(Conv(groups=3), np.ones((3, 1, 2, 2))), 3), np.array([4.0, 0.0, 1.0]), np.ones(3))
    assert found is not None and found[1] == 1.0 and found[2] > found[0] == 1.0


@pytest.mark.parametrize("dead", ["weights", "readers"])
def test_channels_without_a_range_are_left_alone(dead):
    """Those of which one side is 0 have no factor: neither their shift nor what reads them changes, bit for bit."""
    rng = np.random.default_rng(4)
    graph = Graph("net")
    graph.add_input("x", (1, 3, 4, 4))
    first, second = rng.normal(size=(4, 3, 1, 1)), rng.normal(size=(5, 4, 1, 1))
    (first[2:3] if dead == "weights" else second[:, 2])[:] = 0
    for name, source, weights, activation in (("a", "x", first, Clip(0.0)), ("y", "a", second, None)):
        params = {"weights": weights.astype(np.float32), "bias": rng.normal(size=len(weights)).astype(np.float32)}
        graph.add(Node(name, Conv(), [source], [name], params, activation))
    graph.outputs = ["y"]
    before = {node.name: dict(node.params) for node in graph.nodes}
    after = equalize(graph)
    a, y = (after.node(name).params for name in "ay")
    for role in ("weights", "bias"):
        np.testing.assert_array_equal(a[role][2], before["a"][role][2])
    np.testing.assert_array_equal(y["weights"][:, 2], before["y"]["weights"][:, 2])
    assert not np.array_equal(a["weights"], before["a"]["weights"])


def normed(gains: np.ndarray) -> Graph:
    """Four lines of 32 elements, normalised with gains, whose inverses the next layer has in its weights: one function for all gains."""
    rng = np.random.default_rng(6)
    params = {"gain": gains.astype(np.float32), "shift": np.zeros(32, np.float32)}
    weights = (rng.normal(size=(16, 32)) / gains).astype(np.float32)
    return graph_of(
        {"x": (1, 128)},
        Node("n", Normalize(32, 1e-5), ["x"], ["n"], params),
        Node("v", MemoryView((32, 1, 4)), ["n"], ["v"]),
        Node("y", Conv(), ["v"], ["y"], {"weights": weights.reshape(16, 32, 1, 1), "bias": np.zeros(16, np.float32)}),
    )


def multiplied(op, gains: np.ndarray) -> Graph:
    """Linear channels of an image of 32 pixels times what another layer makes of it, and a layer whose weights have the inverse gains."""
    rng = np.random.default_rng(6)
    graph = Graph("net")
    graph.add_input("x", (1, 4, 1, 32))

    def conv(name: str, source: str, weights: np.ndarray, activation: Clip | None = None) -> None:
        params = {"weights": weights.astype(np.float32)[..., None, None], "bias": np.zeros(len(weights), np.float32)}
        graph.add(Node(name, Conv(), [source], [name], params, activation))

    conv("v", "x", rng.normal(size=(32, 4)) * gains[:, None])
    conv("g", "x", rng.normal(size=(32, 4)), Clip(0.0))
    for name in ("g", "v"):
        graph.add(Node(f"{name}s", MemoryView((1024,)), [name], [f"{name}s"]))
    graph.add(Node("m", op, ["gs", "vs"], ["m"]))
    graph.add(Node("p", MemoryView((32, 1, 32)), ["m"], ["p"]))
    conv("y", "p", rng.normal(size=(16, 32)) / gains)
    graph.outputs = ["y"]
    return graph


MADE = {
    "normalisation": normed,
    "gate": lambda gains: multiplied(ElemWise("Prod"), gains),
    "attention": lambda gains: multiplied(ArrayMatMul((1, 32, 32), (1, 32, 32)), gains),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_wide_gains_cost_little(make):
    """Integers of channels whose gains differ by a factor of 100 are as near to float64 as those without gains."""
    rng = np.random.default_rng(7)
    errors = []
    for gains in (np.ones(32), np.exp(rng.uniform(-2.5, 2.5, 32))):
        graph = make(gains)
        samples, x = rng.normal(size=(2, 64, *graph.shape("x")[1:]))
        observed = observe(graph, [samples.astype(np.float32)], [samples.astype(np.float32)], {"x": None}, True, "key")
        real = run_graph(graph, {"x": x})["y"]
        np.testing.assert_allclose(run_graph(observed.graph, {"x": x})["y"], real, rtol=1e-4, atol=1e-4 * np.abs(real).max())
        typed, _ = quantize_observed(observed, QuantOptions())
        found = typed.type("y").dequantize(simulate(typed, quantize_inputs(typed, [x]))["y"])
        errors.append(10 * np.log10(np.square(real).sum() / np.square(found - real).sum()))
    assert errors[0] > 26 and errors[1] > errors[0] - 1.5, errors


def test_what_keeps_no_gains_is_left_alone():
    """A product whose columns join channels, one that an output holds, and the square of a tensor."""
    gains = np.exp(np.random.default_rng(7).uniform(-2.5, 2.5, 32))
    x = np.random.default_rng(8).normal(size=(8, 4, 1, 32)).astype(np.float32)
    joins = multiplied(ArrayMatMul((1, 32, 32), (1, 32, 32), views=((), (1024, 0, 0, 1, 32), ())), gains)
    shown, squared = (multiplied(ElemWise("Prod"), gains) for _ in range(2))
    shown.outputs, squared.node("m").inputs = ["m", "y"], ["vs", "vs"]
    assert [channel_factors(graph, [x]) for graph in (joins, shown, squared)] == [{}] * 3
