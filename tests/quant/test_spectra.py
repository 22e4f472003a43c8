"""Layers between the squares of a spectrum and their logarithm are found, and stay in floating point."""

import numpy as np
import onnx
import pytest
from support.onnx_models import decibels, runtime_outputs, text_model
from support.ops import Activation, ArrayMap, Concat, Conv, ElemWise, Identity, Pool, Softmax
from support.small_graphs import graph_of
from support.tables import every

import n2d2py
from n2d2py.cli import main
from n2d2py.contracts.functions import FUNCTIONS, Clip, Log, Sqrt
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import target_names
from n2d2py.graph import Graph, Node, Precision
from n2d2py.quant.calibration import quantize
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.dynamic_range import power_layers, spectrum_tensors
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.reference.executor import run_graph
from n2d2py.report.in_float import float_layers_in

_FRONT_END = ["re2", "im2", "sum", "bank", "held", "log"]


def front_end(*, between=None, precisions=None, squares: bool = True, function=None, emphasis: bool = False) -> Graph:
    """x (1, 1, 1, 64): real and imaginary parts of four bands, their power, a bank of three filters, the logarithm, scores."""
    graph, rng = Graph("kws"), np.random.default_rng(0)
    graph.add_input("x", (1, 1, 1, 64))

    def weighted(name: str, weights: np.ndarray, source: str) -> None:
        params = {"weights": weights.astype(np.float32), "bias": np.zeros(len(weights), np.float32)}
        graph.add(Node(name, Conv(), [source], [name], params))

    if emphasis:
        graph.add(Node("e", ElemWise("Sum", (1.0, -0.9)), ["x", "x"], ["e"]))
    angles = 2 * np.pi * np.outer(np.arange(1, 5), np.arange(64)) / 64
    for part, values in (("re", np.cos(angles)), ("im", np.sin(angles))):
        weighted(part, values.reshape(4, 1, 1, 64), "e" if emphasis else "x")
        op = ElemWise("Prod") if squares else between
        graph.add(Node(f"{part}2", op, [part, part] if squares else [part], [f"{part}2"]))
    graph.add(Node("sum", ElemWise("Sum"), ["re2", "im2"], ["sum"]))
    weighted("bank", rng.uniform(0, 1, (3, 4, 1, 1)), "sum")
    graph.add(Node("held", between if squares and between else Activation(Clip(1e-10)), ["bank"], ["held"]))
    graph.add(Node("log", Activation(function or Log()), ["held"], ["log"]))
    weighted("scores", rng.normal(size=(2, 3, 1, 1)), "log")
    graph.outputs = ["scores"]
    graph.verify()
    for name, precision in (precisions or {}).items():
        graph.precisions[name] = precision
    return graph


def test_a_logarithm_of_power_is_found():
    assert power_layers(front_end()) == set(_FRONT_END)
    assert power_layers(front_end(between=Pool("Average", (1, 1)))) == set(_FRONT_END)


@every(
    "options",
    [
        {"function": FUNCTIONS["Tanh"]()},
        {"between": Softmax()},
        {"between": Activation(FUNCTIONS["Abs"]()), "squares": False},
        {"precisions": {"bank": Precision(quantize=True)}},
    ],
    ids=["another function", "a softmax between", "magnitudes", "Quantize=1"],
)
def test_others_are_not(options):
    assert power_layers(front_end(**options)) == set()


def test_a_deep_network_with_a_logarithm_is_none():
    """And what branches at each layer takes no time."""
    graph = Graph("deep")
    graph.add_input("x", (1, 3, 2, 2))
    graph.add(Node("y0", ElemWise("Prod"), ["x", "x"], ["y0"]))
    for number in range(60):
        before = f"y{number}"
        graph.add(Node(f"a{number}", Activation(Clip(0.0)), [before], [f"a{number}"]))
        graph.add(Node(f"y{number + 1}", ElemWise("Sum"), [before, f"a{number}"], [f"y{number + 1}"]))
    graph.add(Node("log", Activation(Log()), ["y60"], ["log"]))
    graph.outputs = ["log"]
    assert power_layers(graph) == set()


def test_arrays_are_squared_and_their_logarithm_taken():
    dims = (2, 3)
    graph = graph_of(
        {"x": (1, 6)},
        Node("square", ArrayMap("Mul", dims, (dims, dims), (0, 0)), ["x"], ["square"]),
        Node("log", ArrayMap("Log", dims, (dims,)), ["square"], ["log"]),
    )
    assert power_layers(graph) == {"square", "log"}


def test_what_spectra_are_made_of_is_wide():
    """Sounds, what is made of them by sums, and the spectra; nothing that leaves the network, or that others read."""
    graph = insert_conversions(front_end(emphasis=True))
    assert spectrum_tensors(graph) == {"x", "e", "re", "im"}
    graph.outputs = ["scores", "e"]
    assert spectrum_tensors(graph) == {"re", "im"}
    graph.outputs = ["scores", "other"]
    graph.add(Node("other", Activation(FUNCTIONS["Tanh"]()), ["x"], ["other"]))
    assert spectrum_tensors(graph) == {"e", "re", "im"}
    assert spectrum_tensors(insert_conversions(front_end(function=FUNCTIONS["Tanh"]()))) == set()


def test_floating_point_between_does_not_end_them():
    """What is turned into real numbers and back on its way to a spectrum has 16 bits before, too."""
    graph = front_end(emphasis=True, precisions={"e": Precision(quantize=False)})
    assert spectrum_tensors(insert_conversions(graph)) == {"x", "x_float", "e", "e_integer", "re", "im"}
    graph.add(Node("moved", Identity(), ["x"], ["moved"]))
    graph.add(Node("other", Activation(FUNCTIONS["Tanh"]()), ["moved"], ["other"]))
    graph.outputs = ["scores", "other"]
    graph.precisions["other"] = Precision(quantize=False)
    assert "x" in spectrum_tensors(insert_conversions(graph))
    graph.precisions["other"] = Precision()
    assert "x" not in spectrum_tensors(insert_conversions(graph))


@pytest.mark.parametrize("size, wide", [(64, True), (1 << 16, False)])
def test_sounds_without_their_mean(size, wide):
    """A mean is a sum, as long as 32 bits hold it."""
    params = {"weights": np.ones((2, 1, 1, 1), np.float32), "bias": np.zeros(2, np.float32)}
    graph = graph_of(
        {"x": (1, 1, 1, size)},
        Node("m", Pool("Average", (1, size)), ["x"], ["m"]),
        Node("re", Conv(), ["m"], ["re"], params),
        Node("p", ElemWise("Prod"), ["re", "re"], ["p"]),
        Node("log", Activation(Log()), ["p"], ["log"]),
    )
    assert spectrum_tensors(insert_conversions(graph)) == ({"x", "m", "re"} if wide else {"m", "re"})


def constant_q(*, root=None, joined=True) -> Graph:
    """x (1, 1, 1, 64): two spectra side by side, magnitudes of their parts, squared again before the logarithm."""
    graph, rng = Graph("pitch"), np.random.default_rng(0)
    graph.add_input("x", (1, 1, 1, 64))
    for name in ("a", "b"):
        params = {"weights": rng.normal(size=(4, 1, 1, 64)).astype(np.float32), "bias": np.zeros(4, np.float32)}
        graph.add(Node(name, Conv(), ["x"], [name], params))
    op = Concat() if joined else ElemWise("Max")
    graph.add(Node("c", op, ["a", "b"], ["c"]))
    graph.add(Node("p", ElemWise("Prod"), ["c", "c"], ["p"]))
    graph.add(Node("m", Activation(root or Sqrt()), ["p"], ["m"]))
    graph.add(Node("t", Identity(), ["m"], ["t"]))
    graph.add(Node("q", ElemWise("Prod"), ["t", "t"], ["q"]))
    graph.add(Node("log", Activation(Log()), ["q"], ["log"]))
    graph.outputs = ["log"]
    graph.verify()
    return graph


def test_magnitudes_that_are_squared_again_are_power():
    assert power_layers(constant_q()) == {"p", "m", "t", "q", "log"}
    assert power_layers(constant_q(root=FUNCTIONS["Tanh"]())) == {"q", "log"}


def test_spectra_that_are_joined_are_wide():
    assert spectrum_tensors(insert_conversions(constant_q())) == {"x", "a", "b"}
    assert spectrum_tensors(insert_conversions(constant_q(joined=False))) == {"c"}


def test_quiet_sounds_keep_their_power():
    """Stimuli of 60 dB apart: within 1 dB, where integers between the spectrum and the logarithm lose them."""
    graph = front_end()
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(300, 1, 1, 64)) * 10 ** rng.uniform(-2, 0, (300, 1, 1, 1))).astype(np.float32)
    prepared = insert_conversions(graph)
    histograms, ranges = collect(prepared, [x]).histograms, {"x": None}
    typed = quantize(prepared, histograms, QuantOptions(input_bits=0), ranges, [x])[0]
    assert [typed.type(name).bits for name in ("re", "im")] == [16, 16]
    assert {one.layer for one in float_layers_in(typed, graph)} == set(_FRONT_END)
    assert {one.reason for one in float_layers_in(typed, graph)} == {
        "the power of a spectrum, of which a logarithm or root is made"
    }

    def worst(network) -> float:
        stored = simulate(network, quantize_inputs(network, [x]), keep=True)["log"]
        found = network.type("log").dequantize(stored)
        return float(10 / np.log(10) * np.abs(found - run_graph(graph, {"x": x}, ["log"])["log"]).max())

    assert worst(typed) < 1.0
    integers = front_end(precisions={name: Precision(quantize=True) for name in _FRONT_END})
    histograms = collect(integers, [x]).histograms
    assert worst(quantize(integers, histograms, QuantOptions(input_bits=0), ranges, [x])[0]) > 10.0


def masked_spectrum() -> onnx.ModelProto:
    """A mask of the magnitudes of spectra, times the spectra: real and imaginary parts (2, 1, 32)."""
    rng = np.random.default_rng(2)
    constants = {"e": np.float32(1e-12), "w": rng.normal(0, 0.4, (8, 3, 1, 1)).astype(np.float32)}
    constants |= {"v": rng.normal(0, 0.3, (2, 8, 1, 1)).astype(np.float32)}
    body = """re, im = Split <axis = 1> (x) a = Mul (re, re) b = Mul (im, im) p = Add (a, b) q = Add (p, e) m = Sqrt (q)
        f = Concat <axis = 1> (m, re, im) c = Conv (f, w) r = Relu (c) d = Conv (r, v) t = Tanh (d)
        tr, ti = Split <axis = 1> (t) k = Mul (re, tr) l = Mul (im, ti) n = Sub (k, l) g = Mul (im, tr) h = Mul (re, ti)
        i = Add (g, h) y = Concat <axis = 1> (n, i)"""
    return text_model("float[1,2,1,32] x => float[1,2,1,32] y", body, constants)


def test_masked_spectra_keep_their_dynamic_range(tmp_path):
    """Bands 50 dB apart, as in speech. The referee is ONNX Runtime on the float file; squares in integers, and 8-bit results, leave
    22 dB, and nothing of the quiet bands."""
    rng = np.random.default_rng(3)
    level = 10 ** (rng.uniform(-1, 1, (64, 1, 1, 1)) + np.linspace(0, -2.5, 32))
    x = (rng.normal(size=(64, 2, 1, 32)) * level).astype(np.float32)
    onnx.save(masked_spectrum(), tmp_path / "n.onnx")
    (real,) = runtime_outputs(tmp_path / "n.onnx", x, batch=1)
    network = n2d2py.load(tmp_path / "n.onnx")
    graph = n2d2py.quantize(network, n2d2py.calibrate(network, x)).graph
    stored = simulate(graph, quantize_inputs(graph, [x]))["y"]
    found = graph.type("y").dequantize(stored).reshape(real.shape)
    assert graph.type("y").bits == 16
    assert decibels(found, real) > 35
    assert decibels(found[..., 16:], real[..., 16:]) > 10


EXPORTS = (
    ("CPP", "-nbbits", "16", "-quality", "fast"),
    ("CPP", "-act-rescaling-mode", "Fixed-point16", "-act-clipping-mode", "KL-Divergence"),
    *((name,) for name in ("NVDLA", "ONNX", "NCNN") if name in target_names()),
)


def network(scale: float, bound: float) -> onnx.ModelProto:
    """A convolution whose first weights are times `scale`, clipped to [0, bound]."""
    weights = np.random.default_rng(1).standard_normal((4, 4, 3, 3)).astype(np.float32)
    weights[:2] *= np.float32(scale)
    constants = {"w": weights, "low": np.float32(0), "high": np.float32(bound)}
    body = "c = Conv <pads = [1, 1, 1, 1]> (x, w) k = Clip (c, low, high) y = GlobalAveragePool (k)"
    return text_model("float[1,4,6,6] x => float[1,4,1,1] y", body, constants)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("options", "scale", "bound"),
    [
        pytest.param(options, *ends, marks=[pytest.mark.slow] * ((first + second) % 2), id=f"{' '.join(options)} {ends}")
        for first, options in enumerate(EXPORTS)
        for second, ends in enumerate([(1, 1e-45), (1e-45, 6), (1e30, 1e-30)])
    ],
)
def test_ends_of_float32(tmp_path, capsys, options, scale, bound):
    onnx.save(network(scale, bound), tmp_path / "n.onnx")
    status = main([str(tmp_path / "n.onnx"), "-export", *options, "-calib", "2", "-db-export", "0", "-o", str(tmp_path)])
    text = capsys.readouterr().err
    assert status in (0, 1) and "E099" not in text and "RuntimeWarning" not in text
    assert status == 0 or (options[0] == "NVDLA" and "E715" in text)


def test_weights_of_a_transposed_convolution_fit_its_input(tmp_path, capsys):
    """A pad of channels leaves a shape that only array operators take; the weights are for 2 of the 3 channels."""
    constants = {"pads": np.array([0, 1, 1, 0, 0, 0, 0, 1]), "w": np.ones((2, 4, 3, 3), np.float32)}
    model = text_model("float[1,2,5,5] x => float y", "p = Pad (x, pads) y = ConvTranspose (p, w)", constants)
    onnx.save(model, tmp_path / "n.onnx")
    assert main([str(tmp_path / "n.onnx"), "-describe"]) == 1
    assert "E310" in capsys.readouterr().err
