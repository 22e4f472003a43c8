"""Products of a tensor and a function of it, as exporters spell them: which function they are, of what, times which factor."""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

import numpy as np
import pytest

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.elemwise.idioms import gated, merged_gain
from n2d2py.operators.functions import Clip, Elu, Erf, Gelu, GeluTanh, HardSigmoid, HardSwish, Logistic, Softplus, Swish, Tanh

ROOT = sqrt(0.5)
SLOPE = sqrt(2 / pi)
Step = Any


def line(gain: float, shift: float = 0.0) -> Step:
    """gain x + shift."""
    return "line", gain, shift


def graph_of(**layers: tuple[str, ...]) -> Graph:
    """Layers `name=(source, step, step, ...)` of vectors of three elements; the steps between have numbers."""
    graph = Graph("g")
    graph.add_input("x", (1, 3))
    for name, (source, *steps) in layers.items():
        for at, step in enumerate(steps):
            made = name if at == len(steps) - 1 else f"{name}{at}"
            params: dict[str, np.ndarray] = {}
            activation = None
            if isinstance(step, tuple) and step[0] == "line":
                op: Any = Affine()
                params = {"weights": np.full(3, step[1], np.float32), "bias": np.full(3, step[2], np.float32)}
            elif isinstance(step, tuple):  # the weights, the bias and perhaps an activation of a layer of gains
                op, activation = Affine(), step[2] if len(step) > 2 else None
                params = {"weights": np.array(step[0], np.float32), "bias": np.array(step[1], np.float32)}
            elif isinstance(step, ArrayMap):
                op, constants = step, [at for at, slot in enumerate(step.slots) if slot < 0]
                params = {f"operand{at}": np.float32([3]) for at in constants}
            else:
                op = Activation(step)
            sources = source.split()
            graph.add(Node(made, op, sources, [made], params, activation))
            source = made
    return graph


POWER = ArrayMap("Pow", (3,), ((3,), (1,)), (0, -1))
SQUARE = ArrayMap("Mul", (3,), ((3,), (3,)), (0, 0))
PRODUCT = ArrayMap("Mul", (3,), ((3,), (3,)), (0, 1))
SUM = ArrayMap("Add", (3,), ((3,), (3,)), (0, 1))


def polynomial(cube: float = 0.044715, slope: float = SLOPE, first: Step = POWER) -> dict[str, tuple]:
    """tanh(slope (x + cube x^3)), plus 1."""
    return {"c": ("x", first, line(cube)), "s": ("x c", SUM), "g": ("s", line(slope), Tanh(), line(1, 1))}


CASES: dict[str, tuple[dict[str, tuple], tuple[str, str], Any]] = {
    "sigmoid": ({"g": ("x", Logistic())}, ("x", "g"), ("x", Swish(), 1.0)),
    "sigmoid in front": ({"g": ("x", Logistic())}, ("g", "x"), ("x", Swish(), 1.0)),
    "sigmoid times 3": ({"g": ("x", Logistic(), line(3))}, ("x", "g"), ("x", Swish(), 3.0)),
    "sigmoid times -3": ({"g": ("x", Logistic(), line(-3))}, ("x", "g"), None),
    "sigmoid times 0": ({"g": ("x", Logistic(), line(0))}, ("x", "g"), None),
    "sigmoid plus 1": ({"g": ("x", Logistic(), line(1, 1))}, ("x", "g"), None),
    "sigmoid of twice x": ({"y": ("x", line(2)), "g": ("y", Logistic())}, ("x", "g"), None),
    "twice x and its sigmoid": ({"y": ("x", line(2)), "g": ("x", Logistic())}, ("y", "g"), ("x", Swish(), 2.0)),
    "-2 x and its sigmoid": ({"y": ("x", line(-2)), "g": ("x", Logistic())}, ("y", "g"), ("x", Swish(), -2.0)),
    "6 x in two steps and its sigmoid": ({"y": ("x", line(2), line(3)), "g": ("x", Logistic())}, ("y", "g"), ("x", Swish(), 6.0)),
    "x + 1 and the sigmoid of x": ({"y": ("x", line(1, 1)), "g": ("x", Logistic())}, ("y", "g"), None),
    "x + 1 and its sigmoid": ({"y": ("x", line(1, 1)), "g": ("y", Logistic())}, ("y", "g"), ("y", Swish(), 1.0)),
    "a shift that a later one takes back": (
        {"y": ("x", line(2, 3), line(1, -3)), "g": ("x", Logistic())},
        ("y", "g"),
        ("x", Swish(), 2.0),
    ),
    "0 x and the sigmoid of x": ({"y": ("x", line(0)), "g": ("x", Logistic())}, ("y", "g"), None),
    "gains that differ": ({"g": ("x", Logistic(), ([1, 1, 2], [0, 0, 0]))}, ("x", "g"), None),
    "shifts that differ": ({"g": ("x", Logistic(), ([1, 1, 1], [0, 0, 2]))}, ("x", "g"), None),
    "gains with a clamp": ({"g": ("x", Logistic(), ([2, 2, 2], [0, 0, 0], Clip(0.0)))}, ("x", "g"), None),
    "sigmoid of another tensor": ({"y": ("x", Tanh()), "g": ("y", Logistic())}, ("x", "g"), None),
    "tanh": ({"g": ("x", Tanh())}, ("x", "g"), None),
    "exponential unit": ({"g": ("x", Elu())}, ("x", "g"), None),
    "no function": ({"y": ("x", line(2))}, ("x", "y"), None),
    "hard sigmoid": ({"g": ("x", HardSigmoid(0.25, 0.75))}, ("x", "g"), ("x", HardSwish(0.25, 0.75, 1.0), 1.0)),
    "hard sigmoid times 4": ({"g": ("x", HardSigmoid(0.25, 0.75), line(4))}, ("x", "g"), ("x", HardSwish(1.0, 3.0, 4.0), 1.0)),
    "hard sigmoid of twice x": ({"y": ("x", line(2)), "g": ("y", HardSigmoid())}, ("x", "g"), None),
    "hard sigmoid less 1": ({"g": ("x", HardSigmoid(), line(1, -1))}, ("x", "g"), None),
    "clip of x + 3, over 8": ({"g": ("x", line(1, 3), Clip(0.0, 6.0), line(0.125))}, ("x", "g"), ("x", HardSwish(0.125, 0.375, 0.75), 1.0)),
    "clip of 2 x + 1": ({"g": ("x", line(2, 1), Clip(0.0, 5.0))}, ("x", "g"), ("x", HardSwish(2.0, 1.0, 5.0), 1.0)),
    "clip of x": ({"g": ("x", Clip(0.0, 6.0))}, ("x", "g"), ("x", HardSwish(1.0, 0.0, 6.0), 1.0)),
    "clip to at most 0.5": ({"g": ("x", Clip(0.0, 0.5))}, ("x", "g"), ("x", HardSwish(1.0, 0.0, 0.5), 1.0)),
    "clip from 1": ({"g": ("x", Clip(1.0, 6.0))}, ("x", "g"), None),
    "clip from -1": ({"g": ("x", Clip(-1.0, 6.0))}, ("x", "g"), None),
    "clip without end": ({"g": ("x", Clip(0.0, inf))}, ("x", "g"), None),
    "clip to 0": ({"g": ("x", Clip(0.0, 0.0))}, ("x", "g"), None),
    "clip of another tensor": ({"y": ("x", Tanh()), "g": ("y", line(1, 3), Clip(0.0, 6.0))}, ("x", "g"), None),
    "clip of x + 3, less 1": ({"g": ("x", line(1, 3), Clip(0.0, 6.0), line(1, -1))}, ("x", "g"), None),
    "clip of x + 3, times -1": ({"g": ("x", line(1, 3), Clip(0.0, 6.0), line(-1))}, ("x", "g"), None),
    "error function, halved": ({"g": ("x", line(ROOT), Erf(), line(0.5, 0.5))}, ("x", "g"), ("x", Gelu(), 1.0)),
    "error function and 1": ({"g": ("x", line(ROOT), Erf(), line(1, 1))}, ("x", "g"), ("x", Gelu(), 2.0)),
    "error function and 2": ({"g": ("x", line(ROOT), Erf(), line(1, 2))}, ("x", "g"), None),
    "error function alone": ({"g": ("x", line(ROOT), Erf())}, ("x", "g"), None),
    "error function of x": ({"g": ("x", Erf(), line(1, 1))}, ("x", "g"), None),
    "error function of 0.7 x": ({"g": ("x", line(0.7), Erf(), line(1, 1))}, ("x", "g"), None),
    "error function of a bit more": ({"g": ("x", line(ROOT * (1 + 2e-5)), Erf(), line(1, 1))}, ("x", "g"), None),
    "error function of x and a shift": ({"g": ("x", line(ROOT, 0.5), Erf(), line(1, 1))}, ("x", "g"), None),
    "error function of another tensor": ({"y": ("x", Tanh()), "g": ("y", line(ROOT), Erf(), line(1, 1))}, ("x", "g"), None),
    "tanh of its polynomial": (polynomial(), ("x", "g"), ("x", GeluTanh(), 2.0)),
    "tanh of its polynomial by squares": (
        {"q": ("x", SQUARE), "p": ("q x", PRODUCT), "c": ("p", line(0.044715)), "s": ("c x", SUM), "g": ("s", line(SLOPE), Tanh(), line(0.5, 0.5))},
        ("g", "x"),
        ("x", GeluTanh(), 1.0),
    ),
    "tanh of x (1 + x x)": (
        {"q": ("x", SQUARE), "p": ("q", line(0.044715, 1)), "s": ("x p", PRODUCT), "g": ("s", line(SLOPE), Tanh(), line(1, 1))},
        ("x", "g"),
        ("x", GeluTanh(), 2.0),
    ),
    "tanh of another polynomial": (polynomial(0.05), ("x", "g"), None),
    "tanh of a steeper polynomial": (polynomial(slope=0.8), ("x", "g"), None),
    "tanh of a square": (polynomial(first=SQUARE), ("x", "g"), None),
    "tanh of its polynomial and 2": ({**polynomial(), "g": ("s", line(SLOPE), Tanh(), line(1, 2))}, ("x", "g"), None),
    "tanh of x and 1": ({"g": ("x", Tanh(), line(1, 1))}, ("x", "g"), None),
    "tanh of a polynomial of another tensor": (
        {"y": ("x", Elu()), **polynomial()}, ("y", "g"), None),
    "tanh of softplus": ({"g": ("x", Softplus(), Tanh())}, ("x", "g"), "Mish"),
    "softplus of tanh": ({"g": ("x", Tanh(), Softplus())}, ("x", "g"), None),
    "tanh of the softplus of another tensor": ({"y": ("x", Elu()), "g": ("y", Softplus(), Tanh())}, ("x", "g"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_function_of_a_product(name):
    layers, (a, b), wanted = CASES[name]
    found = gated(graph_of(**layers), a, b)
    if wanted is None:
        assert found is None
    elif isinstance(wanted, str):
        assert found is not None and (found[0], found[1].kind, found[2]) == ("x", wanted, 1.0)
    else:
        assert found is not None and found[0] == wanted[0]
        assert type(found[1]) is type(wanted[1]) and vars(found[1]) == pytest.approx(vars(wanted[1]), rel=1e-6)
        assert found[2] == pytest.approx(wanted[2], rel=1e-6)


GAIN = np.array([2.0, 4.0, 0.5])


@pytest.mark.parametrize(
    "layers, gain, wanted",
    [
        ({}, GAIN, ("x", None, GAIN)),
        ({"y": ("x", Tanh())}, GAIN, ("y", None, GAIN)),
        ({"y": ("x", ([3, 1, 2], [0, 0, 0]))}, GAIN, ("x", None, [6, 4, 1])),
        ({"y": ("x", ([3, 1, 2], [0, 0, 1]))}, GAIN, ("y", None, GAIN)),
        ({"y": ("x", ([3, 1, 2], [0, 0, 0], Clip(0.0)))}, GAIN, ("y", None, GAIN)),
        # gains that cancel show the function before them
        ({"y": ("x", Tanh(), ([0.5, 0.25, 2], [0, 0, 0]))}, GAIN, ("x", Tanh(), [1, 1, 1])),
        ({"y": ("x", ([0.5, 0.25, 2], [0, 0, 0]))}, GAIN, ("x", None, [1, 1, 1])),
        ({"y": ("x", Tanh(), ([0.5, 0.25, 1], [0, 0, 0]))}, GAIN, ("y0", None, [1, 1, 0.5])),
        ({"y": ("x", Tanh(), ([0.5000001, 0.25, 2], [0, 0, 0]))}, GAIN, ("x", Tanh(), [1, 1, 1])),
        ({"y": ("x", Tanh(), ([0.50001, 0.25, 2], [0, 0, 0]))}, GAIN, ("y0", None, [1.00002, 1, 1])),
        # one factor of a HardSwish is part of it
        ({"y": ("x", HardSwish(0.5, 1.0, 2.0))}, np.full(3, 4.0), ("x", HardSwish(2.0, 4.0, 8.0), [1, 1, 1])),
        ({"y": ("x", HardSwish(0.5, 1.0, 2.0))}, GAIN, ("y", None, GAIN)),
        ({"y": ("x", HardSwish(0.5, 1.0, 2.0))}, np.full(3, -4.0), ("y", None, np.full(3, -4.0))),
        ({"y": ("x", HardSwish(0.5, 1.0, 2.0))}, np.zeros(3), ("y", None, np.zeros(3))),
    ],
)
def test_gains_go_back_to_the_function_before_them(layers, gain, wanted):
    source, function, product = merged_gain(graph_of(**layers), "y" if layers else "x", np.array(gain))
    assert (source, function) == wanted[:2]
    np.testing.assert_allclose(product, wanted[2], rtol=1e-6)
