"""Constants that keep divisors and logarithms from zero, in integers: normalisations as exporters spell them out, and what else divides."""

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser, save_model
from support.e2e_run import compiled_at_once
from support.onnx_models import decibels, runtime_outputs
from support.tables import every

import n2d2py
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

CONSTANTS = """<float e = {0.00001}, float t = {0.000001}, float two = {2}, float half = {0.5}, float less = {-0.5}, float one = {1}, float zero = {0},
float twelfth = {0.083333336}, float many = {8}, float fewer = {7}, int64[1] last = {-1}, int64[1] first = {1}, int64[2] rest = {2, 3},
float[4] g = {0.5, -1.25, 2, 0.75}, float[4] b = {0.25, 1, -0.5, 0.125}, float[8,1,1] c = {1, 0.5, -1, 2, 0.25, 1, 1.5, -0.5}>"""
MEANS = {"m": "ReduceMean <axes = [-1]> (x)", "d": "Sub (x, m)", "q": "Mul (d, d)", "v": "ReduceMean <axes = [-1]> (q)"}
DEVIATION = {**MEANS, "w": "Add (v, e)", "s": "Sqrt (w)"}
SQUARES = {"q": "Pow (x, two)", "v": "ReduceMean <axes = [-1]> (q)", "w": "Add (v, e)", "s": "Sqrt (w)"}
DIFFERENCE = {
    "m": "ReduceMean <axes = [-1]> (x)",
    "d": "Sub (x, m)",
    "q": "Mul (x, x)",
    "p": "ReduceMean <axes = [-1]> (q)",
    "h": "Mul (m, m)",
    "v": "Sub (p, h)",
}
"""The variance is the mean of the squares less the square of the mean."""
GAINS = {"u": "Mul (n, g)", "y": "Add (u, b)"}
NORMS = {
    "std + eps": {**MEANS, "s": "Sqrt (v)", "w": "Add (s, e)", "y": "Div (d, w)"},
    "std of samples + eps": {
        **MEANS,
        "m2": "ReduceMean <axes = [-1]> (x)",
        "d2": "Sub (x, m2)",
        "k": "Mul (v, many)",
        "k2": "Div (k, fewer)",
        "s": "Sqrt (k2)",
        "w": "Add (s, e)",
        "y": "Div (d2, w)",
    },
    "LayerNorm": {**DEVIATION, "q": "Pow (d, two)", "n": "Div (d, s)", **GAINS},
    "LayerNorm, root as a power": {**DEVIATION, "s": "Pow (w, half)", "y": "Div (d, s)"},
    "LayerNorm, inverse as a power": {**DEVIATION, "s": "Pow (w, less)", "n": "Mul (d, s)", "y": "Mul (n, g)"},
    "LayerNorm, reciprocal": {**DEVIATION, "r": "Reciprocal (s)", "n": "Mul (r, d)", **GAINS},
    "LayerNorm of TensorFlow": {
        **DEVIATION,
        "r": "Reciprocal (s)",
        "k": "Mul (r, g)",
        "u": "Mul (x, k)",
        "n": "Mul (m, k)",
        "o": "Sub (b, n)",
        "y": "Add (u, o)",
    },
    "LayerNorm of Flax": {
        **DIFFERENCE,
        "w": "Add (v, e)",
        "s": "Sqrt (w)",
        "r": "Reciprocal (s)",
        "k": "Mul (r, g)",
        "n": "Mul (d, k)",
        "y": "Add (n, b)",
    },
    "LayerNorm of Flax, as TensorFlow has it": {
        **DIFFERENCE,
        "z": "Max (v, zero)",
        "w": "Add (z, e)",
        "s": "Sqrt (w)",
        "r": "Reciprocal (s)",
        "k": "Mul (r, g)",
        "u": "Mul (x, k)",
        "n": "Mul (m, k)",
        "o": "Sub (b, n)",
        "y": "Add (u, o)",
    },
    "LayerNorm of channels": {
        **DEVIATION,
        "m": "ReduceMean <axes = [1]> (x)",
        "v": "ReduceMean <axes = [1]> (q)",
        "n": "Div (d, s)",
        "y": "Mul (n, c)",
    },
    "LayerNorm of two axes": {
        **DEVIATION,
        "m": "ReduceMean <axes = [2, 3]> (x)",
        "v": "ReduceMean <axes = [-2, -1]> (q)",
        "y": "Div (d, s)",
    },
    "RMSNorm": {**SQUARES, "n": "Div (x, s)", "y": "Mul (g, n)"},
    "RMSNorm, gain first": {**SQUARES, "r": "Div (one, s)", "k": "Mul (r, g)", "y": "Mul (x, k)"},
    "RMSNorm, gain on x": {**SQUARES, "k": "Mul (g, x)", "r": "Div (one, s)", "y": "Mul (k, r)"},
    "LayerNorm, gain on the difference": {**DEVIATION, "k": "Mul (d, g)", "n": "Div (k, s)", "y": "Add (n, b)"},
    "length + eps": {"s": "ReduceL2 <axes = [-1]> (x)", "w": "Add (s, e)", "y": "Div (x, w)"},
    "root of sum + eps": {"q": "Mul (x, x)", "v": "ReduceSum (q, last)", "w": "Add (v, e)", "s": "Sqrt (w)", "y": "Div (x, s)"},
}
OTHERS = {
    "largest + eps": {"a": "Abs (x)", "v": "ReduceMax <axes = [-1]> (a)", "w": "Add (v, e)", "y": "Div (x, w)"},
    "sum, limited": {"v": "ReduceL1 <axes = [-1]> (x)", "w": "Max (v, e)", "y": "Div (x, w)"},
    "mean of magnitudes + eps": {
        "a": "Abs (x)",
        "v": "ReduceSum (a, rest)",
        "m": "Mul (v, twelfth)",
        "w": "Add (m, e)",
        "y": "Div (x, w)",
    },
    "cosine with a constant": {
        "k": "Mul (x, g)",
        "v": "ReduceSum (k, last)",
        "s": "ReduceL2 <axes = [-1]> (x)",
        "w": "Add (s, e)",
        "y": "Div (v, w)",
    },
    "GRN": {
        "s": "ReduceL2 <axes = [2, 3]> (x)",
        "m": "ReduceMean <axes = [1]> (s)",
        "w": "Add (m, t)",
        "r": "Div (s, w)",
        "n": "Mul (x, r)",
        "u": "Mul (n, c)",
        "y": "Add (u, x)",
    },
}
FUNCTIONS = {
    "Log": {"q": "Mul (x, x)", "w": "Add (q, e)", "y": "Log (w)"},
    "Sqrt": {"q": "Abs (x)", "w": "Add (q, e)", "y": "Sqrt (w)"},
    "Reciprocal": {"q": "Abs (x)", "w": "Add (q, half)", "y": "Reciprocal (w)"},
    "negative power": {"q": "Abs (x)", "w": "Add (q, half)", "y": "Pow (w, less)"},
}
CASES = {**NORMS, **OTHERS, **FUNCTIONS}
LEVELS = {"normal": 1.0, "quiet": 0.1, "very quiet": 0.02, "loud": 4.0}
LEAST = {8: {"normal": 33.0, "quiet": 16.0, "very quiet": 4.0}, 16: {"normal": 66.0, "quiet": 45.0, "very quiet": 32.0}}
OTHERS_LEAST = {"normal": 30.0, "quiet": 12.0}
"""Decibels between the result and its error; 16 bits have 48 more than 8, a tenth of the level 20 less."""


def model_of(names: list[str], opset: int = 13) -> ModelProto:
    """One network of all cases, each from an input of its own through its nodes to an output."""
    inputs, outputs, lines = [], [], []
    for index, name in enumerate(names):
        parts = CASES[name]
        inputs.append(f"float[1,8,3,4] x_{index}")
        outputs.append(f"float y_{index}")
        for made in parts:
            text = parts[made]
            head, _, arguments = text.rpartition("(")
            words = [one.strip() for one in arguments.rstrip(") ").split(",")]
            known = [f"{one}_{index}" if one in (*parts, "x") else one for one in words]
            lines.append(f"{made}_{index} = {head}({', '.join(known)})")
    body = "\n".join(_sorted(lines, [f"x_{index}" for index in range(len(names))]))
    used = CONSTANTS
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({", ".join(inputs)}) => ({", ".join(outputs)}) {used} {{ {body} }}'
    )


def _sorted(lines: list[str], known: list[str]) -> list[str]:
    """The nodes in an order in which each reads what is written."""
    made = {line.split(" = ")[0]: line for line in lines}
    done, found = set(known), []
    while made:
        name = next(
            name
            for name, line in made.items()
            if not {word.strip() for word in line.rpartition("(")[2].rstrip(") ").split(",")} & (made.keys() - done)
        )
        found.append(made.pop(name))
        done.add(name)
    return found


def samples() -> np.ndarray:
    """Four normal stimuli, the same at other levels, zeros and a constant."""
    x = np.random.default_rng(5).normal(size=(4, 8, 3, 4)).astype(np.float32)
    ends = [np.zeros((1, 8, 3, 4), np.float32), np.full((1, 8, 3, 4), 0.5, np.float32)]
    return np.concatenate([*(np.float32(level) * x for level in LEVELS.values()), *ends])


@every("opset", [11, 13, 17])
@every("name", NORMS)
def test_a_spelled_norm_is_one_layer_that_agrees_in_floating_point(name, opset):
    if opset == 11 and "last" in str(CASES[name]):
        pytest.skip("ReduceSum has its axes as an attribute")
    model = model_of([name], opset)
    graph = import_onnx(model)
    assert [node.op.kind for node in graph.nodes].count("Normalize") == 1
    (found,) = run_graph(graph, {graph.inputs[0]: samples()}).values()
    (want,) = runtime_outputs(model, samples(), batch=1)
    np.testing.assert_allclose(found.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


@pytest.mark.compiles
@pytest.mark.parametrize("bits", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_guards_last_in_integers(bits, tmp_path: Path):
    """The compiled project has the bits of the simulator; a silent and a constant stimulus calibrate too."""
    names, rng = list(CASES), np.random.default_rng(8)
    model = model_of(names)
    given = [value.name for value in model.graph.input]
    save_model(model, str(tmp_path / "net.onnx"))
    data = rng.normal(size=(12, 8, 3, 4)).astype(np.float32)
    data[3], data[4] = 0, 0.5
    np.savez(tmp_path / "data.npz", **dict.fromkeys(given, data))
    export = n2d2py.export(
        str(tmp_path / "net.onnx"), "CPP", data=str(tmp_path / "data.npz"), bits=bits, folder=str(tmp_path / "export")
    )
    feeds = dict.fromkeys(given, samples())
    wanted = runtime_outputs(model, feeds, batch=1)
    folder = Path(export.folder)
    nets = n2d2py.load_simulator(folder), compiled_at_once(folder)
    simulated, compiled = (net(*feeds.values()) for net in nets)
    for index, name in enumerate(names):
        want = wanted[index]
        found = simulated[index].reshape(want.shape)
        np.testing.assert_array_equal(compiled[index].reshape(want.shape), found, err_msg=name)
        assert np.isfinite(found).all(), name
        assert np.abs(found[16:] - want[16:]).max() <= 0.02 * np.abs(want[:4]).max(), name
        for number, level in enumerate(LEVELS):
            least = (LEAST[bits] if name in NORMS else OTHERS_LEAST).get(level)
            part = slice(4 * number, 4 * number + 4)
            if least is not None:
                assert decibels(found[part], want[part]) >= least, (name, level, decibels(found[part], want[part]))


def test_an_output_that_a_division_reads_through_a_copy_keeps_8_bits():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[1,8] x) => (float[1,4,2] z, float[1,8] y)'
        f" <float e = {{0.00001}}, float[8,8] w = {{{', '.join(map(str, np.eye(8).ravel()))}}}, int64[3] s = {{1, 4, 2}}, int64[2] f = {{1, 8}}>"
        " { h = MatMul (x, w) z = Reshape (h, s) q = Reshape (z, f) a = Abs (q) v = ReduceSum <keepdims = 1> (a) d = Add (v, e) y = Div (q, d) }"
    )
    data = np.random.default_rng(2).normal(size=(64, 8)).astype(np.float32)
    loaded = n2d2py.load(model)
    quantized = n2d2py.quantize(loaded, n2d2py.calibrate(loaded, data))
    assert quantized.graph.type(quantized.graph.outputs[0]).bits == 8


def test_silence_behind_a_convolution_is_that_of_the_logarithm(tmp_path: Path):
    """A corrected bias of a few steps, beside nothing, would be half of the range."""
    rng = np.random.default_rng(1)
    weights = ", ".join(map(str, rng.normal(size=8 * 3 * 9).round(4)))
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[1,3,6,6] x) => (float[1,8,6,6] y)'
        f" <float e = {{0.00001}}, float[8,3,3,3] w = {{{weights}}}>"
        " { h = Conv <pads = [1, 1, 1, 1]> (x, w) q = Relu (h) a = Add (q, e) y = Log (a) }"
    )
    data = (rng.normal(size=(48, 3, 6, 6)) + 0.3).astype(np.float32)
    save_model(model, str(tmp_path / "net.onnx"))
    export = n2d2py.export(str(tmp_path / "net.onnx"), "CPP", data=data, folder=str(tmp_path))
    found = n2d2py.load_simulator(export.folder)(np.zeros((1, 3, 6, 6), np.float32))
    np.testing.assert_allclose(np.asarray(found), np.log(1e-5), rtol=0.02)


MASKS = {
    "-inf": "t = Where (b, s, f)",
    "-3.4028235e38": "u = Where (b, zero, f) t = Add (s, u)",
    "-10000": "c = Cast <to = 1> (b) i = Sub (one, c) u = Mul (i, f) a = Reshape (s, flat) k = Reshape (u, flat) j = Add (a, k) t = Reshape (j, whole)",
}


@pytest.mark.compiles
@every("fill", MASKS)
def test_masks_computed_at_run_time_leave_the_scores_their_steps(fill, tmp_path: Path):
    rng = np.random.default_rng(3)
    x, m = rng.normal(size=(24, 6, 8)).astype(np.float32), (rng.random((24, 6, 6)) < 0.6).astype(np.float32)
    m[:, range(6), range(6)] = 1
    w, v = (", ".join(map(str, rng.normal(size=size).round(3))) for size in (48, 30))
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,6,8] x, float[1,6,6] m) => (float[1,6,5] y) <float f = {1}, float zero = {0}, float one = {1},'
        f" int64[2] flat = {{1, 36}}, int64[3] whole = {{1, 6, 6}}, float[8,6] w = {{{w}}}, float[6,5] v = {{{v}}}>"
        f" {{ s = MatMul (x, w) b = Greater (m, zero) {MASKS[fill]} p = Softmax (t) y = MatMul (p, v) }}"
    )
    model.graph.initializer[0].float_data[:] = [float(fill)]
    feeds = {"x": x, "m": m}
    (want,) = runtime_outputs(model, feeds, batch=1)
    loaded = n2d2py.load(model)
    quantized = n2d2py.quantize(loaded, n2d2py.calibrate(loaded, feeds))
    found = np.asarray(quantized(x, m))
    assert decibels(found, want) > 33
    export = n2d2py.export(quantized, "CPP", folder=str(tmp_path / "export"))
    np.testing.assert_array_equal(compiled_at_once(Path(export.folder))(x, m), found)
