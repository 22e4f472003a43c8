"""Normalisations and softmax of arrays (`n2d2py.operators.arrays.norm`) whose first axis is no batch, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.single_array_nodes import F, node, weights
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

X = (2, 3, 4, 5)
SMALL = "s = Mul (x, f)\n "
TINY: dict[str, Any] = {"f": np.array(0.01, F)}
"""Variances near epsilon."""


def ints(*values) -> np.ndarray:
    return np.array(values, np.int64)


NORMS = {
    **{
        f"layer {axis}": node(
            f"{SMALL}y = LayerNormalization <axis = {axis}> (s, g, h)",
            x=X,
            g=weights(*X[axis:]),
            h=weights(*X[axis:], seed=4),
            tolerance=1e-4,
            **TINY,
        )
        for axis in (-1, -2, 1, 2, 3)
    },
    "layer": node(f"{SMALL}y = LayerNormalization (s, g)", x=X, g=weights(5), tolerance=1e-4, **TINY),
    "layer, epsilon": node(
        f"{SMALL}y = LayerNormalization <epsilon = 0.001> (s, g, h)", x=X, g=weights(5), h=weights(5, seed=4), **TINY
    ),
    "layer of computed gains": node("y = LayerNormalization <axis = 2> (x, g, h)", x=X, g=(4, 5), h=(4, 5)),
    "layer and its statistics": node(
        "y, m, i = LayerNormalization <axis = 2, epsilon = 0.01> (x, g)", outputs="y m i", x=X, g=weights(4, 5)
    ),
    "the mean of a layer": node("y, m, i = LayerNormalization <axis = -1> (x, g)", outputs="m", x=X, g=weights(5)),
    "the deviation of a layer": node("y, m, i = LayerNormalization <axis = 1> (x, g)", outputs="i", x=X, g=weights(3, 4, 5)),
    "root mean square": node(
        f"{SMALL}y = RMSNormalization <axis = 2> (s, g)", 23, x=X, g=weights(4, 5), reference=True, tolerance=1e-4, **TINY
    ),
    "root mean square, epsilon": node(
        f"{SMALL}y = RMSNormalization <epsilon = 0.001> (s, g)", 23, x=X, g=weights(5), reference=True, **TINY
    ),
    "instance": node(
        f"{SMALL}y = InstanceNormalization (s, g, h)", x=X, g=weights(3), h=weights(3, seed=4), tolerance=1e-4, **TINY
    ),
    "instance of lines": node(
        "y = InstanceNormalization <epsilon = 0.1> (x, g, h)", x=(2, 3, 4), g=weights(3), h=weights(3, seed=4)
    ),
    "instance of volumes": node("y = InstanceNormalization (x, g, h)", x=(2, 3, 2, 4, 2), g=weights(3), h=(3,)),
    "group": node(
        f"{SMALL}y = GroupNormalization <num_groups = 2> (s, g, h)",
        21,
        x=(2, 6, 3, 2),
        g=weights(6),
        h=weights(6, seed=4),
        tolerance=1e-4,
        reference=True,
        **TINY,
    ),
    "group, epsilon": node(
        "y = GroupNormalization <num_groups = 3, epsilon = 0.5> (x, g, h)",
        21,
        x=(2, 6, 3),
        g=weights(6),
        h=weights(6, seed=4),
        reference=True,
    ),
    "groups of channels": node(
        "y = GroupNormalization <num_groups = 6> (x, g, h)", 18, x=(2, 6, 3), g=weights(6), h=weights(6, seed=4)
    ),
    "gains of groups": node(
        "y = GroupNormalization <num_groups = 2> (x, g, h)", 18, x=(2, 6, 3), g=weights(2), h=weights(2, seed=4), reference=True
    ),
    "one group": node(
        "y = GroupNormalization <num_groups = 1> (x, g, h)", 21, x=(2, 3, 4), g=weights(3), h=weights(3, seed=4), reference=True
    ),
    "batch": node(
        f"{SMALL}y = BatchNormalization (s, g, h, m, v)",
        x=X,
        g=weights(3),
        h=weights(3, seed=4),
        m=weights(3, seed=5) / 100,
        v=np.abs(weights(3, seed=6)) / F(1e4),
        tolerance=1e-4,
        **TINY,
    ),
    "batch, epsilon": node(
        f"{SMALL}y = BatchNormalization <epsilon = 0.01> (s, g, h, m, v)",
        x=(2, 3, 4),
        g=weights(3),
        h=weights(3, seed=4),
        m=weights(3, seed=5),
        v=np.abs(weights(3, seed=6)),
        **TINY,
    ),
    "batch of computed parameters": node(
        "a = Abs (v)\n y = BatchNormalization <epsilon = 0.25> (x, g, h, m, a)", x=X, g=(3,), h=(3,), m=(3,), v=(3,)
    ),
    "batch of vectors": node(
        "y = BatchNormalization (x, g, h, m, v)",
        x=(2, 3),
        g=weights(3),
        h=weights(3, seed=4),
        m=weights(3, seed=5),
        v=np.abs(weights(3, seed=6)),
    ),
    "group of vectors": node(
        "y = GroupNormalization <num_groups = 2> (x, g, h)", 21, x=(3, 6), g=weights(6), h=weights(6, seed=4), reference=True
    ),
    "instance of equal sizes": node("y = InstanceNormalization (x, g, h)", x=(3, 3, 3), g=weights(3), h=weights(3, seed=4)),
    "mean and variance": node("y = MeanVarianceNormalization (x)", x=X, reference=True),
    "mean and variance of axes": node("y = MeanVarianceNormalization <axes = [1, -1]> (x)", x=X),
    **{
        f"length {p} {axis}": node(f"y = LpNormalization <axis = {axis}, p = {p}> (x)", x=X)
        for p in (1, 2)
        for axis in (0, 2, -1, -2)
    },
    "length": node("y = LpNormalization (x)", x=X),
    "length of 0": node("z = Mul (x, c)\n y = LpNormalization <axis = 1> (z)", x=(2, 3, 4), c=np.array([0, 1, 0, 1], F)),
}
SHARES = {
    **{
        f"{op} {axis}, set {opset}": node(f"y = {op} <axis = {axis}> (x)", opset, x=X)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for axis in (0, 1, 2, -1, -2)
        for opset in (11, 13)
    },
    **{
        f"{op}, set {opset}": node(f"y = {op} (x)", opset, x=X)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for opset in (11, 12, 13)
    },
    "hardmax of equal ones": node("s = Sign (x)\n y = Hardmax <axis = 1> (s)", 13, x=(2, 5, 3)),
    "softmax of infinity": node("z = Add (x, c)\n y = Softmax (z)", x=(2, 4), c=np.array([0, -np.inf, 0, 1], F)),
    "softmax of large numbers": node("z = Mul (x, c)\n y = Softmax <axis = 1> (z)", x=(2, 4, 3), c=np.array(100, F)),
    "logarithms of large numbers": node("z = Mul (x, c)\n y = LogSoftmax <axis = 1> (z)", x=(2, 4, 3), c=np.array(100, F)),
}
LENGTHS = {
    **{
        f"{way}, axis {axis}": node(f"{body.replace('AXES', str([axis]))}\n y = Div (x, n)", 13, x=(2, 3, 4))
        for axis in (1, -1)
        for way, body in {
            "lengths": "n = ReduceL2 <axes = AXES> (x)",
            "roots of squares": "q = ReduceSumSquare <axes = AXES> (x)\n n = Sqrt (q)",
        }.items()
    },
    **{
        f"{way}": node(
            f"n = ReduceL2 <axes = [2]> (x)\n m = {floor}\n y = Div (x, m)",
            13,
            x=(2, 3, 4),
            c=np.array(value, F),
            b=np.array(3, F),
            s=ints(2, 3, 4),
            kinds=kinds,
        )
        for way, floor, value, kinds in (
            ("floor by clip", "Clip (n, c)", 1e-6, "ArrayNorm ArrayMap"),
            ("floor by max", "Max (n, c)", 1e-6, "ArrayNorm ArrayMap"),
            ("floor by max in front", "Max (c, n)", 1e-12, "ArrayNorm ArrayMap"),
            ("no floor", "Expand (n, s)", 0, "ArrayNorm ArrayMap"),
            ("high floor", "Max (n, c)", 2.5, None),
            ("floor and ceiling", "Clip (n, c, b)", 1e-6, None),
            ("floor below 0", "Max (n, c)", -1.0, None),
        )
    },
    "sum of products": node(
        "q = Mul (x, x)\n s = ReduceSum (q, a)\n n = Sqrt (s)\n y = Div (x, n)",
        x=(2, 3, 4),
        a=ints(2),
        kinds="ArrayNorm ArrayMap",
    ),
    "sum of powers": node(
        "q = Pow (x, c)\n s = ReduceSum (q, a)\n n = Sqrt (s)\n y = Div (x, n)",
        x=(2, 3, 4),
        a=ints(-1),
        c=np.array(2, F),
        kinds="ArrayNorm ArrayMap",
    ),
    "sum of cubes": node(
        "b = Abs (x)\n q = Pow (b, c)\n s = ReduceSum (q, a)\n n = Sqrt (s)\n y = Div (b, n)",
        x=(2, 3, 4),
        a=ints(-1),
        c=np.array(3, F),
    ),
    "sum of other products": node(
        "q = Mul (x, z)\n p = Abs (q)\n s = ReduceSum (p, a)\n n = Sqrt (s)\n y = Div (x, n)",
        x=(2, 3, 4),
        z=(2, 3, 4),
        a=ints(2),
    ),
    "products of another": node(
        "q = Mul (z, z)\n s = ReduceSum (q, a)\n n = Sqrt (s)\n y = Div (x, n)", x=(2, 3, 4), z=(2, 3, 4), a=ints(2)
    ),
    "length of another": node("n = ReduceL2 <axes = [2]> (z)\n y = Div (x, n)", 13, x=(2, 3, 4), z=(2, 3, 4)),
    "length of two axes": node("n = ReduceL2 <axes = [1, 2]> (x)\n y = Div (x, n)", 13, x=(2, 3, 4)),
    "length of all": node("n = ReduceL2 (x)\n y = Div (x, n)", 13, x=(2, 3, 4)),
    "length that is not kept": node("n = ReduceL2 <axes = [0], keepdims = 0> (x)\n y = Div (x, n)", 13, x=(2, 3, 4)),
    "length of the first axis": node("n = ReduceL2 <axes = [0]> (x)\n y = Div (x, n)", 13, x=(2, 3)),
    "length of the only axis": node("n = ReduceL2 <axes = [0]> (x)\n y = Div (x, n)", 13, x=(5,), kinds="ArrayNorm ArrayMap"),
    "length in front of ones": node(
        "n = ReduceL2 <axes = [1]> (x)\n y = Div (x, n)", 13, x=(2, 3, 1), kinds="ArrayNorm ArrayMap"
    ),
    **{
        way: node(f"n = ReduceL2 <axes = [2]> (x)\n m = {floor}\n y = Div (x, m)", 10, x=(2, 3, 4), c=np.array(1e-7, F))
        for way, floor in (
            ("a floor that is told", "Clip <min = 1e-7> (n)"),
            ("a high floor that is told", "Clip <min = 0.5> (n)"),
            ("a floor and a ceiling that are told", "Clip <min = 1e-7, max = 3.0> (n)"),
            ("a floor of two", "Max (n, c, c)"),
        )
    },
    **{
        f"floor {floor:.7f}": node(
            "n = ReduceL2 <axes = [2]> (x)\n m = Max (n, c)\n y = Div (x, m)", 13, x=(2, 3, 4), c=np.array([floor], F)
        )
        for floor in (0, 0.0000009, 0.0000011)
    },
    "floors of lines": node(
        "n = ReduceL2 <axes = [2]> (x)\n m = Max (n, c)\n y = Div (x, m)", 13, x=(2, 3, 4), c=np.full((3, 1), 1e-7, F)
    ),
    "a computed floor": node("n = ReduceL2 <axes = [2]> (x)\n m = Max (n, z)\n y = Div (x, m)", 13, x=(2, 3, 4), z=(1,)),
    "a clipped floor": node(
        "n = ReduceL2 <axes = [2]> (x)\n f = Abs (z)\n m = Clip (n, f)\n y = Div (x, m)", 13, x=(2, 3, 4), z=()
    ),
    "length of cubes": node(
        "b = Abs (x)\n q = Pow (b, c)\n s = ReduceSum (q, a)\n n = Sqrt (s)\n y = Div (x, n)",
        x=(2, 3, 4),
        a=ints(-1),
        c=np.array(3, F),
    ),
    "a root without sums": node("b = Abs (x)\n n = Sqrt (b)\n y = Div (x, n)", x=(2, 3, 4)),
    "a root of means": node(
        "q = Mul (x, x)\n s = ReduceMean <axes = [2]> (q)\n n = Sqrt (s)\n y = Div (x, n)", 13, x=(2, 3, 4)
    ),
    "a square of its half": node(
        "q = Mul (x, h)\n p = Mul (q, x)\n s = ReduceSum (p, a)\n n = Sqrt (s)\n y = Div (x, n)",
        x=(2, 3, 4),
        a=ints(2),
        h=np.array(0.5, F),
    ),
    "roots of squares that are not kept": node(
        "q = ReduceSumSquare <axes = [0], keepdims = 0> (x)\n n = Sqrt (q)\n y = Div (x, n)", 13, x=(2, 3, 4)
    ),
    "sums of magnitudes": node("n = ReduceL1 <axes = [2]> (x)\n y = Div (x, n)", 13, x=(2, 3, 4)),
}


@every("name", NORMS)
def test_normalised(name):
    NORMS[name].check()


@every("name", SHARES)
def test_shares(name):
    SHARES[name].check()


OTHERS = (
    """
high floor; floor and ceiling; floor below 0; sum of cubes; sum of other products;
products of another; length of another; length that is not kept;
sums of magnitudes; a high floor that is told; a floor and a ceiling that are told; a floor of two; floor 0.0000011; floors of lines;
a computed floor; a clipped floor; length of cubes; a root without sums; a root of means; a square of its half;
roots of squares that are not kept
""".strip()
    .replace("\n", " ")
    .split("; ")
)
"""What is divided by something else, or by a length that has a high floor."""


@every("name", LENGTHS)
def test_divided_by_their_length(name):
    """In one layer where it is the length along any axes, with a floor of a millionth at most."""
    graph = LENGTHS[name].check()
    assert any(layer.op.kind == "ArrayNorm" for layer in graph.nodes) == (name not in OTHERS)


def test_the_others_are_cases():
    assert set(OTHERS) <= set(LENGTHS)


def test_statistics_of_each_position():
    """The first BatchNormalization, which ONNX Runtime and onnx.reference lack in this form."""
    g, h, m, v = (weights(3, 4, seed=seed) for seed in range(4))
    body = "y = BatchNormalization <spatial = 0, epsilon = 0.5> (x, g, h, m, v)"
    model, feeds = node(body, 7, x=(2, 3, 4), g=g, h=h, m=m, v=np.abs(v)).model()
    (found,) = run_graph(import_onnx(model), feeds).values()
    x = feeds["x_in"].reshape(2, 2, 3, 4)
    np.testing.assert_allclose(found.reshape(x.shape), (x - m) / np.sqrt(np.abs(v) + 0.5) * g + h, rtol=1e-5, atol=1e-5)
