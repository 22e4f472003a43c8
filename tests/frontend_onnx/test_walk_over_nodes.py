"""The walk over the nodes of a model: which are left out, which are computed, which follow what is refused, what is said of each."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx import importer
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.validator import Validator
from n2d2py.operators.identity import Identity
from n2d2py.reference.executor import run_graph

F = np.float32


def built(inputs: str, outputs: str, body: str, opset: int = 17, **constants: np.ndarray) -> onnx.ModelProto:
    """A model whose outputs have no declared shapes."""
    given = ", ".join(f"float[1] {name}" for name in outputs.split())
    domains = f'"" : {opset}, "com.microsoft" : 1, "qonnx.custom_op.general" : 1'
    made = parser.parse_model(f"<ir_version: 8, opset_import: [{domains}]> g ({inputs}) => ({given}) {{ {body} }}")
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return made


def refused(model) -> list[str]:
    """Operators and reasons, in order."""
    with pytest.raises(N2D2Error) as caught:
        import_onnx(model)
    assert {error.code for error in caught.value.errors} == {"E310"}
    texts = [
        re.sub(r" \(\d+ nodes?(, the first one here)?\) cannot be imported", "", each.what) for each in caught.value.errors
    ]
    return [text.removesuffix(": the operator is not supported") for text in texts]


SEQUENCE = "float[1,3,4] x"
BEHIND = {
    "y = LRN <size = 3> (c)": [],
    "y = CumSum (c, axis)": [],
    "y = Relu (c)": [],
    "y = Shape (c)": [],
    "y = Range (c, c, c)": [],
    "y = DFT (c)": [],
    "y = Det (c)": ["Det"],
    "y = com.microsoft.Nonsense (c)": ["com.microsoft::Nonsense"],
    "y = com.microsoft.Relu (c)": ["com.microsoft::Relu"],
    "y = Add (c, x)": [],
    "y = Add (x, c)": [],
    "b = Det (c)\n y = Det (b)": ["Det"],
    "b = Exp (c)\n y = Det (b)": ["Det"],
    "b, d = Split <axis = 0> (c)\n e = Add (b, d)\n y = Unique (e)": ["Unique"],
}


@pytest.mark.parametrize("body", BEHIND)
def test_behind_what_is_refused(body):
    """Where shapes are not known only operators that nothing imports are listed."""
    model = built(SEQUENCE, "y", f"a = NonZero (x)\n c = Cast <to = 1> (a)\n {body}", axis=np.array(0))
    assert refused(model) == ["NonZero", *BEHIND[body]]


def test_errors_behind_what_is_wrong_are_not_listed():
    """Shapes and types behind a node that is not as its operator is defined say nothing."""
    model = built(SEQUENCE, "y", "a = Neg <foo = 3> (x)\n y = Gather (a, i)", i=np.zeros(2, F))
    with pytest.raises(N2D2Error) as caught:
        import_onnx(model)
    assert [error.code for error in caught.value.errors] == ["E314"] and "foo" in caught.value.what


def test_errors_of_two_nodes_are_both_listed():
    model = built(SEQUENCE, "y z", "y = Neg <bar = 3> (x)\n z = Neg <foo = 3> (x)")
    with pytest.raises(N2D2Error) as caught:
        import_onnx(model)
    assert [error.code for error in caught.value.errors] == ["E314", "E314"]


def test_a_converter_that_stumbles_over_a_wrong_node(monkeypatch):
    """What is wrong with the node is said, not what the converter stumbled over."""

    def stumble(node, builder):
        raise IndexError("stumbled")

    monkeypatch.setattr(importer, "find_converter", lambda operator, domain: stumble)
    monkeypatch.setattr(importer, "find_array_converter", lambda operator, domain: None)
    model = built(SEQUENCE, "y z", "y = Gather (x, i)\n b = Exp (y)\n z = Neg (b)", i=np.zeros(2, F))
    with pytest.raises(N2D2Error) as caught:
        import_onnx(model)
    assert caught.value.errors[0].code == "E314" and "its input 'i' holds float" in caught.value.errors[0].what


def test_memory_that_is_used_up_is_no_defect_of_a_node(monkeypatch):
    def check(validator, proto):
        raise MemoryError

    monkeypatch.setattr(Validator, "check", check)
    with pytest.raises(MemoryError):
        import_onnx(built(SEQUENCE, "y", "y = Relu (x)"))


IGNORED = {
    "the first of two outputs": ("a, m = Dropout (x)\n y = Relu (a)", "a", [("y", ["x"])]),
    "one that reads two": ("a = Add (x, u)\n y = Relu (a)", "a", [("y", ["x"])]),
    "one that reads two, the other way": ("a = Add (u, x)\n y = Relu (a)", "a", [("y", ["u"])]),
    "one that reads a constant": ("a = Add (x, c)\n y = Relu (a)", "a", [("y", ["x"])]),
    "one of constants": ("a = Neg (c)\n y = Add (x, a)", "a", [("y", ["x"])]),
    "two": ("a = Neg (x)\n b = Neg (a)\n y = Relu (b)", "a b", [("y", ["x"])]),
    "one of no converter": ("a = Det (x)\n y = Relu (a)", "a", [("y", ["x"])]),
}


@pytest.mark.parametrize("case", IGNORED)
def test_a_node_that_is_left_out(case):
    """Its first output is its first input."""
    body, names, wanted = IGNORED[case]
    model = built(f"{SEQUENCE}, float[1,3,4] u", "y z", f"{body}\n z = Relu (u)", c=np.full(1, 3, F))
    graph = import_onnx(load_onnx(model, ignore=names.split()))
    assert [(node.name, node.inputs) for node in graph.nodes if node.name != "z"] == wanted
    if case == "one of constants":
        np.testing.assert_array_equal(run_graph(graph, {"x": np.ones((1, 3, 4), F), "u": np.ones((1, 3, 4), F)})["y"], 4)


def test_only_its_first_output_names_a_node_to_leave_out():
    model = built(SEQUENCE, "a", "a, b, c = Split <axis = 1> (x)\n d = Add (b, c)")
    log.setup(quiet=True)
    assert import_onnx(load_onnx(model, ignore=["c"])).nodes
    assert [warning.code for warning in log.warnings_seen()] == ["W304"]


def test_a_node_to_leave_out_behind_what_is_refused():
    model = built(SEQUENCE, "y", "a = NonZero (x)\n b = Cast <to = 1> (a)\n c = Relu (b)\n y = Neg (c)")
    with pytest.raises(N2D2Error) as caught:
        import_onnx(load_onnx(model, ignore=["c"]))
    assert ["NonZero" in error.what for error in caught.value.errors] == [True]


def _if(condition: np.ndarray, then: list, other: list, outputs: list[str] | None = None) -> onnx.ModelProto:
    """An If between two branches, each a list of nodes, outputs and constants, and what follows it."""
    branches = {
        name: helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(each, 1, None) for each in results], constants)
        for name, (nodes, results, constants) in (("then_branch", then), ("else_branch", other))
    }
    names = outputs or ["r"]
    nodes = [helper.make_node("If", ["c"], names, **branches), helper.make_node("Sum", ["x", *names], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(condition, "c")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(operator: str, *names: str, **attributes):
    *inputs, output = names
    return helper.make_node(operator, inputs, [output], **attributes)


TWO = numpy_helper.from_array(np.array([2], F), "two")
X = np.array([[1, -2, 3]], F)
BRANCHES = {
    "a layer": (([node("Neg", "x", "a")], ["a"], []), X - X),
    "two layers": (([node("Neg", "x", "a"), node("Abs", "a", "b")], ["b"], []), X + np.abs(X)),
    "a constant of its own": (([], ["two"], [TWO]), X + 2),
    "a constant that is computed": (([node("Neg", "two", "a")], ["a"], [TWO]), X - 2),
    "a layer with a constant of its own": (([node("Mul", "x", "two", "a")], ["a"], [TWO]), 3 * X),
    "a tensor of the network": (([node("Identity", "x", "a")], ["a"], []), 2 * X),
    "a node that nobody reads": (([node("Det", "x", "d"), node("Neg", "x", "a")], ["a"], []), X - X),
}


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("case", BRANCHES)
def test_the_branch_of_a_known_condition(case, holds):
    branch, wanted = BRANCHES[case]
    other = ([node("Exp", "x", "e")], ["e"], [])
    for condition in (np.array(holds), np.array([holds]), np.array([[holds]])):
        graph = import_onnx(_if(condition, *((branch, other) if holds else (other, branch))))
        np.testing.assert_allclose(run_graph(graph, {"x": X})[graph.outputs[0]], wanted, rtol=1e-6)
        assert not any(each.op.kind == "Activation" and "Exp" in str(each.op) for each in graph.nodes)


def test_a_branch_of_two_outputs():
    branch = ([node("Neg", "x", "a"), node("Abs", "x", "b")], ["b", "a"], [])
    graph = import_onnx(_if(np.array(True), branch, branch, ["r", "s"]))
    np.testing.assert_allclose(run_graph(graph, {"x": X})[graph.outputs[0]], np.abs(X))


MISFITS = {
    "no value": (np.zeros(0, bool), 1),
    "two values": (np.array([True, True]), 1),
    "more outputs than the branch": (np.array(True), 2),
}


@pytest.mark.parametrize("case", MISFITS)
def test_an_if_that_has_no_branch(case):
    condition, count = MISFITS[case]
    branch = ([node("Neg", "x", "a")], ["a"], [])
    assert refused(_if(condition, branch, branch, ["r", "s"][:count])) == [
        "If: its condition is no single truth value, or it lacks a branch of as many outputs"
    ]


def test_an_if_without_its_branch():
    model = _if(np.array(False), ([node("Neg", "x", "a")], ["a"], []), ([node("Abs", "x", "b")], ["b"], []))
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "else_branch":
            attribute.name = "another"
    with pytest.raises(N2D2Error) as caught:
        import_onnx(model)
    assert caught.value.errors[0].code in ("E310", "E302")


def test_what_a_branch_refuses_is_listed():
    branch = ([node("NonZero", "x", "n"), node("Cast", "n", "a", to=1)], ["a"], [])
    assert refused(_if(np.array(True), branch, branch)) == ["NonZero"]


def test_operators_of_other_domains_are_not_those_of_onnx():
    for operator in ("DFT", "CumSum", "Relu", "Shrink", "Softmax"):
        model = built(SEQUENCE, "y", f"y = com.microsoft.{operator} (x)")
        if operator != "Softmax":
            assert refused(model) == [f"com.microsoft::{operator}"]


def test_definitions_beside_operators_of_other_domains():
    model = built(SEQUENCE, "y", "a = Shrink (x)\n b = com.microsoft.Nonsense (x)\n y = Add (a, b)", opset=18)
    assert refused(model) == ["com.microsoft::Nonsense"]


def test_definitions_that_refer_to_definitions():
    """SwiGLU is made of Swish."""
    if onnx.defs.onnx_opset_version() < 28:
        pytest.skip("an older onnx has no SwiGLU")
    x = np.random.default_rng(0).normal(size=(1, 3, 4)).astype(F)
    graph = import_onnx(built(f"{SEQUENCE}, float[1,3,4] u", "y", "y = SwiGLU (x, u)", opset=28))
    schema = onnx.defs.get_schema("SwiGLU", 28)
    assert len(schema.inputs) == 2
    (found,) = run_graph(graph, {"x": x, "u": x + 1}).values()
    np.testing.assert_allclose(found, x / (1 + np.exp(-x.astype(np.float64))) * (x + 1), rtol=1e-5)


def test_the_signal_of_a_spectrum_that_is_a_constant():
    """Its window is none: it is refused, as any."""
    body = "w = Relu (x)\n s = STFT (signal, step, w)\n y = ReduceSum <keepdims = 0> (s)"
    model = built("float[8] x", "y", body, signal=np.ones((1, 32, 1), F), step=np.array(4))
    with pytest.raises(N2D2Error, match="E310"):
        import_onnx(model)


def test_the_length_of_a_spectrum():
    model = built("float[1,8,1] x", "y", "y = DFT <axis = 1> (x, length)", length=np.array(4))
    x = np.random.default_rng(0).normal(size=(1, 8, 1)).astype(F)
    graph = import_onnx(model)
    (found,) = run_graph(graph, {"x": x}).values()
    wanted = np.fft.fft(x[0, :4, 0])
    np.testing.assert_allclose(found.reshape(4, 2), np.stack([wanted.real, wanted.imag], 1), atol=1e-5)


def test_constants_of_every_spelling():
    body = """a = Constant <value = float[1] {0.5}> ()
              b = Constant <value_float = 2.0> ()
              d = Constant <value_floats = [3.0, 4.0, 5.0, 6.0]> ()
              s = Constant <value_ints = [1, 3, 4]> ()
              e = ConstantOfShape <value = float[1] {7.0}> (s)
              p = Add (a, b)
              q = Add (p, d)
              r = Add (q, e)
              y = Add (x, r)"""
    graph = import_onnx(built(SEQUENCE, "y", body))
    (found,) = run_graph(graph, {"x": np.zeros((1, 3, 4), F)}).values()
    np.testing.assert_array_equal(found, np.broadcast_to([12.5, 13.5, 14.5, 15.5], (1, 3, 4)))


def test_a_constant_without_a_value():
    model = built(SEQUENCE, "y", "c = Constant <value_float = 1.0> ()\n y = Add (x, c)")
    del model.graph.node[0].attribute[:]
    with pytest.raises(N2D2Error) as caught:
        import_onnx(model)
    assert caught.value.errors[0].code in ("E302", "E310", "E314")


def test_constants_with_absent_inputs_are_computed():
    model = built(SEQUENCE, "y", "c = Clip (w, , top)\n y = Add (x, c)", w=np.arange(4, dtype=F), top=np.array(2, F))
    graph = import_onnx(model)
    (found,) = run_graph(graph, {"x": np.zeros((1, 3, 4), F)}).values()
    np.testing.assert_array_equal(found, np.broadcast_to([0, 1, 2, 2], (1, 3, 4)))


@pytest.mark.parametrize(("kind", "said"), [(np.float16, "half"), (np.float64, "double"), (F, "")])
def test_weights_of_another_precision_are_told(kind, said, monkeypatch):
    """Not single values, and not what an absent output leaves."""
    told = []
    monkeypatch.setattr(log, "notice", lambda text, *values: told.append(text % values))
    import_onnx(built(SEQUENCE, "y", "a, = Split <axis = 0> (w)\n y = Add (x, a)", w=np.ones((1, 4), kind)))
    assert told == ([f"g: {said} weights are converted to float32"] if said else [])
    told.clear()
    import_onnx(built(SEQUENCE, "y", "y = Add (x, w)", w=np.array(1.5, kind)))
    model = built(SEQUENCE, "y", "a, b = Split <axis = 0> (w)\n y = Add (x, a)", w=np.ones((2, 4), F))
    model.graph.node[0].output[1] = ""
    import_onnx(model)
    assert not told


QUANTIZED = {
    # what lies between the weights and the layer, and the scales of the outputs (2), None where they are none
    "w = Identity (d)": [0.5, 0.25],
    "w = Transpose <perm = [0,1]> (d)": [0.5, 0.25],
    "t = Transpose <perm = [1,0]> (d)\n w = Transpose <perm = [1,0]> (t)": [0.5, 0.25],
    "w = Gather <axis = 0> (d, turned)": [0.25, 0.5],
    "w = Slice (d, one, two, none)": [0.25],
    "w = Concat <axis = 0> (d, d)": [0.5, 0.25, 0.5, 0.25],
    "w = Mul (d, half)": None,
    "w = Add (d, half)": None,
    "w = Neg (d)": None,
}


@pytest.mark.parametrize("body", QUANTIZED)
def test_scales_follow_weights_that_are_moved(body):
    """And are lost where the weights become others."""
    constants = {
        "q": np.array([[1, -2, 3, 4], [5, 6, -7, 8]], np.int8),
        "s": np.array([0.5, 0.25], F),
        "turned": np.array([1, 0]),
        "one": np.array([1]),
        "two": np.array([2]),
        "none": np.array([0]),
        "half": np.array([0.3], F),
    }
    text = f"d = DequantizeLinear <axis = 0> (q, s)\n {body}\n y = Gemm <transB = 1> (x, w)"
    used = {name: value for name, value in constants.items() if re.search(rf"\b{name}\b", text)}
    graph = import_onnx(built("float[1,4] x", "y", text, **used))
    found = graph.nodes[-1].params.get("weight_scales")
    assert (None if found is None else found.tolist()) == QUANTIZED[body]


def test_weights_beside_others_without_scales():
    """A constant that comes first tells that they have none."""
    text = "d = DequantizeLinear <axis = 0> (q, s)\n w = Concat <axis = 0> (r, d)\n y = Gemm <transB = 1> (x, w)"
    constants = {"q": np.ones((2, 4), np.int8), "s": np.array([0.5, 0.25], F), "r": np.full((1, 4), 0.3, F)}
    graph = import_onnx(built("float[1,4] x", "y", text, **constants))
    assert "weight_scales" not in graph.nodes[-1].params


@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_that_are_computed(operator):
    """With a zero point of the file they are arrays all the same."""
    zero = np.array(3, np.uint8)
    body = "m = ReduceMax <keepdims = 0> (u)\n s = Div (m, k)\n "
    if operator == "QuantizeLinear":
        body += "q = QuantizeLinear (x, s, z)\n y = Cast <to = 1> (q)"
        model = built("float[1,4] x, float[1,4] u", "y", body, z=zero, k=np.array(4, F))
        feeds = {"x": np.array([[0.5, 1, 2, -0.5]], F), "u": np.array([[1, 2, 0, 1]], F)}
        wanted = [[4, 5, 7, 2]]
    else:
        body += "y = DequantizeLinear (x, s, z)"
        model = built("uint8[1,4] x, float[1,4] u", "y", body, z=zero, k=np.array(4, F))
        feeds = {"x": np.array([[3, 4, 7, 0]], np.uint8), "u": np.array([[1, 2, 0, 1]], F)}
        wanted = [[0, 0.5, 2, -1.5]]
    (found,) = run_graph(import_onnx(model), feeds).values()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("text", ["Relu (a)", "Clip (a, low, high)", "Tanh (a)", "LeakyRelu <alpha = 0.25> (a)", "Sigmoid (a)"])
def test_functions_of_an_array_are_layers_of_vectors(text):
    model = built(
        "float[2,3,4] x, float[3,5] u",
        "y z",
        f"a = CumSum (x, axis)\n y = {text}\n z = Relu (u)",
        axis=np.array(2),
        low=np.array(-0.5, F),
        high=np.array(0.75, F),
    )
    graph = import_onnx(model)
    assert graph.node("y").op.kind == "Activation" and graph.shape("y") == (1, 24)


def test_a_limit_that_is_computed():
    """Then a function is no layer, but a map of arrays."""
    body = "a = CumSum (x, axis)\n m = ReduceMax <keepdims = 0> (u)\n y = Clip (a, m)"
    graph = import_onnx(built("float[2,3] x, float[3,5] u", "y", body, axis=np.array(1)))
    x, u = np.arange(6, dtype=F).reshape(1, 6), np.full((1, 15), 4, F)
    (found,) = run_graph(graph, {"x": x, "u": u}).values()
    np.testing.assert_array_equal(found, [[4, 4, 4, 4, 7, 12]])


def test_layers_of_images_read_arrays_where_they_must():
    """LRN has no form on arrays."""
    x = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(F)
    graph = import_onnx(built("float[1,3,4,5] x", "y", "a = CumSum (x, axis)\n y = LRN <size = 3> (a)", axis=np.array(3)))
    assert graph.shape("y") == (1, 3, 4, 5)
    a = np.cumsum(x, axis=3)
    padded = np.pad(a**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    squares = sum(padded[:, at : at + 3] for at in range(3))
    (found,) = run_graph(graph, {"x": x}).values()
    np.testing.assert_allclose(found, a / (1 + 1e-4 / 3 * squares) ** 0.75, rtol=1e-5)


MIXED = """t = Constant <value = float[1] {1}> ()
           a = qonnx.custom_op.general.Quant <signed = 1, narrow = 0, rounding_mode = "ROUND"> (x, scale, zero, bits)
           b = Add (a, t)
           c = Softmax <axis = 0> (b)
           y = Relu (c)"""


def test_stimuli_side_by_side_that_are_mixed():
    """The reason is that of stimuli side by side, unless an operator has no form for them."""
    grid = {"scale": np.array(0.5, F), "zero": np.array(0, F), "bits": np.array(8, F)}
    assert refused(built("float[2,3,4,4] x", "y", MIXED, **grid)) == ["Softmax: it normalises over the batch"]
    found = refused(built("float[2,3,4,4] x", "y z", f"{MIXED}\n z = CumSum (x, axis)", axis=np.array(1), **grid))
    assert found == ["qonnx.custom_op.general::Quant: its input has the shape 2x3x4x4"]


@pytest.mark.parametrize("size", [2, 3])
def test_a_first_axis_that_is_taken_apart(size):
    """A fixed one is part of the stimulus then, unless the shape of a stimulus is given."""
    model = built(f"float[{size},6] x", "y", "y = Reshape (x, s)", s=np.array([3 * size, 2]))
    graph = import_onnx(model)
    assert graph.shape("x") == graph.shape(graph.outputs[0]) == (1, 6 * size)
    with pytest.raises(N2D2Error):
        import_onnx(model, input_shapes={"x": (1, 6)})


def test_initial_values():
    """Normal ones of variance 2 by the inputs of an output, each layer with its own; the others do nothing."""
    body = """r = Relu (x)
              c = Conv (r, w, b)
              n = BatchNormalization (c, scale, shift, mean, variance)
              s = Sigmoid (n)
              k = Conv <group = 4> (s, v)
              f = Flatten (k)
              y = Gemm <transB = 1> (f, g, h)"""
    rng = np.random.default_rng(5)
    shapes = {
        "w": (4, 3, 2, 1),
        "b": (4,),
        "scale": (4,),
        "shift": (4,),
        "mean": (4,),
        "v": (4, 1, 1, 1),
        "g": (5, 48),
        "h": (5,),
    }
    constants = {name: rng.normal(1, 0.1, shape).astype(F) for name, shape in shapes.items()}
    constants["variance"] = np.full(4, 2, F)
    graph = import_onnx(load_onnx(built("float[1,3,4,4] x", "y", body, **constants), ignore_init=True, seed=7))
    places = {each.name: at for at, each in enumerate(graph.nodes)}
    for name, shape, inputs in (("c", (4, 3, 2, 1), 6), ("k", (4, 1, 1, 1), 1), ("y", (5, 48), 48)):
        wanted = np.random.default_rng(7 + places[name]).normal(0, np.sqrt(2 / inputs), shape).astype(F)
        np.testing.assert_array_equal(graph.node(name).params["weights"].reshape(shape), wanted)
    for name, role, value in (
        ("c", "bias", 0),
        ("y", "bias", 0),
        *(("n", role, 0) for role in ("bias", "mean")),
        ("n", "scale", 1),
        ("n", "variance", 1),
    ):
        array = graph.node(name).params[role]
        assert array.dtype == F and array.tolist() == [value] * (5 if name == "y" else 4), (name, role)


def test_scales_of_weights_stay_where_initial_values_replace_them():
    text = "d = DequantizeLinear <axis = 0> (q, s)\n y = Gemm <transB = 1> (x, d)"
    model = built("float[1,4] x", "y", text, q=np.ones((2, 4), np.int8), s=np.array([0.5, 0.25], F))
    made = import_onnx(load_onnx(model, ignore_init=True, seed=2)).nodes[-1]
    assert made.params["weight_scales"].tolist() == [0.5, 0.25]


def test_constants_cannot_be_changed(monkeypatch):
    """Neither those of the file nor those that are computed."""
    seen = []

    def record(node, builder):
        seen.append((node.name, node.constant(1, "value").flags.writeable))
        builder.layer(node, Identity(), [node.tensor()])

    monkeypatch.setattr(importer, "find_converter", lambda operator, domain: record)
    monkeypatch.setattr(importer, "find_array_converter", lambda operator, domain: None)
    body = "c = Neg (w)\n y = Add (x, c)\n z = Add (x, w)\n v = Constant <value_float = 1.0> ()\n u = Add (x, v)"
    import_onnx(built(SEQUENCE, "y z u", body, w=np.ones(4, F)))
    assert seen == [("y", False), ("z", False), ("u", False)]


@pytest.mark.parametrize(
    ("body", "whole"), [("y = CumSum (x, axis)", True), ("y = Sin (x)", True), ("y = Relu (x)", False), ("y = Neg (x)", False)]
)
def test_operators_on_arrays_take_the_first_axis_as_a_part_of_the_stimulus(body, whole):
    """Layers of images and sequences take it as stimuli side by side."""
    graph = import_onnx(built("float[2,3,4] x", "y", body, axis=np.array(2)))
    assert graph.shape("x") == ((1, 24) if whole else (1, 3, 4))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("p = Identity (q)\n z = DequantizeLinear (p, s, n)", None),
        ("p = Reshape (q, dims)\n r = Reshape (p, dims)\n z = DequantizeLinear (r, s, n)", None),
        ("z = Mul (q, q)", "Mul: it computes with the integers of 'q'"),
        ("p = Reshape (q, dims)\n z = Mul (p, p)", "Mul: it computes with the integers of 'p'"),
        ("p = Reshape (q, dims)\n t = Transpose (p)\n z = Mul (t, p)", "Mul: it computes with the integers of 'p'"),
        ("p = DequantizeLinear (q, s, n)\n z = Mul (p, p)", None),
    ],
)
def test_integers_that_stand_for_real_numbers(body, said):
    """They may be moved, and nothing else."""
    text = f"q = QuantizeLinear (x, s, n)\n d = DequantizeLinear (q, s, n)\n y = Relu (d)\n {body}"
    constants = {"s": np.array(0.5, F), "n": np.array(3, np.uint8), "dims": np.array([1, 12])}
    model = built(SEQUENCE, "y z", text, **constants)
    if said is None:
        assert len(import_onnx(model).outputs) == 2
    else:
        assert refused(model) == [said]
