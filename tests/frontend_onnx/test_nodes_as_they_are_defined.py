"""Each node against the definition of its operator: attributes at their limits, single values, types, shapes; and texts.

They look at `n2d2py.frontend.onnx.validation` and `n2d2py.frontend.onnx.validator`, at one node each.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.frontend.onnx import validator as validating
from n2d2py.frontend.onnx.contract import Builder, Unsupported
from n2d2py.frontend.onnx.inputs_outputs import add_inputs
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.validation import check_bounds, check_structure, check_texts, definition_version, misfit_error
from n2d2py.frontend.onnx.validator import Validator
from n2d2py.graph import Graph
from n2d2py.graph.shapes import MAX_TENSOR

F = np.float32


def bare(*calls: str, opset: int = 23) -> onnx.ModelProto:
    """A model of these nodes, as no check has seen it."""
    body = "\n".join(calls)
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}, "own" : 1]> g (float[N] x) => (float[N] y) {{ {body} }}'
    )


def texts(check, *arguments) -> list[str]:
    """What is said of each node between the brackets."""
    try:
        check(*arguments)
    except N2D2Error as error:
        assert all(one.code == "E314" for one in error.errors)
        return [one.what.partition("(")[2].removesuffix(")") for one in error.errors]
    return []


# ---- which definition ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "operator, opset, wanted",
    [
        ("Relu", 7, 7),
        ("Relu", 17, 17),
        ("Nothing", 17, 17),
        ("LabelEncoder", 17, 17),
        ("Gradient", 17, 17),
        ("QuantizeLinear", 9, 13),
        ("QuantizeLinear", 12, 13),
        ("QuantizeLinear", 13, 13),
        ("QuantizeLinear", 14, 14),
        ("DequantizeLinear", 10, 13),
        ("DequantizeLinear", 21, 21),
        ("Upsample", 7, 7),
        ("Upsample", 8, 8),
        ("Upsample", 9, 9),
        ("Upsample", 10, 9),
        ("Upsample", 17, 9),
        ("Scatter", 9, 9),
        ("Scatter", 10, 10),
        ("Scatter", 11, 9),
        ("Scatter", 18, 9),
        ("Mish", 15, 18),
        ("Mish", 18, 18),
        ("Mish", 19, 19),
        ("LayerNormalization", 11, 17),
        ("GroupNormalization", 18, 21),
        ("GroupNormalization", 20, 21),
        ("GroupNormalization", 22, 22),
    ],
)
def test_the_definition_that_counts(operator, opset, wanted):
    """That of the set; the last one before it that is no longer there, or the first one after it."""
    assert definition_version(operator, opset) == wanted


# ---- attributes ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, least, greatest", [("axis", -64, 64), ("batch_dims", 0, 64), ("num_outputs", 0, 1 << 16), ("blocksize", None, None)]
)
def test_bounds_of_attributes(name, least, greatest):
    if least is None:
        assert texts(check_bounds, bare(f"y = Op <{name} = {1 << 40}> (x)"), "p") == []
        return
    for value, fits in ((least, True), (greatest, True), (least - 1, False), (greatest + 1, False), (1, True)):
        said = texts(check_bounds, bare(f"y = Op <{name} = {value}> (x)"), "p")
        assert said == ([] if fits else [f"its attribute {name} is {value}"])


def test_bounds_of_nodes_in_functions_and_inner_graphs():
    inner = parser.parse_graph("i () => (float[1] z) { z = Op <axis = 66> (x) }")
    built = bare("a = Op <axis = 65> (x)", "y = Op (a)", "b = Op <axis = 64, batch_dims = 70> (y)")
    built.graph.node[1].attribute.append(helper.make_attribute("body", inner))
    body = [helper.make_node("Op", ["p"], ["q"], axis=69)]
    built.functions.append(helper.make_function("own", "f", ["p"], ["q"], body, [helper.make_opsetid("", 23)]))
    inner.node[0].attribute[0].i = 67
    built.graph.node[1].attribute.append(helper.make_attribute("bodies", [inner, inner]))
    said = texts(check_bounds, built, "p")
    assert said == [
        f"its attribute {text}"
        for text in ("axis is 65", "axis is 66", "axis is 67", "axis is 67", "batch_dims is 70", "axis is 69")
    ]


@pytest.mark.parametrize(
    "call, said",
    [
        ("y = Relu (x)", None),
        ("y = Relu (x, x)", "Node "),
        ("y = Nothing (x)", None),
        ("y = own.Relu (x, x)", None),
        ("a, y = Split <num_outputs = 2> (x)", None),
        ("a, b, y = Split <num_outputs = 2> (x)", "its num_outputs are 2, it has 3 outputs"),
        ("y = Split <num_outputs = 2> (x)", "its num_outputs are 2, it has 1 outputs"),
        ("a, y = Split <axis = 5, num_outputs = 1> (x)", "its num_outputs are 1, it has 2 outputs"),
        ("y = LeakyRelu <alpha = 0.5> (x)", None),
        ("y = LeakyRelu <alpha = inf> (x)", "its attribute alpha is not finite"),
        ("y = LeakyRelu <alpha = nan> (x)", "its attribute alpha is not finite"),
        ("y = Constant <value_float = inf> ()", None),
        ("y = Constant <value_floats = [1.0, inf]> ()", None),
        ("y = GRU <hidden_size = 2, activation_alpha = [1.0, inf]> (x, x, x)", "its attribute activation_alpha is not finite"),
        ("y = GRU <hidden_size = 2, activation_alpha = [1.0, 2.0]> (x, x, x)", None),
        ("y = Cast <to = 1> (x)", None),
        ("y = Cast <to = 0> (x)", "its attribute to is 0, which is not an element type"),
        ("y = Cast <to = -1> (x)", "its attribute to is -1, which is not an element type"),
        ("y = Cast <to = 1000> (x)", "its attribute to is 1000, which is not an element type"),
        ("y = EyeLike <dtype = 1> (x)", None),
        ("y = EyeLike <dtype = 0> (x)", "its attribute dtype is 0, which is not an element type"),
        ("y = LayerNormalization <stash_type = 1> (x, x)", None),
        ("y = LayerNormalization <stash_type = 0> (x, x)", "its attribute stash_type is 0, which is not an element type"),
        ("y = BlackmanWindow <output_datatype = 1> (x)", None),
        ("y = BlackmanWindow <output_datatype = 0> (x)", "its attribute output_datatype is 0, which is not an element type"),
        ("y = QuantizeLinear <output_dtype = 0> (x, x)", None),
        ("y = QuantizeLinear <output_dtype = 3> (x, x)", None),
        ("y = QuantizeLinear <output_dtype = -1> (x, x)", "its attribute output_dtype is -1, which is not an element type"),
        ("y = Transpose <perm = [1000]> (x)", None),
        *(
            (f'y = MaxPool <kernel_shape = [1], auto_pad = "{word}"> (x)', None)
            for word in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        ),
        (
            'y = MaxPool <kernel_shape = [1], auto_pad = "SAME"> (x)',
            "its attribute auto_pad is 'SAME', not NOTSET or SAME_UPPER or SAME_LOWER or VALID",
        ),
        ('y = Gelu <approximate = "none"> (x)', None),
        ('y = Gelu <approximate = "tanh"> (x)', None),
        ('y = Gelu <approximate = "sigmoid"> (x)', "its attribute approximate is 'sigmoid', not none or tanh"),
        ('y = BitShift <direction = "LEFT"> (x, x)', None),
        ('y = BitShift <direction = "RIGHT"> (x, x)', None),
        ('y = BitShift <direction = "UP"> (x, x)', "its attribute direction is 'UP', not LEFT or RIGHT"),
        ('y = DepthToSpace <blocksize = 2, mode = "DCR"> (x)', None),
        ('y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)', None),
        ('y = DepthToSpace <blocksize = 2, mode = "ABC"> (x)', "its attribute mode is 'ABC', not DCR or CRD"),
        ('y = Resize <mode = "linear"> (x)', None),
        ('y = GRU <hidden_size = 2, direction = "reverse"> (x, x, x)', None),
    ],
)
def test_attributes(call, said):
    model = bare("y = Relu (x)")
    if "inf" in call or "nan" in call:
        value = np.inf if "inf" in call else np.nan
        model = bare(call.replace("inf", "0.75").replace("nan", "0.75"))
        attribute = model.graph.node[0].attribute[-1]
        if attribute.floats:
            attribute.floats[1] = value
        else:
            attribute.f = value
    else:
        model = bare(call)
    found = texts(check_structure, model, "p", 23)
    assert len(found) == (said is not None)
    assert said is None or (found[0].startswith(said) and "==>" not in found[0])


@pytest.mark.parametrize("call", ["y = Clip <min = inf> (x)", "y = Pad <pads = [0, 1], value = inf> (x)"])
def test_limits_and_fillings_may_be_infinite(call):
    model = bare(call.replace("inf", "0.5"), opset=10)
    model.graph.node[0].attribute[-1].f = -np.inf
    assert texts(check_structure, model, "p", 10) == []


def test_each_node_that_is_wrong_is_named():
    model = bare("a = Relu (x, x)", "b = Relu (a)", "c = Cast <to = 0> (b)", "y = Abs (c)")
    with pytest.raises(ErrorList) as caught:
        check_structure(model, "p", 23)
    assert [error.where for error in caught.value.errors] == [Location("p", None, "a"), Location("p", None, "c")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_names_of_the_standard(domain):
    model = bare("y = Relu (x, x)")
    model.graph.node[0].domain = domain
    assert len(texts(check_structure, model, "p", 23)) == 1


@pytest.mark.parametrize("several", [False, True])
def test_nodes_of_inner_graphs_are_checked_and_those_that_hold_them_are_not(several):
    inner = parser.parse_graph("i () => (float[1] z) { z = Cast <to = 0> (x) }")
    model = bare("y = Relu (x, x)")
    model.graph.node[0].attribute.append(helper.make_attribute("body", [inner] if several else inner))
    assert texts(check_structure, model, "p", 23) == ["its attribute to is 0, which is not an element type"]


@pytest.mark.parametrize(
    "outputs, name, place", [(["a", "b"], "n", "a"), (["", "b"], "n", "b"), (["", ""], "n", "n"), ([], "n", "n"), ([], "", "")]
)
def test_the_place_of_a_node(outputs, name, place):
    error = misfit_error(helper.make_node("Op", [], outputs, name=name), "p", "t" * 201)
    assert error.where == Location("p", None, place)
    assert "Op" in error.what and error.what.endswith(f"({'t' * 200})")


# ---- texts --------------------------------------------------------------------------------------
@pytest.mark.parametrize("old", ["theinput", "thenode", "Identity", "thegraph", "thekey", "thetensor", "thedomain"])
def test_texts_that_are_not_utf_8(old):
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> thegraph (float[1] theinput) => (float[1] y) { y = Identity (theinput) }'
    )
    model.graph.node[0].name = "thenode"
    model.metadata_props.add(key="thekey", value="v")
    model.opset_import.add(domain="thedomain", version=1)
    model.graph.initializer.append(numpy_helper.from_array(np.arange(200, dtype=np.uint8), "thetensor"))
    assert check_texts(model) is None
    made = onnx.ModelProto()
    made.ParseFromString(model.SerializeToString().replace(old.encode(), b"\xff" + old.encode()[1:]))
    assert check_texts(made) == f"\\xff{old[1:]}"


# ---- one node with what its inputs are ----------------------------------------------------------
def validator(inputs: str, call: str, opset: int = 17, **constants) -> tuple[Validator, onnx.NodeProto]:
    outputs = call.partition("=")[0].strip()
    declared = ", ".join(f"float[A] {name}" for name in outputs.replace(" ", "").split(",") if name)
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]> g ({inputs}) => (float[A] end) {{ end = Identity (x) }}'
    )
    for name, value in constants.items():
        if np.asarray(value).dtype.kind in "OU":
            model.graph.initializer.append(
                helper.make_tensor(name, TensorProto.STRING, np.shape(value), np.ravel(value).tolist())
            )
        else:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    builder = Builder(load_onnx(model), Graph("g"), False, False)
    add_inputs(builder, {})
    return Validator(builder), parser.parse_graph(f"g (float[A] x) => ({declared}) {{ {call} }}").node[0]


def verdict(inputs: str, call: str, opset: int = 17, **constants) -> str:
    """What is wrong with a node: how it is told, and its text; empty where nothing is."""
    check, proto = validator(inputs, call, opset, **constants)
    try:
        found = check.check(proto)
    except (N2D2Error, Unsupported) as error:
        return f"raised {getattr(error, 'code', 'E310')}: {getattr(error, 'what', error)}"
    return "" if found is None else f"{found.code}: {found.what}"


def shapes(inputs: str, call: str, opset: int = 17, **constants) -> dict:
    check, proto = validator(inputs, call, opset, **constants)
    assert check.check(proto) is None
    return check.shapes


X = "float[1,3,4] x"


@pytest.mark.parametrize(
    "call, index, opset",
    [
        ("y = Clip (x, {0}, c)", 1, 17),
        ("y = Clip (x, c, {0})", 2, 17),
        ("y = CumSum (x, {0})", 1, 17),
        ("y = Dropout (x, {0}, t)", 1, 17),
        ("y = Dropout (x, c, {0})", 2, 17),
        ("y = OneHot (k, {0}, d)", 1, 17),
        ("y = Range ({0}, a, a)", 0, 17),
        ("y = Range (a, {0}, a)", 1, 17),
        ("y = Range (a, a, {0})", 2, 17),
        ("y, z = TopK (x, {0})", 1, 17),
        ("y = Trilu (x, {0})", 1, 17),
    ],
)
def test_inputs_that_hold_one_value(call, index, opset):
    held = {"c": F(1), "t": np.False_, "d": np.array([0, 1], F), "a": np.int64(1), "k": np.array([1, 2])}
    kind = np.bool_ if "Dropout (x, c" in call else F if "Clip" in call or "Dropout" in call else np.int64
    used = {
        name: value
        for name, value in held.items()
        if name in call.replace(",", " ").replace(")", " ").split() or f"({name}," in call
    }
    for values in (np.ones((), kind), np.ones(1, kind)):
        assert "no single value" not in verdict(X, call.format("v"), opset, v=values, **used)
    for values in (np.ones(2, kind), np.ones((1, 3), kind), np.ones(0, kind)):
        found = verdict(X, call.format("v"), opset, v=values, **used)
        assert (
            found
            == f"raised E314: the node {call.split('= ')[1].split(' ')[0]} is not as the operator is defined (its input 'v' is no single value)"
        )


def test_inputs_that_hold_one_value_may_be_computed_or_absent():
    assert verdict(f"{X}, float[1] v", "y = Clip (x, v)") == ""
    assert verdict(X, "y = Clip (x, , v)", v=F(1)) == ""
    assert verdict(X, "y = Clip (x)") == ""
    assert "no single value" not in verdict(X, "y = Add (x, v)", v=np.ones(4, F))


@pytest.mark.parametrize(
    "inputs, call, constants, text",
    [
        (X, "y = Gather (x, i)", {"i": np.zeros(1, F)}, "its input 'i' holds float, not int32 or int64"),
        (X, "y = Gather (x, i)", {"i": np.zeros(1, np.int8)}, "indices typestr: Tind, has unsupported type: tensor(int8)"),
        (X, "y = Gather (x, i)", {"i": ["a"]}, "its input 'i' holds string, not int32 or int64"),
        (X, "y = Not (x)", {}, "its input 'x' holds real numbers, not bool"),
        ("bool[1,3,4] x", "y = Not (x)", {}, ""),
        ("int64[1,3,4] x", "y = Not (x)", {}, "its input 'x' holds int64, not bool"),
        ("uint8[1,3,4] x", "y = Add (x, c)", {"c": np.ones(4, np.int64)}, ""),
        ("uint8[1,3,4] x", "y = Gather (c, x)", {"c": np.ones(4, F)}, ""),
        ("uint8[1,4,4] x", "y = MatMulInteger (x, x)", {}, ""),
        ("uint8[1,3,4] x", 'y = BitShift <direction = "LEFT"> (x, x)', {}, ""),
        ("int32[1,3,4] x", "y = Gather (c, x)", {"c": np.ones(4, np.float16)}, ""),
        (X, "y = Add (x, c)", {"c": np.ones(4, np.int64)}, ""),
        (X, "y = Add (c, x)", {"c": np.ones(4, np.int64)}, ""),
        (X, "y = Add (x, c)", {"c": np.ones(4, np.float16)}, ""),
        (X, "y = Concat <axis = 1> (x, c, d)", {"c": np.ones((1, 1, 4), np.float16), "d": np.ones((1, 1, 4))}, ""),
        (X, "y = Sum (x, x, c)", {"c": np.ones(4)}, ""),
        (X, "y = Cast <to = 7> (x)", {}, ""),
        (X, "y = Where (c, d, x)", {"c": np.ones(4, bool), "d": np.ones(4, np.int64)}, ""),
        ("int64[1,3,4] x", "y = Add (c, x)", {"c": np.ones(4, np.int64)}, ""),
        ("int64[1,3,4] x", "y = Add (x, c)", {"c": np.ones(4, bool)}, "its input 'c' holds bool, not"),
        ("bool[1,3,4] x", "y = Concat <axis = 1> (x, c)", {"c": np.ones((1, 1, 4), F)}, "its inputs 'x' of bool and 'c' of float"),
        ("int64[1,3,4] x", "y = Concat <axis = 1> (c, x, d)", {"c": np.ones((1, 1, 4), int), "d": np.ones((1, 1, 4), F)}, "its inputs 'c' of int64 and 'd' of float"),
        (X, "y = Concat <axis = 1> (x, c)", {"c": np.full((1, 1, 4), "a")}, "its input 'c' contains strings"),
        (X, "y = Concat <axis = 1> (c, d)", {"c": np.full((1, 1), "a"), "d": np.full((1, 1), "b")}, ""),
        (X, "y = Concat <axis = 1> (c, d)", {"c": np.full((1, 1), "a"), "d": np.ones((1, 1), F)}, "its inputs 'c' of string and 'd' of float"),
        (X, "y = Sum (x, c)", {"c": np.ones(4, np.int64)}, "its input 'c' holds int64, not"),
        (X, "y = Where (c, x, d)", {"c": np.ones(4, bool), "d": np.ones(4, np.float64)}, ""),
    ],
)  # fmt: skip
def test_types(inputs, call, constants, text):
    found = verdict(inputs, call, **constants)
    assert found == "" if not text else f"({text}" in found and found.startswith("E314")


@pytest.mark.parametrize("opset", [13, 17, 19, 21, 23, 25])
def test_images_are_integers_that_a_scale_belongs_to(opset):
    """Also of the sets whose integers may be short floating-point numbers."""
    assert verdict("uint8[1,3,4] x", "y = DequantizeLinear (x, s)", opset, s=F(0.5)) == ""


@pytest.mark.parametrize("kind, said", [("uint8", False), ("int8", False), ("int16", True), ("float", True)])
def test_real_numbers_that_stand_for_integers_of_the_file(kind, said):
    """Of images, or where a node before said so."""
    check, proto = validator(f"{X}, {kind}[1,3,4] q", "y = Not (x)")
    assert (check.check(proto) is not None) == said
    check, proto = validator(X, "y = Not (x)")
    check._tensors.integers.add("x")
    assert check.check(proto) is None


def test_what_is_not_compared_with_a_definition():
    graph = parser.parse_graph("i () => (float[1] z) { z = Abs (x) }")
    for call in ("y = own.Not (x)", "y = Nothing (x)"):
        assert verdict(X, call) == ""
    check, proto = validator(X, "y = Not (x)")
    assert check.check(proto) is not None
    proto.domain = "ai.onnx"
    assert check.check(proto) is not None
    for attribute in (helper.make_attribute("b", graph), helper.make_attribute("b", [graph])):
        held = onnx.NodeProto()
        held.CopyFrom(proto)
        held.attribute.append(attribute)
        assert check.check(held) is None


# ---- shapes -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "inputs, call, constants, wanted",
    [
        (X, "y = Relu (x)", {}, {"y": (1, 3, 4)}),
        ("float[N,3,4] x", "y = Transpose <perm = [0,2,1]> (x)", {}, {"y": (1, 4, 3)}),
        (X, "y = Transpose <perm = [1,2,0]> (x)", {}, {"y": (1, 4, 1)}),
        (X, "y = ReduceSum <keepdims = 0> (x, a)", {"a": np.array([1])}, {"y": (1, 4)}),
        (X, "y = ReduceSum <keepdims = 0> (x, a)", {"a": np.array([1, 2])}, {}),
        (X, "y = Reshape (x, s)", {"s": np.array([12])}, {}),
        (X, "y = Reshape (x, s)", {"s": np.array([1, 12])}, {"y": (1, 12)}),
        (X, "y = Reshape (x, s)", {"s": np.array([2, 6, 1])}, {"y": (1, 6, 1)}),
        (X, "y = NonZero (x)", {}, {}),
        (X, "y, z = Split <axis = 1> (x, s)", {"s": np.array([1, 2])}, {"y": (1, 1, 4), "z": (1, 2, 4)}),
        (X, "y = Slice (x, b, e)", {"b": np.array([0, 1]), "e": np.array([1, 1])}, {}),
        (X, "y = Expand (c, s)", {"c": F(1), "s": np.array([0, 5])}, {"y": (1, 5)}),
        (X, "y = Concat <axis = 1> (x, c, x)", {"c": np.ones((1, 2, 4), F)}, {"y": (1, 8, 4)}),
        (X, "y = Clip (x, , c)", {"c": F(1)}, {"y": (1, 3, 4)}),
        (X, "y = Relu (unknown)", {}, {}),
        ("float[1,3,1] x", "y = Concat <axis = 1> (x, c)", {"c": np.ones((1, 1, 1), F)}, {"y": (1, 4, 1)}),
        (f"float[1,1,{MAX_TENSOR}] x, bool[1] b", "y = Compress <axis = 1> (x, b)", {}, {}),
    ],
)
def test_shapes_of_results(inputs, call, constants, wanted):
    """With batch 1, where more than that is known and nothing is empty."""
    assert shapes(inputs, call, **constants) == wanted


@pytest.mark.parametrize("room, known", [(4, True), (3, False), (5, True)])
def test_constants_up_to_a_size_shape_results(monkeypatch, room, known):
    assert validating._SHAPING == 1 << 12
    monkeypatch.setattr(validating, "_SHAPING", room)
    assert shapes(X, "y = Reshape (x, s)", s=np.array([1, 2, 3, 2])) == ({"y": (1, 2, 3, 2)} if known else {})


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64])
def test_scales_of_any_width_shape_results(width):
    assert shapes("float[1,3,4,5] x", 'y = Resize <mode = "nearest"> (x, , s)', s=np.array([1, 1, 2, 3], width)) == {
        "y": (1, 3, 8, 15)
    }


@pytest.mark.parametrize("ends", [(0, 6, 2), ([0], [6], [2]), ([0], 6, 2)])
def test_ranges_of_lists_of_one(ends):
    held = dict(zip("abc", (np.array(one, np.int64) for one in ends), strict=True))
    assert verdict(X, "y = Range (a, b, c)", **held) == ""


WILD = 1 << 24


@pytest.mark.parametrize(
    "sizes, raised",
    [
        ((2, 3), False),
        ((WILD, 3), False),
        ((WILD + 1, 3), True),
        ((3, WILD + 1), True),
        ((-WILD, 3), False),
        ((-WILD - 1, 3), True),
    ],
)
def test_sizes_that_make_no_sense_end_the_import_of_a_node(sizes, raised):
    """Before a converter could loop over them; others are told where the converter does not say it better."""
    for opset in (13, 11):
        if opset == 13:
            found = verdict(X, "y, z = Split <axis = 1> (x, s)", opset, s=np.array(sizes))
        else:
            found = verdict(X, f"y, z = Split <axis = 1, split = [{sizes[0]}, {sizes[1]}]> (x)", opset)
        assert found.startswith("raised E314" if raised else "E314"), found


@pytest.mark.parametrize("axis, raised", [(7, False), (WILD, False), (WILD + 1, True), (-WILD - 1, True), (-WILD, False)])
def test_an_axis_that_makes_no_sense_ends_the_import_of_a_node(axis, raised):
    assert verdict(X, f"y = Concat <axis = {axis}> (x, x)").startswith("raised E314" if raised else "E314")


@pytest.mark.parametrize("batch, said", [("1", True), ("N", True), ("4", False)])
def test_shapes_of_a_file_for_several_stimuli_are_not_compared(batch, said):
    """The definition is asked for one stimulus; what makes no sense is refused for any number."""
    call = "y, z = Split <axis = 1> (x, s)"
    assert bool(verdict(f"float[{batch},3,4] x", call, s=np.array([2, 2]))) == said
    assert verdict(f"float[{batch},3,4] x", call, s=np.array([WILD + 1, 2])).startswith("raised E314")


@pytest.mark.parametrize(
    "call, constants, said",
    [
        ("y = Expand (x, s)", {"s": np.array([1, 3, MAX_TENSOR // 4 // 3 * 4])}, "raised E314"),
        ("y = Expand (v, s)", {"s": np.array([1, MAX_TENSOR])}, ""),
        ("y = Expand (v, s)", {"s": np.array([1, MAX_TENSOR + 1])}, "raised E240: the output of Expand 'y' "),
        ("y = Expand (v, s)", {"s": np.array([0, MAX_TENSOR + 1])}, ""),
        ("y = ConstantOfShape (s)", {"s": np.array([MAX_TENSOR])}, ""),
        ("y = ConstantOfShape (s)", {"s": np.array([MAX_TENSOR + 1])}, "raised E310: its constant value would have 67,108,865 elements"),
        ("y = ConstantOfShape (s)", {"s": np.array([2, MAX_TENSOR])}, "raised E310: its constant value would have 134,217,728 elements"),
        ("y = ConstantOfShape (s)", {"s": np.array([-2, 3])}, "E314: the node ConstantOfShape is not as"),
        ("y = ConstantOfShape (s)", {"s": np.array([3, -1])}, "E314: the node ConstantOfShape is not as"),
    ],
)  # fmt: skip
def test_results_without_measure(call, constants, said):
    found = verdict(f"{X}, float[1,1] v", call, **constants)
    assert found.startswith(said) if said else found == ""


@pytest.mark.parametrize("version", [3, 4, 8])
def test_constants_of_every_version_of_the_format_shape_results(version):
    """Those of the third are listed as inputs of the file, but not of the node that is looked at."""
    check, proto = validator(X, "y = Reshape (x, s)", s=np.array([1, 6, 2]))
    check._tensors.model.proto.ir_version = version
    assert check.check(proto) is None and check.shapes == {"y": (1, 6, 2)}
