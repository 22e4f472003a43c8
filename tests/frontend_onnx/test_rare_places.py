"""Places of an import that few models reach: inputs that are outputs, exponents that are computed, axes that are too long."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.qoperators import has_plain_integers
from n2d2py.frontend.onnx.tensors import constant_kind
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


@pytest.mark.parametrize("dims", ["3,4,5", "3,4,5,2"])
@pytest.mark.parametrize(
    ("start", "end", "step", "taken"),
    [
        (0, 2**31 - 1, 1, True),
        (0, 2**63 - 1, 1, True),
        (0, 2**31 - 2, 1, False),
        (1, 2**31 - 1, 1, False),
        (0, 2**31 - 1, 2, False),
        (-1, -(2**31), -1, False),
    ],
)
def test_slices_of_a_batch_of_any_size(dims, start, end, step, taken):
    """One from the first stimulus to beyond all is none."""
    text = "y = Slice (x, s, e, a, t)"
    built = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[N,{dims}] x) => (float[N,{dims}] y) {{ {text} }}'
    )
    values = {"s": [start], "e": [end], "a": [0], "t": [step]}
    built.graph.initializer.extend(numpy_helper.from_array(np.array(value), name) for name, value in values.items())
    if taken:
        graph = import_onnx(built)
        x = np.random.default_rng(0).normal(size=(3, *map(int, dims.split(",")))).astype(np.float32)
        found = run_graph(graph, {"x": x.reshape(3, *graph.shape("x")[1:])})[graph.outputs[0]]
        assert np.array_equal(found.reshape(x.shape), x)
    else:
        with pytest.raises(N2D2Error, match="E310.*batch"):
            import_onnx(built)


OVER_THE_BATCH = {
    "y = Softmax <axis = 0> (x)": False,
    "y = Softmax <axis = 1> (x)": True,
    "y = LogSoftmax <axis = -5> (x)": False,
    "y = Hardmax <axis = 0> (x)": False,
    "y = ReduceMean <axes = [0]> (x)": False,
    "y = ReduceMean <axes = [1]> (x)": True,
    "y = ReduceMax <axes = [0, 1]> (x)": False,
    "y = ReduceL2 (x)": False,
    "y = ArgMax <axis = 0> (x)": False,
    "y = ArgMax <axis = 1> (x)": True,
    "y = CumSum (x, zero)": False,
    "y = CumSum (x, one)": True,
    "y = Concat <axis = 0> (x, x)": False,
    "y = Concat <axis = 1> (x, x)": True,
    "y = Gather <axis = 0> (x, index)": False,
    "y = Gather <axis = 1> (x, index)": True,
    "y = Tile (x, twice)": False,
    "y = Tile (x, lines)": True,
    "y = Pad (x, front)": False,
    "y = Pad (x, back)": False,
    "y = Pad (x, planes)": True,
    "y = Expand (x, two)": False,
    "y = Expand (x, single)": True,
    "y = Transpose <perm = [0,2,1,3,4]> (x)": True,
    "y = LpNormalization <axis = 0> (x)": False,
    "y = LpNormalization <axis = 1> (x)": True,
    "a, b = Split <axis = 0> (x)\n y = Add (a, b)": False,
}


@pytest.mark.parametrize("text", OVER_THE_BATCH)
def test_a_batch_of_any_size_is_not_mixed(text):
    built = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[N,3,4,5,2] x) => (float[N] y) {{ {text} }}')
    built.graph.output[0].type.tensor_type.ClearField("shape")
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "index": np.array([0]),
        "twice": np.array([2, 1, 1, 1, 1]),
        "lines": np.array([1, 1, 2, 1, 1]),
        "front": np.array([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        "back": np.array([0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        "planes": np.array([0, 1, 0, 0, 0, 0, 0, 2, 0, 0]),
        "two": np.array([2, 3, 4, 5, 2]),
        "single": np.array([1, 3, 4, 5, 2]),
    }
    built.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items() if name in text)
    if OVER_THE_BATCH[text]:
        assert import_onnx(built).nodes
    else:
        with pytest.raises(N2D2Error, match="E310.*(batch|stimuli)"):
            import_onnx(built)


@pytest.mark.parametrize("kind", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_kinds_of_integer_constants(kind):
    assert constant_kind(np.zeros(2, kind)) == kind


def test_kinds_of_other_constants():
    assert [constant_kind(np.zeros(2, kind)) for kind in ("float16", "float32", "float64")] == ["", "", ""]
    for array in (np.array(["a"]), np.zeros(1, np.complex64)):
        with pytest.raises(Unsupported, match="it holds values of type"):
            constant_kind(array)


@pytest.mark.parametrize(
    ("nodes", "plain"),
    [
        ("d = DequantizeLinear (q, s)", True),
        ("d = DequantizeLinear (q, s)\n y = Relu (d)", False),
        ("d = DequantizeLinear (w, s)\n y = Add (d, d)", True),
        ("i = Identity (w)\n d = DequantizeLinear (i, s)\n y = Relu (d)", True),
        ("a = Relu (q)\n d = DequantizeLinear (a, s)", False),
        ("d = DequantizeLinear (q, r)\n y = Relu (d)", True),
        ("y = QLinearAdd (q, s, z, q, s, z, s, z)", False),
    ],
)
def test_integers_that_stand_for_themselves(nodes, plain):
    """Those whose real numbers nothing in the file reads."""
    text = f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft": 1]> g (int8[1,4] q, float r) => (float[1,4] y) <float s = {{0.5}}, int8 z = {{0}}, int8[4] w = {{1,2,3,4}}> {{ {nodes} }}'
    text = text.replace("QLinearAdd", "com.microsoft.QLinearAdd")
    assert has_plain_integers(parser.parse_model(text).graph) == plain
