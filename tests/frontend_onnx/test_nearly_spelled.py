"""Functions that are spelled out, and what is the same but for one constant, operand or node: all as ONNX Runtime computes them."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Gelu, HardSwish, Swish

F = np.float32
X = "float[N,3,4,5] x => float[N,3,4,5] y"
GELU = "d = Div(x, r)\n e = Erf(d)\n a = Add(e, o)\n m = Mul(x, a)\n y = Mul(m, h)"
GATE_HALVED = "d = Div(x, r)\n e = Erf(d)\n a = Add(e, o)\n g = Mul(h, a)\n y = Mul(x, g)"
CONSTANTS = {"r": np.sqrt(2), "o": 1, "h": 0.5, "z": 0, "six": 6, "three": 3}


def given(changes: dict, names: str) -> dict[str, np.ndarray]:
    return {name: np.asarray({**CONSTANTS, **changes}[name], F) for name in names.split()}


def functions(graph) -> list:
    return [node.op.function for node in graph.nodes if isinstance(node.op, Activation)]


THREE = np.array([1, 2, 0.5], F).reshape(3, 1, 1)


@pytest.mark.parametrize(
    "changes, is_gelu",
    [
        ({}, True),
        ({"h": 0.75}, True),
        ({"r": 1.5}, False),
        ({"r": 1.4143}, False),
        ({"o": 1.001}, False),
        ({"o": -1}, False),
        ({"o": THREE}, False),
    ],
)
@pytest.mark.parametrize("spelled", [GELU, GATE_HALVED], ids=["product", "gate"])
def test_a_gelu(model, check, spelled, changes, is_gelu):
    graph = check(model(X, spelled, **given(changes, "r o h")))
    assert any(isinstance(each, Gelu) for each in functions(graph)) == is_gelu


def test_a_gelu_of_a_shifted_value(model, check):
    """Or of another tensor than the one that it gates."""
    shifted = GELU.replace("Div(x, r)", "Div(s, r)")
    graph = check(model(X, f"s = Add(x, z)\n {shifted}", **given({"z": 0.25}, "r o h z")))
    assert not any(isinstance(each, Gelu) for each in functions(graph))
    graph = check(model(X, f"s = Neg(x)\n {shifted}", **given({}, "r o h")))
    assert not any(isinstance(each, Gelu) for each in functions(graph))


@pytest.mark.parametrize("spelled", [GELU, GATE_HALVED], ids=["product", "gate"])
def test_a_gelu_of_a_value_that_is_scaled_and_shifted(model, check, spelled):
    """The value may be made by the layers that its gate is searched through."""
    graph = check(
        model(
            "float[N,3,4,5] v => float[N,3,4,5] y", f"s = Mul(v, three)\n x = Add(s, h)\n {spelled}", **given({}, "r o h three")
        )
    )
    assert any(isinstance(each, Gelu) for each in functions(graph))


GATES = {
    "x": "a = Add(x, three)\n c = Clip(a, z, six)\n d = Div(c, six)\n y = Mul(x, d)",
    "product first": "a = Add(x, three)\n c = Clip(a, z, six)\n m = Mul(x, c)\n y = Div(m, six)",
    "gain before": "g = Mul(x, h)\n a = Add(g, three)\n c = Clip(a, z, six)\n y = Mul(c, x)",
}


CHANGES: list[tuple[dict, bool]] = [
    ({}, True),
    ({"six": 5}, True),
    ({"three": -0.5}, True),
    ({"z": 0.25}, False),
    ({"z": -0.25}, False),
    ({"three": THREE}, False),
]


@pytest.mark.parametrize("form", GATES)
@pytest.mark.parametrize("changes, is_one", CHANGES)
def test_a_hard_swish(model, check, form, changes, is_one):
    text = GATES[form]
    names = "six three z" + (" h" if " h)" in text else "")
    graph = check(model(X, text, **given(changes, names)))
    assert any(isinstance(each, HardSwish) for each in functions(graph)) == is_one


@pytest.mark.parametrize("text, is_one", [
    ("s = Sigmoid(x)\n y = Mul(x, s)", True),
    ("s = Sigmoid(x)\n y = Mul(s, x)", True),
    ("n = Neg(x)\n s = Sigmoid(n)\n y = Mul(x, s)", False),
    ("g = Mul(x, h)\n s = Sigmoid(g)\n y = Mul(x, s)", False),
    ("s = Sigmoid(x)\n a = Add(s, h)\n y = Mul(x, a)", False),
    ("s = Sigmoid(x)\n t = Tanh(s)\n y = Mul(x, t)", False),
    ("s = HardSigmoid <alpha = 0.25> (x)\n y = Mul(x, s)", False),
    ("s = Tanh(x)\n y = Mul(x, s)", False),
    ("s = Softplus(x)\n t = Tanh(s)\n y = Mul(t, x)", False),
    ("s = Sigmoid(x)\n t = Mul(s, h)\n y = Mul(t, x)", True),
    ("s = Sigmoid(x)\n t = Neg(s)\n y = Mul(t, x)", False),
    ("s = Sigmoid(x)\n t = Mul(s, w)\n y = Mul(t, x)", False),
])  # fmt: skip
def test_a_swish(model, check, text, is_one):
    constants = {name: value for name, value in (("h", np.array(0.5, F)), ("w", THREE)) if f", {name})" in text}
    graph = check(model(X, text, **constants))
    assert any(isinstance(each, Swish) for each in functions(graph)) == is_one


@pytest.mark.parametrize(
    "first, second, axis",
    [
        ((0, 2, 3, 1), (0, 3, 1, 2), 3),
        ((0, 2, 3, 1), (0, 2, 3, 1), 3),
        ((0, 3, 2, 1), (0, 2, 3, 1), 3),
        ((0, 2, 3, 1), (0, 2, 3, 1), 1),
        ((0, 2, 1, 3), (0, 2, 1, 3), 2),
        ((0, 2, 1, 3), (0, 2, 1, 3), 3),
    ],
)
def test_joined_transpositions(model, check, first, second, axis):
    """Of the same order or of two, along the axis that has the channels or another one."""
    body = f"a = Transpose <perm = {list(first)}> (x)\n r = Relu(x)\n b = Transpose <perm = {list(second)}> (r)\n y = Concat <axis = {axis}> (a, b)"
    check(model("float[N,4,4,4] x => float[N,A,B,C] y", body))
