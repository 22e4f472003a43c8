"""WHILE, IF and CALL of .tflite files whose conditions are constants, against LiteRT; loops over steps as Keras writes its cells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference
from support.tflite_files import Small, joined, kinds, written

import n2d2py
from n2d2py.frontend.models import load_tflite
from n2d2py.reference.executor import run_graph

STEPS, BATCH, SIZE, HIDDEN = 5, 2, 3, 4
Body = Callable[[Small, int, list[int]], list[int]]


def _number(m: Small, value: int, shape: tuple[int, ...] = ()) -> int:
    return m.tensor("number", shape, values=np.full(shape, value, np.int32))


def _int(m: Small, code: str, inputs: list[int], shape=(), dtype: Any = np.int32, options: str = "", **fields) -> int:
    made = m.add(code, inputs, shape, None, options, **fields)
    m.file._tensors[made].type = getattr(m.schema.TensorType, np.dtype(dtype).name.upper())
    return made


def _graph(folder: Path, name: str, shapes: list, make: Callable[[Small, list[int]], list[int]]) -> Path:
    """A file of one graph; an input of the shape None is a counter."""
    m = Small(shapes[0] or (), None)
    inputs = [m.x, *(m.tensor(f"in{at}", shape or ()) for at, shape in enumerate(shapes[1:], 1))]
    for at, shape in zip(inputs, shapes, strict=True):
        if shape is None:
            m.file._tensors[at].type = m.schema.TensorType.INT32
    outputs = make(m, inputs)
    path = folder / f"{name}.tflite"
    path.write_bytes(
        m.file.to_bytes(
            name, {f"i{at}": one for at, one in enumerate(inputs)}, {f"o{at}": one for at, one in enumerate(outputs)}
        )
    )
    return path


def _loop(folder: Path, body: Body, states: int, every_step: bool, steps: int = STEPS, batch: int = BATCH) -> Path:
    """x (steps, batch, size) -> the states of all steps, or of the last one, and the last states; `body` makes them of x of a step."""
    rows = steps if every_step else 1
    shapes = [None, (rows, batch, HIDDEN), (steps, batch, SIZE), *[(batch, HIDDEN)] * states]

    def condition(m: Small, inputs: list[int]) -> list[int]:
        return [_int(m, "LESS", [inputs[0], _number(m, steps)], (), np.bool_)]

    def step(m: Small, inputs: list[int]) -> list[int]:
        counter, rows, x, *old = inputs
        after = _int(m, "ADD", [counter, _number(m, 1)], (), np.int32, "AddOptions")
        new = body(m, m.add("GATHER", [x, counter], (batch, SIZE), None, "GatherOptions"), old)
        row = m.add("RESHAPE", [new[0], m.constant("shape", [1, batch, HIDDEN])], (1, batch, HIDDEN), None)
        if every_step:
            places = [
                _int(
                    m,
                    "CONCATENATION",
                    [_int(m, "RESHAPE", [at, m.constant("one", [1])], (1,)), m.constant("rest", rest)],
                    (3,),
                    np.int32,
                    "ConcatenationOptions",
                )
                for at, rest in ((counter, [-1, -1]), (after, [0, 0]))
            ]
            zeros, all_ = m.constant("zeros", [0, 0, 0]), m.constant("all", [-1, -1, -1])
            parts = [m.add("SLICE", [rows, *ends], (1, 1, 1), None) for ends in ((zeros, places[0]), (places[1], all_))]
            for part in parts:
                m.file._tensors[part].shapeSignature = np.array([-1, -1, -1], np.int32)
            row = m.add("CONCATENATION", [parts[0], row, parts[1]], (steps, batch, HIDDEN), None, "ConcatenationOptions")
            row = m.add("CAST", [row], (steps, batch, HIDDEN), None)  # of a type to itself
        return [after, row, x, *new]

    graphs = [_graph(folder, "condition", shapes, condition), _graph(folder, "step", shapes, step)]
    m = Small((steps, batch, SIZE), None)
    first = [
        m.tensor("first", (batch, HIDDEN), values=m.rng.normal(0, at, (batch, HIDDEN)).astype(np.float32))
        for at in range(states)
    ]
    zeros = m.tensor("zeros", shapes[1], values=np.zeros(shapes[1], np.float32))
    m.file.operator("WHILE", [_number(m, 0), zeros, m.x, *first], m.x, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    ends = [m.tensor(f"end{at}", shape or ()) for at, shape in enumerate(shapes)]
    m.file._tensors[ends[0]].type = m.schema.TensorType.INT32
    m.file._operators[-1].outputs = np.array(ends, np.int32)
    outputs = [m.add("NEG", [at], shapes[place], None) for place, at in enumerate(ends) if place not in (0, 2)]
    return joined(written(m, folder, outputs), graphs, folder / "whole.tflite")


def _dense(m: Small, x: int, rows: int, size: int, bias: bool = False) -> int:
    weights = m.tensor("w", (rows, size), values=m.rng.normal(0, 0.7, (rows, size)).astype(np.float32))
    given = m.tensor("b", (rows,), values=m.rng.normal(0, 0.7, rows).astype(np.float32)) if bias else -1
    return m.add("FULLY_CONNECTED", [x, weights, given], (BATCH, rows), None, "FullyConnectedOptions")


def _two(m: Small, code: str, left: int, right: int, size: int = HIDDEN) -> int:
    options = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[code]
    return m.add(code, [left, right], (BATCH, size), None, options)


def _apply(m: Small, code: str, x: int) -> int:
    return m.add(code, [x], (BATCH, HIDDEN), None)


def _gates(m: Small, x: int, count: int) -> list[int]:
    parts = [m.tensor(f"gate{at}", (BATCH, HIDDEN)) for at in range(count)]
    m.file.operator("SPLIT", [m.constant("axis", 1), x], x, "SplitOptions", numSplits=count)
    m.file._operators[-1].outputs = np.array(parts, np.int32)
    return parts


def _lstm(m: Small, x: int, states: list[int]) -> list[int]:
    h, c = states
    sums = _two(m, "ADD", _dense(m, x, 4 * HIDDEN, SIZE), _dense(m, h, 4 * HIDDEN, HIDDEN, True), 4 * HIDDEN)
    i, f, g, o = _gates(m, sums, 4)
    i, f, o = (_apply(m, "LOGISTIC", gate) for gate in (i, f, o))
    c = _two(m, "ADD", _two(m, "MUL", f, c), _two(m, "MUL", i, _apply(m, "TANH", g)))
    return [_two(m, "MUL", o, _apply(m, "TANH", c)), c]


def _gru(after: bool) -> Body:
    def body(m: Small, x: int, states: list[int]) -> list[int]:
        (h,) = states
        zx, rx, nx = _gates(m, _dense(m, x, 3 * HIDDEN, SIZE, True), 3)
        zh, rh, nh = _gates(m, _dense(m, h, 3 * HIDDEN, HIDDEN, True), 3)
        z, r = (_apply(m, "LOGISTIC", _two(m, "ADD", *pair)) for pair in ((zx, zh), (rx, rh)))
        reset = _two(m, "MUL", r, nh) if after else _dense(m, _two(m, "MUL", r, h), HIDDEN, HIDDEN)
        rest = _two(m, "SUB", m.tensor("one", (), values=np.array(1, np.float32)), z)
        new = _two(m, "MUL", rest, _apply(m, "TANH", _two(m, "ADD", nx, reset)))
        return [_two(m, "ADD", _two(m, "MUL", z, h), new)]

    return body


def _rnn(m: Small, x: int, states: list[int]) -> list[int]:
    return [_apply(m, "TANH", _two(m, "ADD", _dense(m, x, HIDDEN, SIZE, True), _dense(m, states[0], HIDDEN, HIDDEN)))]


def _other(m: Small, x: int, states: list[int]) -> list[int]:
    """An LSTM whose cell state is limited, which no layer is."""
    (h,) = _rnn(m, x, states)
    return [m.add("RELU6", [h], (BATCH, HIDDEN), None)]


def _same_as_litert(path: Path, shape: tuple[int, ...]) -> None:
    graph, rng = n2d2py.load(path).network.graph, np.random.default_rng(0)
    for scale in (0, 1, 3):
        x = (rng.normal(size=shape) * scale).astype(np.float32)
        reference = Reference(path, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
        reference.interpreter.set_tensor(reference.inputs[0]["index"], x)
        reference.interpreter.invoke()
        found = run_graph(graph, {graph.inputs[0]: x.reshape(graph.shape(graph.inputs[0]))}).values()
        for mine, port in zip(found, reference.outputs, strict=True):
            wanted = reference.interpreter.get_tensor(port["index"])
            np.testing.assert_allclose(mine.reshape(wanted.shape), wanted, atol=2e-6)


LOOPS = {
    "LSTM": (_lstm, 2, True, "LSTM"),
    "LSTM, last step": (_lstm, 2, False, "LSTM"),
    "GRU, reset after the product": (_gru(True), 1, True, "GRU"),
    "GRU, reset before the product": (_gru(False), 1, True, "GRU"),
    "RNN": (_rnn, 1, False, "RNN"),
    "no layer": (_other, 1, True, ""),
}


@every(("body", "states", "every_step", "kind"), LOOPS.values(), ids=LOOPS)
def test_loops(tmp_path, body, states, every_step, kind):
    """A cell is one layer, whatever the initial states; other bodies are repeated."""
    path = _loop(tmp_path, body, states, every_step)
    found = kinds(path)
    assert (found.count(kind) == 1 and "Tanh" not in found) if kind else found.count("Tanh") == STEPS
    assert found.count("Gemm") == (0 if kind else 2 * STEPS)
    _same_as_litert(path, (STEPS, BATCH, SIZE))


@pytest.mark.parametrize("size", [3, 4])
def test_condition_of_a_shape(tmp_path, size):
    """IF takes one graph for an axis of 3, the other one for 4; both graphs are called in a graph that CALL runs."""
    shape = (1, size)
    graphs = [_graph(tmp_path, code, [shape], lambda m, x, code=code: [m.add(code, x, shape, None)]) for code in ("NEG", "ABS")]

    def choose(m: Small, inputs: list[int]) -> list[int]:
        length = _int(m, "SHAPE", inputs, (2,), np.int32, "ShapeOptions", outType=m.schema.TensorType.INT32)
        ends = [m.constant("at", [value]) for value in (1, 2, 1)]
        one = _int(m, "STRIDED_SLICE", [length, *ends], (), np.int32, "StridedSliceOptions", shrinkAxisMask=1)
        equal = _int(m, "EQUAL", [one, _number(m, 3)], (), np.bool_)
        return [m.add("IF", [equal, *inputs], shape, None, "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)]

    m = Small(shape, None)
    out = m.add("CALL", [m.x], shape, None, "CallOptions", subgraph=3)
    path = joined(written(m, tmp_path, out), [*graphs, _graph(tmp_path, "choose", [shape], choose)], tmp_path / "whole.tflite")
    x = np.array([[1, -2, 3, -4]], np.float32)[:, :size]
    graph = n2d2py.load(path).network.graph
    (found,) = run_graph(graph, {graph.inputs[0]: x.reshape(graph.shape(graph.inputs[0]))}).values()
    assert np.array_equal(found.reshape(shape), -x if size == 3 else np.abs(x))


def _bad(folder: Path, condition: str, graph: int = 1) -> Path:
    """A loop whose condition is a constant, or depends on the input."""
    shape = (1, 3)

    def truth(m: Small, inputs: list[int]) -> list[int]:
        if condition == "endless":
            return [_int(m, "LESS", [_number(m, 0), _number(m, 1)], (), np.bool_)]
        part = m.add("SUM", [*inputs, m.constant("axes", [0, 1])], (), None, "ReducerOptions")
        return [_int(m, "LESS", [part, m.tensor("zero", (), values=np.array(0, np.float32))], (), np.bool_)]

    graphs = [
        _graph(folder, "truth", [shape], truth),
        _graph(folder, "body", [shape], lambda m, x: [m.add("NEG", x, shape, None)]),
    ]
    m = Small(shape, None)
    out = m.add("WHILE", [m.x], shape, None, "WhileOptions", condSubgraphIndex=graph, bodySubgraphIndex=2)
    return joined(
        written(m, folder, out), graphs[: 2 if graph == 1 else 1] + graphs[1:] * (graph != 1), folder / "whole.tflite"
    )


BAD = {
    "computed condition": ("computed", 1, "E310", "depends on the inputs"),
    "endless loop": ("endless", 1, "E310", "does not end"),
    "a graph that is not there": ("endless", 7, "E310", "graphs"),
}


@every(("condition", "graph", "code", "reason"), BAD.values(), ids=BAD)
def test_refused(tmp_path, condition, graph, code, reason):
    line = error_line(load_tflite, _bad(tmp_path, condition, graph))
    assert f"N2D2-{code}" in line and reason in line
