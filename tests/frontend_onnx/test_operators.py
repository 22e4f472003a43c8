"""Each operator, imported and compared with ONNX Runtime on random data (relative error 1e-5)."""

from __future__ import annotations

import numpy as np
import pytest

F = np.float32


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CONVS = {
    "plain": ({}, (4, 3, 3, 3)),
    "stride": ({"strides": [2, 1]}, (4, 3, 3, 3)),
    "asymmetric pads": ({"pads": [0, 1, 2, 0]}, (4, 3, 3, 2)),
    "dilated": ({"dilations": [2, 3]}, (4, 3, 3, 2)),
    "grouped": ({"group": 3, "pads": [1, 1, 1, 1]}, (6, 1, 3, 3)),
    "same upper": ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (4, 3, 3, 4)),
    "same lower": ({"auto_pad": "SAME_LOWER", "strides": [3, 2]}, (4, 3, 4, 2)),
    "valid": ({"auto_pad": "VALID"}, (4, 3, 5, 1)),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("case", CONVS)
def test_conv(one_node, check, case, bias):
    attributes, shape = CONVS[case]
    generator = np.random.default_rng(0)
    constants = {"w": generator.normal(size=shape).astype(F)}
    if bias:
        constants["b"] = generator.normal(size=shape[0]).astype(F)
    graph = check(one_node("Conv", ["N", 3, 9, 11], constants, **attributes), batch=2)
    assert [node.op.kind for node in graph.nodes] == ["Conv"] and graph.nodes[0].name == "y"


@pytest.mark.parametrize("attributes", [{}, {"transB": 1}, {"alpha": 0.5, "beta": 2.0}])
@pytest.mark.parametrize("bias", [None, (5,), (1, 5), (1,)])
def test_gemm(one_node, check, attributes, bias):
    generator = np.random.default_rng(0)
    shape = (5, 7) if attributes.get("transB") else (7, 5)
    constants = {"w": generator.normal(size=shape).astype(F)}
    if bias:
        constants["b"] = generator.normal(size=bias).astype(F)
    check(one_node("Gemm", ["N", 7], constants, **attributes), batch=3)


def test_matmul_then_bias_as_add(model, check):
    graph = check(model("float[N,7] x => float[N,5] y", "h = MatMul(x, w)\n y = Add(h, b)", w=(7, 5), b=(5,)), batch=2)
    assert [node.op.kind for node in graph.nodes] == ["Fc", "Affine"]


POOLS = {
    "plain": {"kernel_shape": [2, 3]},
    "stride": {"kernel_shape": [3, 3], "strides": [2, 2]},
    "pads": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 2]},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 3], "ceil_mode": 1},
    "ceil pads": {"kernel_shape": [3, 2], "strides": [3, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    "same upper": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "same lower": {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
}


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pool(one_node, check, operator, case):
    check(one_node(operator, ["N", 3, 8, 11], **POOLS[case]), batch=2)


@pytest.mark.parametrize("case", [case for case in POOLS if "ceil" not in case])
def test_pool_that_counts_its_pads(one_node, check, case):
    check(one_node("AveragePool", ["N", 3, 8, 11], **POOLS[case], count_include_pad=1), batch=2)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pool(one_node, check, operator):
    check(one_node(operator, ["N", 3, 5, 4]), batch=2)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[2, 3], [-1, -2]])
@pytest.mark.parametrize("operator,opset", [("ReduceMean", 13), ("ReduceMean", 18), ("ReduceMax", 13), ("ReduceMax", 20)])
def test_reduce(one_node, check, operator, opset, axes, keep):
    constants = {"axes": ints(*axes)} if opset >= 18 else {}
    attributes = {} if opset >= 18 else {"axes": axes}
    graph = check(one_node(operator, ["N", 3, 5, 4], constants, opset, keepdims=keep, **attributes), batch=2)
    assert graph.outputs == ["y"]


@pytest.mark.parametrize("shape", [["N", 4], ["N", 4, 3, 5]])
def test_batchnorm(one_node, check, shape):
    generator = np.random.default_rng(0)
    constants = {name: generator.normal(size=4).astype(F) for name in ("s", "b", "m")}
    constants["v"] = generator.uniform(0.1, 2, 4).astype(F)
    check(one_node("BatchNormalization", shape, constants, epsilon=1e-3), batch=2)


@pytest.mark.parametrize(
    "operator,attributes",
    [
        ("Relu", {}),
        ("LeakyRelu", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("Softplus", {}),
        ("HardSigmoid", {"alpha": 0.3}),
        ("HardSwish", {}),
        ("Identity", {}),
        ("Dropout", {}),
        ("Cast", {"to": 1}),
    ],
)
def test_function(one_node, check, operator, attributes):
    check(one_node(operator, ["N", 3, 4, 5], **attributes), batch=2)


def test_clip_old_and_new(one_node, check):
    check(one_node("Clip", ["N", 9], opset=10, min=-0.5, max=0.25))
    check(one_node("Clip", ["N", 9], {"low": np.array(-0.5, F), "high": np.array(0.25, F)}))
    check(one_node("Clip", ["N", 9], {"": np.array(0), "high": np.array(0.25, F)}))


def test_prelu_with_one_slope(one_node, check):
    check(one_node("PRelu", ["N", 3, 4, 4], {"slope": np.full((3, 1, 1), 0.1, F)}))


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("constant", [(), (1,), (3, 1, 1), (1, 3, 1, 1)])
def test_arithmetic_with_constant(one_node, check, operator, constant):
    values = np.random.default_rng(0).uniform(0.5, 2, constant).astype(F)
    graph = check(one_node(operator, ["N", 3, 4, 5], {"c": values}), batch=2)
    assert [node.op.kind for node in graph.nodes] == ["Affine"]


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_arithmetic_with_constant_first(model, check, operator):
    check(model("float[N,3,4,5] x => float[N,3,4,5] y", f"y = {operator}(c, x)", c=(3, 1, 1)), batch=2)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Max", "Sum"])
def test_arithmetic_of_tensors(model, check, operator):
    body = f"a = Relu(x)\n b = Tanh(x)\n y = {operator}(a, b)"
    check(model("float[N,3,4,5] x => float[N,3,4,5] y", body), batch=2)


def test_two_inputs(model, check):
    check(model("float[N,3,4,4] a, float[N,3,4,4] b => float[N,3,4,4] y", "y = Sub(a, b)"), batch=2)


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_limit(one_node, check, operator):
    check(one_node(operator, ["N", 3, 4, 5], {"c": np.array([0.25], F)}))


def test_concat(model, check):
    body = "a = Relu(x)\n y = Concat<axis = 1>(a, x, a)"
    check(model("float[N,3,4,5] x => float[N,9,4,5] y", body), batch=2)


def test_pad_old_and_new(one_node, check):
    check(one_node("Pad", ["N", 3, 4, 5], opset=10, pads=[0, 0, 1, 2, 0, 0, 0, 3]))
    check(one_node("Pad", ["N", 3, 4, 5], {"p": ints(0, 0, 1, 2, 0, 0, 0, -3), "v": np.array(0, F)}))
    check(one_node("Pad", ["N", 3, 4, 5], {"p": ints(1, 2, 3, 4), "v": np.array(0, F), "a": ints(-1, 2)}, opset=18))


@pytest.mark.parametrize("target", [(0, -1), (-1, 60), (0, 5, 12), (0, 0, 20), (-1, 60, 1, 1)])
def test_reshape(one_node, check, target):
    check(one_node("Reshape", ["N", 3, 4, 5], {"shape": ints(*target)}), batch=2)


def test_flatten_squeeze_unsqueeze(one_node, check):
    check(one_node("Flatten", ["N", 3, 4, 5]), batch=2)
    check(one_node("Squeeze", ["N", 3, 1, 1], opset=11, axes=[2, 3]), batch=2)
    check(one_node("Squeeze", ["N", 3, 1, 1], {"a": ints(-1, -2)}), batch=2)
    check(one_node("Unsqueeze", ["N", 3], opset=11, axes=[2, 3]), batch=2)
    check(one_node("Unsqueeze", ["N", 3], {"a": ints(1, -1)}), batch=2)


@pytest.mark.parametrize(
    "shape,axis,opset", [(["N", 7], 1, 17), (["N", 7], -1, 11), (["N", 7, 2, 3], 1, 17), (["N", 7, 1, 1], 1, 11)]
)
def test_softmax(one_node, check, shape, axis, opset):
    check(one_node("Softmax", shape, opset=opset, axis=axis), batch=2)


@pytest.mark.parametrize("opset", [11, 12, 13, 15, 17, 18, 20, 21, 22])
def test_opsets(model, check, opset):
    body = """h = Conv<pads = [1, 1, 1, 1]>(x, w, b)
              r = Relu(h)
              p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
              f = Flatten(p)
              g = Gemm(f, v)
              y = Softmax(g)"""
    built = model("float[N,3,8,8] x => float[N,5] y", body, opset, w=(4, 3, 3, 3), b=(4,), v=(64, 5))
    graph = check(built, batch=3)
    assert [node.name for node in graph.nodes] == ["h", "r", "p", "f", "g", "y"]
