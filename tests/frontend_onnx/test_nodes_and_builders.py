"""What converters are given: the inputs, attributes and axes of a node, the layers that a builder makes, and who converts what."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest
from onnx import helper, numpy_helper, parser

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx import contract
from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.graph import Graph
from n2d2py.operators.base import make_operator
from n2d2py.registry import Registry

F = np.float32


def builder(batch: str = "N", body: str = "y = Relu (x)", outputs: str = "y", **constants: np.ndarray) -> Builder:
    """Of a model with inputs x (., 2, 3, 4) and u (., 5)."""
    given = ", ".join(f"float[1] {name}" for name in outputs.split())
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[{batch},2,3,4] x, float[{batch},5] u) => ({given}) {{ {body} }}'
    model = parser.parse_model(text)
    for one in model.graph.output:
        one.type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    made = Builder(load_onnx(model), Graph("g"), False, False)
    made.names.update(x=made.graph.add_input("x", (1, 2, 3, 4)), u=made.graph.add_input("u", (1, 5)))
    return made


def node(inputs: list[str], tensors: Builder | None = None, outputs: tuple[str, ...] = ("y",), **attributes) -> OnnxNode:
    return OnnxNode(helper.make_node("Foo", inputs, list(outputs), **attributes), tensors or builder())


def reason(action) -> str:
    with pytest.raises(Unsupported) as caught:
        action()
    return caught.value.reason


def test_attributes():
    made = node([], text="abc", bad=b"a\xff", number=3, real=0.5, several=[1, 2], names=["a", "b"], zero=0)
    assert made.attribute("text") == "abc" and made.attribute("bad") == "a\ufffd"
    assert (made.attribute("number"), made.attribute("real"), made.attribute("several")) == (3, 0.5, [1, 2])
    assert made.attribute("zero", 7) == 0
    assert made.attribute("absent") is None and made.attribute("absent", 7) == 7 and made.attribute("absent", "x") == "x"
    assert sorted(made.attribute_names()) == ["bad", "names", "number", "real", "several", "text", "zero"]


def test_a_node_says_what_it_is():
    proto = helper.make_node("Foo", ["x", "", "u"], ["", "b", "c"], domain="d.e")
    proto.metadata_props.add(key="other", value="no")
    proto.metadata_props.add(key=contract.ROUNDING, value="yes")
    made = OnnxNode(proto, builder())
    assert (made.type, made.domain, made.name, made.rounding, made.opset) == ("Foo", "d.e", "b", "yes", 17)
    assert made.inputs == ["x", "", "u"] and made.outputs == ["", "b", "c"]
    assert OnnxNode(helper.make_node("Foo", [], []), builder()).name == "" == node([]).rounding


def test_inputs_that_are_given():
    made = node(["x", "", "_", "c"], builder(c=np.ones(2, F)))
    assert [made.has(at) for at in range(6)] == [True, False, True, True, False, False]
    assert [made.is_constant(at) for at in range(6)] == [False, False, False, True, False, False]


@pytest.mark.parametrize(
    ("what", "verb"),
    [("weights", "are"), ("bias", "is"), ("scales", "are"), ("scale", "is"), ("list of axes", "are"), ("axis", "are")],
)
def test_constants_that_are_not_known(what, verb):
    tensors = builder(c=np.array([3, 4]))
    made = node(["x", "", "c"], tensors)
    for at in (0, 1, 3):
        assert reason(lambda at=at: made.constant(at, what)) == f"its {what} {verb} not constant"
    assert made.constant(2, what).tolist() == [3, 4]
    assert made.optional_constant(1, what) is None is made.optional_constant(3, what)
    found = made.optional_constant(2, what)
    assert found is not None and found.tolist() == [3, 4]
    assert reason(lambda: made.optional_constant(0, what)) == f"its {what} {verb} not constant"


def test_tensors_of_the_network():
    made = node(["x", "c", "", "u"], builder(c=np.ones(2, F)))
    assert made.tensor() == made.tensor(0) == "x" and made.tensor(3) == "u"
    assert made.shape() == (1, 2, 3, 4) and made.shape(3) == (1, 5)
    for at in (1, 2, 4):
        assert reason(lambda at=at: made.tensor(at)) == f"its input {at} is a constant, not a tensor of the network"


def test_a_node_of_vectors():
    """Which are all elements of a tensor."""
    tensors = builder()
    made = OnnxNode(helper.make_node("Foo", ["x", "u"], ["y"]), tensors, as_vector=True)
    assert made.shape() == (1, 24) and made.shape(1) == (1, 5) and made.tensor(1) == "u"
    assert node(["x"], tensors).shape() == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("ranks", "words"), [((4,), ""), ((2, 4), ""), ((2,), "rank 2"), ((2, 3), "rank 2 or 3"), ((5, 3), "rank 5 or 3")]
)
def test_ranks(ranks, words):
    made = node(["x", "u"])
    if words:
        assert reason(lambda: made.require_rank(*ranks)) == f"its input has rank 4, only {words} is supported"
    else:
        assert made.require_rank(*ranks) == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("outputs", "read", "named"),
    [(("a",), "a", ""), (("a", "b"), "a", ""), (("a", "b", "c"), "a", ""), (("a", "b"), "b", "b"), (("a", "b", "c"), "c", "c")],
)
def test_outputs_after_the_first(outputs, read, named):
    made = node(["x"], builder(body=f"{', '.join(outputs)} = Split (x)\n y = Relu ({read})"), outputs)
    if named:
        assert reason(made.require_single_output) == f"its additional output '{named}' is used"
    else:
        made.require_single_output()


def test_lists_of_integers():
    tensors = builder(c=np.array([[3, 4], [5, 6]]), one=np.array(7))
    assert node(["x", "c"], tensors, pads=[9]).integers("pads", 1) == [3, 4, 5, 6]
    assert node(["x", "one"], tensors).integers("pads", 1) == [7]
    assert node(["x", "", "c"], tensors, pads=[9]).integers("pads", 1) == [9]
    assert node(["x"], tensors, pads=[9]).integers("pads", 1, [1]) == [9]
    assert node(["x"], tensors).integers("pads", 1, [1]) == [1] and node(["x"], tensors).integers("pads", 1) is None
    assert reason(lambda: node(["x", "u"], tensors).integers("pads", 1)) == "its list of pads are not constant"


AXES = {
    ((2, 0), 3): [0, 2],
    ((-1, 0), 3): [0, 2],
    ((-3,), 3): [0],
    ((2, -1), 3): [2],
    ((1, 1, 0), 2): [0, 1],
    ((), 2): [],
    ((3,), 3): "its axis 3 is outside rank 3",
    ((-4,), 3): "its axis -4 is outside rank 3",
    ((0, 5), 3): "its axis 5 is outside rank 3",
}


@pytest.mark.parametrize(("given", "rank"), AXES)
@pytest.mark.parametrize("as_input", [True, False])
def test_axes(given, rank, as_input):
    wanted = AXES[given, rank]
    if not given and not as_input:
        assert node(["x"]).axes(rank) is None
        return
    made = node(["x", "c"], builder(c=np.array(given, np.int64))) if as_input else node(["x"], axes=list(given))
    if isinstance(wanted, str):
        assert reason(lambda: made.axes(rank)) == wanted
    else:
        assert made.axes(rank) == wanted


NEW_AXES = {
    ((0,), 2): [0],
    ((2,), 2): [2],
    ((-1,), 2): [2],
    ((-3,), 2): [0],
    ((3, 0), 2): [0, 3],
    ((-4, -1), 2): [0, 3],
    ((), 2): [],
    ((3,), 2): "its axis 3 is outside rank 3",
    ((-4,), 2): "its axis -4 is outside rank 3",
    ((4, 0), 2): "its axis 4 is outside rank 4",
    ((1, 1), 2): "its axes 1, 1 name one twice",
    ((0, -4), 2): "its axes 0, -4 name one twice",
    ((0, 1, -4), 1): "its axes 0, 1, -4 name one twice",
}


@pytest.mark.parametrize(("given", "rank"), NEW_AXES)
@pytest.mark.parametrize("as_input", [True, False])
def test_axes_that_are_added(given, rank, as_input):
    wanted = NEW_AXES[given, rank]
    if not given and not as_input:
        assert node(["x"]).new_axes(rank) == []
        return
    made = node(["x", "c"], builder(c=np.array(given, np.int64))) if as_input else node(["x"], axes=list(given))
    if isinstance(wanted, str):
        assert reason(lambda: made.new_axes(rank)) == wanted
    else:
        assert made.new_axes(rank) == wanted


def relu():
    return make_operator("Activation", contract.ONNX_FUNCTIONS["Relu"](node(["x"])))


def test_a_layer_has_the_name_of_an_output():
    tensors = builder(body="a, b, c = Split <axis = 1> (x)\n y = Add (a, b)")
    made = node(["x"], tensors, ("a", "b", "c"))
    assert tensors.layer(made, relu(), ["x"]) == "a" and tensors.names["a"] == "a"
    assert tensors.layer(made, relu(), ["x"], output="c") == "c" and tensors.names["c"] == "c"
    assert tensors.layer(made, relu(), ["a"], part="inner") == "a_inner" and "a_inner" not in tensors.names
    assert tensors.layer(made, relu(), ["a"], part="inner") == "a_inner_" and "b" not in tensors.names
    assert tensors.layer(made, relu(), ["a"], part="last", output="b") == "a_last" and "b" not in tensors.names
    assert [each.name for each in tensors.graph.nodes] == ["a", "c", "a_inner", "a_inner_", "a_last"]
    assert tensors.graph.node("a_inner").inputs == ["a"] and tensors.graph.shape("c") == (1, 2, 3, 4)


def test_the_parameters_of_a_layer():
    """Of float32, read-only; without a bias it has zeros."""
    tensors = builder()
    weights = np.arange(15.0).reshape(3, 5)
    for name, bias in (("y", None), ("z", np.ones(3))):
        made = node(["u"], tensors, (name,))
        tensors.layer(made, make_operator("Fc"), ["u"], {"weights": weights, "bias": bias})
        params = tensors.graph.node(name).params
        assert params["weights"].dtype == F and not params["weights"].flags.writeable
        np.testing.assert_array_equal(params["weights"], weights)
        assert params["bias"].tolist() == [0 if bias is None else 1] * 3
        assert tensors.graph.node(name).unbiased == (bias is None) and set(params) == {"weights", "bias"}


@pytest.mark.parametrize(
    ("grid", "wanted"),
    [
        (np.full((3, 5), 0.5), [0.5]),
        (np.repeat([[0.5], [0.25], [1]], 5, axis=1), [0.5, 0.25, 1]),
        (np.arange(1, 16).reshape(3, 5), None),
        (None, None),
    ],
)
def test_the_scales_of_weights_come_with_them(grid, wanted):
    tensors = builder(w=np.ones((3, 5), F))
    if grid is not None:
        tensors.weight_scales["w"] = grid
    for at, name in ((None, "y"), (0, "z"), (1, "v")):
        made = node(["u", "w"], tensors, (name,))
        tensors.layer(made, make_operator("Fc"), ["u"], {"weights": np.ones((3, 5)), "bias": None}, weights_at=at)
        found = tensors.graph.node(name).params.get("weight_scales")
        assert (None if found is None else found.tolist()) == (wanted if at == 1 else None)


@pytest.mark.parametrize(("sizes", "taken"), [((24,), True), ((4, 6), True), ((2, 3, 4), True), ((2, 3, 2, 2), False)])
def test_the_axes_of_a_result(sizes, taken):
    tensors = builder()
    made = node(["x"], tensors)
    reshape = make_operator("Reshape", sizes)
    if taken:
        tensors.layer(made, reshape, ["x"])
        assert tensors.graph.shape("y") == (1, *sizes)
    else:
        assert reason(lambda: tensors.layer(made, reshape, ["x"])) == "its result has more axes than channels, height and width"
        assert not tensors.graph.nodes


GUARDED = {
    # batch, dims, axis, allowed: whether it is refused
    ("N", (1, 6), 0, False): True,
    ("N", (1, 6, 2), 0, False): True,
    ("N", (1, 1), 0, False): True,
    ("N", (1, 6), 0, True): False,
    ("N", (1, 6), 1, False): False,
    ("N", (1, 1), 1, False): False,
    ("N", (1, 6), -1, False): False,
    ("1", (1, 6), 0, False): False,
    ("2", (1, 6), 0, False): False,
    ("N", (2, 6), 0, False): False,
    ("N", (2, 1), 0, False): False,
    ("N", (0, 1), 0, False): False,
    ("N", (6, 1, 1), 0, False): False,
    ("N", (1,), 0, False): False,
    ("N", (6,), 0, False): False,
}


@pytest.mark.parametrize("case", GUARDED)
def test_a_batch_of_free_size_is_guarded(case):
    batch, dims, axis, allowed = case
    tensors = builder(batch, c=np.ones((1, 6), F))
    tensors.arrays["a"] = tensors.graph.add_input("a", (1, max(1, prod(dims))))
    tensors.dims["a"] = dims
    made = node(["c", "a"], tensors)
    words = () if not allowed else (allowed,)
    if GUARDED[case]:
        assert reason(lambda: tensors.guard_batch(made, 1, axis, "folds", *words)) == "it folds the batch axis"
    else:
        tensors.guard_batch(made, 1, axis, "folds", *words)
    tensors.guard_batch(made, 0, 0, "folds")


def test_the_operators_on_images():
    """Whatever reads them as arrays elsewhere."""
    contract.find_converter("Conv", "")  # all are there
    windows = {"Conv", "ConvTranspose", "AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool"}
    others = {"BatchNormalization", "LRN", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "Gemm", "MatMul"}
    assert set(contract.IMAGE_CONVERTERS) == windows | others


def test_who_converts_what(monkeypatch):
    for name in ("CONVERTERS", "ARRAY_CONVERTERS", "IMAGE_CONVERTERS"):
        monkeypatch.setattr(contract, name, Registry("the converter"))

    def first(node, builder):
        """Nothing."""

    def second(node, builder):
        """Nothing."""

    assert contract.onnx("One", "ai.onnx::Two", "d::Three")(first) is first
    assert contract.onnx("ai.onnx::Four", "d::Five", images=True)(second) is second
    assert list(contract.CONVERTERS) == ["One", "Two", "d::Three", "Four", "d::Five"]
    assert list(contract.IMAGE_CONVERTERS) == ["Four", "d::Five"] and contract.IMAGE_CONVERTERS["Four"] is second
    contract.ARRAY_CONVERTERS.add("Six", first)
    for domain in ("", "ai.onnx"):
        assert contract.find_converter("One", domain) is first and contract.find_converter("Four", domain) is second
        assert contract.find_converter("Three", domain) is None and contract.find_converter("Six", domain) is None
        assert contract.find_converter("Relu", domain) is contract._apply_function
        assert contract.find_array_converter("Six", domain) is first and contract.find_array_converter("One", domain) is None
    assert contract.find_converter("Three", "d") is first and contract.find_converter("One", "d") is None
    assert contract.find_converter("Relu", "d") is None and contract.find_array_converter("Six", "d") is None
    known = contract.supported_operators()
    assert known == sorted(known) and {"One", "Two", "d::Three", "Six", "Relu", "Sigmoid"} <= set(known)


def test_the_registries_say_what_they_hold():
    for registry, words in (
        (contract.CONVERTERS, "the converter of the ONNX operator"),
        (contract.ARRAY_CONVERTERS, "the converter to arrays of the ONNX operator"),
        (contract.IMAGE_CONVERTERS, "the converter to images of the ONNX operator"),
    ):
        assert registry.what == words and "Conv" in registry


def test_a_function_that_is_not_defined(model):
    built = model("float[1,4] x => float[1,4] y", "y = Celu <alpha = 1.0> (x)")
    import_onnx(built)
    built.graph.node[0].attribute[0].f = -1.0
    with pytest.raises(N2D2Error, match=re.escape("Celu (1 node) cannot be imported: its alpha is not positive")):
        import_onnx(built)
