"""Integer weights: scales, bounds, and what happens when the accumulator would not fit."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.quant.weights import MAX_ACCUMULATOR, quantize_weights


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
