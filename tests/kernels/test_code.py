"""The text of a layer: identifiers, literals, planes, arrays, kernel choice, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_layouts import plane

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.exports.cpp.code import plane_struct
from n2d2py.exports.cpp.identifiers import Identifiers, sanitise
from n2d2py.exports.cpp.layer import cpp, layer_code
from n2d2py.exports.cpp.parts import Array
from n2d2py.exports.cpp.text import float_literal
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.identity import Identity
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.softmax import Softmax

SWEEP = cases.Sweep(3)


def code_of(case: harness.Case):
    return layer_code(case.node, case.graph, case.plan, Identifiers(case.graph))


def named(*names: str) -> Identifiers:
    graph = QuantGraph("net", 8)
    graph.nodes = [QuantNode(name, Identity(), [], [name]) for name in names]
    return Identifiers(graph)


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("conv1", "conv1"),
        ("Conv_1", "Conv_1"),
        ("a/b:0", "a_b_0"),
        ("__x__y", "x_y"),
        ("3x3", "x3x3"),
        ("int", "xint"),
        ("CON", "xCON"),
        ("é", "x"),
        ("", "x"),
        ("a" * 200, "a" * 64),
    ],
)
def test_sanitised(name, wanted):
    assert sanitise(name) == wanted


def test_identifiers_are_unique_whatever_the_case():
    ids = named("a/b", "a:b", "A_b", "a_b_2", "c")
    texts = [ids.layer(name) for name in ("a/b", "a:b", "A_b", "a_b_2", "c")]
    assert texts == ["a_b", "a_b_2", "A_b_3", "a_b_2_2", "c"]
    assert len({text.lower() for text in texts}) == 5


def test_identifiers_follow_graph_order_only():
    assert [named("x:1", "x/1").layer(n) for n in ("x:1", "x/1")] == ["x_1", "x_1_2"]
    with pytest.raises(KeyError):
        named("a").layer("b")


@pytest.mark.parametrize(
    "value, ctype, wanted",
    [
        (1.0, "float", "1.0f"),
        (0.1, "float", "0.100000001f"),
        (-0.0, "float", "-0.0f"),
        (1e-30, "float", "1e-30f"),
        (0.1, "double", "0.10000000000000001"),
        (np.inf, "float", "std::numeric_limits<float>::infinity()"),
        (-np.inf, "double", "-std::numeric_limits<double>::infinity()"),
        (np.nan, "float", "std::numeric_limits<float>::quiet_NaN()"),
    ],
)
def test_float_literals(value, ctype, wanted):
    assert float_literal(value, ctype) == wanted


def test_float_literals_are_exact():
    bits = np.random.default_rng(0).integers(0, 2**31, 2000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    assert all(np.float32(float_literal(v, "float").rstrip("f")) == v for v in values)


def test_arrays_refuse_values_that_do_not_fit():
    assert Array("a", "std::int8_t", np.array([-128, 127])).bytes == 2
    with pytest.raises(InternalError, match="do not fit"):
        Array("a", "std::int8_t", np.array([128]))
    with pytest.raises(InternalError, match="element type"):
        Array("a", "int", np.array([1]))
    with pytest.raises(InternalError, match="not one dimension"):
        Array("a", "float", np.zeros((2, 2)))


def test_plane_struct():
    tensor = QuantTensor("t", (1, 3, 4, 5), cases.S16)
    text = plane_struct("t", tensor, Plane(100, 6, 8, 5, 4, 0, 1, 80, 20), "t")
    assert "typedef std::int16_t Type;" in text
    assert "Height = 4, Width = 5, Channels = 3, Stride = 4, Lines = 2" in text
    assert "Offset = 100, WrapOffset = 20" in text
    vector = QuantTensor("v", (1, 10), cases.U8)
    assert "Height = 1, Width = 1, Channels = 10, Stride = 10, Lines = 1" in plane_struct(
        "v", vector, plane(0, (1, 10), cases.U8), "v"
    )


@pytest.mark.parametrize("wrong", [Plane(0, 6, 6, 4, 5, 0, 1), Plane(0, 3, 3, 5, 4, 0, 1), Plane(0, 6, 7, 5, 4, 0, 1)])
def test_plane_struct_refuses_another_shape(wrong):
    with pytest.raises(InternalError, match="is not the tensor"):
        plane_struct("t", QuantTensor("t", (1, 3, 4, 5), cases.S16), wrong, "t")


def test_kernel_choice_and_weight_order():
    dense = SWEEP.conv((1, 4, 5, 5), 6, (3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1, (cases.U8, cases.U8), "apart")
    code = code_of(dense)
    weights = dense.node.params["weights"]
    assert code.headers == ("n2d2/convolution.hpp",) and "n2d2::convolution<layer_config>" in code.call
    assert code.arrays[0].values.tolist() == weights.transpose(0, 2, 3, 1).ravel().tolist()
    depthwise = SWEEP.conv((1, 4, 5, 5), 4, (3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 4, (cases.U8, cases.U8), "apart")
    code = code_of(depthwise)
    assert code.headers == ("n2d2/depthwise.hpp",)
    assert code.arrays[0].values.tolist() == depthwise.node.params["weights"][:, 0].transpose(1, 2, 0).ravel().tolist()
    multiplied = SWEEP.conv((1, 4, 5, 5), 8, (3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 4, (cases.U8, cases.U8), "apart")
    assert code_of(multiplied).headers == ("n2d2/convolution.hpp",)


def test_accumulator_follows_the_bound():
    case = SWEEP.fc((1, 16), 4, (cases.U8, cases.U8), "apart")
    case.node.bound = 2**31 - 1
    assert "typedef std::int32_t Sum;" in code_of(case).config
    case.node.bound = 2**31
    assert "typedef std::int64_t Sum;" in code_of(case).config


def test_table_covers_every_stored_byte():
    case = SWEEP.activation(cases.Swish(), (1, 3, 2, 2), (cases.S8, cases.U8), "apart")
    table = next(array for array in code_of(case).arrays if array.name == "layer_table").values
    assert table.size == 256 and table[0] == table[1] == case.node.params["table"][0]


def test_names_cannot_leave_their_comment():
    case = SWEEP.fc((1, 16), 4, (cases.U8, cases.U8), "apart")
    case.node.name = "a\nb\\"
    first = code_of(case).config.split("\n")[0]
    assert first.startswith("// a") and "b" in first and "fully connected" in first and "\\" not in first
    text = plane_struct("x\ny", case.graph.tensors["x"], case.planes["x"], "x")
    assert text.split("\n")[1] == "struct x_plane {"


def test_same_code_twice():
    case = SWEEP.elemwise("Sum", (1, 3, 4, 4), 2, (cases.U8, cases.S8), "apart")
    assert code_of(case).config == code_of(case).config


def refused(op, shape=(1, 4, 3, 3), result=None, kind=cases.U8, **node) -> Exception:
    graph = SWEEP.graph(op, {"x": (shape, kind)}, (result or shape, kind), **node)
    tensors = {name: (t.shape, t.type) for name, t in graph.tensors.items()}
    with pytest.raises((N2D2Error, InternalError)) as caught:
        layer_code(graph.nodes[0], graph, MemoryPlan("apart", 0, cases.layouts.apart(tensors), ()), Identifiers(graph))
    return caught.value


def test_refusals_name_code_and_layer():
    unknown, integer = refused(BatchNorm()), refused(Softmax())
    rank = refused(Reshape((2, 2, 3, 3)), (1, 4, 3, 3), (1, 2, 2, 3, 3))
    assert (unknown.code, integer.code, rank.code) == ("E701", "E702", "E703")
    assert "'layer'" in unknown.line() and "BatchNorm" in unknown.line()
    assert "rank 5" in rank.line() and "2x2x3x3" in rank.line()


def test_layers_that_need_their_whole_input_refuse_to_overwrite_it():
    case = SWEEP.fc((1, 16), 4, (cases.U8, cases.U8), "apart")
    case.planes["y"] = plane(case.planes["x"].offset, (1, 4), cases.U8)
    with pytest.raises(InternalError, match="lies over its input"):
        code_of(case)


def test_a_kind_has_one_layer():
    with pytest.raises(InternalError, match="registered twice"):
        cpp("Conv")(lambda layer: None)


def test_serial_needs_shared_bytes():
    apart = SWEEP.conv((1, 4, 5, 5), 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, (cases.U8, cases.U8), "apart")
    over = SWEEP.conv((1, 4, 5, 5), 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, (cases.U8, cases.U8), "over")
    assert (code_of(apart).serial, code_of(over).serial) == (False, True)
    assert "Serial = 1" in code_of(over).config
