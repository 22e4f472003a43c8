"""Transposed convolution, resampling, unpooling, normalisation: float results by other means, and the engines agree."""

import numpy as np
import pytest
from support.errors import error_line
from support.onnx_models import node_model, onnx_results
from support.ops import Deconv, Resize, Unpool
from support.tables import every

from n2d2py.arithmetic import FloatRescale, NumType
from n2d2py.contracts.functions import Step
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode, QuantTensor, Weighted

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def node(op, params=None, inputs=("x",)) -> Node:
    return Node("y", op, list(inputs), ["y"], params or {})


def network(op, params=None, shapes=((4, 5, 6),), activation=None) -> Graph:
    graph = Graph("g")
    names = [graph.add_input(f"x{i}", (1, *shape)) for i, shape in enumerate(shapes)]
    graph.add(Node("y", op, names, ["y"], params or {}, activation))
    graph.outputs = ["y"]
    return graph


# ---- transposed convolution -------------------------------------------------------------------
def scattered(x, weights, bias, op, size):
    """The definition, position by position."""
    full = np.zeros((x.shape[0], len(weights), *size))
    per_group, outputs = weights.shape[1], len(weights) // op.groups
    for o in range(len(weights)):
        full[:, o] = bias[o]
        for c in range(per_group):
            channel = o // outputs * per_group + c
            for i, j in np.ndindex(*x.shape[2:]):
                for u, v in np.ndindex(*weights.shape[2:]):
                    y = i * op.stride[0] - op.pads[0] + u * op.dilation[0]
                    z = j * op.stride[1] - op.pads[1] + v * op.dilation[1]
                    if 0 <= y < size[0] and 0 <= z < size[1]:
                        full[:, o, y, z] += weights[o, c, u, v] * x[:, channel, i, j]
    return full


DECONVS = [
    (Deconv((2, 2)), (3, 4, 2, 2)),
    (Deconv((2, 3), (1, 0, 1, 2)), (3, 4, 3, 3)),
    (Deconv((1, 2), (0, 1, 0, 0), (2, 1), 2), (6, 2, 3, 2)),
    (Deconv((2, 2), (1, 1, 0, 0), groups=4), (4, 1, 3, 3)),
    (Deconv((3, 3), (0, 0, -2, -1)), (2, 4, 2, 3)),
]


@every("op, shape", DECONVS)
def test_deconv_scatters_each_input_value_over_its_window(op, shape):
    params = {"weights": array(*shape), "bias": array(shape[0])}
    graph = network(op, params)
    x = array(2, 4, 5, 6)
    size = graph.shape("y")[2:]
    expected = scattered(x, params["weights"], params["bias"], op, size)
    assert size[0] == (5 - 1) * op.stride[0] + (shape[2] - 1) * op.dilation[0] + 1 - op.pads[0] - op.pads[2]
    np.testing.assert_allclose(op.run([x], graph.nodes[0])[0], expected, atol=1e-4)


def test_deconv_of_integers_is_exact_with_a_zero_point():
    op = Deconv((2, 2), (1, 1, 1, 1))
    kinds = {"x": NumType(8, False, zero_point=30), "y": NumType(16)}
    weights = RANDOM.integers(-127, 128, (3, 2, 3, 3))
    bias = RANDOM.integers(-500, 500, 3)
    graph = QuantGraph("g", 8, {name: QuantTensor(name, (1, 2, 4, 4), kind) for name, kind in kinds.items()})
    q = QuantNode("y", op, ["x"], ["y"], Weighted(weights, bias), FloatRescale(np.ones(1)), (-32767, 32767), 2**22)
    x = RANDOM.integers(0, 256, (2, 2, 4, 4)).astype(np.uint8)
    expected = np.clip(scattered(x.astype(float) - 30, weights, bias, op, (7, 7)), -32767, 32767)
    assert np.array_equal(op.run_integer([x], q, graph)[0], expected.astype(np.int16))


def test_deconv_padding_that_leaves_nothing_is_refused():
    assert "E203" in error_line(lambda: network(Deconv((1, 1), (4, 4, 4, 4)), {"weights": array(3, 4, 2, 2), "bias": array(3)}))


# ---- resampling -------------------------------------------------------------------------------
def onnx_resize(x, size, coordinates, mode):
    given = {"mode": mode, "nearest_mode": "floor", "coordinate_transformation_mode": coordinates}
    file = node_model(
        [("Resize", ["x", "", "", "s"], "y", given)], {"s": np.array([1, x.shape[1], *size])}, ["N", *x.shape[1:]]
    )
    return onnx_results(file, x).reshape(*x.shape[:2], *size)


@every("size", [(10, 12), (3, 9), (7, 2), (1, 6), (5, 6)])
@every("ours, theirs", [("HalfPixel", "half_pixel"), ("AlignCorners", "align_corners"), ("Asymmetric", "asymmetric")])
def test_bilinear_is_that_of_onnx(size, ours, theirs):
    x = array(2, 3, 5, 6)
    result = Resize(size, "Bilinear", ours).run([x], None)[0]
    np.testing.assert_allclose(result, onnx_resize(x, size, theirs, "linear"), atol=1e-5)


@pytest.mark.parametrize("size", [(10, 12), (5, 3), (15, 24)])
def test_nearest_is_that_of_onnx(size):
    x = array(1, 3, 5, 6)
    assert np.array_equal(Resize(size).run([x], None)[0], onnx_resize(x, size, "asymmetric", "nearest"))


def test_nearest_positions_are_exact_where_a_float_scale_would_round_down():
    assert Resize((10, 1)).taps(6, 10)[0].tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5]
    assert Resize((49, 1)).taps(49, 49)[0].tolist() == list(range(49))


def test_bilinear_of_integers_is_rounded_once():
    op = Resize((9, 13), "Bilinear", "HalfPixel")
    kind = NumType(8, False, scale=0.5)
    layer = quantize_layer(node(op), LayerTypes([kind], kind, QuantOptions(), input_shape=(1, 3, 5, 6)))
    lines, columns = op.integer_weights((5, 6))
    assert layer.bound == 255 * lines.sum(axis=0).max() * columns.sum(axis=0).max() < 2**31
    graph = QuantGraph("g", 8, {name: QuantTensor(name, (1, 3, 5, 6), kind) for name in ("x", "y")})
    x = RANDOM.integers(0, 256, (2, 3, 5, 6)).astype(np.uint8)
    found = op.run_integer([x], layer, graph)[0]
    exact = op.run([x.astype(np.float64)], None)[0]
    assert np.abs(found - exact).max() <= 0.5 + 1e-9 and found.dtype == np.uint8
    constant = np.full_like(x, 255)
    assert (op.run_integer([constant], layer, graph)[0] == 255).all()


def test_overlapping_windows_add_up_in_float_and_are_refused_in_integers():
    z = np.array([[[[0, 9, 0]]]], np.float32)
    x = np.array([[[[2, 3]]]], np.float32)
    op = Unpool((1, 2), (1, 1))
    assert op.run([x, z], None)[0].tolist() == [[[[0, 5, 0]]]]
    with pytest.raises(N2D2Error, match="E510.*overlapping"):
        quantize_layer(node(op, inputs=("x", "z")), LayerTypes([NumType(8)] * 2, NumType(8), QuantOptions()))


@every(
    "step, expected, nonnegative",
    [
        (Step(1.0, 0.0, 5.0), [0, 0, 5], True),
        (Step(1.0, 5.0, 0.0), [5, 5, 0], True),
        (Step(1.0, 0.0, None), [0, 0, 2], True),
        (Step(1.0, None, 0.0), [-1, 1, 0], False),
        (Step(-2.0, 0.0, None), [-1, 1, 2], False),
    ],
)
def test_step(step, expected, nonnegative):
    assert step(np.array([-1.0, 1.0, 2.0])).tolist() == expected
    assert step.nonnegative is nonnegative


# ---- the two float engines --------------------------------------------------------------------
