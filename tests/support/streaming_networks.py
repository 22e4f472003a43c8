"""Small ONNX networks that stream: states are inputs, and outputs of the call before; and ONNX Runtime, call by call."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

STEPS, SIZE, HIDDEN = 3, 6, 5


def _saved(path: Path, nodes, inputs, outputs, constants) -> Path:
    def values(ends):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ends.items()]

    stored = [
        numpy_helper.from_array(np.asarray(v, np.int64 if np.asarray(v).dtype.kind == "i" else np.float32), n)
        for n, v in constants.items()
    ]
    graph = helper.make_graph(nodes, "net", values(inputs), values(outputs), stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def recurrent(path: Path, cell: str = "LSTM", names: tuple[str, ...] = ("h0", "hn", "c0", "cn")) -> Path:
    """A cell over some steps, and a matrix product."""
    rng, gates = np.random.default_rng(1), {"LSTM": 4, "GRU": 3}[cell]
    constants = {
        "W": rng.normal(0, 0.5, (1, gates * HIDDEN, SIZE)),
        "R": rng.normal(0, 0.5, (1, gates * HIDDEN, HIDDEN)),
        "B": rng.normal(0, 0.5, (1, 2 * gates * HIDDEN)),
        "F": rng.normal(0, 0.5, (HIDDEN, 3)),
        "one": [1],
    }
    states = dict.fromkeys(names[: 4 if cell == "LSTM" else 2], (1, 1, HIDDEN))
    given, made = list(states)[::2], list(states)[1::2]
    nodes = [
        helper.make_node(cell, ["x", "W", "R", "B", "", *given], ["y", *made], hidden_size=HIDDEN),
        helper.make_node("Squeeze", ["y", "one"], ["rows"]),
        helper.make_node("MatMul", ["rows", "F"], ["o"]),
    ]
    inputs = {"x": [STEPS, 1, SIZE], **{name: states[name] for name in given}}
    return _saved(path, nodes, inputs, {"o": [STEPS, 3], **{name: states[name] for name in made}}, constants)


def cached(path: Path) -> Path:
    """A convolution over the last columns of the call before and those of this one."""
    rng = np.random.default_rng(2)
    constants = {"W": rng.normal(0, 0.5, (5, 3, 3)), "b": rng.normal(0, 0.5, 5), "from": [-2], "to": [1 << 40], "axis": [2]}
    nodes = [
        helper.make_node("Concat", ["cache", "x"], ["joined"], axis=2),
        helper.make_node("Slice", ["joined", "from", "to", "axis"], ["cache_out"]),
        helper.make_node("Conv", ["joined", "W", "b"], ["conv"]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("GlobalAveragePool", ["relu"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["o"]),
    ]
    ends = {"x": [1, 3, 4], "cache": [1, 3, 2]}
    return _saved(path, nodes, ends, {"o": [1, 5], "cache_out": [1, 3, 2]}, constants)


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
    nodes = [
        helper.make_node("Gather", ["state", "first"], ["h0"]),
        helper.make_node("Gather", ["state", "second"], ["c0"]),
        helper.make_node("LSTM", ["x", "W", "R", "B", "", "h0", "c0"], ["", "hn", "cn"], hidden_size=HIDDEN),
        helper.make_node("Concat", ["hn", "cn"], ["stateN"], axis=0),
        helper.make_node("Squeeze", ["hn", "first"], ["row"]),
        helper.make_node("MatMul", ["row", "F"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["o"]),
    ]
    ends = {"x": [1, 1, SIZE], "state": [2, 1, HIDDEN]}
    return _saved(path, nodes, ends, {"o": [1, 1], "stateN": [2, 1, HIDDEN]}, constants)


def averaged(path: Path) -> Path:
    """A running mean: a state that elements are added to."""
    nodes = [
        helper.make_node("Mul", ["state_in", "keep"], ["kept"]),
        helper.make_node("Mul", ["x", "take"], ["taken"]),
        helper.make_node("Add", ["kept", "taken"], ["state_out"]),
        helper.make_node("MatMul", ["state_out", "F"], ["o"]),
    ]
    constants = {"keep": 0.9, "take": 0.1, "F": np.random.default_rng(4).normal(0, 0.5, (8, 3))}
    return _saved(path, nodes, {"x": [1, 8], "state_in": [1, 8]}, {"o": [1, 3], "state_out": [1, 8]}, constants)


def passed_on(path: Path) -> Path:
    """A delay of two calls: a state becomes another one, the input the first."""
    nodes = [
        helper.make_node("Identity", ["x"], ["cache1_out"]),
        helper.make_node("Identity", ["cache1"], ["cache2_out"]),
        helper.make_node("Concat", ["x", "cache2"], ["both"], axis=1),
        helper.make_node("MatMul", ["both", "F"], ["o"]),
    ]
    ends = {"x": [1, 4], "cache2": [1, 4], "cache1": [1, 4]}
    made = {"o": [1, 3], "cache1_out": [1, 4], "cache2_out": [1, 4]}
    return _saved(path, nodes, ends, made, {"F": np.random.default_rng(5).normal(0, 0.5, (8, 3))})


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
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
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
