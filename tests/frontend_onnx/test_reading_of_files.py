"""What is read of an ONNX file before its nodes: its bytes, its operator set, its functions, its inputs; each at its limits.

The rules stand in `n2d2py.frontend.onnx.model`.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from n2d2py import log
from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx import model as reading
from n2d2py.frontend.onnx.model import OnnxInput, OnnxModel, load_onnx, to_array

PLACE = Location("net.onnx")
DAMAGED = "export or download the model again"


def relu(shape: str = "1,3", kind: str = "float", opset: int = 17) -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({kind}[{shape}] x) => ({kind}[{shape}] y) {{ y = Identity (x) }}'
    )


def refusal(action, *arguments, **options) -> N2D2Error:
    with pytest.raises(N2D2Error) as caught:
        action(*arguments, **options)
    return caught.value


# ---- inputs -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dims, is_open",
    [
        ((), False),
        ((3,), False),
        ((None,), True),
        ((None, 3), False),
        ((2, 3), False),
        ((None, None), True),
        ((1, None), True),
        ((None, 3, None, 5), True),
        ((None, None, 4, 5), True),
        ((None, 3, 4, None), True),
        ((None, 3, 4, 5), False),
    ],
)
def test_an_input_is_open_where_a_size_other_than_the_batch_is_unknown(dims, is_open):
    assert OnnxInput("x", (1, *dims[1:]), 1, dims).is_open is is_open


@pytest.mark.parametrize(
    "dims, sizes, shape, becomes",
    [
        ((None,), (5,), (1, 5), (5,)),
        ((5,), (5,), (1, 5), (5,)),
        ((), (), (1,), ()),
        ((None, None), (6,), (1, 6), (None, 6)),
        ((4, None), (6,), (1, 6), (4, 6)),
        ((None, 3, None), (3, 4), (1, 3, 4), (None, 3, 4)),
        ((None, None, 3), (2, 3), (1, 2, 3), (None, 2, 3)),
        ((None, 3, 4, 5), (3, 4, 5), (1, 3, 4, 5), (None, 3, 4, 5)),
    ],
)
def test_sizes_behind_the_batch(dims, sizes, shape, becomes):
    given = OnnxInput("x", (1, *dims[1:]), TensorProto.INT64, dims, "int64")
    assert given.sized(sizes, PLACE) == OnnxInput("x", shape, TensorProto.INT64, becomes, "int64")


@pytest.mark.parametrize(
    "dims, sizes, text",
    [
        ((None,), (5, 6), "the shape ? and cannot be 5x6"),
        ((5,), (6,), "the shape 5 and cannot be 6"),
        ((), (2,), "the shape  and cannot be 2"),
        ((None, 3), (4,), "the shape 3 and cannot be 4"),
        ((None, 3), (1, 3), "the shape 3 and cannot be 1x3"),
        ((None, 3, None), (4, 3), "the shape 3x? and cannot be 4x3"),
        ((None, None, 3), (3, 4), "the shape ?x3 and cannot be 3x4"),
        ((None, None, None), (4,), "the shape ?x? and cannot be 4"),
    ],
)
def test_sizes_that_the_file_does_not_allow(dims, sizes, text):
    error = refusal(OnnxInput("x", (1, *dims[1:]), 1, dims).sized, sizes, PLACE)
    assert (error.code, error.what, error.where) == ("E305", f"the input 'x' has {text}", PLACE)


def test_one_of_several_inputs_gets_sizes(model):
    made = load_onnx(model("float[N,c,h] x, float[N,3,w] z, float[k] v => float[N,c,h] y", "y = Identity (x)"))
    made.set_sizes("z", (3, 5))
    assert made.batch is None and [one.dims for one in made.inputs] == [(None, None, None), (None, 3, 5), (None,)]
    made.set_sizes("v", (1,))
    assert made.batch is None and made.inputs[2].dims == (1,)
    assert refusal(made.set_sizes, "x", (2, 4, 1)).what.endswith("cannot be 2x4x1")
    made.set_sizes("x", (1, 4, 6))
    assert made.batch == 1 and [one.shape for one in made.inputs] == [(1, 4, 6), (1, 3, 5), (1, 1)]
    error = refusal(made.set_sizes, "u", (1,))
    assert (error.what, error.where) == ("no input is called 'u', the inputs are x, z, v", Location("g"))


KINDS = {
    "float": "",
    "float16": "",
    "double": "",
    "bfloat16": "",
    "bool": "bool",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "uint8": "uint8",
    "int8": "int8",
}


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_inputs(kind):
    """Read by nothing: bytes of which nothing makes real numbers are integers."""
    built = relu(kind=kind)
    built.graph.node[0].input[0] = "c"
    built.graph.initializer.append(helper.make_tensor("c", built.graph.input[0].type.tensor_type.elem_type, [1, 3], [0] * 3))
    (given,) = load_onnx(built).inputs
    assert (given.kind, given.dims, given.shape) == (KINDS[kind], (1, 3), (1, 3))
    assert given.element_type == built.graph.input[0].type.tensor_type.elem_type


@pytest.mark.parametrize("kind", ["string", "complex64", "complex128", "float8e4m3fn", "int4"])
def test_types_that_no_input_has(kind):
    built = relu()
    built.graph.input[0].type.tensor_type.elem_type = getattr(TensorProto, kind.upper())
    error = refusal(load_onnx, built)
    assert (error.code, error.what) == ("E305", f"the input 'x' is of type {kind.upper()}")


def test_a_sequence_is_no_input():
    built = relu()
    built.graph.input[0].type.CopyFrom(
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 3]))
    )
    assert refusal(load_onnx, built).what == "the input 'x' is of type UNDEFINED"


def test_an_input_without_shape():
    built = relu()
    built.graph.input[0].type.tensor_type.ClearField("shape")
    error = refusal(load_onnx, built)
    assert (error.code, error.what) == ("E305", "the input 'x' has no shape")


@pytest.mark.parametrize(
    "body, kind",
    [
        ("a = Cast <to = 1> (x)", ""),
        ("a = Transpose (x)", ""),
        ("a = Identity (x)", ""),
        ("a = Reshape (x, s)", ""),
        ("a = DequantizeLinear (x, c)", ""),
        ("a = ConvInteger (x, w)", ""),
        ("a = MatMulInteger (x, w)", ""),
        ("a = QLinearMatMul (x, c, z, w, c, z, c, z)", ""),
        ("a = Cast <to = 1> (x)\n b = Identity (x)", ""),
        ("a = Gather (c, x)", "uint8"),
        ("a = Cast <to = 1> (x)\n b = Gather (c, x)", "uint8"),
        ("a = Gather (c, x)\n b = Cast <to = 1> (x)", "uint8"),
        ("a = own.Bilinear (x)", "uint8"),
        ("a = own.Reinteger (x)", "uint8"),
        ("a = own.Linear (x)", ""),
        ("a = own.Integer (x)", ""),
        ("a = Cast <to = 1> (c)", "uint8"),
    ],
)
def test_bytes_that_become_real_numbers_first_are_real_numbers(body, kind):
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (uint8[1,3] x) => (float[1,3] y) '
        f"<float c = {{1}}, uint8 z = {{0}}, uint8[3,2] w = {{1,2,3,4,5,6}}, int64[2] s = {{1,3}}> {{ {body}\n y = Identity (a) }}"
    )
    assert load_onnx(made).inputs[0].kind == kind


@pytest.mark.parametrize(
    "body, kind",
    [
        ("a = Cast <to = 7> (x)", "int64"),
        ("a = Cast <to = 6> (x)", "int32"),
        ("a = Cast <to = 7, saturate = 1> (x)", "int64"),
        ("a = Cast <to = 7> (x)\n b = Cast <to = 7> (x)", "int64"),
        ("a = Cast <to = 7> (x)\n b = Cast <to = 6> (x)", ""),
        ("a = Cast <to = 7> (x)\n b = Abs (x)", ""),
        ("a = Cast <to = 7> (x)\n b = own.To <to = 7> (x)", ""),
        ("a = own.To <to = 7> (x)", ""),
        ("a = Cast <to = 5> (x)", ""),
        ("a = Cast <to = 3> (x)", ""),
        ("a = Abs (c)", ""),
        ("a = Cast <to = 7> (x)\n b = Abs (c)", "int64"),
    ],
)
def test_real_numbers_that_become_integers_first(body, kind):
    made = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 19, "own" : 1]> g (float[1,3] x) => (float[1,3] y) '
        f"<float c = {{1}}> {{ {body}\n y = Identity (a) }}"
    )
    assert load_onnx(made).inputs[0].kind == kind
    made.graph.output.append(made.graph.input[0])
    assert load_onnx(made).inputs[0].kind == ""


def test_real_numbers_that_an_inner_graph_may_read_stay_real():
    built = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 19, "own" : 1]> g (float[1,3] x) => (int64[1,3] y) { y = Cast <to = 7> (x) }'
    )
    inner = parser.parse_graph("b () => (float[1,3] z) { z = Abs (x) }")
    assert load_onnx(built).inputs[0].kind == "int64"
    for attribute in (helper.make_attribute("body", inner), helper.make_attribute("bodies", [inner])):
        one = onnx.ModelProto()
        one.CopyFrom(built)
        one.graph.node.add(op_type="Choose", domain="own", output=["u"]).attribute.append(attribute)
        assert load_onnx(one).inputs[0].kind == ""


@pytest.mark.parametrize(
    "inputs, batch",
    [
        ("float[4,3] x", 4),
        ("float[N,3] x", None),
        ("float[1,3] x", 1),
        ("float[0,3] x", None),
        ("float[3] x", 1),
        ("float x", 1),
        ("float[4,3] x, float[4,5,6] z", 4),
        ("float[4,3] x, float[2,5,6] z", 1),
        ("float[N,3] x, float[M,5,6] z", None),
        ("float[N,3] x, float[1,5,6] z", 1),
        ("float[4,3] x, float[5] z", 4),
        ("float[5] x, float[4,3] z", 4),
        ("float[N,3] x, float[5] z, float v", None),
    ],
)
def test_the_batch_is_what_all_inputs_of_several_axes_say(inputs, batch):
    made = load_onnx(
        parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[a,b] y) {{ y = Abs (x) }}')
    )
    assert made.batch == batch


@pytest.mark.parametrize("names", [["x", "z", "v"], ["v", "x", "z"], ["z", "v", "x"], None])
def test_inputs_in_the_order_that_is_asked(model, names):
    built = model("float[N,3] x, float[N,4] z, float[N,5] v => float[N,3] y", "y = Identity (x)")
    assert [one.name for one in load_onnx(built, input_names=names).inputs] == (names or ["x", "z", "v"])


@pytest.mark.parametrize("names", [["x", "z"], ["x", "z", "u"], ["x", "x", "z"], [], ["x", "z", "v", "v"]])
def test_each_input_is_named_once(model, names):
    built = model("float[N,3] x, float[N,4] z, float[N,5] v => float[N,3] y", "y = Identity (x)")
    error = refusal(load_onnx, built, input_names=names)
    assert (error.code, error.what) == ("E305", f"the inputs are x, z, v, not {', '.join(names)}")


def test_a_model_without_data():
    built = relu()
    built.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 3), np.float32), "x"))
    assert refusal(load_onnx, built).what == "the model has no data input"


# ---- what a model holds -------------------------------------------------------------------------
def test_a_model_with_nothing_asked():
    built = relu("N,3")
    made = load_onnx(built)
    assert (made.path, made.opset, made.batch, made.ignored, made.load_weights) == ("g", 17, None, frozenset(), True)
    assert (made.seed, made.states, made.constants, made.outputs, made.places) == (1, [], {}, ["y"], {})
    bare = OnnxModel("p", built, 17, made.inputs, None, {})
    assert (bare.load_weights, bare.seed, bare.ignored) == (True, 1, frozenset())
    asked = load_onnx(built, ignore_init=True, seed=7, ignore=["y"])
    assert (asked.load_weights, asked.seed, asked.ignored) == (False, 7, frozenset({"y"}))


def test_a_model_in_memory_stays_as_it_is():
    built = relu()
    before = built.SerializeToString(deterministic=True)
    made = load_onnx(built)
    made.proto.graph.node[0].op_type = "Abs"
    assert built.SerializeToString(deterministic=True) == before


def test_places_are_those_of_another_file_where_it_says_so():
    made = load_onnx(relu())
    assert made.place() == Location("g") and made.place("y") == Location("g", None, "y")
    made.places = {"y": "layer 3"}
    assert made.place("y") == Location("g", None, "layer 3") and made.place("z") == Location("g", None, "z")
    assert made.place("") == Location("g", None, "")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_states_are_the_last_inputs(model, count):
    made = load_onnx(model("float[N,3] x, float[N,4] z, float[N,5] v => float[N,3] y", "y = Identity (x)"))
    made.states = [("z", "a"), ("v", "b")][2 - count :]
    assert [one.name for one in made.fed] == ["x", "z", "v"][: 3 - count]


def test_constants_cannot_be_changed():
    built = relu()
    built.graph.initializer.append(numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w"))
    values = load_onnx(built).constants["w"]
    np.testing.assert_array_equal(values, [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 1


@pytest.mark.parametrize("damage", [{"raw_data": bytes(7)}, {"data_type": 99}, {"dims": [3]}])
def test_damaged_tensors(damage):
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    fields = {"name": "w", "data_type": 1, "dims": [2], "raw_data": tensor.raw_data, **damage}
    error = refusal(to_array, TensorProto(**fields), "net.onnx")
    assert (error.code, error.where, error.remedy) == ("E302", PLACE, DAMAGED)
    assert error.what.startswith("the tensor 'w' is damaged (")


# ---- files --------------------------------------------------------------------------------------
def test_files_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "queue")
    for place, reason in (
        ("absent.onnx", "the ONNX file does not exist"),
        ("absent/net.onnx", "the ONNX file does not exist"),
        ("", "the ONNX file cannot be read (Is a directory)"),
        ("queue", "the ONNX file cannot be read (not a regular file)"),
    ):
        error = refusal(load_onnx, tmp_path / place)
        assert (error.code, error.what, error.remedy) == ("E301", reason, "check the path")
        assert error.where == Location(str(tmp_path / place))


def test_files_are_smaller_than_protobuf_can_read(tmp_path, monkeypatch):
    assert reading._MOST_BYTES == 1 << 31
    path = tmp_path / "net.onnx"
    path.write_bytes(relu().SerializeToString())
    size = path.stat().st_size
    monkeypatch.setattr(reading, "_MOST_BYTES", size + 1)
    assert load_onnx(path).path == str(path)
    monkeypatch.setattr(reading, "_MOST_BYTES", size)
    error = refusal(load_onnx, path)
    assert (error.code, error.what) == ("E302", f"the file has {size} bytes, protobuf files have less than 2 GB")
    assert error.remedy == "export the model with its weights as external data"


@pytest.mark.parametrize("fields", ["node", "output", "name", ""])
def test_a_graph_has_nodes_or_outputs(tmp_path, fields):
    """One of outputs alone is read as one: its outputs are written by nothing."""
    whole, some = relu(), relu()
    some.ClearField("graph")
    if fields:
        value = getattr(whole.graph, fields)
        some.graph.name = "g"
        if fields != "name":
            getattr(some.graph, fields).extend(value)
    (tmp_path / "net.onnx").write_bytes(some.SerializeToString())
    error = refusal(load_onnx, tmp_path / "net.onnx")
    assert error.code == "E302" if fields != "output" else "E305"
    assert (error.what == "the file holds no ONNX graph") == (fields in ("name", ""))


def test_what_is_no_onnx_file(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"\x08")
    error = refusal(load_onnx, tmp_path / "net.onnx")
    assert (error.code, error.remedy) == ("E302", DAMAGED)
    assert error.what == "the file is damaged, truncated or not an ONNX model"


# ---- the operator set ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "imports, opset",
    [
        ({"": 7}, 7),
        ({"": 28}, 28),
        ({"": 13, "own": 99}, 13),
        ({"own": 99, "": 13}, 13),
        ({"ai.onnx": 14}, 14),
        ({"": 13, "ai.onnx": 15}, 15),
        ({"": 15, "ai.onnx": 13}, 15),
        ({"ai.onnx.ml": 20, "": 9}, 9),
    ],
)
def test_operator_sets(imports, opset):
    built = relu()
    del built.opset_import[:]
    built.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in imports.items())
    if "ai.onnx" in imports and "" not in imports:
        built.graph.node[0].domain = "ai.onnx"
    log.setup(quiet=True)
    assert load_onnx(built).opset == opset and not log.warnings_seen()


@pytest.mark.parametrize("opset", [0, 6, 29])
def test_operator_sets_that_are_not_supported(opset):
    error = refusal(load_onnx, relu(opset=opset))
    assert (error.code, error.what) == ("E303", f"opset {opset} is not supported")
    assert error.remedy.startswith("export the model with an opset from 7 to 28, or convert it")


def test_no_operator_set():
    built = relu()
    built.opset_import[0].domain = "own"
    error = refusal(load_onnx, built)
    assert (error.code, error.what) == ("E303", "the model declares no version of the ONNX operator set")


@pytest.mark.parametrize("checked, warned", [(16, True), (17, False), (18, False)])
def test_a_newer_operator_set_than_was_checked_is_a_warning(monkeypatch, checked, warned):
    monkeypatch.setattr(reading, "MAX_OPSET", checked)
    log.setup(quiet=True)
    assert load_onnx(relu()).opset == 17
    texts = [(one.code, one.what) for one in log.warnings_seen()]
    assert texts == ([("W303", "opset 17 is newer than 16, the newest one that was checked")] if warned else [])


def test_the_newest_operator_set_of_the_onnx_package_was_checked():
    assert onnx.defs.onnx_opset_version() <= reading.MAX_OPSET


# ---- nodes and functions ------------------------------------------------------------------------
def chain(count: int) -> onnx.ModelProto:
    names = ["x", *(f"t{at}" for at in range(count - 1)), "y"]
    built = relu()
    del built.graph.node[:]
    built.graph.node.extend(helper.make_node("Relu", [a], [b]) for a, b in pairwise(names))
    return built


def test_a_model_has_at_most_so_many_nodes(monkeypatch):
    error = refusal(load_onnx, chain(20_001))
    assert (error.code, error.what) == ("E302", "the model has 20,001 nodes, at most 20,000 are supported")
    monkeypatch.setattr(reading, "_MOST_NODES", 3)
    assert len(load_onnx(chain(3)).proto.graph.node) == 3
    assert refusal(load_onnx, chain(4)).what == "the model has 4 nodes, at most 3 are supported"


def with_functions(calls: list[str], *functions: tuple[str, list[str]]) -> onnx.ModelProto:
    """A chain of calls; what begins with f is a function of the domain d, each a chain of its own."""

    def nodes(names: list[str], first: str, last: str):
        ends = [first, *(f"t{at}" for at in range(len(names) - 1)), last]
        domains = [name[0] if name[0] in "de" else "" for name in names]
        return [
            helper.make_node(name.removeprefix("d.").removeprefix("e."), [a], [b], domain=domain)
            for name, domain, (a, b) in zip(names, domains, pairwise(ends), strict=True)
        ]

    built, opsets = relu(), [helper.make_opsetid("", 17), helper.make_opsetid("d", 1), helper.make_opsetid("e", 1)]
    del built.graph.node[:], built.opset_import[:]
    built.opset_import.extend(opsets)
    built.graph.node.extend(nodes(calls, "x", "y"))
    built.functions.extend(
        helper.make_function("d", name, ["a"], ["b"], nodes(body, "a", "b"), opsets) for name, body in functions
    )
    return built


def test_functions_become_their_nodes():
    made = load_onnx(with_functions(["d.f", "Relu", "d.g"], ("f", ["Abs", "d.g"]), ("g", ["Neg", "Exp", "Sin"])))
    kinds = [node.op_type for node in made.proto.graph.node]
    assert kinds == ["Abs", "Neg", "Exp", "Sin", "Relu", "Neg", "Exp", "Sin"] and not made.proto.functions


@pytest.mark.parametrize("most, refused", [(8, False), (7, True)])
def test_nodes_are_counted_with_those_of_functions(monkeypatch, most, refused):
    monkeypatch.setattr(reading, "_MOST_NODES", most)
    built = with_functions(["d.f", "Relu", "d.g"], ("f", ["Abs", "d.g"]), ("g", ["Neg", "Exp", "Sin"]))
    if refused:
        assert refusal(load_onnx, built).what == "the model has 8 nodes, at most 7 are supported"
    else:
        assert len(load_onnx(built).proto.graph.node) == 8


@pytest.mark.parametrize("depth, refused", [(50, False), (51, True)])
def test_functions_call_each_other_fifty_deep(depth, refused):
    functions = [(f"f{at}", ["Abs", f"d.f{at + 1}"] if at + 1 < depth else ["Abs"]) for at in range(depth)]
    built = with_functions(["d.f0"], *functions)
    if refused:
        error = refusal(load_onnx, built)
        assert (error.code, error.what) == ("E302", "its functions call each other too deeply")
    else:
        assert len(load_onnx(built).proto.graph.node) == depth


@pytest.mark.parametrize(
    "functions, name",
    [
        ([("f", ["d.f"])], "f"),
        ([("f", ["Abs", "d.g"]), ("g", ["d.f", "Abs"])], "f"),
        ([("g", ["Abs", "d.g"]), ("f", ["d.g", "Abs"])], "g"),
    ],
)
def test_functions_that_call_themselves(functions, name):
    """Also where the check of the whole model ends before, at an output without shape."""
    built = with_functions(["d.f"], *functions)
    assert refusal(load_onnx, built).code == "E302"
    built.graph.output[0].type.tensor_type.ClearField("shape")
    error = refusal(load_onnx, built)
    assert (error.code, error.what) == ("E302", f"its function '{name}' calls itself")


def test_the_same_name_in_another_domain_is_another_operator():
    made = load_onnx(with_functions(["d.f", "e.f"], ("f", ["Abs", "e.f"])))
    assert [(node.op_type, node.domain) for node in made.proto.graph.node] == [("Abs", ""), ("f", "e"), ("f", "e")]


# ---- names --------------------------------------------------------------------------------------
def test_optional_outputs_that_are_left_out_have_no_writer(model):
    """Two of them are no tensor that is written twice."""
    body = "y = Dropout (x)\n z = Dropout (y)"
    built = model("float[1,3] x => float[1,3] z", body)
    for node in built.graph.node:
        node.output.append("")
    assert len(load_onnx(built).proto.graph.node) == 2


def test_an_initializer_may_be_listed_as_an_input():
    built = relu()
    built.graph.node[0].op_type = "Add"
    built.graph.node[0].input.append("w")
    built.graph.initializer.append(numpy_helper.from_array(np.ones((1, 3), np.float32), "w"))
    built.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1, 3]))
    assert [one.name for one in load_onnx(built).inputs] == ["x"]
    built.graph.initializer.append(built.graph.initializer[0])
    assert "w" in refusal(load_onnx, built).what


@pytest.mark.parametrize(
    "ignore, remedies",
    [
        (["first_one"], []),
        (["first_one", "second_one"], []),
        (["first_onee"], ["did you mean 'first_one'?"]),
        (["zzz"], ["name the first output of a node"]),
        (["mask"], ["name the first output of a node"]),
        (["zzz", "first_one", "seccond_one"], ["name the first output of a node", "did you mean 'second_one'?"]),
    ],
)
def test_ignored_names_are_first_outputs(model, ignore, remedies):
    body = "first_one, mask = Dropout (x)\n second_one = Relu (first_one)\n y = Abs (second_one)"
    log.setup(quiet=True)
    load_onnx(model("float[1,3] x => float[1,3] y", body), ignore=ignore)
    assert [one.remedy for one in log.warnings_seen()] == remedies
    assert all(one.code == "W304" and re.match("Ignore names '.*', but no node", one.what) for one in log.warnings_seen())
