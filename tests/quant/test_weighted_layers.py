"""Layers of weighted sums against real arithmetic: integers of files, zero points, bounds of accumulators (`n2d2py.contracts.quant.quantizer`)."""

from itertools import product

import numpy as np
import pytest
from support.errors import error_line
from support.ops import Fc
from support.tables import every

from n2d2py.arithmetic import FloatRescale, NumType, make_rescale
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, WeightedQuantizer, prequantize_layer, quantize_layer, zero_point_terms
from n2d2py.graph import Node

SIGNED, UNSIGNED = NumType(8, scale=0.5), NumType(8, False, scale=0.25)
INPUTS = {
    "signed": SIGNED,
    "full": NumType(8, scale=0.5, full=True),
    "unsigned": UNSIGNED,
    "a zero point": NumType(8, False, scale=0.25, zero_point=3),
    "a large zero point": NumType(8, False, scale=0.25, zero_point=250),
    "a negative zero point": NumType(8, scale=0.125, zero_point=-100),
    "few steps": NumType(8, False, scale=1.0, most=15),
    "16 bits": NumType(16, scale=2.0**-9),
}


def layer(integers, scales, bias) -> Node:
    scales = np.asarray(scales, np.float32)
    weights = np.asarray(integers, np.float64) * (scales.reshape(-1, 1) if scales.size > 1 else scales)
    params = {
        "weights": weights.astype(np.float32),
        "weight_scales": scales,
        "bias": np.broadcast_to(np.asarray(bias, np.float32), len(weights)).copy(),
    }
    return Node("y", Fc(), ["x"], ["y"], params)


def types(x: NumType, y: NumType = SIGNED, **options) -> LayerTypes:
    return LayerTypes([x], y, QuantOptions(**options))


@every(
    ("integers", "dtype"),
    [
        ([[127, -127]], np.int8),
        ([[-128, 0]], np.int8),
        ([[128, 0]], np.int16),
        ([[-129, 0]], np.int16),
        ([[32767, -32767]], np.int16),
        ([[32768, 0]], np.int32),
        ([[0, -32768]], np.int32),
        ([[0, 0]], np.int8),
    ],
)
def test_the_type_of_integers_of_a_file(integers, dtype):
    found, scales = WeightedQuantizer().file_weights(layer(integers, [0.5], 0))
    assert found.dtype == dtype and found.tolist() == integers and scales.tolist() == [0.5]


@every(("off", "taken"), [(0.5, True), (0.25, True), (0.53125, False), (-0.5, True), (-0.53125, False)])
def test_weights_lie_on_the_grid_of_the_file(off, taken):
    """At most the fiftieth part of a step beside an integer."""
    node = layer([[1, 2], [3, 0]], [25.0, 25.0], 0)
    node.params["weights"][1, 1] = off
    if taken:
        assert WeightedQuantizer().file_weights(node)[0].tolist() == [[1, 2], [3, 0]]
    else:
        assert "E514" in error_line(lambda: WeightedQuantizer().file_weights(node))


def test_weights_without_a_scale_are_refused():
    node = layer([[1, 2]], [0.5], 0)
    del node.params["weight_scales"]
    assert "E514" in error_line(lambda: WeightedQuantizer().file_weights(node))


def sums(made, x: np.ndarray) -> np.ndarray:
    """The accumulators of stored inputs (n, K)."""
    return x.astype(np.int64) @ made.params["weights"].astype(np.int64).T + made.params["bias"].astype(np.int64)


@every("scales", [[0.25], [0.5, 0.125, 1.0]])
@every("kind", INPUTS)
@every("own", [False, True])
def test_sums_are_those_of_real_numbers(kind, scales, own):
    """By the integers of a file, and by those of a calibration of the same weights; no sum is larger than the bound."""
    x, rng = INPUTS[kind], np.random.default_rng(len(kind))
    integers = rng.integers(-7, 8, (3, 4))
    integers[:, 0] = [7, -7, 7]
    node = layer(integers, scales, np.array([2.0, -0.75, 0.0]) * x.scale * min(scales))
    made = quantize_layer(node, types(x)) if own else prequantize_layer(node, types(x))
    stored = rng.integers(x.qmin, x.qmax + 1, (50, 4))
    real = (stored - x.zero_point) * x.scale @ node.params["weights"].astype(np.float64).T + node.params["bias"]
    found = sums(made, stored) * np.broadcast_to(made.rescale.effective(), 3) * SIGNED.scale
    step = np.abs(node.params["weights"]).max() / 127 * x.scale * (x.qmax - x.qmin) * 4 if own else 0.26 * x.scale * max(scales)
    np.testing.assert_allclose(found, real, atol=step, rtol=1e-5)
    ends = np.array(list(product((x.qmin, x.qmax), repeat=4)))
    most = np.abs(sums(made, ends)).max()
    assert most <= made.bound
    if x.zero_point == 0 and x.qmin == -x.qmax:
        assert most == made.bound


@pytest.mark.parametrize(("term", "limit", "taken"), [(50, 50, True), (50, 49, False), (50, 51, True)])
def test_a_zero_point_beyond_the_limit_stays_outside(term, limit, taken):
    rescale, _ = make_rescale("Floating-point", np.array([2.0, 4.0]))
    assert isinstance(rescale, FloatRescale)
    assert zero_point_terms(rescale, 100, 2, limit).tolist() == ([term, 25] if taken else [0, 0])
    assert zero_point_terms(rescale, 0, 2, limit).tolist() == [0, 0]
    fixed, _ = make_rescale("Fixed-point32", np.array([0.5, 0.25]))
    assert zero_point_terms(fixed, 100, 2, 1000).tolist() == [0, 0]


@pytest.mark.parametrize("zero", [0, 5, -7])
def test_a_zero_point_of_the_output_is_in_the_bias(zero):
    output = NumType(8, scale=0.5, zero_point=zero)
    node = layer([[3, -2], [1, 1]], [0.25], [1.0, -1.0])
    made, plain = (quantize_layer(node, types(UNSIGNED, y)) for y in (output, SIGNED))
    terms = made.params["bias"].astype(np.int64) - plain.params["bias"]
    np.testing.assert_allclose(terms * np.broadcast_to(made.rescale.effective(), 2), zero, atol=0.01)
    assert made.zero_in_bias == (zero != 0) and made.bound == plain.bound + max(int(terms.max()), 0)


def test_a_bias_that_hides_its_sum_is_a_constant():
    """A gain next to 0 leaves the bias alone, clipped to twice the range of the output."""
    for bias, wanted in ((3.0, 6), (1e6, 508), (-1e6, -508)):
        node = layer([[3, -2], [1, 1]], [1e-14, 0.25], [bias, 1.0])
        made = prequantize_layer(node, types(UNSIGNED))
        assert made.params["weights"].tolist() == [[0, 0], [1, 1]]
        np.testing.assert_allclose(made.params["bias"][0] * np.broadcast_to(made.rescale.effective(), 2)[0], wanted, rtol=1e-6)


@pytest.mark.parametrize(("inputs", "wide"), [(100, False), (4000, True)])
def test_sums_beyond_32_bits(inputs, wide):
    """Of weights of 16 bits behind inputs of 16: the bound is kept, and the type of the bias follows it."""
    rng = np.random.default_rng(inputs)
    weights = rng.uniform(0.5, 1, (2, inputs)).astype(np.float32)
    node = Node("y", Fc(), ["x"], ["y"], {"weights": weights, "bias": np.zeros(2, np.float32)})
    kind = LayerTypes([INPUTS["16 bits"]], NumType(16, scale=1.0), QuantOptions(bits=16), weight_bits=16)
    made = quantize_layer(node, kind)
    assert made.bound == np.abs(sums(made, np.full((1, inputs), 32767))).max()
    assert (made.params["bias"].dtype == np.int64) == (made.bound >= 2**31)
    assert wide <= (made.bound >= 2**31)
