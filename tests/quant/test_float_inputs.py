"""Inputs in floating point: integers of one scale would lose what the first layers, or the weights of a channel, make large."""

import numpy as np
import pytest
from support.onnx_models import onnx_results, text_model
from support.ops import Activation, Affine, Conv, ElemWise, Fc, MemoryView, Reshape, Transpose

import n2d2py
from n2d2py.contracts.functions import Log, Logistic
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Node
from n2d2py.quant.calibration import observe, prepare, quantize_observed
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.types.float_inputs import choose_float_inputs, with_float_inputs
from n2d2py.reference.executor import run_graph


def layer(graph: Graph, name: str, op, inputs: str, params=None) -> None:
    graph.add(Node(name, op, inputs.split(), [name], params or {}))


def weights(rng, *shape: int) -> dict[str, np.ndarray]:
    return {"weights": rng.normal(size=shape).astype(np.float32), "bias": rng.normal(size=shape[0]).astype(np.float32)}


def affine(gains, shifts) -> dict[str, np.ndarray]:
    return {"weights": np.array(gains, np.float32), "bias": np.array(shifts, np.float32)}


def guarded_logarithm(rng) -> tuple[Graph, np.ndarray]:
    """Powers over eight orders of magnitude."""
    graph = Graph("net")
    graph.add_input("x", (1, 12))
    layer(graph, "a", Affine(), "x", affine(np.ones(12), np.full(12, 1e-3)))
    layer(graph, "l", Activation(Log()), "a")
    layer(graph, "y", Fc(), "l", weights(rng, 6, 12))
    return graph, np.exp(rng.normal(-3, 3, (256, 12)))


def units(rng) -> tuple[Graph, np.ndarray]:
    """Pressure, temperature, humidity and acceleration, normalised by the first weights."""
    graph = Graph("net")
    graph.add_input("x", (1, 4))
    mean, deviation = np.array([101_325.0, 20.0, 0.5, 0.0]), np.array([800.0, 8.0, 0.2, 0.01])
    made = weights(rng, 6, 4)
    made["bias"] = (made["bias"] - made["weights"] @ (mean / deviation)).astype(np.float32)
    made["weights"] = (made["weights"] / deviation).astype(np.float32)
    layer(graph, "y", Fc(), "x", made)
    return graph, mean + deviation * rng.normal(size=(256, 4))


def gains(rng) -> tuple[Graph, np.ndarray]:
    """Two rows of eight channels a factor of 100 apart, whose normalization the weights have taken up."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 8))
    deviation, made = np.geomspace(0.1, 10, 8), weights(rng, 6, 8, 1, 1)
    made["weights"] = (made["weights"] / deviation.reshape(-1, 1, 1)).astype(np.float32)
    layer(graph, "a", Reshape((16,)), "x")
    layer(graph, "v", MemoryView((8, 1, 2)), "a")
    layer(graph, "y", Conv(), "v", made)
    return graph, deviation * rng.normal(size=(256, 2, 8))


def one_row(rng) -> tuple[Graph, np.ndarray]:
    """Four units as an array of one row."""
    graph, x = units(rng)
    made, graph = graph.node("y").params, Graph("net")
    graph.add_input("x", (1, 1, 4))
    layer(graph, "y", Fc(), "x", made)
    return graph, x[:, None]


def shifted(rng) -> tuple[Graph, np.ndarray]:
    """A mean of each channel subtracted before a layer that pads with zeros."""
    graph, x = planes(rng)
    made, means, graph = graph.node("y").params, np.array([3e3, -2e-2]), Graph("net")
    graph.add_input("x", (1, 2, 6, 6))
    layer(graph, "a", Affine(), "x", affine(np.ones(2), -means))
    layer(graph, "y", Conv(pads=(1, 1, 1, 1)), "a", made)
    return graph, x + means.reshape(1, 2, 1, 1)


def planes(rng) -> tuple[Graph, np.ndarray]:
    """Two maps in metres and in volts before a layer that pads."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 6, 6))
    made = weights(rng, 5, 2, 3, 3)
    made["weights"] = made["weights"] * np.array([1e-3, 200.0], np.float32).reshape(1, 2, 1, 1)
    layer(graph, "y", Conv(pads=(1, 1, 1, 1)), "x", made)
    return graph, rng.normal(size=(128, 2, 6, 6)) * np.array([1e3, 5e-3]).reshape(1, 2, 1, 1)


def rows(rng) -> tuple[Graph, np.ndarray]:
    """The same, channels last: eight samples of each, one after the other, and a Conv over rows."""
    graph = Graph("net")
    graph.add_input("x", (1, 8, 4))
    _, x = units(rng)
    deviation = x.std(axis=0)
    made = weights(rng, 6, 4, 1, 1)
    made["weights"] = (made["weights"] / deviation.reshape(-1, 1, 1)).astype(np.float32)
    made["bias"] = (made["bias"] - made["weights"][:, :, 0, 0] @ x.mean(axis=0)).astype(np.float32)
    layer(graph, "a", Reshape((32,)), "x")
    layer(graph, "v", MemoryView((4, 1, 8)), "a")
    layer(graph, "y", Conv(), "v", made)
    return graph, np.array([101_325.0, 20.0, 0.5, 0.0]) + np.array([800.0, 8.0, 0.2, 0.01]) * rng.normal(size=(256, 8, 4))


def turned(rng) -> tuple[Graph, np.ndarray]:
    """The same, turned before a Conv along the steps."""
    graph, x = rows(rng)
    graph = Graph("net")
    graph.add_input("x", (1, 8, 4))
    made = weights(rng, 6, 4, 1, 3)
    made["weights"] = (made["weights"] / x.std(axis=(0, 1)).reshape(-1, 1, 1)).astype(np.float32)
    made["bias"] = (made["bias"] - made["weights"].sum(axis=(2, 3)) @ x.mean(axis=(0, 1))).astype(np.float32)
    layer(graph, "t", Transpose((0, 2, 1)), "x")
    layer(graph, "v", Reshape((4, 1, 8)), "t")
    layer(graph, "y", Conv(), "v", made)
    return graph, x


def dense(rng, divisor: int) -> Graph:
    """A network of an input "x" and a layer "f" with weights of 1 / divisor."""
    graph = Graph("net")
    graph.add_input("x", (1, 12))
    layer(graph, "f", Fc(), "x", {role: each / divisor for role, each in weights(rng, 12, 12).items()})
    return graph


def plain_mask(rng) -> tuple[Graph, np.ndarray]:
    """A skewed spectrum times what a layer makes of it."""
    graph = dense(rng, 8)
    layer(graph, "s", Activation(Logistic()), "f")
    layer(graph, "y", ElemWise("Prod"), "x s")
    return graph, np.exp(rng.normal(-1, 2, (256, 12)))


def mask(rng) -> tuple[Graph, np.ndarray]:
    """A spectrum times what a layer makes of its logarithm."""
    graph = Graph("net")
    graph.add_input("x", (1, 12))
    layer(graph, "p", ElemWise("Prod"), "x x")
    layer(graph, "a", Affine(), "p", affine(np.ones(12), np.full(12, 1e-4)))
    layer(graph, "l", Activation(Log()), "a")
    layer(graph, "f", Fc(), "l", {role: each / 8 for role, each in weights(rng, 12, 12).items()})
    layer(graph, "s", Activation(Logistic()), "f")
    layer(graph, "y", ElemWise("Prod"), "x s")
    return graph, np.exp(rng.normal(-1, 2, (256, 12))) * rng.choice([-1, 1], (256, 12))


def denoiser(rng) -> tuple[Graph, np.ndarray]:
    """Values minus the small noise that a layer finds in them."""
    graph = dense(rng, 64)
    layer(graph, "y", ElemWise("Sum", (1.0, -1.0)), "x f")
    return graph, rng.normal(size=(2048, 12))


def gate(rng) -> tuple[Graph, np.ndarray]:
    """A step of a recurrent cell: the old state times a gate, and a product without it."""
    graph = dense(rng, 64)
    layer(graph, "z", Activation(Logistic()), "f")
    layer(graph, "p", ElemWise("Prod"), "x z")
    layer(graph, "y", ElemWise("Sum"), "p f")
    return graph, rng.normal(size=(2048, 12))


def edges(rng) -> tuple[Graph, np.ndarray]:
    """Truth values of distances, as a graph network makes its edges."""
    nodes = "g = Greater (x, half)\n c = Cast <to = 1> (g)\n y = MatMul (c, w)"
    constants = {"half": np.float32(0.5), "w": rng.normal(size=(24, 6)).astype(np.float32)}
    return import_onnx(text_model("float[1,24] x => float[1,6] y", nodes, constants)), rng.exponential(size=(256, 24))


def decibels(graph: Graph, samples: np.ndarray, x: np.ndarray) -> float:
    """Signal to error of the integers against float64."""
    samples = samples.astype(np.float32)
    prepared = prepare(graph, True, True)
    observed = observe(prepared, [samples], [samples], dict.fromkeys(graph.inputs), True, "key")
    typed, _ = quantize_observed(observed, QuantOptions(input_bits=0))
    found = typed.type("y").dequantize(simulate(typed, quantize_inputs(typed, [x.astype(np.float32)]))["y"])
    real = run_graph(graph, {"x": x.astype(np.float32).astype(np.float64)})["y"]
    return float(10 * np.log10((real - real.mean(0)).var() / np.square(found - real).mean()))


NETWORKS = {
    "guarded logarithm": guarded_logarithm,
    "units": units,
    "gains": gains,
    "one row": one_row,
    "shifted": shifted,
    "planes": planes,
    "rows": rows,
    "turned": turned,
    "mask": mask,
    "plain mask": plain_mask,
    "denoiser": denoiser,
    "gate": gate,
    "edges": edges,
}


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_integers_come_near_to_float64(make):
    rng = np.random.default_rng(11)
    graph, x = make(rng)
    graph.outputs = ["y"]
    samples, x = x[::2], x[1::2]
    found = with_float_inputs(graph, choose_float_inputs(graph, samples, {"x": None}))
    assert found.float_inputs == {"x"}
    x64 = {"x": x}
    np.testing.assert_allclose(run_graph(found, x64)["y"], run_graph(graph, x64)["y"], rtol=1e-4, atol=1e-3)
    before, after = decibels(graph, samples, x), decibels(found, samples, x)
    assert after > 25 and after > before + 6, (before, after)


SAME = {
    "one scale": lambda rng: rng.normal(size=(64, 4)),
    "zeros": lambda rng: np.zeros((64, 4)),
    "subnormal": lambda rng: rng.normal(size=(64, 4)) * 1e-42,
    "constants": lambda rng: np.broadcast_to(np.array([1e5, 2.0, 0.0, -3.0]), (64, 4)),
    "one sample": lambda rng: rng.normal(size=(1, 4)),
    "not finite": lambda rng: np.full((64, 4), np.inf),
}


@pytest.mark.parametrize("data", SAME.values(), ids=SAME)
def test_other_inputs_keep_their_integers_or_at_least_their_function(data):
    rng = np.random.default_rng(12)
    graph, _ = units(rng)
    graph.node("y").params = weights(rng, 6, 4)
    graph.outputs = ["y"]
    found = with_float_inputs(graph, choose_float_inputs(graph, data(rng), {"x": None}))
    x = {"x": rng.normal(size=(8, 4))}
    np.testing.assert_allclose(run_graph(found, x)["y"], run_graph(graph, x)["y"], rtol=1e-4, atol=1e-3)
    if data is not SAME["constants"]:
        assert not found.float_inputs


def test_an_input_of_a_layer_without_integer_form_is_not_rounded():
    """An LSTM with peepholes, after a transposition: results are those of ONNX Runtime, not of an input of 8 bits."""
    rng = np.random.default_rng(6)
    sizes = {"w": (1, 12, 5), "r": (1, 12, 3), "b": (1, 24), "p": (1, 9)}
    constants = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    body = "t = Transpose <perm = [1, 0, 2]> (x) every, h = LSTM <hidden_size = 3> (t, w, r, b, , , , p) y = Squeeze (h)"
    model = text_model("float[1,7,5] x => float[3] y", body, constants)
    x = rng.normal(size=(32, 7, 5)).astype(np.float32)
    loaded = n2d2py.load(model)
    found = np.asarray(n2d2py.quantize(loaded, n2d2py.calibrate(loaded, x))(x))
    np.testing.assert_allclose(found.reshape(len(x), 3), onnx_results(model.SerializeToString(), x), atol=1e-5)


def test_pictures_keep_their_bytes():
    """An input whose range is known has integers of it, whatever its stimuli."""
    graph, x = units(np.random.default_rng(13))
    graph.outputs = ["y"]
    assert choose_float_inputs(graph, x, {"x": (0.0, 255.0)}) == {}


@pytest.mark.parametrize("samples, bits", [(80, 16), (2000, 8)])
@pytest.mark.parametrize("op", [Fc(), Activation(Logistic())], ids=["Fc", "Logistic"])
def test_few_values_leave_room_for_larger_ones(op, samples, bits):
    """Calibrated on 80 samples of a vector of normal values, 8 bits clip what 16 have room for."""
    graph, x = Graph("net"), np.random.default_rng(14).normal(size=(samples, 4)).astype(np.float32)
    graph.add_input("x", (1, 4))
    layer(graph, "y", op, "x", weights(np.random.default_rng(15), 6, 4) if op == Fc() else None)
    graph.outputs = ["y"]
    observed = observe(prepare(graph, True, True), [x], [x], {"x": None}, True, "key")
    typed, _ = quantize_observed(observed, QuantOptions(input_bits=0))
    assert typed.type("x").bits == bits
