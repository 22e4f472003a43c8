"""Pools and convolutions of every rank and attribute, against ONNX Runtime; what of them is refused."""

from math import prod

import numpy as np
import onnx
import pytest
from onnx import helper
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.reference.engine import original_engine
from n2d2py.reference.executor import run_graph

F = np.float32
SIZES = {1: [11], 2: [9, 8], 3: [6, 7, 5]}


def shape(rank: int, channels: int = 2) -> list:
    return ["N", channels, *SIZES[rank]]


@pytest.fixture
def check(tmp_path):
    """Imports a model and compares its outputs with those of ONNX Runtime; inputs above rank 4 are vectors in the graph."""

    def compare(model: onnx.ModelProto, batch: int = 1, tolerance: float = 1e-5):
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        graph = import_onnx(path)
        rng = np.random.default_rng(1)
        feeds = {}
        for value in model.graph.input:
            dims = [axis.dim_value or batch for axis in value.type.tensor_type.shape.dim]
            feeds[value.name] = rng.normal(size=dims).astype(F)
        expected = original_engine(path).run(feeds).values()
        shaped = {name: x.reshape(-1, *graph.shape(name)[1:]) for name, x in feeds.items()}
        for want, got in zip(expected, run_graph(graph, shaped).values(), strict=True):
            assert got.size == want.size
            np.testing.assert_allclose(
                got.reshape(want.shape), want, rtol=tolerance, atol=tolerance * max(1.0, np.abs(want).max())
            )
        return graph

    return compare


@pytest.fixture
def refusal(one_node):
    """The error that importing one node gives."""

    def get(*arguments, **attributes) -> N2D2Error:
        with pytest.raises(N2D2Error) as caught:
            import_onnx(one_node(*arguments, **attributes))
        return caught.value

    return get


def windows(graph) -> list[str]:
    return [node.op.function for node in graph.nodes if isinstance(node.op, ArrayConvPool)]


PLACES = {
    "plain": {},
    "pads": {"pads": 1},
    "stride": {"strides": 2},
    "stride 3, pads": {"strides": 3, "pads": 1},
    "dilations": {"dilations": 2},
    "dilations, stride, pads": {"dilations": 2, "strides": 2, "pads": 1},
    "same upper": {"auto_pad": "SAME_UPPER", "strides": 2},
    "same lower": {"auto_pad": "SAME_LOWER", "strides": 2},
    "valid": {"auto_pad": "VALID", "strides": 2},
    "one side": {"before": 1},
    "other side": {"after": 1},
}


def placed(place: dict, rank: int) -> dict:
    """The attributes of a place for a rank."""
    found = {name: [place[name]] * rank for name in ("strides", "dilations") if name in place}
    if "auto_pad" in place:
        found["auto_pad"] = place["auto_pad"]
    if {"pads", "before", "after"} & place.keys():
        every = place.get("pads", 0)
        found["pads"] = [place.get("before", every)] * rank + [place.get("after", every)] * rank
    return found


@every("rank", SIZES)
@every("dilation", [1, 2])
@every("size, kernel, stride, pads", [(8, 3, 2, 0), (7, 3, 2, 0), (6, 2, 3, 1), (9, 2, 4, 0), (5, 2, 2, 1), (8, 3, 3, 1)])
def test_windows_that_begin_inside_but_end_outside(one_node, check, rank, dilation, size, kernel, stride, pads):
    """ceil_mode: the last window exists where it begins before the padding behind the image."""
    attributes = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "pads": [pads] * 2 * rank, "ceil_mode": 1}
    dims = ["N", 2, *[size] * rank]
    for operator in ("MaxPool", "AveragePool"):
        check(one_node(operator, dims, opset=22, dilations=[dilation] * rank, **attributes))


@every("rank", SIZES)
@every("order", [0, 1])
@every("place", ["plain", "stride 3, pads", "dilations, stride, pads", "same lower"])
def test_positions_of_maxima(model, check, rank, order, place):
    """The second output of MaxPool: positions in the image, line by line or column by column."""
    if order and rank == 1:
        pytest.skip("an axis has one order")
    attributes = {"kernel_shape": [3] * rank, "storage_order": order, **placed(PLACES[place], rank)}
    node = helper.make_node("MaxPool", ["x"], ["y", "at"], **attributes)
    graph = helper.make_graph(
        [node, helper.make_node("Cast", ["at"], ["z"], to=1)],
        "g",
        [helper.make_tensor_value_info("x", 1, shape(rank))],
        [onnx.helper.make_tensor_value_info(name, 1, None) for name in ("y", "z")],
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert windows(check(built)) == ["Max", "MaxIndex"]


def computed(operator: str, rank: int, weights: tuple[int, ...], bias: bool = True, **attributes) -> onnx.ModelProto:
    """A convolution whose weights are an input of the network."""
    inputs = [
        helper.make_tensor_value_info("x", 1, [1, 4, *SIZES[rank]]),
        helper.make_tensor_value_info("w", 1, [1, prod(weights)]),
    ]
    count = weights[0] if operator == "Conv" else weights[1] * attributes.get("group", 1)
    constants = [onnx.numpy_helper.from_array(np.linspace(-1, 1, count, dtype=F), "b")] if bias else []
    constants.append(onnx.numpy_helper.from_array(np.array(weights), "dims"))
    nodes = [
        helper.make_node("Reshape", ["w", "dims"], ["v"]),
        helper.make_node(operator, ["x", "v", *(["b"] if bias else [])], ["y"], **attributes),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 1, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@every("bias", [True, False])
@every("place", ["pads", "dilations, stride, pads", "same upper"])
@every("groups", [1, 2])
@every("rank", SIZES)
def test_computed_weights(check, rank, groups, place, bias):
    weights = (6, 4 // groups, 3, 2, 3)[: rank + 2]
    check(computed("Conv", rank, weights, bias, group=groups, **placed(PLACES[place], rank)))


SPREAD = {
    "plain": {},
    "stride": {"strides": [2, 3]},
    "pads": {"pads": [1, 0, 1, 1], "strides": [2, 2]},
    "pads beyond the window": {"pads": [3, 2, 0, 3]},
    "more": {"strides": [3, 2], "output_padding": [2, 1]},
    "dilations": {"dilations": [2, 3], "pads": [1, 2, 0, 1]},
    "same upper": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "same lower": {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    "valid": {"auto_pad": "VALID", "strides": [2, 2]},
    "size": {"output_shape": [10, 9], "strides": [2, 2]},
    "size, upper": {"output_shape": [10, 9], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
}


@every("place", SPREAD)
@every("groups", [1, 2])
def test_transposed_convolutions_of_three_axes(one_node, check, groups, place):
    """One axis beside those of the case, so that no image layer can be taken."""
    attributes = dict(SPREAD[place])
    more = {"pads": None, "strides": 1, "dilations": 1, "output_padding": 0, "output_shape": 5}
    for name, value in more.items():
        if name in attributes and name != "pads":
            attributes[name] = [*attributes[name], value]
    if "pads" in attributes:
        first, last = attributes["pads"][:2], attributes["pads"][2:]
        attributes["pads"] = [*first, 1, *last, 0]
    if "output_shape" in attributes:
        attributes["kernel_shape"] = [3, 2, 2]
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(4, 3, 3, 2, 2)).astype(F), "b": rng.normal(size=3 * groups).astype(F)}
    built = one_node("ConvTranspose", ["N", 4, 5, 6, 5], constants, group=groups, **attributes)
    assert windows(check(built, batch=2, tolerance=2e-5)) == ["Conv"]


@every(
    "attributes, text",
    [
        ({"kernel_shape": [2, 2, 2], "strides": [2, 2]}, "strides have 2 values for 3"),
        ({"kernel_shape": [2, 2]}, "kernel_shape have 2 values for 3"),
        ({"kernel_shape": [2, 0, 2]}, "kernel_shape are not positive"),
        ({"kernel_shape": [2, 2, 2], "strides": [1, 2, 2**40]}, "strides are larger than any image"),
        ({"kernel_shape": [2, 2, 2], "pads": [1, 1, 1, 1]}, "pads have 4 values instead of 6"),
        ({"kernel_shape": [2, 2, 2], "pads": [0, 0, 0, 0, -1, 0]}, "negative pads"),
        ({"kernel_shape": [2, 2, 2], "pads": [0, 0, 0, 0, 2**40, 0]}, "at most 67,108,864 are supported"),
        ({"kernel_shape": [7, 2, 2]}, "its result has no elements"),
        ({"kernel_shape": [2, 2, 2], "pads": [2, 0, 0, 0, 0, 0]}, "some of its windows lie outside the image"),
        ({"kernel_shape": [2, 2, 2], "pads": [0, 0, 0, 0, 0, 2]}, "some of its windows lie outside the image"),
    ],
)
def test_pools_that_are_refused(refusal, attributes, text):
    for operator in ("MaxPool", "AveragePool"):
        assert text in refusal(operator, ["N", 2, 6, 6, 6], **attributes).line()
