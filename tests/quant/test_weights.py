"""Integer weights: scales, bounds, and what happens when the accumulator would not fit."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.graph import Node
from n2d2py.operators.fc import Fc
from n2d2py.quant.contract import LayerTypes, quantize_layer
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.weights.integers import MAX_ACCUMULATOR, quantize_weights


def _weights(outputs=4, inputs=9, seed=0):
    return np.random.default_rng(seed).normal(size=(outputs, inputs)) * np.array([[1.0], [0.1], [5.0], [0.01]])


def test_each_output_uses_its_whole_range():
    w = _weights()
    result = quantize_weights(w, np.zeros(4), 0.02, 255, bits=8, per_output=True)
    assert (np.abs(result.weights).max(axis=1) == 127).all()
    assert np.max(np.abs(result.weights * result.scales[:, None] - w) / result.scales[:, None]) <= 0.5 + 1e-9


def test_one_scale_for_the_layer():
    result = quantize_weights(_weights(), np.zeros(4), 0.02, 255, bits=8, per_output=False)
    assert len(set(result.scales)) == 1 and np.abs(result.weights).max() == 127


def test_bias_is_in_the_accumulators_scale():
    result = quantize_weights(np.ones((1, 2)), np.array([0.5]), 0.25, 255, bits=8, per_output=True)
    assert result.bias[0] == round(0.5 / (0.25 / 127)) and result.bound == 2 * 127 * 255 + result.bias[0]


def test_dead_output_with_a_bias_keeps_the_accumulator_within_its_type():
    w = np.array([[1.0, -1.0], [1e-12, 0.0], [0.0, 0.0]])
    bias = np.array([0.0, 3.0, -2.0])
    result = quantize_weights(w, bias, 0.01, 255, bits=8, per_output=True)
    assert result.bound <= MAX_ACCUMULATOR and result.widened == 1
    restored = result.bias * 0.01 * result.scales
    assert restored == pytest.approx(bias, rel=1e-6)


def test_accumulator_limit_widens_the_scale():
    w = np.ones((1, 100_000))
    result = quantize_weights(w, np.zeros(1), 1.0, 255, bits=8, per_output=True)
    assert result.bound <= MAX_ACCUMULATOR and result.widened == 1
    assert np.all(result.weights * result.scales[0] == pytest.approx(1.0, rel=0.02))


@pytest.mark.parametrize("mode", ["MSE", "KL-Divergence"])
def test_weight_clipping_lowers_the_error_of_outliers(mode):
    generator = np.random.default_rng(3)
    w = generator.normal(size=(2, 4096))
    w[:, 0] = 12.0
    plain = quantize_weights(w, np.zeros(2), 1.0, 1, bits=8, per_output=True)
    clipped = quantize_weights(w, np.zeros(2), 1.0, 1, bits=8, per_output=True, clipping=mode)
    bulk = np.s_[:, 1:]
    error = [np.mean((r.weights[bulk] * r.scales[:, None] - w[bulk]) ** 2) for r in (plain, clipped)]
    assert error[1] < error[0]


@every("bits", [2, 3, 4, 7])
def test_few_bits_have_the_range_of_the_least_error(bits):
    """Of shares of the largest magnitude, a hundredth apart, down to a half."""
    levels = 2 ** (bits - 1) - 1
    w = np.random.default_rng(bits).normal(size=(6, 40)) * np.geomspace(0.01, 10, 6)[:, None]
    found = quantize_weights(w, np.zeros(6), 1.0, 1, bits=bits, per_output=True)
    assert found.weights.max() == levels and found.weights.min() == -levels - 1
    largest = np.abs(w).max(axis=1)
    errors = []
    for share in np.arange(50, 101) / 100:
        step = (largest * share / levels)[:, None]
        errors.append(np.square(w - np.clip(np.rint(w / step), -levels - 1, levels) * step).sum(axis=1))
    mine = np.square(w - found.weights * found.scales[:, None]).sum(axis=1)
    assert (mine <= np.min(errors, axis=0) * (1 + 1e-6)).all()
    share = found.scales * levels / largest
    assert (share > 0.5 - 1e-9).all() and (share < 1 + 1e-9).all()
    assert np.allclose(quantize_weights(w, np.zeros(6), 1.0, 1, bits=8, per_output=True).scales, largest / 127)


def test_one_range_of_few_bits_for_the_layer_is_the_largest_of_its_outputs():
    w = np.random.default_rng(1).normal(size=(4, 30))
    apart = quantize_weights(w, np.zeros(4), 1.0, 1, bits=3, per_output=True).scales
    assert np.array_equal(quantize_weights(w, np.zeros(4), 1.0, 1, bits=3, per_output=False).scales, np.full(4, apart.max()))


@every("per_output", [True, False])
@every("over", [0.5, 1.0, 1.3, 40.0])
def test_scales_grow_no_more_than_the_accumulator_asks(over, per_output):
    w, peak = np.ones((2, 50)) * [[1.0], [0.25]], 255
    limit = int(50 * 127 * peak / over)
    found = quantize_weights(w, np.zeros(2), 1.0, peak, bits=8, per_output=per_output, limit=limit)
    assert found.bound <= limit and found.bound >= 0.95 * min(limit, 50 * 127 * peak) - 50 * peak
    assert found.widened == (0 if over <= 1 else 2 if per_output else 1 if over < 2 else found.widened)
    assert (found.scales[0] == 1 / 127) == (over <= 1) and found.reduced == 1


def test_a_gain_that_the_shift_leaves_and_given_scales():
    w, bias = np.array([[1.0, -0.5], [0.25, 0.125]]), np.array([0.75, -0.5])
    gain, scales = np.array([1.5, 0.75]), np.array([0.02, 0.003])
    found = quantize_weights(w, bias, 0.5, 255, bits=8, per_output=True, gain=gain, scales=scales)
    assert np.array_equal(found.scales, scales)
    assert np.array_equal(found.weights, np.rint(np.clip(w * gain[:, None] / scales[:, None], -127, 127)))
    assert np.array_equal(found.bias, np.rint(bias * gain / (0.5 * scales)))
    assert found.bound == int((np.abs(found.weights.astype(int)).sum(axis=1) * 255 + np.abs(found.bias)).max())


@pytest.mark.parametrize(("bits", "dtype"), [(2, np.int8), (8, np.int8), (16, np.int16)])
def test_the_type_of_stored_weights(bits, dtype):
    assert quantize_weights(np.ones((1, 3)), np.zeros(1), 1.0, 1, bits=bits, per_output=True).weights.dtype == dtype


@every(("inputs", "wide"), [(250, False), (265, False), (280, False), (300, True), (4000, True)])
def test_sums_of_16_bit_inputs_get_64_bits_where_weights_would_be_a_tenth_coarser(inputs, wide):
    node = Node("y", Fc(), ["x"], ["y"], {"weights": np.ones((1, inputs), np.float32), "bias": np.zeros(1, np.float32)})
    types = LayerTypes([NumType(16, False, scale=0.01)], NumType(16, scale=1.0), QuantOptions(per_output=True))
    found = quantize_layer(node, types)
    assert (found.bound > MAX_ACCUMULATOR) == wide
    weight = int(found.params["weights"].max())
    assert (weight == 127) == (wide or inputs * 127 * 65535 <= MAX_ACCUMULATOR) and weight >= 127 / 1.11


def test_weights_of_16_bits_have_sums_of_64_bits():
    node = Node("y", Fc(), ["x"], ["y"], {"weights": np.ones((1, 99), np.float32), "bias": np.zeros(1, np.float32)})
    for kind, bound in ((NumType(16, False), 65535), (NumType(8, False), 255)):
        found = quantize_layer(node, LayerTypes([kind], NumType(16), QuantOptions(bits=16)))
        assert found.bound == 99 * 32767 * bound and found.params["weights"].max() == 32767
