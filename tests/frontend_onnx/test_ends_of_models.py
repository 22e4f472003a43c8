"""Inputs and outputs of a network: the shape and the kind of each, which layers give an output, and what has none."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.reference.executor import run_graph

F = np.float32


def built(inputs: str, outputs: str, body: str, opset: int = 17, **constants: np.ndarray) -> onnx.ModelProto:
    """A model whose outputs have no declared shapes."""
    given = ", ".join(f"float[1] {name}" for name in outputs.split())
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({given}) {{ {body} }}')
    for one in made.graph.input:
        one.type.tensor_type.shape.SetInParent()
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return made


def shapes(graph: Graph) -> list[tuple[tuple[int, ...], str]]:
    return [(graph.shape(name), graph.kind(name)) for name in graph.inputs]


INPUTS = {
    "a single value": ("float[] x", [((1, 1), "")]),
    "a row without a batch": ("float[6] x", [((1, 6), "")]),
    "a row": ("float[1,6] x", [((1, 6), "")]),
    "rows": ("float[N,6] x", [((1, 6), "")]),
    "a sequence": ("float[N,3,4] x", [((1, 3, 4), "")]),
    "an image": ("float[N,3,4,5] x", [((1, 3, 4, 5), "")]),
    "a volume": ("float[N,2,3,4,5] x", [((1, 120), "")]),
    "a volume of one stimulus": ("float[1,2,3,4,5] x", [((1, 120), "")]),
    "rows side by side": ("float[2,6] x", [((1, 6), "")]),
    "images side by side": ("float[4,3,2,5] x", [((1, 3, 2, 5), "")]),
    "two first axes": ("float[2,6] x, float[3,5] u", [((1, 12), ""), ((1, 15), "")]),
    "two first axes, one of them 1": ("float[1,6] x, float[3,5] u", [((1, 6), ""), ((1, 15), "")]),
    "two first axes, one of them open": ("float[N,6] x, float[3,2,5] u", [((1, 6), ""), ((1, 30), "")]),
    "the same first axis": ("float[2,6] x, float[2,3,5] u", [((1, 6), ""), ((1, 3, 5), "")]),
    "integers": ("int64[1,2,3] x", [((1, 6), "int64")]),
    "integers of an open batch": ("int32[N,2,3] x", [((1, 6), "int32")]),
    "integers before an image": ("int64[1,2,3] x, float[N,3,4,5] u", [((1, 6), "int64"), ((1, 3, 4, 5), "")]),
    "a row before an image": ("float[6] x, float[N,3,4,5] u", [((1, 6), ""), ((1, 3, 4, 5), "")]),
}  # fmt: skip


@pytest.mark.parametrize("case", INPUTS)
def test_the_shape_of_an_input(case):
    inputs, wanted = INPUTS[case]
    names = "x u" if "u" in inputs.split() else "x"
    body = "\n".join(f"{name}_out = Identity ({name})" for name in names.split())
    graph = import_onnx(built(inputs, " ".join(f"{name}_out" for name in names.split()), body))
    assert shapes(graph) == wanted and graph.inputs == names.split()


UNKNOWN = {
    "float[N] x": "?",
    "float[N,3,H,W] x": "3x?x?",
    "float[1,3,4,W] x": "3x4x?",
    "float[N,C] x": "?",
    "float[N,C,4] x": "?x4",
    "int64[N,C] x": "1x?",
    "int64[2,C] x": "2x?",
    "int64[N] x": "?",
    "float[N,2,H,4,W] x": "1x2x?x4x?",
    "float[1,2,3,4,W] x": "1x2x3x4x?",
}


@pytest.mark.parametrize("inputs", UNKNOWN)
def test_sizes_that_are_not_known(inputs):
    """The batch of images is not among them."""
    with pytest.raises(N2D2Error) as caught:
        import_onnx(built(inputs, "y", "y = Identity (x)"))
    assert caught.value.code == "E305"
    assert caught.value.what == f"the input 'x' has the shape {UNKNOWN[inputs]} with unknown sizes"


@pytest.mark.parametrize(
    ("inputs", "given", "wanted"),
    [
        ("float[N,C] x, float[N,4] u", {"x": (1, 7)}, [(1, 7), (1, 4)]),
        ("float[N,4] x, float[N,C,H] u", {"u": (1, 7, 2)}, [(1, 4), (1, 7, 2)]),
        ("float[2,6] x, float[3,5] u", {"x": (1, 6)}, [(1, 6), (1, 5)]),
        ("float[2,6] x, float[2,5] u", {"u": (1, 5)}, [(1, 6), (1, 5)]),
        ("float[4,C,2] x, float[4,5] u", {"x": (1, 3, 2), "u": (1, 5)}, [(1, 3, 2), (1, 5)]),
    ],
)
def test_shapes_that_are_given(inputs, given, wanted):
    """For one stimulus: the fixed first axes of others are batches as well."""
    model = built(inputs, "y z", "y = Relu (x)\n z = Relu (u)")
    assert [shape for shape, _ in shapes(import_onnx(model, input_shapes=given))] == wanted


TURNED = "t = Transpose <perm = [0,3,1,2]> (x)\n y = Relu (t)"


def test_channels_that_come_last():
    """Fed with the channels first; what the nodes read has them last again."""
    graph = import_onnx(built("float[N,6,5,3] x", "y z", f"{TURNED}\n z = Transpose <perm = [0,3,1,2]> (x)"))
    assert shapes(graph) == [((1, 3, 6, 5), "")] and [graph.shape(name) for name in graph.outputs] == [(1, 3, 6, 5)] * 2
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 5)).astype(F)
    found = run_graph(graph, {"x": x})
    np.testing.assert_array_equal(found["y"], np.maximum(x, 0))
    np.testing.assert_array_equal(found[graph.outputs[1]], x)
    with pytest.raises(N2D2Error, match=r"the input 'x' has the shape 3x\?x5 with unknown sizes"):
        import_onnx(built("float[N,H,5,3] x", "y", TURNED))
    assert shapes(import_onnx(built("float[N,H,5,3] x", "y", TURNED), input_shapes={"x": (1, 3, 4, 5)})) == [((1, 3, 4, 5), "")]


@pytest.mark.parametrize("dims", ["N,6", "N,6,5", "N,2,6,5,3"])
def test_axes_that_an_input_does_not_have(dims):
    """A transposition of images behind an input that is none."""
    with pytest.raises(N2D2Error) as caught:
        import_onnx(built(f"float[{dims}] x", "y", TURNED))
    assert caught.value.errors[0].code in ("E314", "E310")


ARRAYS = {
    # of x (1, 2, 3, 4): what is made from it as an array, and the shape of this output
    "a single axis": ([24], (1, 24)),
    "a row": ([1, 24], (1, 24)),
    "rows": ([2, 12], (1, 24)),
    "a sequence": ([1, 4, 6], (1, 4, 6)),
    "a sequence of one channel": ([1, 1, 24], (1, 1, 24)),
    "a sequence of one line": ([1, 24, 1], (1, 24, 1)),
    "sequences": ([2, 3, 4], (1, 24)),
    "sequences of one": ([24, 1, 1], (1, 24)),
    "an image": ([1, 3, 2, 4], (1, 3, 2, 4)),
    "an image of one channel": ([1, 1, 6, 4], (1, 1, 6, 4)),
    "images": ([2, 1, 3, 4], (1, 24)),
    "a volume": ([1, 2, 3, 2, 2], (1, 24)),
}


@pytest.mark.parametrize("case", ARRAYS)
@pytest.mark.parametrize("through", ["", "Identity"])
def test_the_shape_of_an_output_that_is_an_array(case, through):
    """That of an image or a sequence where it has the axes of one stimulus; the layer has its name."""
    dims, wanted = ARRAYS[case]
    last = "y = CumSum (r, zero)" if not through else "c = CumSum (r, zero)\n y = Identity (c)"
    body = f"r = Reshape (x, dims)\n {last}"
    axis = np.array(len(dims) - 1)
    model = built("float[1,2,3,4] x", "y", body, dims=np.array(dims), zero=axis)
    graph = import_onnx(model)
    assert [graph.shape(name) for name in graph.outputs] == [wanted]
    if not through:
        assert graph.outputs == ["y"]
    x = np.arange(24, dtype=F).reshape(1, 2, 3, 4)
    want = np.cumsum(x.reshape(dims), axis=int(axis))
    (found,) = run_graph(graph, {"x": x}).values()
    np.testing.assert_array_equal(found, want.reshape(wanted))


@pytest.mark.parametrize("dims", [[1, 4, 6], [1, 3, 2, 4]])
def test_integers_are_no_images(dims):
    model = built("float[1,2,3,4] x", "y", "r = Reshape (x, dims)\n y = Cast <to = 7> (r)", dims=np.array(dims))
    graph = import_onnx(model)
    assert [(graph.shape(name), graph.kind(name)) for name in graph.outputs] == [((1, 24), "int64")]


ALIASES = {
    # outputs in this order, and their shapes: y is a sequence, f its elements, i another name of it
    "y f": [(1, 4, 6), (1, 24)],
    "f y": [(1, 24), (1, 4, 6)],
    "y i": [(1, 4, 6), (1, 4, 6)],
    "i y": [(1, 4, 6), (1, 4, 6)],
    "n f y": [(1, 2, 3, 4), (1, 24), (1, 4, 6)],
    "y n f i": [(1, 4, 6), (1, 2, 3, 4), (1, 24), (1, 4, 6)],
    "f i n y": [(1, 24), (1, 4, 6), (1, 2, 3, 4), (1, 4, 6)],
    "y g": [(1, 4, 6), (1, 24)],
    "g f y": [(1, 24), (1, 24), (1, 4, 6)],
    "y v": [(1, 4, 6), (1, 24)],
    "v y": [(1, 24), (1, 4, 6)],
}


@pytest.mark.parametrize("outputs", ALIASES)
def test_several_outputs_of_one_array(outputs):
    """Each has its own shape, whichever comes first, and so has what reads it."""
    body = """r = Reshape (x, dims)
              y = CumSum (r, axis)
              f = Flatten (y)
              i = Identity (y)
              n = Neg (x)
              g = Relu (f)
              v = CumSum (f, axis1)"""
    constants = {"dims": np.array([1, 4, 6]), "axis": np.array(2), "axis1": np.array(1)}
    graph = import_onnx(built("float[1,2,3,4] x", outputs, body, **constants))
    assert [graph.shape(name) for name in graph.outputs] == ALIASES[outputs]
    assert len(set(graph.outputs)) == len(graph.outputs) and "y" in graph.tensors and graph.shape("y") == (1, 4, 6)
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype(F)
    y = np.cumsum(x.reshape(1, 4, 6), axis=2)
    flat = y.reshape(1, 24)
    values = {"y": y, "f": flat, "i": y, "n": -x, "g": np.maximum(flat, 0), "v": np.cumsum(flat, axis=1)}
    for name, found in zip(outputs.split(), run_graph(graph, {"x": x}).values(), strict=True):
        np.testing.assert_allclose(found, values[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("outputs", ["x y", "y x", "x", "i", "i x", "x i y", "y i"])
def test_an_output_that_is_an_input(outputs):
    """It is copied, and the input keeps its name."""
    graph = import_onnx(built("float[N,2,3] x", outputs, "y = Relu (x)\n i = Identity (x)"))
    assert graph.inputs == ["x"] and "x" not in graph.outputs and len(set(graph.outputs)) == len(outputs.split())
    wanted = ["x_output" if name == "x" else name for name in outputs.split()]
    assert graph.outputs == wanted
    assert {name: graph.resolve(name) for name in outputs.split() if name != "x"} == {
        name: name for name in outputs.split() if name != "x"
    }
    x = np.random.default_rng(0).normal(size=(2, 2, 3)).astype(F)
    for name, found in zip(outputs.split(), run_graph(graph, {"x": x}).values(), strict=True):
        np.testing.assert_array_equal(found, np.maximum(x, 0) if name == "y" else x)


CONSTANTS = {
    "reals": (np.array([1.5, -2, 3], F), "", [1.5, -2, 3]),
    "one": (np.array(2.5, F), "", [2.5]),
    "halves": (np.array([0.5, 2], np.float16), "", [0.5, 2]),
    "doubles": (np.array([[0.25], [3]]), "", [0.25, 3]),
    "integers": (np.array([2**53 + 1, -7]), "int64", [2**53 + 1, -7]),
    "bytes": (np.array([[1, 255]], np.uint8), "uint8", [1, 255]),
    "truth values": (np.array([True, False, True]), "bool", [True, False, True]),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_a_constant_output(case):
    """The same for each stimulus; it reads one element of the first input."""
    array, kind, wanted = CONSTANTS[case]
    graph = import_onnx(built("float[N,2,3] a, float[N,5] b", "c y z", "y = Relu (a)\n z = Relu (b)", c=array))
    assert graph.outputs == ["c", "y", "z"] and graph.kind("c") == kind and graph.shape("c") == (1, len(wanted))
    made = graph.node("c")
    count = len(wanted)
    assert made.op == ArrayMap("Right", (count,), ((1,), (count,)), (0, -1), kind)
    picked = graph.producer(made.inputs[0])
    assert picked is not None and picked.op == ArrayIndexSelect(6, ((0,),)) and picked.name == "c_first"
    before = graph.producer(picked.inputs[0])
    assert before is not None and before.inputs == ["a"]
    found = run_graph(graph, {"a": np.ones((2, 2, 3), F), "b": np.ones((2, 5), F)})["c"]
    assert found.tolist() == [wanted, wanted]


def test_a_constant_beside_stimuli_side_by_side():
    """It belongs to all of them: the file is one stimulus."""
    graph = import_onnx(built("float[2,3] x", "y c", "y = Relu (x)", c=np.ones(4, F)))
    assert shapes(graph) == [((1, 6), "")] and [graph.shape(name) for name in graph.outputs] == [(1, 6), (1, 4)]


WITHOUT = {
    "an empty constant": ("c", {"c": np.zeros(0, F)}, "the output 'c' is a constant"),
    "nothing": ("nowhere", {}, "the output 'nowhere' is written by no node"),
    "twice": ("y z y", {}, "the output 'y' is listed twice"),
    "a constant twice": ("y c c", {"c": np.ones(2, F)}, "the output 'c' is listed twice"),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_outputs_that_have_no_layer(case):
    outputs, constants, said = WITHOUT[case]
    with pytest.raises(N2D2Error) as caught:
        import_onnx(
            built("float[N,3] x", f"{outputs} y" if "y" not in outputs else outputs, "y = Relu (x)\n z = Neg (x)", **constants)
        )
    assert caught.value.code == "E311" and caught.value.what == said


def test_a_model_without_outputs():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])], []
    )
    with pytest.raises(N2D2Error) as caught:
        import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert caught.value.code == "E311" and caught.value.what == "the model has no outputs"
