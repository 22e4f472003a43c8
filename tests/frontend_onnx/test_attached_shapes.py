"""Tensors that feed the inputs of an ONNX file in an INI network: which fit, which are restated, what is said of others."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.attach import attach_onnx
from n2d2py.graph import Graph, Node
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.softmax import Softmax


def provider(*shape: int) -> Graph:
    graph = Graph("net")
    graph.add_input("sp", (1, *shape))
    return graph


@pytest.fixture
def saved(model, tmp_path):
    """The path of a model with an input of these axes behind the batch."""

    def save(declared: str, body: str = "y = Relu (x)", name: str = "m.onnx", **weights):
        built = model(f"float[N,{declared}] x => float[1] y", body, **weights)
        built.graph.output[0].type.tensor_type.ClearField("shape")
        onnx.save(built, tmp_path / name)
        return tmp_path / name

    return save


FITS = {
    # shape of the tensor, axes of the file: the shape of what feeds it, and the warning's words
    ((5,), "5"): ((1, 5), None),
    ((5,), "C"): ((1, 5), None),
    ((3, 8, 9), "3,8,9"): ((1, 3, 8, 9), None),
    ((3, 8, 9), "C,H,W"): ((1, 3, 8, 9), None),
    ((3, 8, 9), "3,H,9"): ((1, 3, 8, 9), None),
    ((3, 8, 9), "3,8,W"): ((1, 3, 8, 9), None),
    ((3, 8, 9), "C,8,9"): ((1, 3, 8, 9), None),
    ((3, 8, 9), "3,8,8"): ((1, 3, 8, 9), "declared as 3 x 8 x 8, but it is fed 3 x 8 x 9"),
    ((3, 8, 9), "3,9,9"): ((1, 3, 8, 9), "declared as 3 x 9 x 9, but it is fed 3 x 8 x 9"),
    ((3, 8, 9), "C,9,W"): ((1, 3, 8, 9), "declared as ? x 9 x ?, but it is fed 3 x 8 x 9"),
    ((3, 8, 9), "3,H,8"): ((1, 3, 8, 9), "declared as 3 x ? x 8, but it is fed 3 x 8 x 9"),
    ((3, 8), "3,8"): ((1, 3, 8), None),
    ((3, 8), "3,9"): ((1, 3, 8), "declared as 3 x 9, but it is fed 3 x 8"),
    ((5,), "5,1,1"): ((1, 5, 1, 1), None),
    ((5,), "C,1,1"): ((1, 5, 1, 1), None),
    ((5,), "5,H,1"): ((1, 5, 1, 1), None),
    ((5,), "5,1,W"): ((1, 5, 1, 1), None),
    ((1,), "1,1,1"): ((1, 1, 1, 1), None),
    ((2,), "2,1,1"): ((1, 2, 1, 1), None),
    ((5, 1, 1), "5"): ((1, 5), None),
    ((5, 1, 1), "C"): ((1, 5), None),
    ((1, 1, 1), "1"): ((1, 1), None),
    ((5, 1, 1), "5,1,1"): ((1, 5, 1, 1), None),
}


@pytest.mark.parametrize(("shape", "declared"), FITS)
def test_what_feeds_an_input(shape, declared, saved):
    wanted, said = FITS[shape, declared]
    log.setup(quiet=True)
    graph = provider(*shape)
    assert attach_onnx(graph, saved(declared), ["sp"]) == ["y"]
    fed = graph.node("y").inputs[0]
    assert graph.shape(fed) == wanted
    if fed == "sp":
        assert [node.name for node in graph.nodes] == ["y"]
    else:
        made = graph.node(fed)
        assert fed == "sp_as_x" and made.op == Reshape(wanted[1:]) and made.inputs == ["sp"] and made.helper
    warnings = log.warnings_seen()
    assert [warning.what for warning in warnings] == ([f"the input 'x' of m.onnx is {said}"] if said else [])
    log.setup(quiet=True)
    attach_onnx(provider(*shape), saved(declared), ["sp"], ignore_input_size=True)
    assert not log.warnings_seen()


MISFITS = [
    ((5,), "4", "4", "5"),
    ((5,), "4,1,1", "4 x 1 x 1", "5"),
    ((5,), "5,2,1", "5 x 2 x 1", "5"),
    ((5,), "5,1,2", "5 x 1 x 2", "5"),
    ((5,), "C,H,2", "? x ? x 2", "5"),
    ((5,), "1,5,1", "1 x 5 x 1", "5"),
    ((5,), "5,1", "5 x 1", "5"),
    ((5, 1), "5", "5", "5 x 1"),
    ((5, 1), "5,1,1", "5 x 1 x 1", "5 x 1"),
    ((5, 1, 1), "5,1", "5 x 1", "5 x 1 x 1"),
    ((5, 1, 1), "4", "4", "5 x 1 x 1"),
    ((5, 2, 1), "5", "5", "5 x 2 x 1"),
    ((5, 1, 2), "5", "5", "5 x 1 x 2"),
    ((1, 5, 1), "5", "5", "1 x 5 x 1"),
    ((3, 8, 9), "4,8,9", "4 x 8 x 9", "3 x 8 x 9"),
    ((3, 8, 9), "8,8,9", "8 x 8 x 9", "3 x 8 x 9"),
    ((1, 8, 9), "8,8,9", "8 x 8 x 9", "1 x 8 x 9"),
    ((8, 3, 9), "3,H,W", "3 x ? x ?", "8 x 3 x 9"),
]


@pytest.mark.parametrize(("shape", "declared", "wanted", "given"), MISFITS)
@pytest.mark.parametrize("provided", [True, False])
def test_what_does_not_fit_an_input(shape, declared, wanted, given, provided, saved):
    """What helps depends on whether stimuli or a layer feed it."""
    graph = provider(*shape)
    graph.add(Node("soft", Softmax(), ["sp"], ["soft"]))
    with pytest.raises(N2D2Error) as caught:
        attach_onnx(graph, saved(declared), ["sp" if provided else "soft"], ignore_input_size=True)
    error = caught.value
    assert error.code == "E313"
    assert error.what == f"the input 'x' of m.onnx is {wanted} (channels first), but it is fed {given}"
    assert error.remedy.startswith("set Size, NbChannels" if provided else "name a layer of that shape in Input")


TURN = "t = Transpose <perm = [0, 3, 1, 2]> (x)\n y = Relu (t)"


@pytest.mark.parametrize(
    ("shape", "declared", "said"),
    [
        ((3, 6, 5), "6,5,3", ""),
        ((3, 6, 5), "H,W,3", ""),
        ((3, 6, 5), "H,W,C", ""),
        ((3, 6, 5), "6,4,3", "declared as 3 x 6 x 4, but it is fed 3 x 6 x 5"),
        ((3, 6, 5), "7,5,3", "declared as 3 x 7 x 5, but it is fed 3 x 6 x 5"),
    ],
)
def test_what_feeds_an_input_with_the_channels_last(shape, declared, said, saved):
    log.setup(quiet=True)
    graph = provider(*shape)
    attach_onnx(graph, saved(declared, TURN), ["sp"])
    assert graph.shape("y") == (1, *shape)
    assert [warning.what for warning in log.warnings_seen()] == ([f"the input 'x' of m.onnx is {said}"] if said else [])


def test_other_channels_that_come_last(saved):
    with pytest.raises(N2D2Error, match="m.onnx is 4 x 6 x 5 .channels first., but it is fed 3 x 6 x 5"):
        attach_onnx(provider(3, 6, 5), saved("6,5,4", TURN), ["sp"])


@pytest.mark.parametrize("declared", ["6,5", "2,6,5,3", "6"])
def test_a_transposition_of_axes_that_an_input_does_not_have(declared, saved):
    shape = tuple(map(int, declared.split(",")))
    with pytest.raises(N2D2Error) as caught:
        attach_onnx(provider(*shape), saved(declared, TURN), ["sp"])
    assert caught.value.errors[0].code in ("E313", "E314", "E310")


def test_several_inputs_are_fed_in_order(model, tmp_path):
    built = model("float[N,3] a, float[N,3,4] b => float[N,3,4] y, float[N,3] z", "y = Relu (b)\n z = Sigmoid (a)")
    onnx.save(built, tmp_path / "m.onnx")
    graph = Graph("net")
    graph.add_input("p", (1, 3))
    graph.add_input("q", (1, 3, 4))
    assert attach_onnx(graph, tmp_path / "m.onnx", ["p", "q"]) == ["y", "z"] == graph.outputs
    assert [node.inputs for node in graph.nodes] == [["q"], ["p"]] and graph.resolve("a") == "p"
    for parents, said in ((["p"], "1 inputs are given"), (["p", "q", "p"], "3 inputs are given")):
        with pytest.raises(N2D2Error) as caught:
            attach_onnx(graph, tmp_path / "m.onnx", parents)
        assert caught.value.code == "E313" and caught.value.what == f"{said}, but the ONNX graph has 2 (a, b)"
    with pytest.raises(N2D2Error, match="the input 'a' of m.onnx is 3 .channels first., but it is fed 3 x 4"):
        attach_onnx(graph, tmp_path / "m.onnx", ["q", "p"])


def test_layers_that_the_import_adds_are_numbered_from_two(model, tmp_path):
    graph, before = provider(3, 4, 6), "sp"
    for name in ("first", "second", "third"):
        built = model(f"float[N,3,4,6] x => float[N,3,4,6] {name}", f"{name} = CumSum (x, axis)", axis=np.array(3))
        onnx.save(built, tmp_path / f"{name}.onnx")
        (before,) = attach_onnx(graph, tmp_path / f"{name}.onnx", [before])
        assert before == name
    graph.verify()
    assert [node.name for node in graph.nodes if node.name.startswith("x_array")] == ["x_array", "x_array_2", "x_array_3"]
    assert graph.node("x_array_3").inputs == ["second"] and graph.outputs == ["first", "second", "third"]
    readers = {node.inputs[0] for node in graph.nodes}
    assert {"x_array", "x_array_2", "x_array_3"} <= readers


@pytest.mark.parametrize("load", [True, False])
def test_weights_are_loaded_unless_told_otherwise(load, saved):
    weights = np.random.default_rng(9).normal(size=(4, 3, 2, 1)).astype(np.float32)
    graph = provider(3, 8, 9)
    attach_onnx(graph, saved("3,8,9", "y = Conv (x, w)", w=weights), ["sp"], **({} if load else {"load_weights": False}))
    wanted = weights if load else np.random.default_rng(1).normal(0, np.sqrt(2 / 6), weights.shape).astype(np.float32)
    np.testing.assert_array_equal(graph.node("y").params["weights"].reshape(weights.shape), wanted)
