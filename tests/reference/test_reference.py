"""The float engines agree: ONNX Runtime on the written graph and NumPy on the operators."""

import numpy as np
import onnx
import pytest
from support import ops
from support.errors import error_line
from support.onnx_models import original_engine
from support.small_graphs import graph_of
from support.tables import every

from n2d2py.contracts.functions import Clip, LeakyRectifier, Logistic, Softplus, Swish, Tanh
from n2d2py.contracts.reference import onnx_emitter
from n2d2py.errors import InternalError
from n2d2py.graph import Graph, Node
from n2d2py.reference.engine import FloatEngine, open_session, to_onnx
from n2d2py.reference.executor import run_graph

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def network(op, params=None, shape=(4, 7, 6), inputs=1, activation=None) -> Graph:
    graph = Graph("g")
    names = [graph.add_input(f"x{i}", (1, *shape)) for i in range(inputs)]
    graph.add(Node("y", op, names, ["y"], params or {}, activation))
    graph.outputs = ["y"]
    return graph


CASES = {
    "conv": network(ops.Conv((2, 1), (1, 0, 2, 1), (1, 2)), {"weights": array(5, 4, 3, 2), "bias": array(5)}),
    "depthwise": network(ops.Conv(groups=4), {"weights": array(4, 1, 3, 3), "bias": array(4)}),
    "cropping conv": network(ops.Conv(pads=(-1, 0, 1, -1)), {"weights": array(5, 4, 3, 2), "bias": array(5)}),
    "conv with clip": network(ops.Conv(), {"weights": array(5, 4, 1, 1), "bias": array(5)}, activation=Clip(0, 1.5)),
    "fc of image": network(ops.Fc(), {"weights": array(3, 168), "bias": array(3)}),
    "fc of vector": network(ops.Fc(), {"weights": array(3, 9), "bias": array(3)}, (9,), activation=Tanh(0.5)),
    "max pool": network(ops.Pool("Max", (3, 2), (2, 2), (1, 0, 1, 1))),
    "max pool, wide pads": network(ops.Pool("Max", (3, 3), (1, 1), (2, 2, 0, 0))),
    "mean counting": network(ops.Pool("Average", (3, 2), (2, 2), (1, 0, 2, 1), True)),
    "mean counting, wide pads": network(ops.Pool("Average", (2, 2), (1, 1), (3, 0, 0, 3), True)),
    "mean not counting": network(ops.Pool("Average", (3, 2), (2, 2), (1, 0, 2, 1), False)),
    "affine": network(ops.Affine(), {"weights": array(4), "bias": array(4)}),
    "batchnorm": network(
        ops.BatchNorm(1e-3), {"scale": array(4), "bias": array(4), "mean": array(4), "variance": np.abs(array(4))}
    ),
    "sum": network(ops.ElemWise("Sum"), inputs=3),
    "weighted": network(ops.ElemWise("Sum", (1, -2), (0, 0.5)), inputs=2),
    "abs sum": network(ops.ElemWise("AbsSum", (1, 0.5)), inputs=2),
    "product": network(ops.ElemWise("Prod"), inputs=3),
    "euclidean": network(ops.ElemWise("EuclideanSum", (1, 2), (0.5, 0)), inputs=2),
    "max": network(ops.ElemWise("Max"), inputs=2),
    "single": network(ops.ElemWise("Sum"), inputs=1),
    "concat": network(ops.Concat(), inputs=2),
    "padding": network(ops.Padding((1, 2, 0, -1))),
    "reshape": network(ops.Reshape((12, 14))),
    "transpose": network(ops.Transpose((0, 2, 3, 1))),
    "identity": network(ops.Identity()),
    "dropout": network(ops.Dropout()),
    "softmax": network(ops.Softmax()),
    "softmax of groups": network(ops.Softmax(2)),
    **{
        f"activation {f.kind} {i}": network(ops.Activation(f))
        for i, f in enumerate(
            [
                Clip(0),
                Clip(-1, 1),
                Clip(high=0.5),
                LeakyRectifier(0.1),
                LeakyRectifier(0.1, 1.0),
                Logistic(),
                Softplus(),
                Swish(),
                Tanh(),
                Tanh(0.6),
            ]
        )
    },
}


@every("case", CASES)
def test_engines_agree(case):
    graph = CASES[case]
    feeds = {name: array(3, *graph.shape(name)[1:]) for name in graph.inputs}
    engine = FloatEngine(graph)
    assert engine.backend == "onnxruntime"
    onnx.checker.check_model(to_onnx(graph), full_check=True)
    got, want = engine.run(feeds)["y"], run_graph(graph, feeds)["y"]
    assert got.shape == want.shape == (3, *graph.shape("y")[1:])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


def chain() -> Graph:
    return graph_of(
        {"x": (1, 4, 5, 5)},
        Node("a", ops.Conv(), ["x"], ["a"], {"weights": array(3, 4, 1, 1), "bias": array(3)}, Clip(0)),
        Node("b", ops.Pool("Average", (5, 5)), ["a"], ["b"]),
        Node("c", ops.Fc(), ["b"], ["c"], {"weights": array(2, 3), "bias": array(2)}),
    )


def test_taps_of_any_tensor():
    graph, x = chain(), array(2, 4, 5, 5)
    values = FloatEngine(graph, taps=["x", "a", "b", "c"]).run(x)
    assert list(values) == ["c", "x", "a", "b"] and np.array_equal(values["x"], x)
    kept = run_graph(graph, {"x": x}, ["a", "b"])
    assert set(kept) == {"c", "a", "b"} and (kept["a"] >= 0).all()
    for name, want in kept.items():
        np.testing.assert_allclose(values[name], want, rtol=1e-5, atol=1e-6)


def test_double_precision_is_numpy():
    graph, x = chain(), array(2, 4, 5, 5)
    engine = FloatEngine(graph, dtype=np.float64)
    result = engine.run(x)["c"]
    assert engine.backend == "numpy" and result.dtype == np.float64
    np.testing.assert_allclose(result, FloatEngine(graph).run(x)["c"], rtol=1e-5, atol=1e-5)


def test_operator_without_emitter_runs_on_numpy():
    class Negate(ops.Identity):
        kind = "Negate"

        def run(self, inputs, node):
            return [-inputs[0]]

    graph, x = network(Negate()), array(2, 4, 7, 6)
    engine = FloatEngine(graph)
    assert engine.backend == "numpy" and np.array_equal(engine.run(x)["y"], -x)


def test_emitters_raise_on_duplicates():
    with pytest.raises(InternalError, match="registered twice"):
        onnx_emitter("Conv")(lambda writer, node, output: None)


def test_names_do_not_collide():
    graph = graph_of(
        {"constant": (1, 3)},
        Node("mul_of", ops.Affine(), ["constant"], ["mul_of"], {"weights": array(3), "bias": array(3)}),
        Node("y", ops.Affine(), ["mul_of"], ["y_linear"], {"weights": array(3), "bias": array(3)}, Clip(0)),
    )
    x = array(2, 3)
    np.testing.assert_allclose(FloatEngine(graph).run(x)["y_linear"], run_graph(graph, {"constant": x})["y_linear"], rtol=1e-6)


def test_original_file(tmp_path):
    graph, x = chain(), array(2, 4, 5, 5)
    path = tmp_path / "m.onnx"
    onnx.save(to_onnx(graph), path)
    np.testing.assert_array_equal(original_engine(path).run(x)["c"], FloatEngine(graph).run(x)["c"])
    path.write_bytes(b"no model")
    assert "N2D2-E321" in error_line(open_session, str(path), path)


NUMBERS = (-1.0, 0.0, 1.0, 2.0, -0.5)


def formula(operation: str, values: list[np.ndarray], weights, shifts) -> np.ndarray:
    if operation == "Prod":
        return np.prod(values, axis=0)
    if operation in ("Max", "Min"):
        return (np.max if operation == "Max" else np.min)(values, axis=0)
    if operation == "AbsSum":
        return sum(w * np.abs(x) for x, w in zip(values, weights, strict=True))
    terms = [w * x + s for x, w, s in zip(values, weights, shifts, strict=True)]
    return np.sqrt(sum(term**2 for term in terms)) if operation == "EuclideanSum" else sum(terms)


@every("count", [1, 2, 3])
@every("operation", ["Sum", "AbsSum", "EuclideanSum", "Prod", "Max", "Min"])
def test_every_weight_and_shift(operation, count):
    rng = np.random.default_rng(count)
    weighted = operation in ("Sum", "AbsSum", "EuclideanSum")
    for first in NUMBERS if weighted else (1.0,):
        for shift in NUMBERS if operation in ("Sum", "EuclideanSum") else (0.0,):
            weights, shifts = (first, 1.0, -2.0)[:count], (shift, 0.0, 0.75)[:count]
            op = ops.ElemWise(operation, weights, shifts) if weighted else ops.ElemWise(operation)
            graph = Graph("g")
            names = [f"x{index}" for index in range(count)]
            for name in names:
                graph.add_input(name, (1, 2, 3, 4))
            graph.add(Node("y", op, names, ["y"]))
            graph.outputs = ["y"]
            feeds = {name: rng.normal(size=(2, 2, 3, 4)).astype(np.float32) for name in names}
            expected = formula(operation, [feeds[name].astype(np.float64) for name in names], weights, shifts)
            engine = FloatEngine(graph, threads=1)
            assert engine.backend == "onnxruntime"
            for found in (engine.run(feeds)["y"], run_graph(graph, feeds)["y"]):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
