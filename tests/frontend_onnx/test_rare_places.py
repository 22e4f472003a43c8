"""Places of an import that few models reach: inputs that are outputs, exponents that are computed, axes that are too long."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.reference.executor import run_graph


def imported(text: str, outputs: str = "y", **constants: np.ndarray) -> Graph:
    """The graph of nodes from x (1, 4, 5, 6) to outputs."""
    given = ", ".join(f"float[N] {name}" for name in outputs.split())
    built = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[1,4,5,6] x) => ({given}) {{ {text} }}')
    for output in built.graph.output:
        output.type.tensor_type.ClearField("shape")
    built.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return import_onnx(built)


def test_an_input_that_is_an_output_has_a_layer():
    graph = imported("y = Relu (x)", "x y")
    assert len(graph.outputs) == 2 and not set(graph.outputs) & set(graph.inputs)
    assert [node.op.kind for node in graph.nodes] == ["Activation", "Identity"]


@pytest.mark.parametrize("exponent", ["Sigmoid (f)", "Identity (two)", "Identity (three)"])
def test_only_squares_make_a_length(exponent):
    """Pow of any exponent in front of a sum whose root divides: the values are those of the definition."""
    text = f"f = Reshape (x, s)\n e = {exponent}\n p = Pow (f, e)\n q = Abs (p)\n v = ReduceSum (q, a)\n r = Sqrt (v)\n y = Div (f, r)"
    constants = {"s": np.array([1, 20, 6]), "a": np.array([2]), "two": np.float32(2), "three": np.float32(3)}
    graph = imported(text, **{name: np.asarray(value) for name, value in constants.items()})
    x = np.random.default_rng(1).uniform(0.2, 1, (3, 4, 5, 6)).astype(np.float32)
    f = x.reshape(3, 20, 6).astype(np.float64)
    power = {"two": 2.0, "three": 3.0}.get(exponent[10:-1], 1 / (1 + np.exp(-f)))
    want = f / np.sqrt(np.sum(np.abs(f**power), axis=2, keepdims=True))
    found = run_graph(graph, {"x": x})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(want.shape), want, rtol=1e-5)


@pytest.mark.parametrize(("lines", "taken"), [(9, True), (10, False)])
def test_the_longest_axis_of_a_resized_array(lines, taken, monkeypatch):
    monkeypatch.setattr("n2d2py.frontend.onnx.tensors._LONGEST", 9)
    constants = {"s": np.array([1, 2, 2, 5, 6]), "sizes": np.array([1, 2, 2, lines, 6])}
    text = 'f = Reshape (x, s)\n y = Resize <mode = "linear"> (f, , , sizes)'
    if taken:
        assert imported(text, **constants).nodes
    else:
        with pytest.raises(N2D2Error, match="would have 10 elements, at most 9 are supported"):
            imported(text, **constants)


def test_parts_that_nobody_reads_are_no_layers():
    graph = imported("a, c, d = Split <axis = 3> (x)\n y = Neg (c)")
    assert [node.outputs for node in graph.nodes if node.op.kind != "Affine"] == [["c"]]


@pytest.mark.parametrize(
    "text",
    [
        "a, none = MaxPool <kernel_shape = [2,2]> (x)\n y = Clip (a, , high)",
        "a, b, none = Split <axis = 3> (x)\n d = Add (a, b)\n y = Clip (d, , high)",
        "none, a, b = Split <axis = 3> (x)\n d = Add (a, b)\n y = Clip (d, , high)",
        "a, none = Dropout (x)\n y = Clip (a, , high)",
    ],
)
def test_outputs_and_inputs_that_are_left_out(text):
    """Both have the empty name, and are not each other."""
    given = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[1,4,5,6] x) => (float[N] y) {{ {text} }}')
    given.graph.output[0].type.tensor_type.ClearField("shape")
    given.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "high"))
    named = import_onnx(given)
    outputs = given.graph.node[0].output
    outputs[:] = ["" if name == "none" else name for name in outputs]
    graph = import_onnx(given)
    x = {"x": np.random.default_rng(1).normal(size=(2, 4, 5, 6)).astype(np.float32)}
    wanted, found = (run_graph(each, x)[each.outputs[0]] for each in (named, graph))
    assert np.array_equal(wanted, found) and [node.op for node in named.nodes] == [node.op for node in graph.nodes]
