"""Divisions by the length along an axis, as exporters spell them, are one layer, in integers too; ONNX Runtime is the referee."""

import numpy as np
import onnx
import pytest
from support.onnx_models import decibels, float_results, integer_results, node_model, onnx_results, quantized_on
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.passes import fuse


def file(dims: tuple[int, ...], axis: int, form: str, floor: float | None, expand: bool) -> bytes:
    """relu(x) + x / 8, divided by its length along an axis."""
    constants = {"axes": np.array([axis]), "dims": np.array(dims), "two": np.float32(2), "eighth": np.float32(0.125)}
    nodes = [("Relu", ["x"], "r"), ("Mul", ["x", "eighth"], "e"), ("Add", ["r", "e"], "v")]
    if form == "norm":
        nodes.append(("ReduceL2", ["v", "axes"], "n"))
    elif form == "sum of squares":
        nodes += [("ReduceSumSquare", ["v", "axes"], "s"), ("Sqrt", ["s"], "n")]
    else:
        nodes += [("Mul", ["v", "v"], "q") if form == "product" else ("Pow", ["v", "two"], "q")]
        nodes += [("ReduceSum", ["q", "axes"], "s"), ("Sqrt", ["s"], "n")]
    length = "n"
    if floor is not None:
        constants["floor"] = np.float32(floor)
        nodes.append(("Max", ["floor", "n"], "f") if form == "product" else ("Clip", ["n", "floor"], "f"))
        length = "f"
    if expand:
        nodes.append(("Expand", [length, "dims"], "w"))
        length = "w"
    nodes.append(("Div", ["v", length], "y"))
    return node_model(nodes, constants, dims, opset=18)


def imported(model: bytes) -> Graph:
    return import_onnx(onnx.load_from_string(model))


def values(model: bytes, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Stimuli, and what ONNX Runtime gives, (N, elements)."""
    x = np.random.default_rng(4).normal(size=(16, *dims[1:])).astype(np.float32)
    return x, onnx_results(model, x)


FORMS = [
    ((1, 24), 1, "norm", 1e-12, True),
    ((1, 24), -1, "sum of squares", None, False),
    ((1, 6, 4, 5), 1, "norm", 1e-12, True),
    ((1, 6, 4, 5), 1, "product", 1e-8, False),
    ((1, 6, 4, 5), -1, "power", 0.0, True),
    ((1, 3, 7, 8), 3, "product", None, False),
    ((1, 9, 16), 2, "norm", 1e-12, True),
    ((1, 16, 1), 1, "norm", 1e-12, True),
    ((1, 3, 7, 1), 2, "product", None, False),
]


@every("dims, axis, form, floor, expand", FORMS)
def test_one_layer_of_integers(dims, axis, form, floor, expand):
    model = file(dims, axis, form, floor, expand)
    graph, (x, real) = imported(model), values(model, dims)
    assert not {"ArrayReduce", "Pool", "IndexSelect"} & {node.op.kind for node in graph.nodes}
    fused = fuse(graph, integer=True)[0]
    for one in (graph, fused):
        for dtype in (np.float32, np.float64):
            assert np.allclose(float_results(one, x, dtype=dtype), real, rtol=1e-4, atol=1e-6)
    typed = quantized_on(fused, x, input_bits=16, output_bits=16)
    assert all(typed.is_integer(node) for node in typed.nodes)
    assert decibels(integer_results(typed, x), real) > 34


@pytest.mark.parametrize(
    "dims, axis, form, floor", [((1, 6, 4, 5), 2, "norm", 1e-12), ((1, 24), 1, "norm", 0.5), ((1, 5, 4, 6), 2, "power", None)]
)
def test_other_lengths(dims, axis, form, floor):
    model = file(dims, axis, form, floor, False)
    graph, (x, real) = imported(model), values(model, dims)
    assert np.allclose(float_results(graph, x), real, rtol=1e-4, atol=1e-6)


def test_zeros_stay_zeros():
    graph = imported(file((1, 6, 4, 5), 1, "norm", 1e-12, True))
    x = np.zeros((2, 6, 4, 5), np.float32)
    assert not float_results(graph, x).any()


NEARLY = {
    "kept": ("n = ReduceL2 (x, last)\n y = Div (x, n)", True),
    "not kept": ("n = ReduceL2 <keepdims = 0> (x, last)\n y = Div (x, n)", False),
    "of two axes": ("n = ReduceL2 (x, both)\n y = Div (x, n)", True),
    "the largest floor": ("n = ReduceL2 (x, last)\n f = Clip (n, small)\n y = Div (x, f)", True),
    "a larger floor": ("n = ReduceL2 (x, last)\n f = Clip (n, larger)\n y = Div (x, f)", False),
    "a negative floor": ("n = ReduceL2 (x, last)\n f = Clip (n, minus)\n y = Div (x, f)", False),
    "no floor": ("n = ReduceL2 (x, last)\n f = Clip (n)\n y = Div (x, f)", True),
    "an upper end": ("n = ReduceL2 (x, last)\n f = Clip (n, small, half)\n y = Div (x, f)", False),
    "only an upper end": ("n = ReduceL2 (x, last)\n f = Clip (n, , half)\n y = Div (x, f)", False),
    "a floor in front": ("n = ReduceL2 (x, last)\n f = Max (small, n)\n y = Div (x, f)", True),
    "two floors": ("n = ReduceL2 (x, last)\n f = Max (n, small, half)\n y = Div (x, f)", False),
    "floors of lines": ("n = ReduceL2 (x, last)\n f = Max (n, floors)\n y = Div (x, f)", False),
    "the length of another": ("r = Relu (x)\n n = ReduceL2 (r, last)\n y = Div (x, n)", False),
    "squares of another": ("r = Relu (x)\n s = ReduceSumSquare (r, last)\n n = Sqrt (s)\n y = Div (x, n)", False),
    "the product with another": ("r = Relu (x)\n q = Mul (x, r)\n s = ReduceSum (q, last)\n n = Sqrt (s)\n y = Div (x, n)", False),
    "fourth powers": ("q = Pow (x, four)\n s = ReduceSum (q, last)\n n = Sqrt (s)\n y = Div (x, n)", False),
    "squares": ("q = Pow (x, two)\n s = ReduceSum (q, last)\n n = Sqrt (s)\n y = Div (x, n)", True),
    "no root": ("s = ReduceSumSquare (x, last)\n y = Div (x, s)", False),
    "the root of another sum": ("q = Abs (x)\n s = ReduceSum (q, last)\n n = Sqrt (s)\n y = Div (x, n)", False),
    "the root alone": ("q = Abs (x)\n n = Sqrt (q)\n y = Div (x, n)", False),
    "expanded": ("n = ReduceL2 (x, last)\n w = Expand (n, dims)\n y = Div (x, w)", True),
}  # fmt: skip
CONSTANTS = {
    **{name: np.float32(value) for name, value in (("larger", 0.5), ("minus", -1), ("half", 1.5), ("two", 2), ("four", 4))},
    **{name: np.array(value) for name, value in (("last", [2]), ("both", [1, 2]), ("dims", [1, 6, 6]))},
    "small": np.float32(9e-7),
    "floors": np.linspace(0, 4, 6, dtype=np.float32).reshape(1, 6, 1),
}


@every("name", NEARLY)
def test_what_is_nearly_a_length(name, model, check):
    """Each agrees with ONNX Runtime; a division by the length is one layer."""
    body, wanted = NEARLY[name]
    used = {key: np.asarray(value) for key, value in CONSTANTS.items() if key in body}
    graph = check(model("float[1,6,6] x => float[1,6,6] y", body, opset=18, **used))
    assert ("Normalize" in {node.op.kind for node in graph.nodes}) == wanted
