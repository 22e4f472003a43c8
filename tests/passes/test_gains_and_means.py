"""Gains, shifts and reductions of arrays have integers; ONNX Runtime is the referee, and compiled integers are Python's."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.conformance_build import compiled
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Precision, QuantGraph
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.strategies import plan_memory
from n2d2py.passes import fuse
from n2d2py.quant.calibration import observe, prepare, quantize_observed
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.types.float_fallback import float_layers
from n2d2py.reference.engine import FloatEngine

ROWS, WIDTH = 6, 5
SHAPE = (1, 2, ROWS, WIDTH)


def row(seed: int, size: int = WIDTH) -> np.ndarray:
    """Numbers from 0.5 to 2."""
    return np.random.default_rng(seed).uniform(0.5, 2, size)


NORM = [("LayerNormalization", ["x", "gain"], "n")]
END = [("LayerNormalization", ["m", "gain"], "y")]
LINEAR = [("MatMul", ["x", "w"], "p")]
KEEP = {"keepdims": 1}
NETWORKS = {
    "a number": [*NORM, ("Mul", ["n", "half"], "m"), *END],
    "divided": [*NORM, ("Div", ["n", "half"], "m"), *END],
    "one less": [*NORM, ("Sub", ["half", "n"], "m"), *END],
    "a row": [*NORM, ("Mul", ["row", "n"], "m"), *END],
    "divided by a row": [*NORM, ("Div", ["n", "row"], "m"), *END],
    "two": [*NORM, ("Mul", ["n", "row"], "o"), ("Add", ["o", "half"], "m"), *END],
    "at the end": [*NORM, ("Mul", ["n", "half"], "y")],
    "in a sum": [*NORM, ("Mul", ["n", "half"], "o"), ("Add", ["x", "o"], "m"), *END],
    "in a difference": [*NORM, ("Mul", ["n", "half"], "o"), ("Sub", ["o", "x"], "m"), *END],
    "in a product": [*LINEAR, ("Mul", ["p", "half"], "o"), ("Add", ["x", "o"], "m"), *END],
    "bias and factor": [*LINEAR, ("Add", ["p", "row"], "o"), ("Div", ["o", "half"], "m"), *END],
    "mean of rows": [*NORM, ("ReduceMean", ["n"], "y", {"axes": [2], "keepdims": 0})],
    "mean of columns": [*NORM, ("ReduceMean", ["n"], "y", {"axes": [3], **KEEP})],
    "mean of both": [*NORM, ("ReduceMean", ["n"], "y", {"axes": [1, 2], **KEEP})],
    "mean apart": [*NORM, ("ReduceMean", ["n"], "y", {"axes": [1, 3], "keepdims": 0})],
    "mean of all": [*NORM, ("ReduceMean", ["n"], "y", {"axes": [1, 2, 3], **KEEP})],
    "sum of rows": [*NORM, ("ReduceSum", ["n", "two"], "y")],
    "largest of rows": [*NORM, ("ReduceMax", ["n"], "y", {"axes": [2], **KEEP})],
    "pooled": [
        *NORM,
        ("Transpose", ["n"], "t", {"perm": [0, 1, 3, 2]}),
        ("Reshape", ["t", "lines"], "l"),
        ("GlobalAveragePool", ["l"], "y"),
    ],
}
CONSTANTS = {
    "half": np.float32(0.5),
    "row": row(1),
    "gain": row(2),
    "w": np.random.default_rng(3).normal(0, 0.5, (WIDTH, WIDTH)),
    "two": np.array([2], np.int64),
    "lines": np.array([1, 2 * WIDTH, ROWS], np.int64),
}


def model(nodes: list) -> bytes:
    """An ONNX file from x to y."""
    used = {word for _, inputs, *_ in nodes for word in inputs}
    arrays = [
        numpy_helper.from_array(v if v.dtype == np.int64 else np.asarray(v, np.float32), k)
        for k, v in CONSTANTS.items()
        if k in used
    ]
    made = [helper.make_node(kind, inputs, [output], **(more[0] if more else {})) for kind, inputs, output, *more in nodes]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", SHAPE), ("y", None)))
    graph = helper.make_graph(made, "rows", [x], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def fused(file: bytes, tmp_path) -> Graph:
    """The graph of an ONNX file as an integer export gets it."""
    path = tmp_path / "rows.onnx"
    path.write_bytes(file)
    return fuse(import_onnx(path), integer=True)[0]


def real_outputs(file: bytes, x: np.ndarray) -> np.ndarray:
    """What ONNX Runtime gives, stimulus by stimulus."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return np.concatenate([np.asarray(session.run(None, {"x": one[None]})[0]) for one in x]).reshape(len(x), -1)


def integers(graph: Graph, x: np.ndarray) -> QuantGraph:
    """The quantized graph, calibrated on x."""
    return quantize_observed(observe(prepare(graph, True, True), [x], [x], {}, False, ""), QuantOptions())[0]


@every("name", NETWORKS)
def test_they_have_integers(name, tmp_path):
    file = model(NETWORKS[name])
    graph = fused(file, tmp_path)
    kinds = [node.op.kind for node in graph.nodes]
    assert "ArrayMap" not in kinds and "ArrayReduce" not in kinds and not float_layers(graph), kinds
    x = np.random.default_rng(4).normal(size=(40, *SHAPE[1:])).astype(np.float32)
    real, (output,) = real_outputs(file, x), graph.outputs
    assert np.allclose(FloatEngine(graph).run(x)[output].reshape(len(x), -1), real, rtol=1e-4, atol=1e-5)
    typed = integers(graph, x)
    stored = simulate(typed, quantize_inputs(typed, [x]))[typed.outputs[0]]
    found = typed.type(typed.outputs[0]).dequantize(stored).reshape(len(x), -1).astype(np.float64)
    assert 10 * np.log10(np.square(real).sum() / np.square(found - real).sum()) > 30


@pytest.mark.compiles
@every("name", ["divided by a row", "in a difference", "bias and factor", "mean apart", "sum of rows"])
def test_compiled_integers_are_those_of_python(name, tmp_path):
    x = np.random.default_rng(5).normal(size=(10, *SHAPE[1:])).astype(np.float32)
    typed = integers(fused(model(NETWORKS[name]), tmp_path), x)
    stored = quantize_inputs(typed, [x])
    problem = memory_problem(typed)
    found = compiled(typed, tmp_path / "export", plan=plan_memory(problem), problem=problem)
    want = simulate(typed, stored)[typed.outputs[0]]
    for index in range(len(x)):
        got = found.run_raw(*(one[index : index + 1] for one in stored))
        assert np.array_equal(np.asarray(got).reshape(-1), want[index].reshape(-1))


def test_a_factor_in_a_product_or_a_sum_costs_nothing(tmp_path):
    for name in ("in a sum", "in a product", "bias and factor"):
        assert not any(node.op.kind == "Affine" for node in fused(model(NETWORKS[name]), tmp_path).nodes), name


@pytest.mark.parametrize(
    "nodes",
    [
        [*NORM, ("Exp", ["n"], "e"), ("CumSum", ["e", "two"], "o"), ("Mul", ["o", "half"], "y")],
        [*NORM, ("Mul", ["n", "half"], "o"), ("CumSum", ["o", "two"], "y")],
        [*NORM, ("Mul", ["n", "half"], "q"), ("Mul", ["q", "row"], "o"), ("CumSum", ["o", "two"], "y")],
    ],
    ids=["behind", "before", "two before"],
)
def test_a_gain_beside_floating_point_stays_there(nodes, tmp_path):
    assert "Affine" not in [node.op.kind for node in fused(model(nodes), tmp_path).nodes]


def test_layers_that_are_to_stay_in_floating_point_stay(tmp_path):
    path = tmp_path / "rows.onnx"
    path.write_bytes(model(NETWORKS["mean of rows"]))
    network = import_onnx(path)
    network.precisions = {node.name: Precision(quantize=False) for node in network.nodes}
    assert "ArrayReduce" in [node.op.kind for node in fuse(network, integer=True)[0].nodes]


@every(("rows", "columns", "taken"), [(64, 64, True), (17, 241, False), (1, 4097, True), (4097, 1, False)])
def test_the_widest_rows_of_several_axes(rows, columns, taken):
    """4096 elements have gains of their own, 4097 only where they are the last axis."""
    gain = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Mul", ["r", "w"], ["y"])]
    held = [numpy_helper.from_array(np.array([1, 3, 1, rows, columns]), "s"), numpy_helper.from_array(gain, "w")]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", [1, 3 * gain.size]), ("y", None))
    )
    graph = helper.make_graph(nodes, "rows", [x], [y], held)
    found = fuse(import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)), integer=True)
    assert ("gains-of-rows" in found[1].counts) == taken
