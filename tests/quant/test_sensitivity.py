"""What single roundings cost: layers in integers alone, tensors in steps alone, and what is chosen by it."""

from dataclasses import replace

import numpy as np
import pytest
from support.branched_networks import data, error, network, quantized
from support.ops import Activation, Conv
from support.small_graphs import graph_of

from n2d2py.contracts.functions import Clip, Logistic
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Interpolated, Node, Precision
from n2d2py.quant.calibration import quantize
from n2d2py.quant.search.isolation import Tail, run_isolated_layer
from n2d2py.quant.search.mixed import _Sums, rounding_costs, wide_tensors
from n2d2py.quant.search.sensitivity import layer_losses
from n2d2py.quant.statistics import collect
from n2d2py.reference.engine import FloatEngine


def test_a_tail_gives_the_outputs_of_the_whole_network():
    graph = network()
    x = data(3)
    real = FloatEngine(graph, taps=list(graph.tensors)).run(x)
    changed = real["b"] + 1
    outputs = Tail(graph, ["b"]).outputs({**real, "b": changed})
    np.testing.assert_allclose(outputs["add"], changed + real["c"], rtol=1e-6)
    np.testing.assert_array_equal(outputs["pool"], real["pool"])
    tail = Tail(graph, ["b"])._part
    assert (tail.inputs, [node.name for node in tail.nodes], tail.outputs) == (["b", "c"], ["add"], ["add"])
    both = Tail(graph, ["a", "c"]).outputs({**real, "c": real["c"] * 0})
    np.testing.assert_allclose(both["add"], real["b"], atol=1e-5)
    assert not both["pool"].any()


def test_an_isolated_layer_has_only_its_own_error():
    graph, typed, _ = quantized(network())
    real = FloatEngine(graph, taps=list(graph.tensors)).run(data(4))
    layer = next(node for node in typed.nodes if node.name == "c")
    error = np.abs(typed.type("c").dequantize(run_isolated_layer(typed, layer, real)) - real["c"])
    assert 0 < error.mean() < 3 * typed.type("c").scale


@pytest.mark.parametrize("spoiled, cause", [("b", "weights"), ("c", "weights")])
def test_the_worst_layer_comes_first(spoiled, cause):
    graph = network()
    node = graph.node(spoiled)
    weights = node.params["weights"].copy()
    weights[:, 0, 0, 0] = 60.0  # one large weight in each output makes the others coarse
    node.params = {**node.params, "weights": weights}
    graph, typed, _ = quantized(graph, output_bits=16)
    losses = layer_losses(graph, typed, data(8, 5))
    assert {loss.layer for loss in losses} == {"a", "b", "c", "add"}
    assert [loss.power for loss in losses] == sorted((loss.power for loss in losses), reverse=True)
    worst = next(loss for loss in losses if loss.layer == spoiled)
    assert worst is losses[0] or losses[0].layer == "a"
    assert worst.cause == cause and worst.remedy == "QuantWeightBits=16" and worst.weight_bits == 8
    assert next(loss for loss in losses if loss.layer == "add").weight_bits == 0


def test_a_layer_in_floating_point_loses_nothing():
    graph, typed, _ = quantized(network({"b": Precision(quantize=False)}))
    assert "b" not in {loss.layer for loss in layer_losses(graph, typed, data(4))}


def test_costs_add_up_to_what_all_roundings_cost_together():
    graph, _typed, types = quantized(network(), output_bits=16)
    costs = rounding_costs(graph, types, data(16, 3))
    assert set(costs) == {"a", "b"} and min(cost.sum() for cost in costs.values()) > 0
    x = data(16, 3)
    real = FloatEngine(graph, taps=list(graph.tensors)).run(x)
    kinds = types.types
    a = kinds["a"].dequantize(kinds["a"].quantize(real["a"]))
    through = Tail(graph, ["a"]).outputs({**real, "a": a})
    rows = {n: real[n].var(axis=(0, 2, 3), dtype=np.float64)[:, None, None] for n in graph.outputs}
    expected = sum(np.mean(np.square(through[n] - real[n], dtype=np.float64) / rows[n]) for n in graph.outputs)
    assert costs["a"].sum() == pytest.approx(expected, rel=1e-2)


def test_a_mean_error_of_a_row_costs_nothing():
    error, power = np.random.default_rng(3).normal(size=(6, 2, 5)) + np.array([[100.0], [0.0]]), np.array([[[1.0], [3.0]]])
    sums, alone = _Sums(power), _Sums(power)
    for batch in (error[:2], error[2:]):
        sums.add(batch)
    alone.add(error[:1])
    assert sums.costs() == pytest.approx(5 * error.var(axis=(0, 2)) * power.ravel())
    assert alone.costs() == pytest.approx((np.square(error[0]) * power[0]).sum(axis=1))  # nothing is known of the mean


def test_the_fewest_tensors_are_chosen():
    costs = {"a": np.array([5.0]), "b": np.array([1.0]), "c": np.array([3.0]), "d": np.array([1.0])}
    assert wide_tensors(costs, 0.2, 1.0) == {"a", "c"} and wide_tensors(costs, 1.0, 1.0) == frozenset()
    assert wide_tensors(costs, 0.0) == set(costs) and wide_tensors({}, 0.1) == frozenset()


def test_each_row_of_a_joined_output_counts():
    """Scores that cost most do not hide what boxes need."""
    costs = {"scores": np.array([9.0, 0.0]), "boxes": np.array([0.2, 0.4]), "both": np.array([0.1, 0.03])}
    assert wide_tensors(costs, 0.1, 1.0) == {"scores"} and wide_tensors(costs, 0.1, 0.1) == {"scores", "boxes"}
    assert wide_tensors(costs, 0.1, 0.05) == set(costs)


def test_mixed_precision_lowers_the_error():
    graph, narrow, types = quantized(network(), output_bits=16)
    wide = wide_tensors(rounding_costs(graph, types, data(16, 3)))
    _, mixed, _ = quantized(network(), output_bits=16, wide=wide)
    assert {name for name, tensor in mixed.tensors.items() if tensor.type.bits == 16} >= wide
    assert error(graph, mixed, "add") < 0.9 * error(graph, narrow, "add")


def test_what_a_function_reads_can_have_16_bits():
    def gated():
        graph = network()
        b = graph.node("b")
        b.activation = None
        graph.add(Node("gate", Activation(Logistic()), ["b"], ["gate"]), at=graph.nodes.index(graph.node("add")))
        graph.node("add").inputs = ["gate", *graph.node("add").inputs[1:]]
        b.params["weights"] = b.params["weights"] * 20
        graph.verify()
        return graph

    graph, _, types = quantized(gated(), output_bits=16)
    costs = rounding_costs(graph, types, data(16, 3))
    assert set(costs) == {"a", "b", "gate"} and costs["b"].sum() > 0
    _, mixed, widened = quantized(gated(), output_bits=16, wide=frozenset({"b"}))
    gate = next(node for node in mixed.nodes if node.name == "gate")
    assert mixed.type("b").bits == 16 and isinstance(gate.form, Interpolated) and mixed.type("gate").bits == 8
    assert set(rounding_costs(graph, widened, data(16, 3))) == {"a", "gate"}


def test_clipping_is_told_from_rounding():
    graph, typed, _ = quantized(network())
    tensor = typed.tensors["b"]
    typed.tensors["b"] = replace(tensor, type=tensor.type.with_scale(tensor.type.scale / 8))
    layer = next(node for node in typed.nodes if node.name == "b")
    layer.rescale = type(layer.rescale)(layer.rescale.factors * 8)
    loss = next(loss for loss in layer_losses(graph, typed, data(8)) if loss.layer == "b")
    assert loss.cause == "clipping" and loss.remedy == "" and loss.saturated > 0.05
    kind = typed.type("b")
    steps = np.rint(np.abs(FloatEngine(graph, taps=["b"]).run(data(8))["b"]) / kind.scale)
    assert (steps == kind.qmax).any() and loss.saturated == np.mean(steps > kind.qmax)


def test_a_corrected_bias_is_told_from_rounded_weights():
    """What a correction adds to a bias is an error of the layer alone: neither its weights nor its activations are to blame."""
    graph, real = network(), network()
    node, shift = graph.node("b"), np.full(6, 0.5, np.float32)
    node.params = {**node.params, "bias": node.params["bias"] + shift}
    _, typed, _ = quantized(graph)
    found = {
        known: next(loss for loss in layer_losses(real, typed, data(8), shifts) if loss.layer == "b")
        for known, shifts in ((False, None), (True, {"b": shift}))
    }
    assert found[False].cause == "weights" and found[True].cause == "bias correction"
    assert found[True].remedy == "" and found[True].power == found[False].power


def test_the_last_step_is_rounding_and_what_lies_beyond_it_clipping():
    for steps, cause in ((255.4, "output"), (255.6, "clipping"), (300.0, "clipping")):
        params = {"weights": np.full((1, 1, 1, 1), steps, np.float32), "bias": np.zeros(1, np.float32)}
        graph = graph_of({"x": (1, 1, 1, 1)}, Node("y", Conv(), ["x"], ["y"], params, Clip(0.0)))
        ones = np.ones((1, 1, 1, 1), np.float32)
        typed, _ = quantize(
            graph, collect(graph, [ones]).histograms, QuantOptions(act_clipping="None"), {"x": (0.0, 1.0)}, [ones]
        )
        kind = replace(typed.type("y"), bits=8, signed=False)
        typed.tensors["y"] = replace(typed.tensors["y"], type=kind.with_scale(1.0))
        (loss,) = layer_losses(graph, typed, ones)
        assert (loss.saturated, loss.cause) == (cause == "clipping", cause)
