"""Figures of the quantization of a few numbers, counted by hand: comparisons, weights, equalization."""

import math

import numpy as np
import pytest
from support.ops import Conv, Fc

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.arithmetic.weights import LayerWeights, round_nearest
from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.quant.correct.channels import equalize
from n2d2py.quant.observe.compare import Accumulator, Difference, first_difference

BYTE = NumType(8)


# ---- comparisons -------------------------------------------------------------------------------


def test_an_exact_layer_has_no_error():
    found = Accumulator("a", "t", NumType(8, signed=False, scale=0.5))
    found.add(np.array([[3.0, 0.0]]), np.array([[6, 0]], np.uint8), compiled=np.ma.array([[6, 0]], mask=[[False, True]]))
    result = found.result()
    assert (result.sqnr_db, result.cosine, result.max_error, result.saturated) == (math.inf, 1.0, 0.0, 0.0)
    assert (result.identical, result.exact, result.missing, result.worst_db) == (True, True, 1, None)
    assert (result.alone_db, result.alone_error) == (None, None)


def test_the_first_difference_is_of_the_stimulus_among_all():
    found = Accumulator("a", "t", BYTE)
    for stored, compiled in (
        ([[1, 2]], [[1, 2]]),
        ([[3, 4], [5, 6]], [[3, 4], [5, 8]]),
        ([[7, 7]], [[0, 7]]),
        ([[1, 1]], [[1, 1]]),
    ):
        found.add(np.array(stored, float), np.array(stored, np.int8), compiled=np.array(compiled, np.int8))
    assert found.result().difference == Difference((2, 1), 6.0, 8.0) and found.result().identical is False
    slack = Accumulator("a", "t", BYTE)
    slack.add(np.array([[1.0]]), np.array([[1]], np.int8), compiled=np.array([[2]], np.int8), slack=0.001)
    assert (slack.result().identical, slack.result().exact) == (True, False)


@pytest.mark.parametrize(
    ("expected", "found", "kind", "slack", "differs"),
    [
        ([1, 2], [1, 2], BYTE, 0.0, None),
        ([1, 2], [1, 3], BYTE, 0.0, (1, 2.0, 3.0)),
        ([1, 2], [1, 3], BYTE, 0.001, None),  # by one at least
        ([1, 2], [1, 4], BYTE, 0.001, (1, 2.0, 4.0)),
        ([1, 2], [1, 27], BYTE, 0.1, None),  # 25 of 254
        ([1, 2], [1, 28], BYTE, 0.1, (1, 2.0, 28.0)),
        ([1.0, 100.0], [1.0099, 100.0], FLOAT32, 0.0, None),
        ([1.0, 100.0], [1.0101, 100.0], FLOAT32, 0.0, (0, 1.0, 1.0101)),
        ([1.0, 100.0], [2.9, 100.0], FLOAT32, 0.02, None),
        ([1.0, 100.0], [3.1, 100.0], FLOAT32, 0.02, (0, 1.0, 3.1)),
        ([math.inf, 1.0], [math.inf, 1.0], FLOAT32, 0.0, None),
        ([math.inf, 1.0], [-math.inf, 1.0], FLOAT32, 0.0, (0, math.inf, -math.inf)),
        ([math.nan, 1.0], [math.nan, 1.00009], FLOAT32, 0.0, None),
        ([1.0, math.nan], [1.0, 1.0], FLOAT32, 0.0, (1, math.nan, 1.0)),
        ([0.0], [9e-11], FLOAT32, 0.0, None),
        ([0.0], [2e-10], FLOAT32, 0.0, (0, 0.0, 2e-10)),
    ],
)
def test_where_two_arrays_differ_first(expected, found, kind, slack, differs):
    dtype = np.float64 if kind.is_float else np.int16
    result = first_difference(np.array(expected, dtype), np.array(found, dtype), kind, slack)
    if differs is None:
        assert result is None
    else:
        assert result is not None and result.index == (differs[0],)
        assert np.array_equal([result.expected, result.found], differs[1:], equal_nan=True)


# ---- weights -------------------------------------------------------------------------------------
def test_integers_of_weights_by_hand():
    """Rows of largest magnitudes 1.27, 0.635 and 0: steps of 0.01, 0.005 and, for none, of the largest one or 1."""
    weights = np.array([[1.27, -0.5, 0.016], [0.635, 0.0, -0.01], [0.0, 0.0, 0.0]])
    bias = np.array([1.0, -2.0, 0.5])
    found = LayerWeights(weights, bias, 0.5, 10).quantize()
    assert found.weights.tolist() == [[127, -50, 2], [127, 0, -2], [0, 0, 0]] and found.weights.dtype == np.int8
    assert found.scales.tolist() == pytest.approx([0.01, 0.005, 1.27 / 127])
    assert found.bias.tolist() == [200, -800, 100] and found.bias.dtype == np.int64
    assert (found.bound, found.widened, found.reduced) == (129 * 10 + 800, 0, 1.0)  # of the second one
    one = LayerWeights(weights, bias, 0.5, 10, per_output=False).quantize()
    assert one.scales.tolist() == pytest.approx([0.01] * 3) and one.weights[1].tolist() == [64, 0, -1]
    wide = LayerWeights(weights, bias, 0.5, 10, bits=16).quantize()
    assert wide.weights.dtype == np.int16 and wide.weights[:, 0].tolist() == [32767, 32767, 0]


def test_rounding_to_the_nearest_keeps_to_the_levels():
    rows = np.array([[0.5, 1.5, -2.5, 9.0], [1.0, 3.0, 5.0, -99.0]])
    assert round_nearest(rows, np.array([1.0, 2.0]), 7).tolist() == [[0, 2, -2, 7], [0, 2, 2, -8]]
    each = np.array([[1.0, 3.0, 1.0, 9.0], [1.0, 1.0, 5.0, 11.0]])
    wide = np.array([[-200.0, -127.6, 200.0]])
    assert round_nearest(wide, np.ones(1), 127).tolist() == [[-127, -127, 127]], "bytes are symmetric"
    assert round_nearest(wide, np.ones(1), 63).tolist() == [[-64, -64, 63]], "fewer bits have one value more below"
    assert round_nearest(np.array([[-9.0, -1.6, 9.0]]), np.ones(1), 1).tolist() == [[-2, -2, 1]]
    assert round_nearest(rows, each, 7).tolist() == [[0, 0, -2, 1], [1, 3, 1, -8]]


# ---- equalization and widths ---------------------------------------------------------------------
def two_layers(activation=None, second: str = "conv", groups: int = 1) -> Graph:
    graph = Graph("net")
    graph.add_input("x", (1, 2, 1, 1))
    first = np.array([[4.0, -1.0], [0.5, 0.25]], np.float32).reshape(2, 2, 1, 1)
    graph.add(
        Node("a", Conv(), ["x"], ["a"], {"weights": first, "bias": np.array([8.0, 1.0], np.float32)}, activation=activation)
    )
    if second == "fc":
        weights, op = np.array([[1.0, -2.0], [0.5, 8.0], [0.1, 0.1]], np.float32), Fc()
    elif groups > 1:
        weights, op = np.array([1.0, 8.0], np.float32).reshape(2, 1, 1, 1), Conv(groups=groups)
    else:
        weights, op = np.array([[1.0, -2.0], [0.5, 8.0], [0.1, 0.1]], np.float32).reshape(3, 2, 1, 1), Conv()
    graph.add(Node("b", op, ["a"], ["b"], {"weights": weights, "bias": np.zeros(len(weights), np.float32)}))
    graph.outputs = ["b"]
    return graph


@pytest.mark.parametrize("second", ["conv", "fc", "depthwise"])
@pytest.mark.parametrize("activation", [None, Clip(0.0)])
def test_ranges_of_two_layers_become_equal(second, activation):
    """4 and 1 become 2 and 2: half; 0.5 and 8 become 2 and 2: four times."""
    graph = two_layers(activation, second, 2 if second == "depthwise" else 1)
    found = equalize(graph)
    assert np.allclose(found.node("a").params["weights"].reshape(2, 2), [[2, -0.5], [2, 1]])
    assert np.allclose(found.node("a").params["bias"], [4, 4])
    wanted = [2, 2] if second == "depthwise" else [[2, -0.5], [1, 2], [0.2, 0.025]]
    assert np.allclose(found.node("b").params["weights"].reshape(np.shape(wanted)), wanted)
    assert graph.node("a").params["bias"].tolist() == [8, 1]  # the graph is left as it is
