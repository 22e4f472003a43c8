"""Gains, shifts and reductions of arrays have integers; ONNX Runtime is the referee, and compiled integers are Python's."""

import numpy as np
import onnx
import pytest
from support.conformance_build import compiled
from support.onnx_models import decibels, float_results, integer_graph, integer_results, node_model, onnx_results, quantized_on
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Precision
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.strategies import plan_memory
from n2d2py.passes import fuse
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.types.float_fallback import float_layers

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


@every("name", NETWORKS)
def test_they_have_integers(name):
    file = node_model(NETWORKS[name], CONSTANTS, SHAPE)
    graph = integer_graph(file)
    kinds = [node.op.kind for node in graph.nodes]
    assert "ArrayMap" not in kinds and "ArrayReduce" not in kinds and not float_layers(graph), kinds
    x = np.random.default_rng(4).normal(size=(40, *SHAPE[1:])).astype(np.float32)
    real = onnx_results(file, x)
    assert np.allclose(float_results(graph, x), real, rtol=1e-4, atol=1e-5)
    assert decibels(integer_results(quantized_on(graph, x), x), real) > 30


@pytest.mark.compiles
@every("name", ["divided by a row", "in a difference", "bias and factor", "mean apart", "sum of rows"])
def test_compiled_integers_are_those_of_python(name, tmp_path):
    x = np.random.default_rng(5).normal(size=(10, *SHAPE[1:])).astype(np.float32)
    typed = quantized_on(integer_graph(node_model(NETWORKS[name], CONSTANTS, SHAPE)), x)
    stored = quantize_inputs(typed, [x])
    problem = memory_problem(typed)
    found = compiled(typed, tmp_path / "export", plan=plan_memory(problem), problem=problem)
    want = simulate(typed, stored)[typed.outputs[0]]
    for index in range(len(x)):
        got = found.run_raw(*(one[index : index + 1] for one in stored))
        assert np.array_equal(np.asarray(got).reshape(-1), want[index].reshape(-1))


def test_a_factor_in_a_product_or_a_sum_costs_nothing():
    for name in ("in a sum", "in a product", "bias and factor"):
        assert not any(
            node.op.kind == "Affine" for node in integer_graph(node_model(NETWORKS[name], CONSTANTS, SHAPE)).nodes
        ), name


@pytest.mark.parametrize(
    "nodes",
    [
        [*NORM, ("Exp", ["n"], "e"), ("CumSum", ["e", "two"], "o"), ("Mul", ["o", "half"], "y")],
        [*NORM, ("Mul", ["n", "half"], "o"), ("CumSum", ["o", "two"], "y")],
        [*NORM, ("Mul", ["n", "half"], "q"), ("Mul", ["q", "row"], "o"), ("CumSum", ["o", "two"], "y")],
    ],
    ids=["behind", "before", "two before"],
)
def test_a_gain_beside_floating_point_stays_there(nodes):
    assert "Affine" not in [node.op.kind for node in integer_graph(node_model(nodes, CONSTANTS, SHAPE)).nodes]


def test_layers_that_are_to_stay_in_floating_point_stay():
    network = import_onnx(onnx.load_from_string(node_model(NETWORKS["mean of rows"], CONSTANTS, SHAPE)))
    network.precisions = {node.name: Precision(quantize=False) for node in network.nodes}
    assert "ArrayReduce" in [node.op.kind for node in fuse(network, integer=True)[0].nodes]


@every(("rows", "columns", "taken"), [(64, 64, True), (17, 241, False), (1, 4097, True), (4097, 1, False)])
def test_the_widest_rows_of_several_axes(rows, columns, taken):
    """4096 elements have gains of their own, 4097 only where they are the last axis."""
    gain = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    nodes = [("Reshape", ["x", "s"], "r"), ("Mul", ["r", "w"], "y")]
    file = node_model(nodes, {"s": np.array([1, 3, 1, rows, columns]), "w": gain}, [1, 3 * gain.size])
    found = fuse(import_onnx(onnx.load_from_string(file)), integer=True)
    assert ("gains-of-arrays" in found[1].counts) == taken
