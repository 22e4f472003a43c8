"""-wt-reduce-range: weights whose products of bytes fit 16 bits, and no coarser than that needs."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import PLACE_LIMIT, RESCALING_MODES, NumType, largest_place
from n2d2py.graph import Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.quant.contract import LayerTypes, quantize_layer
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.weights.integers import quantize_weights

RNG = np.random.default_rng


def quantized(rows: np.ndarray, **settings):
    order = np.arange(rows.shape[1])
    return quantize_weights(
        rows, np.zeros(len(rows)), 0.02, 255, bits=8, **{"per_output": True, "reduced_order": order, **settings}
    )


def test_four_products_fit_and_outputs_are_no_coarser_than_needed():
    rows = RNG(1).normal(size=(32, 200))
    result, free = quantized(rows), quantized(rows, reduced_order=None)
    growth = result.scales / free.scales
    assert largest_place(free.weights, 1).max() > PLACE_LIMIT >= largest_place(result.weights, 2).max()
    assert 1.2 < np.sqrt(np.mean(growth**2)) < 2 and growth.max() == result.reduced
    assert (largest_place(result.weights, 2) > PLACE_LIMIT * 0.95)[growth > 1].all()
    assert np.max(np.abs(result.weights * result.scales[:, None] - rows) / result.scales[:, None]) <= 0.5 + 1e-9


def test_two_products_where_four_would_cost_more_than_a_bit():
    """All weights of a place have one sign: four would need a quarter of the range, two need half of it."""
    result = quantized(np.full((8, 64), 0.3))
    assert largest_place(result.weights, 1).max() <= PLACE_LIMIT < largest_place(result.weights, 2).max()
    assert result.reduced == pytest.approx(2, rel=0.02) and np.abs(result.weights).max() >= 62


def test_weights_that_fit_stay():
    rows = RNG(2).normal(size=(4, 64)) * 0.001
    rows[:, 5] = 1
    result, free = quantized(rows), quantized(rows, reduced_order=None)
    np.testing.assert_array_equal(result.weights, free.weights)
    assert result.reduced == 1 and (result.scales == free.scales).all()


def test_one_scale_for_the_layer_stays_one():
    result = quantized(RNG(3).normal(size=(16, 100)), per_output=False)
    assert len(set(result.scales)) == 1 and largest_place(result.weights, 2).max() <= PLACE_LIMIT


def test_rounding_that_moves_weights_up_is_made_up_for():
    """A rounding other than to the nearest integer may leave 16 bits again: the scale grows until it does not."""
    result = quantized(
        RNG(4).normal(size=(16, 64)),
        rounding=lambda rows, scales, levels: np.clip(np.sign(rows) * np.ceil(np.abs(rows) / scales[:, None]), -levels, levels),
    )
    assert largest_place(result.weights, 2).max() <= PLACE_LIMIT


def test_dead_outputs_do_not_decide():
    """An output whose tiny weights have a large bias gets no weights at all; what they were says nothing of the others."""
    rows = RNG(5).normal(size=(16, 64))
    rows[3] = 1e-20
    result = quantize_weights(rows, np.ones(16), 0.02, 255, bits=8, per_output=True, reduced_order=np.arange(64))
    assert largest_place(result.weights, 2).max() <= PLACE_LIMIT and result.widened == 1 and not result.weights[3].any()


def layer(op, weights: np.ndarray, shape: tuple[int, ...], weight_bits: int = 0, **options) -> np.ndarray:
    """The integer weights of a layer, with the option unless it is given."""
    kinds = NumType(8, False, scale=0.02), NumType(8, False, scale=0.05)
    node = Node("layer", op, ["x"], ["y"], params={"weights": weights, "bias": np.zeros(len(weights))})
    settings = QuantOptions(**{"reduce_range": True, **options})
    types = LayerTypes([kinds[0]], kinds[1], settings, weight_bits=weight_bits or None, input_shape=shape)
    return quantize_layer(node, types).params["weights"].astype(np.int64)


@every("mode", RESCALING_MODES)
def test_convolutions_are_paired_as_their_kernel_reads_them(mode):
    found = layer(Conv((1, 1), (1, 1, 1, 1), (1, 1), 1), RNG(6).normal(size=(24, 12, 3, 3)), (1, 12, 5, 5), rescaling=mode)
    assert largest_place(found.transpose(0, 2, 3, 1).reshape(24, -1), 2).max() <= PLACE_LIMIT


def test_fully_connected_layers_are_paired_as_their_kernel_reads_them():
    found = layer(Fc(), RNG(7).normal(size=(24, 6 * 3 * 2)), (1, 6, 3, 2))
    assert largest_place(found.reshape(24, 6, 3, 2).transpose(0, 2, 3, 1).reshape(24, -1), 2).max() <= PLACE_LIMIT


def test_depthwise_layers_keep_their_weights():
    weights = RNG(8).normal(size=(16, 1, 3, 3))
    assert (
        np.abs(layer(Conv((1, 1), (1, 1, 1, 1), (1, 1), 16), weights, (1, 16, 5, 5))).reshape(16, -1).max(axis=1).min() == 127
    )


def test_weights_of_16_bits_are_not_paired():
    weights = RNG(9).normal(size=(24, 12, 3, 3))
    op = Conv((1, 1), (1, 1, 1, 1), (1, 1), 1)
    np.testing.assert_array_equal(
        layer(op, weights, (1, 12, 5, 5), weight_bits=16), layer(op, weights, (1, 12, 5, 5), weight_bits=16, reduce_range=False)
    )
