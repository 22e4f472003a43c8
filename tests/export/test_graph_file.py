"""A QuantGraph written to a file and read again."""

import numpy as np
import pytest
from support import ops
from support.errors import error_line, refused
from support.export_networks import chain, random_inputs, residual
from support.tables import every

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, FloatRescale, NumType, ShiftRescale, StepRescale
from n2d2py.contracts.functions import Clip, LeakyRectifier, Logistic, Swish, Tanh
from n2d2py.contracts.operator import operator_kinds
from n2d2py.graph import (
    Aligned,
    Custom,
    Dequantized,
    Interpolated,
    Moved,
    QuantGraph,
    QuantNode,
    QuantTensor,
    Real,
    Rescaled,
    StoredSums,
    Table,
    Weighted,
    forms,
)
from n2d2py.graph.forms import Exponentials, Form, MaskedExponentials, Normalized, Shifted
from n2d2py.operators.normalize.op import lp_normalize
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import read_graph, write_graph

OPS = [
    ops.Conv((2, 1), (0, 1, 2, 3), (1, 2), 4),
    ops.Fc(),
    ops.Pool("Average", (2, 3), (1, 2), (1, 0, 0, 1), False),
    ops.BatchNorm(1e-3),
    ops.Affine(),
    ops.AddConstants(),
    ops.ElemWise("Sum", (0.5, 2.0), (1.0, -1.0)),
    ops.Activation(Clip(-1.0, 6.0)),
    ops.Activation(LeakyRectifier(0.1)),
    ops.Activation(Logistic()),
    ops.Activation(Swish()),
    ops.Activation(Tanh(2.0)),
    ops.Concat(),
    ops.Columns(1, 3),
    ops.SideBySide(),
    ops.Softmax(),
    ops.Padding((1, -1, 0, 2)),
    ops.Reshape((3, 4)),
    ops.Transpose((0, 2, 1)),
    ops.MemoryView((3, 4, 1)),
    ops.Dropout(),
    ops.Identity(),
    ops.Deconv((2, 2), (1, 0, 1, 0), (1, 2), 2),
    ops.Resize((5, 7), "Nearest"),
    ops.Unpool((2, 2), (2, 2)),
    ops.LRN(3, 1e-3),
    lp_normalize(3),
    ops.IndexSelect(((1, 0), None, (0, 0, 2))),
    ops.DepthToSpace(2, True),
    ops.SpaceToDepth(2),
    ops.ArrayGather(2, 3, 4, 2, True),
    ops.ArrayScatter(3, 2, 2, combine="add"),
    ops.ArrayInterpolate(1, 4, 1, ((0, 1), (2, 3)), ((0.25, 0.75), (1.0, 0.0))),
    ops.Concat(1, 2, (0, -1)),
    ops.ArrayMap("Add", (2, 3), ((2, 3), (1, 3)), (0, 1)),
    ops.Normalize(3, 1e-5),
    ops.Softmax(3, True, 4),
    ops.MaskedSoftmax(3),
    ops.ArrayRecurrent("GRU", 2, 3, 4, True, True),
    ops.ArrayMatMul((2, 3, 4), (2, 4, 5)),
    ops.ArrayMatMul((2, 3, 4), (2, 4, 5), scale=0.125, views=((24, 0, 12, 4, 1), (), (30, 0, 5, 10, 1))),
    ops.ArrayReduce("Sum", (2, 3), (1,)),
    ops.ArrayCumSum(1, 4, 2, reverse=True),
    ops.ArrayTopK(1, 4, 2, 3, False),
    ops.ArrayNonMaxSuppression(1, 2, 8, 3, 0.5, 0.25, True),
    ops.IndexSelect(((0, 2), (1, 0)), -1.0),
    ops.Conv3D((1, 4, 3, 4, 5), (1, 3, 4), (3, 2, 2), (1, 1, 1), (0, 0, 1), (1, 1, 1), 6, 2),
    ops.Pool3D((1, 2, 3, 4, 5), (3, 4, 5), (1, 2, 2), (1, 1, 1), (0, 0, 1), (1, 1, 1), "Max"),
    ops.Convert(True),
    ops.PoolSum((3, 3), (2, 2), (1, 1, 1, 1)),
    ops.PackChannels(4, -7),
    ops.UnpackChannels(2, 0, 5),
]
RESCALES = [
    None,
    FloatRescale(np.array([0.1, 1e-9])),
    FixedPointRescale(np.array([2**31 - 1, 1]), 50, 31),
    DoublingRescale(np.array([2**31 - 1, 2**30]), np.array([-3, 31]), twice=False),
    ShiftRescale(np.array([7, 9])),
    ShiftRescale(np.array([7, 9]), np.array([3, 4])),
]


def graph_with(node: QuantNode) -> QuantGraph:
    graph = QuantGraph("net", 8, inputs=["x"], outputs=["y"], nodes=[node], aliases={"b": "y", "a": "x"})
    graph.tensors = {
        "x": QuantTensor("x", (1, 2, 3, 4), NumType(8, scale=0.1, zero_point=-3)),
        "y": QuantTensor("y", (1, 24), NumType(16, signed=False, scale=1 / 3)),
    }
    return graph


def test_every_operator_is_among_the_cases():
    typed = set(operator_kinds()) - {"Quantize"}  # the layer before it rounds: typed networks have none
    assert {op.kind for op in OPS} == typed


@every("op", OPS, ids=lambda op: op.kind)
def test_operators_come_back(op, tmp_path):
    node = QuantNode("layer é", op, ["x"], ["y"], activation=Clip(0.0))
    write_graph(graph_with(node), tmp_path / "a" / "net.npz")
    graph = read_graph(tmp_path / "a" / "net.npz")
    assert graph.nodes[0].op == op and graph.nodes[0].name == "layer é"
    assert graph.nodes[0].activation == Clip(0.0)
    assert graph.tensors == graph_with(node).tensors
    assert (graph.name, graph.bits, graph.inputs, graph.outputs, graph.aliases) == (
        "net",
        8,
        ["x"],
        ["y"],
        {"a": "x", "b": "y"},
    )


def assert_same_form(found: Form, expected: Form) -> None:
    """The same type of form, with the same constants in the same types."""
    assert type(found) is type(expected) and set(found.constants) == set(expected.constants)
    for role, values in expected.constants.items():
        assert found.constants[role].dtype == values.dtype and found.constants[role].shape == values.shape
        np.testing.assert_array_equal(found.constants[role], values)


FORMS = [
    (Moved(), None, (-127, 127)),
    (Rescaled(), FloatRescale(np.ones(1)), (0, 255)),
    (StoredSums(np.array([-128], np.int32)), FloatRescale(np.ones(1)), (0, 255)),
    (Weighted(np.array([[-1, 3]], np.int8), np.array([2**40])), FloatRescale(np.ones(1)), (0, 255)),
    (Aligned(np.array([3, -5]), np.array([7])), FloatRescale(np.ones(1)), (0, 255)),
    (Dequantized(np.array([0.5, 0.1], np.float32)), StepRescale(np.float32(0.1)), (0, 255)),
    (Table(np.arange(256, dtype=np.uint8)), None, (0, 255)),
    (Interpolated(np.arange(257, dtype=np.int32)), None, (0, 255)),
    (Exponentials(np.arange(256, dtype=np.uint16), np.array([2**40])), None, (0, 255)),
    (MaskedExponentials(np.array([2**14, 3, 9], np.int32), np.array([2**40]), np.array([[1], [3]], np.uint8)), None, (0, 255)),
    (
        Normalized(np.array([3, -5], np.int16), np.array([2**40, 7]), np.array([2**50]), np.array([12], np.int32)),
        FloatRescale(np.ones(1)),
        (0, 255),
    ),
    (Shifted(np.array([3], np.int32), np.array([7], np.int32), np.array([-4, 5], np.int8)), FloatRescale(np.ones(1)), (0, 255)),
    (Custom({"second": np.array([1]), "first": np.array([2], np.int16)}), FloatRescale(np.ones(1)), (0, 255)),
    (Real({"weights": np.array([0.5], np.float16), "bias": np.array([0.25], np.float32)}), None, None),
    (Real(), None, None),
]


def test_every_form_is_among_them():
    public = {
        made
        for made in vars(forms).values()
        if isinstance(made, type) and issubclass(made, Form) and not made.__name__.startswith("_")
    }
    assert {type(form) for form, *_ in FORMS} == public - {Form}


@every("form, rescale, clamp", FORMS)
def test_forms_come_back(form, rescale, clamp, tmp_path):
    write_graph(graph_with(QuantNode("n", ops.Fc(), ["x"], ["y"], form, rescale, clamp)), tmp_path / "net.npz")
    assert_same_form(read_graph(tmp_path / "net.npz").nodes[0].form, form)


@every("rescale", RESCALES, ids=lambda rescale: type(rescale).__name__)
def test_numbers_come_back_with_their_types(rescale, tmp_path):
    form = Custom(
        {
            "weights": np.array([[-128, 127]], np.int64),
            "bias": np.array([2**40, -1]),
            "f": np.array([np.nan]),
            "u": np.array([2**64 - 1], np.uint64),
            "empty": np.zeros((0, 3), np.int32),
        }
    )
    node = QuantNode("n", ops.Fc(), ["x"], ["y"], form, rescale, (-3, 7), 2**35)
    write_graph(graph_with(node), tmp_path / "net.npz")
    read = read_graph(tmp_path / "net.npz").nodes[0]
    assert (read.clamp, read.bound, type(read.rescale)) == ((-3, 7), 2**35, type(rescale))
    assert_same_form(read.form, form)
    if rescale is not None:
        np.testing.assert_array_equal(read.rescale.effective(), rescale.effective())
        acc = np.arange(-(2**30), 2**30, 2**26).reshape(1, -1).repeat(2, 0).T
        np.testing.assert_array_equal(read.rescale.apply(acc, -99, 99), rescale.apply(acc, -99, 99))


@pytest.mark.parametrize("make", [chain, residual])
@pytest.mark.parametrize("integer", [True, False])
def test_the_graph_computes_the_same(make, integer, tmp_path):
    graph = make(integer)
    write_graph(graph, tmp_path / "net.npz")
    read = read_graph(tmp_path / "net.npz")
    read.verify()
    inputs = random_inputs(graph, 3)
    expected, found = simulate(graph, inputs, keep=True), simulate(read, inputs, keep=True)
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_the_same_graph_gives_the_same_bytes(tmp_path):
    for name in "ab":
        write_graph(residual(True), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_weights_take_a_byte_each(tmp_path):
    weights = np.full((301, 300), -127, np.int64)
    write_graph(graph_with(QuantNode("n", ops.Fc(), ["x"], ["y"], Real({"weights": weights}))), tmp_path / "net.npz")
    assert 90300 < (tmp_path / "net.npz").stat().st_size < 95000


def test_another_format_is_refused(tmp_path, monkeypatch):
    write_graph(chain(True), tmp_path / "net.npz")
    monkeypatch.setattr("n2d2py.runtime.graph_file._FORMAT", 4)
    assert refused("E806: .*format 3 instead of 4", read_graph, tmp_path / "net.npz")


def test_a_damaged_file_is_one_error(tmp_path):
    path = tmp_path / "net.npz"
    assert refused("E806: .*net.npz is missing; export again", read_graph, path)
    write_graph(chain(True), path)
    data = path.read_bytes()
    for broken in (b"", b"text", data[: len(data) // 2], data[:-30], data.replace(b'"format"', b'"forma_"')):
        path.write_bytes(broken)
        assert refused("E806: .*cannot be read", read_graph, path)


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "net.npz", graph=np.array([{"format": 1}], dtype=object))
    assert "E806" in error_line(read_graph, tmp_path / "net.npz")
