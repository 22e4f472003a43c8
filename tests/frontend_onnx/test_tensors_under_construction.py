"""What is known of each tensor while a graph is built: its two forms, its names, its constants, and the limits of results.

They look at `n2d2py.frontend.onnx.tensors`.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.tensors import (
    Tensors,
    Value,
    check_lines,
    check_size,
    constant_kind,
    element_dtype,
    element_name,
    strides,
    tensors_read,
)
from n2d2py.graph import Graph, Node
from n2d2py.graph.shapes import MAX_TENSOR
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Clip
from n2d2py.operators.reshape import Reshape

F = np.float32
TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[{batch},3] x) => (float[{batch},3] y) <float[2] w = {{1, 2}}> {{ a = Relu (x)\n y = Abs (a) }}'


def tensors(batch: str = "1", whole: bool = False, plain: bool = False) -> Tensors:
    """Of a model with the constant w and the tensors x, a, y; of its graph there is nothing yet."""
    return Tensors(load_onnx(parser.parse_model(TEXT.format(batch=batch))), Graph("g"), whole, plain)


def with_inputs(**shapes: tuple[int, ...]) -> Tensors:
    """Inputs that are images and vectors."""
    made = tensors()
    for name, shape in shapes.items():
        made.names[name] = made.graph.add_input(name, shape)
    return made


def with_arrays(kind: str = "", **shapes: tuple[int, ...]) -> Tensors:
    """Inputs that are arrays."""
    made = tensors()
    for name, dims in shapes.items():
        made.arrays[name] = made.graph.add_input(f"{name}_in", (1, int(np.prod(dims))), kind)
        made.dims[name] = dims
    return made


def relu(made: Tensors, source: str, name: str) -> Value:
    """A layer that was just added, as a value of one axis."""
    made.graph.add(Node(name, Activation(Clip(0.0)), [source], [name]))
    return Value(made.graph.shape(name), "", name)


@pytest.mark.parametrize(
    "kind, wanted",
    [
        *((name, name) for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
        *((name, "") for name in ("float16", "float32", "float64", ml_dtypes.bfloat16)),
        *((name, None) for name in ("complex64", "complex128", "object", "<U3", ml_dtypes.float8_e4m3fn, ml_dtypes.int4)),
    ],
)
def test_the_kind_of_a_constant(kind, wanted):
    array = np.zeros(2, kind)
    if wanted is None:
        with pytest.raises(Unsupported, match=f"it holds values of type {array.dtype.name}"):
            constant_kind(array)
    else:
        assert constant_kind(array) == wanted


def test_values():
    assert (Value((2, 3, 4), "", "t").size, Value((), "", "t").size, Value((2, 0), "", "t").size) == (24, 1, 0)
    assert Value((1,), "", None, np.zeros(1)).is_constant and not Value((1,), "", "t").is_constant


@pytest.mark.parametrize(
    "batch, whole, batched",
    [("1", False, False), ("N", False, False), ("4", False, True), ("4", True, False), ("1", True, False)],
)
def test_stimuli_side_by_side(batch, whole, batched):
    made = tensors(batch, whole)
    assert (made.is_batched, made.whole) == (batched, whole)


def test_what_is_known_of_a_model_before_its_nodes():
    made = tensors(plain=True)
    assert made.plain_integers and not tensors().plain_integers
    assert list(made.constants) == ["w"] and made.constants is not made.model.constants
    assert {name: node.op_type for name, node in made.writers.items()} == {"a": "Relu", "y": "Abs"}
    assert [made.is_read(name) for name in ("x", "a", "y", "w", "")] == [True, True, True, False, False]


def test_fresh_names():
    """Other than what the file writes, its constants, the graph's tensors, and what was given before."""
    made = with_inputs(x=(1, 3))
    assert [made.fresh(name) for name in ("a", "w", "x", "free", "free", "free_", "y")] == [
        "a_",
        "w_",
        "x_",
        "free",
        "free_",
        "free__",
        "y_",
    ]
    relu(made, "x", "late")
    made.constants["folded"] = np.zeros(1)
    assert [made.fresh(name) for name in ("late", "folded")] == ["late_", "folded_"]


# ---- two forms ----------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 5), (1, 3, 4), (1, 2, 3, 4)])
def test_the_array_of_an_image(shape):
    made = with_inputs(x=shape)
    assert (made.is_tensor("x"), made.is_tensor("a"), made.is_tensor("w")) == (True, False, False)
    assert (made.dims_of("x"), made.kind_of("x")) == (shape, "")
    name = made.array("x")
    assert name == ("x" if len(shape) == 2 else "x_array") and made.array("x") == name
    assert made.graph.shape(name) == (1, int(np.prod(shape))) and made.dims_of("x") == shape
    assert [(node.name, node.location) for node in made.graph.nodes] == (
        [] if len(shape) == 2 else [("x_array", Location("g", None, "x"))]
    )
    assert made.value("x") == Value(shape, "", name)


@pytest.mark.parametrize("dims", [(1, 5), (1, 3, 4), (1, 2, 3, 4)])
def test_the_image_of_an_array(dims):
    made = with_arrays(v=dims)
    assert made.is_tensor("v") and made.dims_of("v") == dims
    name = made.plane("v")
    assert name == ("v_in" if len(dims) == 2 else "v_image") and made.plane("v") == name
    assert made.graph.shape(name) == dims and len(made.graph.nodes) == (len(dims) > 2)
    assert made.array("v") == "v_in" and made.value("v") == Value(dims, "", "v_in")


@pytest.mark.parametrize(
    "dims, text", [((), "1"), ((5,), "5"), ((1,), "1"), ((2, 5), "2x5"), ((2, 3, 4), "2x3x4"), ((1, 1, 2, 3, 4), "1x1x2x3x4")]
)
def test_arrays_that_are_no_images(dims, text):
    with pytest.raises(Unsupported) as caught:
        with_arrays(v=dims).plane("v")
    assert caught.value.reason == f"its input has the shape {text}"


def test_integers_are_no_images():
    made = with_arrays("int64", v=(1, 3, 4))
    assert made.kind_of("v") == "int64" and made.value("v").kind == "int64"
    with pytest.raises(Unsupported, match="its input is of type int64"):
        made.plane("v")


def test_values_of_names():
    made = with_inputs(x=(1, 3))
    constant = made.value("w")
    assert (constant.dims, constant.kind, constant.tensor) == ((2,), "", None)
    np.testing.assert_array_equal(constant.constant, [1, 2])
    made.constants["i"] = np.zeros((1, 4), np.int32)
    assert (made.value("i").dims, made.value("i").kind) == ((1, 4), "int32")
    with pytest.raises(Unsupported, match="it reads a tensor of unknown shape"):
        made.value("nowhere")


# ---- names of results ---------------------------------------------------------------------------
def test_a_constant_gets_a_name():
    made = tensors()
    made.bind("c", Value((2,), "", None, [3, 4]))
    np.testing.assert_array_equal(made.constants["c"], [3, 4])
    assert isinstance(made.constants["c"], np.ndarray) and not made.is_tensor("c")


def test_a_layer_just_added_gets_the_name_of_its_result():
    made = with_inputs(x=(1, 3))
    value = relu(made, "x", "part")
    made.bind("a", Value((3,), "", value.tensor))
    (node,) = made.graph.nodes
    assert (node.name, node.outputs, node.source, node.location) == ("a", ["a"], ["a"], Location("g", None, "a"))
    assert made.graph.tensors["a"].name == "a" and made.graph.shape("a") == (1, 3) and "part" not in made.graph.tensors
    assert (made.arrays["a"], made.dims["a"], made.graph.aliases) == ("a", (3,), {})


def test_what_another_name_holds_gets_an_alias():
    """Of an array, of an image, of an input, and of a layer that is not the last one."""
    made = with_inputs(x=(1, 3))
    made.bind("a", Value((1, 3), "", "x"))
    first = relu(made, "x", "first")
    made.arrays["of array"] = "first"
    made.bind("b", first)
    second = relu(made, "x", "second")
    made.names["of image"] = "second"
    made.bind("c", second)
    third = relu(made, "x", "third")
    relu(made, "x", "fourth")
    made.bind("d", third)
    assert made.graph.aliases == {"a": "x", "b": "first", "c": "second", "d": "third"}
    assert [made.arrays[name] for name in "abcd"] == ["x", "first", "second", "third"]
    assert [node.name for node in made.graph.nodes] == ["first", "second", "third", "fourth"]


def test_a_layer_that_has_its_name_keeps_it():
    made = with_inputs(x=(1, 3))
    value, place = relu(made, "x", "a"), Location("other", None, "a")
    made.graph.nodes[0].location = place
    made.bind("a", value)
    assert (made.graph.nodes[0].name, made.graph.nodes[0].location, made.arrays["a"]) == ("a", place, "a")
    relu(made, "x", "behind")
    made.bind("a", value)
    assert (made.arrays["a"], made.graph.aliases) == ("a", {})


def test_another_name_for_a_tensor():
    made = with_inputs(x=(1, 2, 3))
    made.rename("x", "a")
    assert (made.names["a"], "a" in made.arrays, "a" in made.dims, made.graph.aliases["a"]) == ("x", False, False, "x")
    made.array("x")
    made.rename("x", "b")
    assert (made.names["b"], made.arrays["b"], made.dims["b"], made.graph.aliases["b"]) == ("x", "x_array", (1, 2, 3), "x")
    made = with_arrays(v=(5,))
    made.rename("v", "a")
    assert ("a" in made.names, made.arrays["a"], made.dims["a"], made.graph.aliases["a"]) == (False, "v_in", (5,), "v_in")


# ---- parameters ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "values", [np.arange(6.0).reshape(2, 3).T, np.arange(4), np.array([1, 0], bool), np.ones(2, np.float16)]
)
def test_parameters_are_real_numbers_that_nothing_changes(values):
    found = tensors().parameter("a", "weights", values)
    np.testing.assert_array_equal(found, values)
    assert found.dtype == F and found.flags.c_contiguous and not found.flags.writeable


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_parameters_are_finite_where_they_have_to_be(value):
    with np.errstate(over="ignore"), pytest.raises(N2D2Error) as caught:
        tensors().parameter("a", "weights", np.array([1, value, 2]))
    error = caught.value
    assert (error.code, error.where) == ("E306", Location("g", None, "a"))
    assert error.what == "not all values of the layer's weights are finite in float32"
    with np.errstate(over="ignore"):
        found = tensors().parameter("a", "weights", np.array([1, value, 2]), finite=False)
    assert not np.isfinite(found[1]) and not found.flags.writeable


@pytest.mark.parametrize("values", [np.array(["a", "b"]), np.array([None, {}], object)])
def test_parameters_that_are_no_numbers(values):
    with pytest.raises(N2D2Error) as caught:
        tensors().parameter("a", "bias", values)
    assert (caught.value.code, caught.value.what) == ("E306", "the layer's bias are no numbers")


# ---- sizes --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dims, reason",
    [
        ((1,), None),
        ((), None),
        ((2, 3), None),
        ((MAX_TENSOR,), None),
        ((2, MAX_TENSOR // 2), None),
        ((MAX_TENSOR + 1,), "its result would have 67,108,865 elements, at most 67,108,864 are supported"),
        ((2, MAX_TENSOR), "its result would have 134,217,728 elements, at most 67,108,864 are supported"),
        ((3, 0), "its result has no elements"),
        ((3, -2), "its result would have -6 elements, at most 67,108,864 are supported"),
    ],
)
def test_elements_of_a_result(dims, reason):
    if reason is None:
        check_size(dims)
    else:
        with pytest.raises(Unsupported) as caught:
            check_size(dims)
        assert caught.value.reason == reason


@pytest.mark.parametrize("lengths, most", [((), 0), ((5,), 0), ((1 << 22, 3), 0), ((3, (1 << 22) + 1), (1 << 22) + 1)])
def test_positions_along_an_axis(lengths, most):
    if not most:
        check_lines(lengths)
    else:
        with pytest.raises(Unsupported) as caught:
            check_lines(lengths)
        assert caught.value.reason == "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported"


@pytest.mark.parametrize(
    "dims, wanted", [((), []), ((5,), [1]), ((2, 3), [3, 1]), ((2, 3, 4, 5), [60, 20, 5, 1]), ((2, 1, 4), [4, 4, 1])]
)
def test_elements_between_neighbours(dims, wanted):
    assert strides(dims) == wanted


@pytest.mark.parametrize(
    "code, name", [(0, "UNDEFINED"), (1, "FLOAT"), (3, "INT8"), (7, "INT64"), (16, "BFLOAT16"), (99, "99"), (-1, "-1")]
)
def test_names_of_types(code, name):
    assert element_name(code) == name


def test_numpy_types():
    assert element_dtype(TensorProto.INT16) == np.int16 and element_dtype(TensorProto.DOUBLE) == np.float64


def test_inner_graphs_read_tensors_of_the_outer_one():
    inner = parser.parse_graph("i () => (float[1] deep) { deep = Add (p, q) }")
    branch = parser.parse_graph("b () => (float[1] out) { out = If (r) }")
    branch.node[0].attribute.append(helper.make_attribute("then_branch", inner))
    graph = parser.parse_graph("g (float[1] x) => (float[1] y, float[1] z) { a = Clip (x, , c)\n y = Abs (a) }")
    assert tensors_read(graph) == {"x", "c", "a", "y", "z"}
    graph.node[0].attribute.extend([helper.make_attribute("axis", 1), helper.make_attribute("body", branch)])
    assert tensors_read(graph) == {"x", "c", "a", "y", "z", "r", "out", "p", "q", "deep"}


def test_reshapes_keep_their_place():
    made = with_arrays(v=(1, 3, 4))
    made.model.places = {"v": "layer 7"}
    made.plane("v")
    (node,) = made.graph.nodes
    assert node.location == Location("g", None, "layer 7") and node.op == Reshape((3, 4)) and node.inputs == ["v_in"]
