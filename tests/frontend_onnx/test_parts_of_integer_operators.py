"""The nodes that stand for an operator on integers, one by one; which models compute with plain integers; what a refusal says.

They look at `n2d2py.frontend.onnx.qoperators` and `n2d2py.frontend.onnx.preflight`; `test_qoperators` imports whole models.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, helper, parser

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.preflight import Preflight
from n2d2py.frontend.onnx.qoperators import EXPANDED, expand, has_plain_integers, is_qoperator


def node(call: str) -> NodeProto:
    return parser.parse_graph(f"g (float[N] x) => (float[N] r) {{ r = {call} }}").node[0]


def expanded(call: str, **constants: np.ndarray) -> list[str]:
    """Each node as text; what is made is called after its purpose."""
    made = expand(node(call), constants, lambda name: f"{name}'")
    texts = []
    for one in made:
        attributes = ", ".join(f"{a.name} = {helper.get_attribute_value(a)}" for a in one.attribute)
        inputs = ", ".join(one.input)
        texts.append(f"{', '.join(one.output)} = {one.op_type}{f' <{attributes}>' if attributes else ''} ({inputs})")
    return texts


X = "x_real' = DequantizeLinear <axis = 1> (x, s, z)"
W = "w_real' = DequantizeLinear <axis = 1> (w, t, v)"
RESULT = "r = QuantizeLinear (r_real', u, o)"
OURS = "com.microsoft."
PARTS = {
    "QLinearMatMul (x, s, z, w, t, v, u, o)": [X, W, "r_real' = MatMul (x_real', w_real')", RESULT],
    "QLinearMatMul (x, s, z, w, t, v, u)": [X, W, "r_real' = MatMul (x_real', w_real')", "r = QuantizeLinear (r_real', u)"],
    OURS + "QLinearAdd (x, s, z, w, t, v, u, o)": [X, W, "r_real' = Add (x_real', w_real')", RESULT],
    OURS + "QLinearMul (x, s, z, w, t, v, u, o)": [X, W, "r_real' = Mul (x_real', w_real')", RESULT],
    OURS + "QLinearAdd (x, s, , w, t, , u, o)": [
        "x_real' = DequantizeLinear <axis = 1> (x, s, )",
        "w_real' = DequantizeLinear <axis = 1> (w, t, )",
        "r_real' = Add (x_real', w_real')",
        RESULT,
    ],
    OURS + "QLinearAdd (x, s, z, w, t)": [X, "w_real' = DequantizeLinear <axis = 1> (w, t)", "r = Add (x_real', w_real')"],
    OURS + "QLinearSigmoid (x, s, z, u, o)": [X, "r_real' = Sigmoid (x_real')", RESULT],
    OURS + "QLinearSigmoid (x, s, z, u)": [X, "r_real' = Sigmoid (x_real')", "r = QuantizeLinear (r_real', u)"],
    OURS + "QLinearSigmoid (x, s)": ["x_real' = DequantizeLinear <axis = 1> (x, s)", "r = Sigmoid (x_real')"],
    OURS + "QLinearSigmoid (x, s, z, , o)": [X, "r = Sigmoid (x_real')"],
    OURS + "QLinearLeakyRelu <alpha = 0.25> (x, s, z, u, o)": [X, "r_real' = LeakyRelu <alpha = 0.25> (x_real')", RESULT],
    OURS + "QLinearSoftmax <axis = 2, opset = 13> (x, s, z, u, o)": [X, "r_real' = Softmax <axis = 2> (x_real')", RESULT],
    OURS + "QLinearGlobalAveragePool <channels_last = 0> (x, s, z, u, o)": [X, "r_real' = GlobalAveragePool (x_real')", RESULT],
    OURS + "QLinearAveragePool <ceil_mode = 1> (x, s, z, u, o)": [X, "r_real' = AveragePool <ceil_mode = 1> (x_real')", RESULT],
    OURS + "QLinearReduceMean <keepdims = 0> (x, s, z, u, o)": [X, "r_real' = ReduceMean <keepdims = 0> (x_real')", RESULT],
    OURS + "QGemm <transB = 0> (x, s, z, w, t, v, , u, o)": [X, W, "r_real' = Gemm <transB = 0> (x_real', w_real')", RESULT],
    OURS + "QGemm (x, s, z, w, t, v)": [X, W, "r = Gemm (x_real', w_real')"],
    OURS + "QGemm (x, s, z, w, t, v, , u)": [X, W, "r_real' = Gemm (x_real', w_real')", "r = QuantizeLinear (r_real', u)"],
    OURS + "QLinearConcat <axis = 1> (u, o, x, s, z, w, t, v)": [
        X,
        W,
        "r_real' = Concat <axis = 1> (x_real', w_real')",
        RESULT,
    ],
    OURS + "QLinearConcat <axis = 1> (u, o, x, s, z)": [X, "r_real' = Concat <axis = 1> (x_real')", RESULT],
    OURS + "QLinearConcat <axis = 1> (u, o, x, s, z, w, t)": [
        X,
        "w_real' = DequantizeLinear <axis = 1> (w, t)",
        "r_real' = Concat <axis = 1> (x_real', w_real')",
        RESULT,
    ],
}


@pytest.mark.parametrize("call", PARTS)
def test_parts(call):
    assert is_qoperator(node(call))
    assert expanded(call) == PARTS[call]


def of_outputs(text: str) -> str:
    return text.replace("axis = 1", "axis = 0")


@pytest.mark.parametrize("bias", ["", "b"])
def test_weights_have_their_outputs_in_front_or_behind(bias):
    """Those of a convolution, and those that transB turns, in front."""
    held = {"b": np.arange(3), "s": np.float32(0.5), "t": np.array([0.25, 1, 2], np.float32)} if bias else {}
    third = ", r_bias'" if bias else ""
    inputs = "x, s, z, w, t, v"
    assert expanded(f"QLinearConv <group = 2> ({inputs}, u, o, {bias})", **dict(held)) == [
        of_outputs(X),
        of_outputs(W),
        f"r_real' = Conv <group = 2> (x_real', w_real'{third})",
        RESULT,
    ]
    assert expanded(f"{OURS}QGemm <transB = 1> ({inputs}, {bias}, u, o)", **dict(held)) == [
        of_outputs(X),
        of_outputs(W),
        f"r_real' = Gemm <transB = 1> (x_real', w_real'{third})",
        RESULT,
    ]
    assert expanded(f"{OURS}QGemm <transA = 1> ({inputs}, {bias}, u, o)", **dict(held))[:2] == [X, W]
    assert expanded(f"QLinearConv ({inputs}, u, o)")[2] == "r_real' = Conv (x_real', w_real')"


@pytest.mark.parametrize(
    "bias, x, w, wanted",
    [
        ([4, -8, 12], 0.5, [0.25, 1, 2], [0.5, -4, 12]),
        ([4, -8, 12], [0.5], [0.25], [0.5, -1, 1.5]),
        ([4, -8, 12], [[0.5]], 2.0, [4, -8, 12]),
        ([[4], [-8], [12]], 0.5, [[0.25, 1, 2]], [0.5, -4, 12]),
        ([7], 0.5, [0.5], [1.75]),
        ([2**31 - 1], 1.0, [1.0], [2**31 - 1]),
        ([4, -8, 12], [0.5, 0.5], [0.25, 1, 2], None),
        ([4, -8, 12], 0.5, [0.25, 1], None),
        ([4], 0.5, [0.25, 1], None),
        ([4, 5, 6], [0.5, 1, 2], 0.25, None),
    ],
)
def test_a_bias_is_in_the_scale_of_the_products(bias, x, w, wanted):
    held = {"b": np.array(bias, np.int32), "s": np.array(x, np.float32), "t": np.array(w, np.float32)}
    for call in ("QLinearConv (x, s, z, w, t, v, u, o, b)", OURS + "QGemm (x, s, z, w, t, v, b, u, o)"):
        constants = dict(held)
        if wanted is None:
            with pytest.raises(Unsupported, match="its scales do not fit its bias"):
                expand(node(call), constants, lambda name: f"{name}'")
        else:
            expand(node(call), constants, lambda name: f"{name}'")
            np.testing.assert_array_equal(constants["r_bias'"], wanted)


@pytest.mark.parametrize("missing", ["b", "s", "t"])
def test_a_bias_and_its_scales_are_constant(missing):
    held = {"b": np.arange(3), "s": np.float32(0.5), "t": np.float32(0.25)}
    del held[missing]
    with pytest.raises(Unsupported, match="its bias or its scales are not constant"):
        expanded("QLinearConv (x, s, z, w, t, v, u, o, b)", **held)


@pytest.mark.parametrize(
    "call, count",
    [
        (OURS + "QLinearAdd (x, s, z, w)", 4),
        (OURS + "QLinearAdd (x, s, z)", 3),
        (OURS + "QLinearAdd (x, , z, w, t, v, u, o)", 8),
        (OURS + "QLinearAdd (, s, z, w, t, v, u, o)", 8),
        (OURS + "QLinearAdd (x, s, z, , t, v, u, o)", 8),
        (OURS + "QLinearAdd (x, s, z, w, , v, u, o)", 8),
        (OURS + "QLinearSigmoid (x)", 1),
        (OURS + "QLinearConcat <axis = 1> (u)", 1),
        (OURS + "QLinearConcat <axis = 1> (u, o)", 2),
        (OURS + "QLinearConcat <axis = 1> (u, o, x)", 3),
        (OURS + "QLinearConcat <axis = 1> (u, o, x, s, z, w)", 6),
        (OURS + "QLinearConcat <axis = 1> (u, o, x, s, z, w, , v)", 8),
        ("QLinearConv (x, s, z)", 3),
    ],
)
def test_operands_without_their_scales(call, count):
    with pytest.raises(Unsupported) as caught:
        expanded(call)
    assert (caught.value.reason, caught.value.remedy) == (f"it has {count} inputs, which are too few", "export the model again")


def test_channels_in_the_last_place():
    for call in ("QLinearAveragePool <channels_last = 1>", "QLinearAveragePool <ceil_mode = 1, channels_last = 1>"):
        with pytest.raises(Unsupported, match="its tensors are in the order NHWC"):
            expanded(f"{OURS}{call} (x, s, z, u, o)")


@pytest.mark.parametrize(
    "operator, domain, known",
    [
        ("QLinearConv", "", True),
        ("QLinearConv", "ai.onnx", True),
        ("QLinearConv", "own", False),
        ("QLinearAdd", "", False),
        ("QLinearAdd", "com.microsoft", True),
        ("QLinearConcat", "com.microsoft", True),
        ("QLinearConcat", "", False),
        ("Conv", "", False),
    ],
)
def test_operators_of_a_domain(operator, domain, known):
    assert is_qoperator(helper.make_node(operator, [], [], domain=domain)) == known
    assert len(EXPANDED) == 11


# ---- plain integers -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "body, plain",
    [
        ("y = Relu (x)", True),
        ("y = DequantizeLinear (x, s)", True),
        ("q = QuantizeLinear (x, s)\n y = DequantizeLinear (q, s)", False),
        ("d = DequantizeLinear (x, s)\n y = Relu (d)", False),
        ("d = DequantizeLinear (x, s)\n y = Relu (x)", True),
        ("w = DequantizeLinear (c, s)\n y = MatMul (x, w)", True),
        ("t = Transpose (c)\n w = DequantizeLinear (t, s)\n y = MatMul (x, w)", True),
        ("t = Transpose (c)\n u = Relu (t)\n w = DequantizeLinear (u, s)\n y = MatMul (x, w)", True),
        ("t = Mul (s, c)\n w = DequantizeLinear (t, s)\n y = MatMul (x, w)", True),
        ("t = Mul (s, x)\n w = DequantizeLinear (t, s)\n y = MatMul (x, w)", False),
        ("t = Transpose (x)\n w = DequantizeLinear (t, s)\n y = MatMul (x, w)", False),
        ("q, a, z = DynamicQuantizeLinear (x)\n y = DequantizeLinear (q, a, z)", True),
        ("q, a, z = DynamicQuantizeLinear (x)\n y = DequantizeLinear (q, s, z)", False),
        ("r = Reciprocal (s)\n q = QuantizeLinear (x, r)\n y = DequantizeLinear (q, r)", False),
        ("q = QuantizeLinear (x, s)\n y = Identity (q)", True),
        ("y = QLinearMatMul (x, s, z, w, s, z, s, z)", False),
        ("y = com.microsoft.QLinearSigmoid (x, s, z, s, z)", False),
        ("y = own.QLinearSigmoid (x, s, z, s, z)", True),
    ],
)
def test_integers_without_a_static_scale_are_plain(body, plain):
    graph = parser.parse_graph(
        f"g (float[N,4] x) => (float[N,4] y) <float s = {{0.5}}, int8[2,2] c = {{1,2,3,4}}> {{ {body} }}"
    )
    assert has_plain_integers(graph) == plain


# ---- what is refused ----------------------------------------------------------------------------
@pytest.fixture
def preflight(model) -> Preflight:
    return Preflight(load_onnx(model("float[1,3] x => float[1,3] y", "y = Relu (x)")))


def test_refusals_are_counted_by_operator_and_reason(preflight):
    for call, reason in (
        ("Cos (x)", "why"),
        ("Sin (x)", "why"),
        ("Cos (x)", "why"),
        ("Cos (x)", "else"),
        ("own.Cos (x)", "why"),
        ("Cos (x)", "why"),
    ):
        preflight.refuse(node(call), Unsupported(reason))
    assert [error.what for error in preflight.errors()] == [
        "Cos (3 nodes, the first one here) cannot be imported: why",
        "Sin (1 node) cannot be imported: why",
        "Cos (1 node) cannot be imported: else",
        "own::Cos (1 node) cannot be imported: why",
    ]
    assert {error.code for error in preflight.errors()} == {"E310"}


@pytest.mark.parametrize(
    "outputs, place", [(["a", "b"], "a"), (["", "b"], "b"), (["", ""], ""), ([], ""), (["a", ""], "a"), (["", "", "c"], "c")]
)
def test_a_refusal_names_the_first_output(preflight, outputs, place):
    preflight.refuse(helper.make_node("Cos", ["x"], outputs), Unsupported("why"))
    preflight.refuse(helper.make_node("Cos", ["x"], ["later"]), Unsupported("why"))
    assert preflight.errors()[0].where == Location("g", None, place)


@pytest.mark.parametrize(
    "operator, given, remedy",
    [
        ("Cos", None, "replace it by supported operators, or leave it out with Ignore if it changes nothing"),
        ("Cos", "do this", "do this"),
        ("Loop", None, "export the model without control flow"),
        ("Loop", "do this", "do this"),
        ("RNN", None, "use a GRU or an LSTM, which are supported"),
    ],
)
def test_a_refusal_has_a_remedy(preflight, operator, given, remedy):
    preflight.refuse(helper.make_node(operator, ["x"], ["y"]), Unsupported("why", given))
    assert preflight.errors()[0].remedy == remedy


@pytest.mark.parametrize(
    "domain, name", [("", "Cos"), ("ai.onnx", "Cos"), ("own", "own::Cos"), ("ai.onnx.ml", "ai.onnx.ml::Cos")]
)
def test_a_refusal_names_another_domain(preflight, domain, name):
    preflight.refuse(helper.make_node("Cos", ["x"], ["y"], domain=domain), Unsupported("why"))
    assert preflight.errors()[0].what == f"{name} (1 node) cannot be imported: why"


def test_errors_of_layers_wait_for_refusals(preflight):
    first, second = N2D2Error("E201", "one"), N2D2Error("E202", "two")
    assert preflight.errors() == []
    preflight.fail(first)
    preflight.fail(second)
    assert preflight.errors() == [first, second]
    preflight.refuse(node("Cos (x)"), Unsupported("why"))
    assert [error.code for error in preflight.errors()] == ["E310"]
