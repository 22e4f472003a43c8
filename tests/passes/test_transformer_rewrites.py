"""Products with constant weights become convolutions, and functions spelled out on arrays one layer; ONNX Runtime is the referee."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from support.onnx_models import decibels, float_results, integer_graph, integer_results, node_model, onnx_results, quantized_on
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.passes import fuse

ROWS, DEPTH, WIDTH = 5, 6, 7
FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


def model(nodes: list, constants: dict, shape=(1, ROWS, DEPTH)) -> bytes:
    return node_model(nodes, {name: np.float32(value) for name, value in constants.items()}, shape, opset=13)


def kinds(graph: Graph) -> list[str]:
    """The operators in order."""
    return [node.op.kind for node in graph.nodes]


def check(file: bytes, graph: Graph, shape=(1, ROWS, DEPTH)) -> None:
    """The rewritten graph gives what ONNX Runtime gives for the file."""
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    assert np.allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)


def weights(seed: int, *shape: int) -> np.ndarray:
    """Normal values."""
    return np.random.default_rng(seed).normal(0, 0.5, shape)


LINEAR = [("MatMul", ["x", "w"], "p"), ("Add", ["p", "b"], "y")]
CONSTANTS = {"w": weights(2, DEPTH, WIDTH), "b": weights(3, WIDTH)}


def test_a_linear_layer_is_a_convolution_with_bias():
    file = model(LINEAR, CONSTANTS)
    graph = integer_graph(file)
    assert kinds(graph).count("Conv") == 1 and "ArrayMatMul" not in kinds(graph) and "ArrayMap" not in kinds(graph)
    (conv,) = [node for node in graph.nodes if node.op.kind == "Conv"]
    assert np.allclose(conv.params["bias"], CONSTANTS["b"]) and conv.params["weights"].shape == (WIDTH, DEPTH, 1, 1)
    check(file, graph)


@every(
    "nodes, constants, convolutions, shape",
    [
        ([("MatMul", ["x", "w"], "p"), ("Add", ["b", "p"], "y")], CONSTANTS, 1, (1, ROWS, DEPTH)),
        ([("MatMul", ["x", "w"], "y")], CONSTANTS, 1, (1, ROWS, DEPTH)),
        ([("MatMul", ["x", "w"], "p"), ("Add", ["p", "c"], "y")], {**CONSTANTS, "c": weights(4, 1)}, 1, (1, ROWS, DEPTH)),
        ([("MatMul", ["x", "w"], "p"), ("Add", ["p", "c"], "y")], {**CONSTANTS, "c": weights(4, ROWS, 1)}, 1, (1, ROWS, DEPTH)),
        ([("MatMul", ["x", "w"], "p"), ("Sub", ["p", "b"], "y")], CONSTANTS, 1, (1, ROWS, DEPTH)),
        ([("MatMul", ["x", "w"], "p"), ("Add", ["p", "b"], "q"), ("Mul", ["p", "q"], "y")], CONSTANTS, 1, (1, ROWS, DEPTH)),
        (LINEAR, CONSTANTS, 1, (1, 2, 3, DEPTH)),
        ([("MatMul", ["x", "w"], "y")], {"w": weights(5, 2, DEPTH, WIDTH)}, 1, (1, 2, ROWS, DEPTH)),
        ([("MatMul", ["w", "x"], "y")], {"w": weights(6, 4, ROWS)}, 1, (1, ROWS, DEPTH)),
    ],
    ids=["bias first", "no bias", "a number", "a column", "difference", "read twice", "rank 4", "two matrices", "left"],
)
def test_only_what_is_a_linear_layer_is_rewritten(nodes, constants, convolutions, shape):
    file = model(nodes, constants, shape)
    graph = integer_graph(file)
    assert kinds(graph).count("Conv") == convolutions
    check(file, graph, shape)


@every("last, shape", [(False, (1, ROWS, DEPTH)), (True, (1, ROWS, DEPTH)), (False, (1, 2, 3, DEPTH))])
def test_the_rectifier_of_a_linear_layer_is_part_of_it(last, shape):
    """Rows are viewed as an image between the two: a layer of its own would round once more."""
    end = [("Relu", ["q"], "y")] if last else [("Relu", ["q"], "r"), ("MatMul", ["r", "v"], "y")]
    nodes = [("MatMul", ["x", "w"], "p"), ("Add", ["p", "b"], "q"), *end]
    file = model(nodes, {**CONSTANTS, "v": weights(7, WIDTH, 3)}, shape)
    graph = integer_graph(file)
    assert "Activation" not in kinds(graph) and kinds(graph).count("Conv") == len(end)
    check(file, graph, shape)


def test_floating_point_exports_have_the_convolution_too():
    file = model(LINEAR, CONSTANTS)
    integer = integer_graph(file)
    real = fuse(import_onnx(onnx.load_from_string(file)), integer=False)[0]
    assert kinds(real).count("Conv") == kinds(integer).count("Conv") > 0
    check(file, real)


GELU = {
    "torch": [("Div", ["p", "r"], "d"), ("Erf", ["d"], "e"), ("Add", ["e", "one"], "a"), ("Mul", ["p", "a"], "m"), ("Mul", ["m", "half"], "y")],
    "half first": [("Mul", ["p", "half"], "h"), ("Div", ["p", "r"], "d"), ("Erf", ["d"], "e"), ("Add", ["one", "e"], "a"), ("Mul", ["h", "a"], "y")],
    "gate halved": [("Div", ["p", "r"], "d"), ("Erf", ["d"], "e"), ("Add", ["e", "one"], "a"), ("Mul", ["half", "a"], "g"), ("Mul", ["p", "g"], "y")],
    "tanh": [
        ("Mul", ["p", "half"], "h"), ("Pow", ["p", "three"], "t"), ("Mul", ["t", "cube"], "k"), ("Add", ["p", "k"], "i"),
        ("Mul", ["i", "s2pi"], "u"), ("Tanh", ["u"], "v"), ("Add", ["v", "one"], "a"), ("Mul", ["h", "a"], "y"),
    ],
    "tanh, products": [
        ("Mul", ["p", "s2pi"], "u"), ("Mul", ["p", "cube"], "k"), ("Mul", ["k", "p"], "l2"), ("Add", ["l2", "one"], "m"), ("Mul", ["u", "m"], "i"),
        ("Tanh", ["i"], "v"), ("Add", ["v", "one"], "a"), ("Mul", ["half", "a"], "g"), ("Mul", ["p", "g"], "y"),
    ],
    "silu": [("Sigmoid", ["p"], "s"), ("Mul", ["s", "p"], "y")],
    "hard swish": [("HardSigmoid", ["p"], "s"), ("Mul", ["p", "s"], "y")],
}  # fmt: skip


GELU_CONSTANTS = {"r": np.sqrt(2), "one": 1.0, "half": 0.5, "three": 3.0, "cube": 0.044715, "s2pi": np.sqrt(2 / np.pi)}


@every("name", GELU)
def test_functions_of_several_nodes_are_one_layer(name):
    constants = {**CONSTANTS, **GELU_CONSTANTS}
    used = {word for _, inputs, _ in GELU[name] for word in inputs} | {"w", "b"}
    nodes = [("MatMul", ["x", "w"], "l"), ("Add", ["l", "b"], "p"), *GELU[name]]
    file = model(nodes, {key: value for key, value in constants.items() if key in used})
    graph = integer_graph(file)
    assert "ArrayMap" not in kinds(graph) and kinds(graph).count("Activation") == 1, kinds(graph)
    check(file, graph)


@pytest.mark.parametrize("shift, factor", [(0.9, 0.5), (1.0, 0.4)])
def test_what_is_nearly_gelu_is_not(shift, factor):
    nodes = [("MatMul", ["x", "w"], "l"), ("Add", ["l", "b"], "p"), *GELU["torch"]]
    file = model(nodes, {**CONSTANTS, "r": np.sqrt(2), "one": shift, "half": factor})
    graph = integer_graph(file)
    assert not any(node.op.kind == "Activation" and node.op.function.kind == "Gelu" for node in graph.nodes)
    check(file, graph)


@every("changed", [{"cube": 0.045}, {"s2pi": 0.8}, {"three": 3.5}, {"one": 0.9}])
@every("name", ["tanh", "tanh, products"])
def test_what_is_nearly_gelu_by_tanh_is_not(name, changed):
    used = {word for _, inputs, _ in GELU[name] for word in inputs} | {"w", "b"}
    if not changed.keys() <= used:
        pytest.skip("it has no such constant")
    constants = {key: value for key, value in {**CONSTANTS, **GELU_CONSTANTS, **changed}.items() if key in used}
    file = model([("MatMul", ["x", "w"], "l"), ("Add", ["l", "b"], "p"), *GELU[name]], constants)
    graph = integer_graph(file)
    assert not any(node.op.kind == "Activation" and node.op.function.kind == "GeluTanh" for node in graph.nodes)
    if "three" not in changed:  # powers of negative numbers are none
        check(file, graph)


EQUAL = [("Cast", ["x"], "i", {"to": INT64}), ("Unsqueeze", ["i", "last"], "u"), ("Equal", ["u", "numbers"], "q")]
ONE_HOT = {
    "equal": [*EQUAL, ("Cast", ["q"], "h", {"to": FLOAT}), ("MatMul", ["h", "w"], "y")],
    "equal, 32 bits": [
        ("Cast", ["x"], "i", {"to": INT32}),
        *EQUAL[1:],
        ("Cast", ["q"], "h", {"to": FLOAT}),
        ("MatMul", ["h", "w"], "y"),
    ],
    "equal, from 2": [
        *EQUAL[:2],
        ("Equal", ["late", "u"], "q"),
        ("Cast", ["q"], "h", {"to": FLOAT}),
        ("MatMul", ["h", "w"], "y"),
    ],
    "where": [*EQUAL, ("Where", ["q", "on", "off"], "h"), ("MatMul", ["h", "w"], "y")],
    "operator": [EQUAL[0], ("OneHot", ["i", "depth", "values"], "h", {"axis": -1}), ("MatMul", ["h", "w"], "y")],
}


@every("name", ONE_HOT)
def test_a_product_of_a_one_hot_code_picks_a_row(name):
    """Numbers that the code has no place for give the row of a code without a one."""
    numbers = np.arange(DEPTH)
    constants = {
        "w": weights(7, DEPTH, WIDTH).astype(np.float32),
        "last": np.array([-1]),
        "late": numbers + 2,
        "depth": np.array(DEPTH),
        "on": np.float32(0.9),
        "off": np.float32(-0.1),
        "values": np.array([0.25, 2.0], np.float32),
        "numbers": numbers.astype(np.int32 if "32" in name else np.int64),
    }
    file = node_model(ONE_HOT[name], constants, ("N", 7), opset=13)
    x = np.array([[0, 1, 2, 3, 4, 5, 2], [-1, -2, -6, -7, 6, 7, 8], [-(2**31), 2**31 - 128, 100, -100, 0, 0, 0]], np.float32)
    graph = integer_graph(file)
    assert "ArrayGather" in kinds(graph) and not {"ArrayMatMul", "Conv"} & {*kinds(graph)}
    np.testing.assert_allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-5, atol=1e-6)


def test_other_numbers_than_those_that_count_are_no_one_hot_code():
    constants = {
        "w": weights(7, DEPTH, WIDTH).astype(np.float32),
        "last": np.array([-1]),
        "numbers": np.array([0, 1, 2, 3, 5, 4]),
    }
    file = node_model(ONE_HOT["equal"], constants, ("N", 7), opset=13)
    graph = integer_graph(file)
    assert "ArrayGather" not in kinds(graph)
    x = np.array([[0, 1, 2, 3, 4, 5, 2]], np.float32)
    np.testing.assert_allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-5, atol=1e-6)


def test_a_block_of_two_linear_layers_is_all_integer():
    """A transformer's feed-forward block: no layer is left in floating point, and the integers are near ONNX Runtime's reals."""
    nodes = [
        ("MatMul", ["x", "w"], "l"), ("Add", ["l", "b"], "p"), *GELU["torch"][:-1], ("Mul", ["m", "half"], "g"),
        ("MatMul", ["g", "v"], "n"), ("Add", ["n", "c"], "y"),
    ]  # fmt: skip
    constants = {**CONSTANTS, "r": np.sqrt(2), "one": 1.0, "half": 0.5, "v": weights(7, WIDTH, DEPTH), "c": weights(8, DEPTH)}
    file = model(nodes, constants)
    x = np.random.default_rng(9).normal(size=(64, ROWS, DEPTH)).astype(np.float32)
    typed = quantized_on(integer_graph(file), x, input_bits=16, output_bits=16)
    assert all(typed.is_integer(node) for node in typed.nodes)
    assert decibels(integer_results(typed, x), onnx_results(file, x)) > 35


SUMS = [
    ("ReduceSum", ["x", "axis"], "s", {"keepdims": 0}), ("Mul", ["s", "share"], "m"), ("Mul", ["x", "x"], "xx"),
    ("ReduceSum", ["xx", "axis"], "ss", {"keepdims": 0}), ("Mul", ["ss", "share"], "mm"), ("Mul", ["m", "m"], "h"), ("Sub", ["mm", "h"], "d"),
]  # fmt: skip
NORM_OF_SUMS = [
    *SUMS, ("Reshape", ["d", "kept"], "k"), ("Expand", ["k", "kept"], "e"), ("Add", ["e", "epsilon"], "v"), ("Sqrt", ["v"], "r"),
    ("Reciprocal", ["r"], "i"), ("Mul", ["i", "gain"], "g"), ("Unsqueeze", ["m", "axis"], "u"), ("Sub", ["x", "u"], "c"), ("Mul", ["c", "g"], "y"),
]  # fmt: skip
SOFTMAX_OF_PARTS = [
    ("ReduceMax", ["x"], "m", {"axes": [1], "keepdims": 0}), ("Unsqueeze", ["m", "axis"], "u"), ("Sub", ["x", "u"], "d"), ("Exp", ["d"], "p"),
    ("ReduceSum", ["p", "axis"], "s", {"keepdims": 0}), ("Reshape", ["s", "kept"], "k"), ("Div", ["p", "k"], "y"),
]  # fmt: skip


@every("kind, nodes", [("Normalize", NORM_OF_SUMS), ("Softmax", SOFTMAX_OF_PARTS)])
def test_reduced_axes_may_be_restored_by_a_reshape(kind, nodes):
    """As JAX's networks come by way of TensorFlow: sums without their axis, then Reshape and Expand."""
    constants = {
        "axis": np.array([1]), "share": np.float32(1 / ROWS), "kept": np.array([1, 1, DEPTH]), "epsilon": np.float32(1e-6),
        "gain": weights(8, 1, ROWS, 1).astype(np.float32),
    }  # fmt: skip
    file = node_model(nodes, constants, (1, ROWS, DEPTH), opset=13)
    graph = integer_graph(file)
    assert kind in kinds(graph) and "ArrayReduce" not in kinds(graph)
    check(file, graph)


def test_sums_that_are_restored_along_another_axis_are_no_norm():
    constants = {"axis": np.array([1]), "share": np.float32(1 / 6), "kept": np.array([1, 6, 1]), "epsilon": np.float32(1e-2)}
    ends = [("Reshape", ["mm", "kept"], "k"), ("Add", ["k", "epsilon"], "v"), ("Sqrt", ["v"], "r"), ("Div", ["x", "r"], "y")]
    file = node_model([*SUMS[2:5], *ends], constants, (1, 6, 6), opset=13)
    graph = integer_graph(file)
    assert "Normalize" not in kinds(graph)
    check(file, graph, (1, 6, 6))


def test_gelu_of_an_image_is_one_layer():
    nodes = [
        (kind, ["x" if name == "p" else name for name in inputs], output) for kind, inputs, output in GELU["tanh, products"]
    ]
    shape = (1, 3, 4, 5)
    file = model(nodes, {key: GELU_CONSTANTS[key] for key in ("one", "half", "cube", "s2pi")}, shape)
    graph = integer_graph(file)
    assert kinds(graph).count("Activation") == len(graph.nodes) == 1
    check(file, graph, shape)


def test_an_embedding_is_in_integers_with_what_follows_in_its_table():
    """Negative words count from the end, as in ONNX."""
    nodes = [
        ("Cast", ["x"], "words", {"to": INT64}), ("Gather", ["w", "words"], "l"), ("Add", ["l", "b"], "p"),
        *GELU["tanh"][:-1], ("Mul", ["h", "a"], "g"), ("MatMul", ["g", "w2"], "y"),
    ]  # fmt: skip
    constants = {**GELU_CONSTANTS, "w": weights(2, 20, WIDTH), "b": weights(3, WIDTH), "w2": weights(4, WIDTH, DEPTH)}
    file = node_model(nodes, constants, ("N", ROWS), opset=13)
    graph = integer_graph(file)
    assert kinds(graph).count("ArrayGather") == 1 and not {"Activation", "ElemWise", "AddConstants"} & {*kinds(graph)}
    x = np.random.default_rng(5).integers(-20, 20, (64, ROWS)).astype(np.float32)
    np.testing.assert_allclose(float_results(graph, x), onnx_results(file, x), rtol=1e-4, atol=1e-5)
    typed = quantized_on(graph, x)
    assert all(typed.is_integer(node) for node in typed.nodes if node.op.kind in ("ArrayGather", "Conv"))
    assert decibels(integer_results(typed, x), onnx_results(file, x)) > 35
