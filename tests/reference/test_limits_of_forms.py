"""Layers at the limits of what ONNX has a form for: just inside ONNX Runtime computes them, just outside the reason says why not."""

import numpy as np
import pytest
from support.ops import LRN, Activation, ArrayMap, Columns, Deconv, IndexSelect, Padding, Pool, SideBySide, Unpool
from support.tables import every

from n2d2py.contracts.functions import Elu, HardSwish
from n2d2py.contracts.reference import NoOnnxForm
from n2d2py.graph import Graph, Node
from n2d2py.reference.engine import FloatEngine, to_onnx
from n2d2py.reference.executor import run_graph

IMAGE = (4, 6, 8)
WEIGHTS = {"weights": (3, 4, 3, 3), "bias": (3,)}


def network(op, shapes=(IMAGE,), params=None) -> tuple[Graph, dict[str, np.ndarray]]:
    """The network and an input for it."""
    graph, rng = Graph("g"), np.random.default_rng(2)
    for index, shape in enumerate(shapes):
        graph.add_input(f"x{index}", (1, *shape))
    values = {role: rng.normal(size=size).astype(np.float32) for role, size in (params or {}).items()}
    graph.add(Node("y", op, list(graph.inputs), ["y"], values))
    graph.outputs = ["y"]
    graph.verify()
    return graph, {name: rng.normal(size=(2, *graph.shape(name)[1:])).astype(np.float32) for name in graph.inputs}


def whole(function: str, constant: list[int]) -> tuple[Graph, dict[str, np.ndarray]]:
    """A map of int32 and a constant."""
    graph = Graph("g")
    graph.add_input("x0", (1, 4), "int32")
    op = ArrayMap(function, (4,), ((4,), (4,)), (0, -1), "int32")
    graph.add(Node("y", op, ["x0"], ["y"], {"operand1": np.array(constant, np.int32)}))
    graph.outputs = ["y"]
    graph.verify()
    return graph, {"x0": np.array([[7, -7, 100, -3], [0, 5, 6, -8]], np.int32)}


def reals(function: str) -> tuple[Graph, dict[str, np.ndarray]]:
    """A map of two tensors of real numbers."""
    return network(ArrayMap(function, (4,), ((4,), (4,)), (0, 1)), ((4,), (4,)))


INSIDE = {
    "unpool": network(Unpool((2, 3), (2, 3)), ((4, 3, 3), (4, 6, 9))),
    "deconv, lines behind": network(Deconv((2, 3), (0, 0, -1, 0)), params=WEIGHTS),
    "deconv, columns behind": network(Deconv((2, 3), (1, 1, 0, -2)), params=WEIGHTS),
    "deconv, both": network(Deconv((3, 2), (2, 1, -2, -1)), params=WEIGHTS),
    "mean, pads of a window less 1": network(Pool("Average", (3, 4), (1, 2), (2, 3, 2, 3), False)),
    "mean, pads counted": network(Pool("Average", (3, 4), (1, 2), (3, 4, 1, 5), True)),
    "mean, negative pads counted": network(Pool("Average", (3, 2), (1, 2), (-1, 0, 0, -2), True)),
    "maximum, negative pads": network(Pool("Max", (3, 2), (1, 2), (-1, 0, 0, -2))),
    "maximum, pads of a window less 1": network(Pool("Max", (3, 4), (1, 1), (2, 3, 2, 3))),
    "lrn of 1": network(LRN(1, 0.5, 0.75, 1.0)),
    "lrn of 3": network(LRN(3, 0.5, 0.75, 1.0)),
    "lrn of 3 on lines": network(LRN(3, 0.5, 0.6, 2.0), ((4, 9),)),
    "lrn of 3 on vectors": network(LRN(3, 0.5, 0.6, 2.0), ((9,),)),
    "every position": network(IndexSelect((None, None, None))),
    "positions of lines": network(IndexSelect((None, (5, 0, 0), None))),
    "positions of all axes": network(IndexSelect(((3, 1), (5, 0, 0), (7,)))),
    "crop": network(Padding((-1, -2, 0, -3))),
    "pad and crop": network(Padding((2, -2, -1, 3))),
    "elu": network(Activation(Elu(0.5))),
    "selu": network(Activation(Elu(0.5, 1.5))),
    "celu": network(Activation(Elu(0.5, 1.0, 2.0))),
    "hard swish": network(Activation(HardSwish(0.25, 0.5, 1.0))),
    "quotients": whole("Div", [2, -2, 7, 3]),
    "remainders": whole("Mod", [2, -2, 7, 3]),
    "sums of integers": whole("Add", [2, -2, 7, 3]),
    "sums": reals("Add"),
}
OUTSIDE = {
    "unpool with pads": (
        network(Unpool((2, 2), (2, 2), (1, 1, 1, 1)), ((4, 4, 5), (4, 6, 8))),
        "the layer y unpools padded or overlapping windows, or crops",
    ),
    "unpool, overlapping lines": (
        network(Unpool((3, 2), (2, 2)), ((4, 2, 4), (4, 5, 8))),
        "the layer y unpools padded or overlapping windows, or crops",
    ),
    "unpool, overlapping columns": (
        network(Unpool((2, 3), (2, 2)), ((4, 3, 3), (4, 6, 7))),
        "the layer y unpools padded or overlapping windows, or crops",
    ),
    "unpool of a smaller image": (
        network(Unpool((2, 2), (2, 2)), ((4, 3, 4), (4, 7, 9))),
        "the layer y unpools padded or overlapping windows, or crops",
    ),
    "deconv, lines of a stride": (
        network(Deconv((2, 3), (0, 0, -2, 0)), params=WEIGHTS),
        "the negative pads of layer y are too large",
    ),
    "deconv, columns of a stride": (
        network(Deconv((2, 3), (0, 0, 0, -3)), params=WEIGHTS),
        "the negative pads of layer y are too large",
    ),
    "mean, windows outside": (
        network(Pool("Average", (3, 4), (1, 1), (3, 0, 0, 0), False)),
        "the layer y has windows outside the image",
    ),
    "maximum, windows outside": (
        network(Pool("Max", (3, 4), (1, 1), (0, 0, 0, 4))),
        "the layer y has windows outside the image",
    ),
    "mean, lines of a window": (
        network(Pool("Average", (3, 4), (5, 1), (0, 0, 3, 0), False)),
        "the pads of layer y are too large",
    ),
    "mean, negative pads": (
        network(Pool("Average", (3, 4), (1, 1), (0, -1, 0, 0), False)),
        "the pads of layer y are too large",
    ),
    "lrn of 2": (network(LRN(2, 0.5, 0.75, 1.0)), "the layer y normalises over an even number of channels"),
    "lrn of 4": (network(LRN(4, 0.5, 0.75, 1.0)), "the layer y normalises over an even number of channels"),
    "celu with a gain": (network(Activation(Elu(0.5, 1.5, 2.0))), "has no ONNX nodes"),
    "celu of another rate": (network(Activation(Elu(0.5, 1.0, 3.0))), "has no ONNX nodes"),
    "columns": (network(Columns(1, 5)), "Columns"),
    "side by side": (network(SideBySide(), (IMAGE, (4, 6, 3))), "SideBySide"),
    "truth of numbers": (reals("And"), "And of numbers has no ONNX form"),
    "remainders of reals": (reals("Mod"), "the function Mod of arrays has no ONNX form"),
    "quotients by 0": (whole("Div", [2, 0, 7, 3]), "ONNX Runtime stops at a whole number divided by 0"),
    "remainders by 0": (whole("Mod", [2, -2, 7, 0]), "ONNX Runtime stops at a whole number divided by 0"),
}


@every("case", INSIDE)
def test_inside(case):
    graph, feeds = INSIDE[case]
    engine = FloatEngine(graph, threads=1)
    assert engine.backend == "onnxruntime"
    want, found = engine.run(feeds)["y"], run_graph(graph, feeds)["y"]
    assert found.shape == want.shape == (2, *graph.shape("y")[1:])
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@every("case", OUTSIDE)
def test_outside(case):
    """What ONNX does not say is computed by NumPy, in the announced shape."""
    (graph, feeds), reason = OUTSIDE[case]
    with pytest.raises(NoOnnxForm, match=reason):
        to_onnx(graph)
    engine = FloatEngine(graph, threads=1)
    assert engine.backend == "numpy"
    found = engine.run(feeds)["y"]
    assert found.shape == (2, *graph.shape("y")[1:])
    np.testing.assert_array_equal(found, run_graph(graph, feeds)["y"])
