"""What Conv and the pools read of their windows: sizes, steps, pads and ceil_mode, each on both sides of its limits.

The functions stand in `n2d2py.frontend.onnx.windows`.
"""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.inputs_outputs import add_inputs
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.frontend.onnx.windows import ceil_excess, image_size, pair, read_pads
from n2d2py.graph import Graph
from n2d2py.graph.shapes import MAX_PAD, MAX_STEP

F = np.float32
SHAPES = {1: ["N", 3, 7], 2: ["N", 3, 5, 7]}


@pytest.fixture
def layer(one_node):
    """A node without attributes that are checked before it is read, on an input of some axes."""

    def build(shape, **attributes) -> OnnxNode:
        model = load_onnx(one_node("Relu", shape))
        model.proto.graph.node[0].CopyFrom(one_node("Conv", shape, **attributes).graph.node[0])
        builder = Builder(model, Graph("g"), False, False)
        add_inputs(builder, {})
        return OnnxNode(model.proto.graph.node[0], builder)

    return build


def refusal(action, *arguments) -> Unsupported:
    with pytest.raises(Unsupported) as caught:
        action(*arguments)
    return caught.value


@pytest.mark.parametrize("shape, size", [(["N", 3, 5, 7], (5, 7)), (["N", 3, 7, 5], (7, 5)), (["N", 3, 7], (1, 7))])
def test_a_sequence_is_an_image_of_one_line(layer, shape, size):
    assert image_size(layer(shape)) == size


def test_a_vector_is_no_image(layer):
    assert refusal(image_size, layer(["N", 7])).reason == "its input has rank 2, only rank 3 or 4 is supported"


@pytest.mark.parametrize(
    "axes, given, found",
    [
        (2, None, (1, 1)),
        (1, None, (1, 1)),
        (2, [2, 3], (2, 3)),
        (2, [3, 2], (3, 2)),
        (1, [3], (1, 3)),
        (2, [1, 1], (1, 1)),
        (2, [MAX_STEP, 1], (MAX_STEP, 1)),
        (2, [1, MAX_STEP], (1, MAX_STEP)),
        (1, [MAX_STEP], (1, MAX_STEP)),
    ],
)
def test_steps_along_each_axis(layer, axes, given, found):
    attributes = {} if given is None else {"strides": given}
    assert pair(layer(SHAPES[axes], **attributes), "strides") == found


@pytest.mark.parametrize(
    "axes, given, reason",
    [
        (2, [2], "its dilations are for 1 axes, not for 2"),
        (2, [2, 2, 2], "its dilations are for 3 axes, not for 2"),
        (1, [2, 3], "its dilations are for 2 axes, not for 1"),
        (2, [0, 1], "its dilations are not positive"),
        (2, [1, 0], "its dilations are not positive"),
        (2, [-1, 2], "its dilations are not positive"),
        (1, [0], "its dilations are not positive"),
        (2, [MAX_STEP + 1, 1], "its dilations are larger than any image"),
        (2, [1, MAX_STEP + 1], "its dilations are larger than any image"),
        (1, [MAX_STEP + 1], "its dilations are larger than any image"),
        (2, [0, MAX_STEP + 1], "its dilations are not positive"),
    ],
)
def test_steps_that_are_refused(layer, axes, given, reason):
    assert refusal(pair, layer(SHAPES[axes], dilations=given), "dilations").reason == reason


@pytest.mark.parametrize(
    "axes, attributes, pads",
    [
        (2, {}, (0, 0, 0, 0)),
        (1, {}, (0, 0, 0, 0)),
        (2, {"pads": [1, 2, 3, 4]}, (1, 2, 3, 4)),
        (1, {"pads": [1, 2]}, (0, 1, 0, 2)),
        (2, {"pads": [4, 0, 0, 0], "auto_pad": "NOTSET"}, (4, 0, 0, 0)),
        (2, {"auto_pad": "VALID"}, (0, 0, 0, 0)),
        (2, {"pads": [1, 2, 3, 4], "auto_pad": "VALID"}, (0, 0, 0, 0)),
        *((2, {"pads": [MAX_PAD if at == one else 0 for at in range(4)]}, None) for one in range(4)),
    ],
)
def test_pads_that_are_given(layer, axes, attributes, pads):
    found = read_pads(layer(SHAPES[axes], **attributes), (5, 7), (3, 3), (2, 2))
    assert found == (tuple(attributes["pads"]) if pads is None else pads)


@pytest.mark.parametrize(
    "axes, pads, reason",
    [
        (2, [1, 2, 3], "its pads are 3 values, not 4"),
        (2, [1, 2], "its pads are 2 values, not 4"),
        (1, [1, 2, 3, 4], "its pads are 4 values, not 2"),
        *((2, [MAX_PAD + 1 if at == one else 0 for at in range(4)], "its pads are larger than any image") for one in range(4)),
        *((2, [-1 if at == one else 0 for at in range(4)], "it has negative pads") for one in range(4)),
        (2, [-1, 0, MAX_PAD + 1, 0], "its pads are larger than any image"),
        (1, [-1, 1], "it has negative pads"),
        (1, [1, -1], "it has negative pads"),
        (1, [0, MAX_PAD + 1], "its pads are larger than any image"),
    ],
)
def test_pads_that_are_refused(layer, axes, pads, reason):
    refused = refusal(read_pads, layer(SHAPES[axes], pads=pads), (5, 7), (3, 3), (1, 1))
    assert refused.reason == reason
    assert refused.remedy == ("crop with a Pad or Slice before it" if "negative" in reason else None)


@pytest.mark.parametrize(
    "size, window, stride, small, large",
    [
        (5, 3, 2, 1, 1),
        (8, 2, 3, 0, 0),
        (6, 3, 2, 0, 1),
        (7, 4, 1, 1, 2),
        (9, 2, 4, 0, 1),
        (10, 1, 4, 0, 0),
        (7, 6, 1, 2, 3),
        (4, 7, 4, 1, 2),
        (1, 1, 1, 0, 0),
        (11, 5, 3, 1, 2),
    ],
)
def test_pads_that_keep_the_size(layer, size, window, stride, small, large):
    """As many results as strides begin in the image; the odd pad is behind it, or before it. By hand."""
    sides = (size, 5), (window, 3), (stride, 2)
    assert read_pads(layer(SHAPES[2], auto_pad="SAME_UPPER"), *sides) == (small, 1, large, 1)
    assert read_pads(layer(SHAPES[2], auto_pad="SAME_LOWER"), *sides) == (large, 1, small, 1)
    turned = [side[::-1] for side in sides]
    assert read_pads(layer(SHAPES[2], auto_pad="SAME_UPPER"), *turned) == (1, small, 1, large)
    assert read_pads(layer(SHAPES[2], auto_pad="SAME_LOWER"), *turned) == (1, large, 1, small)


@pytest.mark.parametrize(
    "size, window, stride, first, last, excess",
    [
        (8, 3, 2, 0, 0, 1),
        (7, 3, 2, 0, 0, 0),
        (5, 2, 2, 1, 1, 0),
        (6, 2, 3, 1, 0, 1),
        (6, 2, 3, 0, 1, 0),
        (6, 1, 4, 0, 0, 0),
        (6, 2, 4, 0, 0, 0),
        (9, 2, 4, 0, 0, 1),
        (9, 5, 4, 0, 2, 2),
        (9, 5, 4, 2, 0, 2),
        (8, 2, 4, 0, 1, 0),
        (8, 3, 4, 1, 2, 0),
        (4, 4, 3, 1, 1, 1),
    ],
)
def test_windows_that_begin_in_the_image_and_end_behind_it(size, window, stride, first, last, excess):
    """Counted by hand: how far the last window that begins before the pad behind the image reaches beyond that pad."""
    starts = [at for at in range(0, size + first, stride) if at - stride + window < size + first + last]
    reach = max(0, starts[-1] + window - (size + first + last))
    assert reach == excess
    assert ceil_excess((size, 7), (window, 3), (stride, 2), (first, 0, last, 0)) == (excess, 0)
    assert ceil_excess((8, size), (3, window), (2, stride), (0, first, 0, last)) == (1, excess)


@pytest.mark.parametrize("rank", [3, 4])
def test_layers_of_sequences_are_layers_of_images_of_one_line(one_node, rank):
    shape = ["N", 3, 5, 7][: 2 if rank == 3 else 3] + [7]
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 2) if rank == 4 else (4, 3, 2)).astype(F)
    for operator, constants, attributes in (("Conv", {"w": weights}, {}), ("MaxPool", {}, {"kernel_shape": weights.shape[2:]})):
        graph = import_onnx(one_node(operator, shape, constants, **attributes))
        count = 4 if operator == "Conv" else 3
        found = [(node.name, node.op.kind, graph.shape(node.outputs[0])) for node in graph.nodes]
        kind = "Pool" if operator == "MaxPool" else "Conv"
        if rank == 4:
            assert found == [("y", kind, (1, count, 3, 6))]
        else:
            assert found == [
                ("y_line", "Reshape", (1, 3, 1, 7)),
                ("y_image", kind, (1, count, 1, 6)),
                ("y", "Reshape", (1, count, 6)),
            ]


@pytest.mark.parametrize("rank", [3, 4])
def test_the_scales_of_a_layer_are_those_of_its_weights(model, rank):
    """Not those of its bias, which is stored as integers too."""
    stored = np.random.default_rng(0).integers(-9, 9, (4, 3, *(3, 2)[4 - rank :])).astype(np.int8)
    scales = np.array([0.5, 0.25, 0.125, 1.0], F)
    built = model(
        f"float[N,3,{'5,' if rank == 4 else ''}7] x => float[{','.join('?' * rank)}] y",
        "w = DequantizeLinear <axis = 0> (q, s)\n b = DequantizeLinear <axis = 0> (p, t)\n y = Conv (x, w, b)",
        q=stored, s=scales, p=np.arange(4, dtype=np.int32), t=np.array([2, 4, 8, 16], F),
    )  # fmt: skip
    (layer,) = (node for node in import_onnx(built).nodes if node.op.kind == "Conv")
    np.testing.assert_array_equal(layer.params["weight_scales"], scales)
    np.testing.assert_array_equal(layer.params["bias"], [0, 4, 16, 48])


def test_a_file_for_two_stimuli_is_refused_by_the_layer_of_images(one_node):
    with pytest.raises(N2D2Error, match="its pads are larger than any image"):
        import_onnx(one_node("MaxPool", [2, 3, 5, 7], kernel_shape=[2, 2], pads=[0, MAX_PAD + 1, 0, 0]))
