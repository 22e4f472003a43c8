"""Integer weights: scales, bounds, accumulators that would not fit; -wt-reduce-range; the layers that get 16 bits with the best quality."""

from dataclasses import replace

import numpy as np
import pytest
from support.branched_networks import data, error, network
from support.ops import Conv, Fc
from support.tables import every

from n2d2py.arithmetic import PLACE_LIMIT, RESCALING_MODES, NumType, largest_place
from n2d2py.arithmetic.weights import MAX_ACCUMULATOR, LayerWeights
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.graph import Node, Precision
from n2d2py.quant.calibration import choose_observed_types, observe, prepare, quantize_observed, settle_wide_tensors
from n2d2py.quant.search.mixed import Roundings, weight_costs, wide_layers


def test_dead_output_with_a_bias_keeps_the_accumulator_within_its_type():
    w = np.array([[1.0, -1.0], [1e-12, 0.0], [0.0, 0.0]])
    bias = np.array([0.0, 3.0, -2.0])
    result = LayerWeights(w, bias, 0.01, 255).quantize()
    assert result.bound <= MAX_ACCUMULATOR and result.widened == 1
    restored = result.bias * 0.01 * result.scales
    assert restored == pytest.approx(bias, rel=1e-6)


@pytest.mark.parametrize("mode", ["MSE", "KL-Divergence"])
def test_weight_clipping_lowers_the_error_of_outliers(mode):
    generator = np.random.default_rng(3)
    w = generator.normal(size=(2, 4096))
    w[:, 0] = 12.0
    plain = LayerWeights(w, np.zeros(2), 1.0, 1).quantize()
    clipped = LayerWeights(w, np.zeros(2), 1.0, 1, clipping=mode).quantize()
    bulk = np.s_[:, 1:]
    error = [np.mean((r.weights[bulk] * r.scales[:, None] - w[bulk]) ** 2) for r in (plain, clipped)]
    assert error[1] < error[0]


@every("bits", [2, 3, 4, 7])
def test_few_bits_have_the_range_of_the_least_error(bits):
    """Of shares of the largest magnitude, a hundredth apart, down to a half."""
    levels = 2 ** (bits - 1) - 1
    w = np.random.default_rng(bits).normal(size=(6, 40)) * np.geomspace(0.01, 10, 6)[:, None]
    found = LayerWeights(w, np.zeros(6), 1.0, 1, bits=bits).quantize()
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
    assert np.allclose(LayerWeights(w, np.zeros(6), 1.0, 1).quantize().scales, largest / 127)


def test_one_range_of_few_bits_for_the_layer_is_the_largest_of_its_outputs():
    w = np.random.default_rng(1).normal(size=(4, 30))
    apart = LayerWeights(w, np.zeros(4), 1.0, 1, bits=3).quantize().scales
    one = LayerWeights(w, np.zeros(4), 1.0, 1, bits=3, per_output=False).quantize()
    assert np.array_equal(one.scales, np.full(4, apart.max()))


@every("per_output", [True, False])
@every("over", [0.5, 1.0, 1.3, 40.0])
def test_scales_grow_no_more_than_the_accumulator_asks(over, per_output):
    w, peak = np.ones((2, 50)) * [[1.0], [0.25]], 255
    limit = int(50 * 127 * peak / over)
    found = LayerWeights(w, np.zeros(2), 1.0, peak, per_output=per_output).quantize(limit=limit)
    assert found.bound <= limit and found.bound >= 0.95 * min(limit, 50 * 127 * peak) - 50 * peak
    assert found.widened == (0 if over <= 1 else 2 if per_output else 1 if over < 2 else found.widened)
    assert (found.scales[0] == 1 / 127) == (over <= 1) and found.reduced == 1


def test_a_gain_that_the_shift_leaves_and_given_scales():
    w, bias = np.array([[1.0, -0.5], [0.25, 0.125]]), np.array([0.75, -0.5])
    gain, scales = np.array([1.5, 0.75]), np.array([0.02, 0.003])
    found = LayerWeights(w, bias, 0.5, 255).quantize(gain=gain, scales=scales)
    assert np.array_equal(found.scales, scales)
    assert np.array_equal(found.weights, np.rint(np.clip(w * gain[:, None] / scales[:, None], -127, 127)))
    assert np.array_equal(found.bias, np.rint(bias * gain / (0.5 * scales)))
    assert found.bound == int((np.abs(found.weights.astype(int)).sum(axis=1) * 255 + np.abs(found.bias)).max())


@every(("inputs", "wide"), [(250, False), (265, False), (280, False), (300, True), (4000, True)])
def test_sums_of_16_bit_inputs_get_64_bits_where_weights_would_be_a_tenth_coarser(inputs, wide):
    node = Node("y", Fc(), ["x"], ["y"], {"weights": np.ones((1, inputs), np.float32), "bias": np.zeros(1, np.float32)})
    types = LayerTypes([NumType(16, False, scale=0.01)], NumType(16, scale=1.0), QuantOptions(per_output=True))
    found = quantize_layer(node, types)
    assert (found.bound > MAX_ACCUMULATOR) == wide
    weight = int(found.params["weights"].max())
    assert (weight == 127) == (wide or inputs * 127 * 65535 <= MAX_ACCUMULATOR) and weight >= 127 / 1.11


RNG = np.random.default_rng


def quantized(rows: np.ndarray, reduced: bool = True, **settings):
    order = np.arange(rows.shape[1]) if reduced else None
    return LayerWeights(rows, np.zeros(len(rows)), 0.02, 255, **settings).quantize(reduced_order=order)


def test_four_products_fit_and_outputs_are_no_coarser_than_needed():
    rows = RNG(1).normal(size=(32, 200))
    result, free = quantized(rows), quantized(rows, reduced=False)
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
    result, free = quantized(rows), quantized(rows, reduced=False)
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
    result = LayerWeights(rows, np.ones(16), 0.02, 255).quantize(reduced_order=np.arange(64))
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


BEST = QuantOptions(input_bits=16, output_bits=16, adaptive_rounding=True, mixed=True, wide_weights=True)


def observed(precisions: dict[str, Precision] | None = None, spoiled: str = "b"):
    """The branched network, the weights of one layer coarse because one of each output is large."""
    graph = network(precisions)
    node = graph.node(spoiled)
    weights = node.params["weights"].copy()
    weights[:, 0, 0, 0] = 30.0
    node.params = {**node.params, "weights": weights}
    samples = [data(4, seed) for seed in range(4)]
    return observe(prepare(graph, True, False), samples, samples, {"x": (-1.0, 1.0)}, False, "")


def widths(found) -> dict[str, int | None]:
    return {name: found.graph.precision(found.graph.node(name)).weight_bits for name in "abc"}


def test_layers_that_gain_most_for_their_weights_come_first():
    costs, counts = {"a": 4.0, "b": 4.0, "c": 1.0}, {"a": 100, "b": 10, "c": 1}
    roundings = Roundings(frozenset(), 11.0, 1.0)  # 20 in all, 10 left
    assert wide_layers(costs, counts, roundings, 0.5) == frozenset()
    assert wide_layers(costs, counts, roundings, 0.45) == {"c"}
    assert wide_layers(costs, counts, roundings, 0.3) == {"b", "c"}
    assert wide_layers(costs, counts, roundings, 0.1) == {"a", "b", "c"}
    assert wide_layers({}, {}, roundings) == frozenset()


def test_coarse_weights_cost_more_than_those_beside_them():
    found = observed()
    types = choose_observed_types(found, replace(BEST, mixed=False))
    costs = weight_costs(found.graph, types, found.samples, data(8, 3), BEST)
    assert set(costs) == {"a", "b", "c"} and min(costs.values()) >= 0
    assert costs["b"] > costs["c"]  # a feeds both outputs
    own = observed({"b": Precision(weight_bits=8)})
    assert set(weight_costs(own.graph, types, own.samples, data(8, 3), BEST)) == {"a", "c"}


def test_best_widens_weights_where_these_are_what_is_left():
    plain = observed()
    found, options = settle_wide_tensors(plain, BEST)
    assert widths(found)["b"] == 16 and not options.mixed and not options.wide_weights and options.wide
    assert settle_wide_tensors(found, options) == (found, options)
    graph, _ = quantize_observed(plain, BEST)
    assert graph.nodes[1].params["weights"].dtype == np.int16
    bytes_only, _ = quantize_observed(plain, replace(BEST, wide_weights=False))
    assert error(plain.graph, graph, "add") < 0.5 * error(plain.graph, bytes_only, "add")


def test_what_a_section_says_stays():
    found, _ = settle_wide_tensors(observed({"b": Precision(weight_bits=8)}), BEST)
    assert widths(found)["b"] == 8


def test_without_samples_or_mixed_precision_no_weights_are_widened():
    for found, options in ((replace(observed(), samples=[]), BEST), (observed(), replace(BEST, mixed=False))):
        same, plain = settle_wide_tensors(found, options)
        assert same == found and widths(found) == dict.fromkeys("abc") and not plain.mixed and not plain.wide


@every(
    ("bits", "kind", "inputs", "finest"),
    [
        (8, NumType(8, False), 100, 32767),
        (8, NumType(8, False), 1000, 8421),  # 2^31 / (1000 * 255)
        (8, NumType(16), 30, 2184),
        (8, NumType(16), 250, 262),
        (8, NumType(16), 260, 32767),  # below 9 bits
        (16, NumType(16), 30, 2184),
        (16, NumType(16), 33, 32767),  # below 12 bits
    ],
)
def test_wide_weights_are_coarser_rather_than_their_sums_wider(bits, kind, inputs, finest):
    node = Node("y", Fc(), ["x"], ["y"], {"weights": np.ones((1, inputs), np.float32), "bias": np.zeros(1, np.float32)})
    found = quantize_layer(node, LayerTypes([kind.with_scale(0.01)], NumType(16), QuantOptions(bits=bits), weight_bits=16))
    assert int(found.params["weights"].max()) == pytest.approx(finest, rel=0.01)
    assert (found.bound < 2**31) == (finest < 32767 or inputs * 32767 * kind.qmax < 2**31)
