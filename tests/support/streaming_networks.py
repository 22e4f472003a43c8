"""Small ONNX networks that stream: states are inputs, and outputs of the call before; and ONNX Runtime, call by call."""

from pathlib import Path

import numpy as np
import onnx

from support.onnx_models import ModelBuilder, runtime_session, text_model

STEPS, SIZE, HIDDEN = 3, 6, 5


def _saved(path: Path, ends: str, body: str, constants: dict[str, object]) -> Path:
    onnx.save(text_model(ends, body, {name: np.asarray(values) for name, values in constants.items()}), path)
    return path


def recurrent(path: Path, cell: str = "LSTM", names: tuple[str, ...] = ("h0", "hn", "c0", "cn")) -> Path:
    """A cell over some steps, and a matrix product."""
    build, rows = ModelBuilder(1), HIDDEN * {"LSTM": 4, "GRU": 3}[cell]
    weights = [build.rng.normal(0, 0.5, shape) for shape in ((1, rows, SIZE), (1, rows, HIDDEN), (1, 2 * rows), (HIDDEN, 3))]
    states = names[: 4 if cell == "LSTM" else 2]
    given, made = states[::2], states[1::2]
    steps = build.add(cell, "x", *weights[:3], "", *given, more=made, hidden_size=HIDDEN)
    output = build.add("MatMul", build.add("Squeeze", steps, [1]), weights[3], name="o")
    return build.save(path, {"x": [STEPS, 1, SIZE]} | dict.fromkeys(given, (1, 1, HIDDEN)), output, *made)


def cached(path: Path) -> Path:
    """A convolution over the last columns of the call before and those of this one."""
    rng = np.random.default_rng(2)
    constants = {"W": rng.normal(0, 0.5, (5, 3, 3)), "b": rng.normal(0, 0.5, 5), "from": [-2], "to": [1 << 40], "axis": [2]}
    body = """joined = Concat <axis = 2> (cache, x) cache_out = Slice (joined, from, to, axis) conv = Conv (joined, W, b)
        relu = Relu (conv) mean = GlobalAveragePool (relu) o = Flatten (mean)"""
    return _saved(path, "float[1,3,4] x, float[1,3,2] cache => float[1,5] o, float[1,3,2] cache_out", body, constants)


def joined(path: Path) -> Path:
    """Both states of an LSTM in one tensor, as Silero's voice activity detector has them."""
    rng = np.random.default_rng(3)
    constants = {
        "W": rng.normal(0, 0.5, (1, 4 * HIDDEN, SIZE)),
        "R": rng.normal(0, 0.5, (1, 4 * HIDDEN, HIDDEN)),
        "B": rng.normal(0, 0.5, (1, 8 * HIDDEN)),
        "first": [0],
        "second": [1],
        "F": rng.normal(0, 0.5, (HIDDEN, 1)),
    }
    body = f"""h0 = Gather (state, first) c0 = Gather (state, second)
        all, hn, cn = LSTM <hidden_size = {HIDDEN}> (x, W, R, B, , h0, c0) stateN = Concat <axis = 0> (hn, cn)
        row = Squeeze (hn, first) logit = MatMul (row, F) o = Sigmoid (logit)"""
    ends = f"float[1,1,{SIZE}] x, float[2,1,{HIDDEN}] state => float[1,1] o, float[2,1,{HIDDEN}] stateN"
    return _saved(path, ends, body, constants)


def averaged(path: Path) -> Path:
    """A running mean: a state that elements are added to."""
    body = "kept = Mul (state_in, keep) taken = Mul (x, take) state_out = Add (kept, taken) o = MatMul (state_out, F)"
    constants = {"keep": 0.9, "take": 0.1, "F": np.random.default_rng(4).normal(0, 0.5, (8, 3))}
    return _saved(path, "float[1,8] x, float[1,8] state_in => float[1,3] o, float[1,8] state_out", body, constants)


def passed_on(path: Path) -> Path:
    """A delay of two calls: a state becomes another one, the input the first."""
    body = """cache1_out = Identity (x) cache2_out = Identity (cache1) both = Concat <axis = 1> (x, cache2)
        o = MatMul (both, F)"""
    ends = """float[1,4] x, float[1,4] cache2, float[1,4] cache1
        => float[1,3] o, float[1,4] cache1_out, float[1,4] cache2_out"""
    return _saved(path, ends, body, {"F": np.random.default_rng(5).normal(0, 0.5, (8, 3))})


NETWORKS = {
    "lstm": (recurrent, (STEPS * SIZE,)),
    "gru": (lambda path: recurrent(path, "GRU"), (STEPS * SIZE,)),
    "cached": (cached, (3, 4)),
    "joined": (joined, (1, SIZE)),
    "averaged": (averaged, (8,)),
    "passed_on": (passed_on, (4,)),
}
"""By name: what writes the file, and the shape of a stimulus."""


def stimuli(name: str, count: int = 20) -> np.ndarray:
    """(count, ...) calls."""
    return np.random.default_rng(7).normal(0, 1, (count, *NETWORKS[name][1])).astype(np.float32)


def call_by_call(path: Path, x: np.ndarray, pairs: dict[str, str], calls: int = 0) -> np.ndarray:
    """(N, ...) first outputs of ONNX Runtime, which gets its states back; zeros every `calls` calls."""
    session = runtime_session(path)
    shapes = {one.name: one.shape for one in session.get_inputs()}
    fed = next(name for name in shapes if name not in pairs)
    found, state = [], {}
    for index, stimulus in enumerate(x):
        if index == 0 or (calls and index % calls == 0):
            state = {name: np.zeros(shapes[name], np.float32) for name in pairs}
        results = session.run(None, {fed: stimulus.reshape(shapes[fed]), **state})
        named = dict(zip([one.name for one in session.get_outputs()], results, strict=True))
        state = {name: named[output] for name, output in pairs.items()}
        found.append(results[0].reshape(-1))
    return np.stack(found)
