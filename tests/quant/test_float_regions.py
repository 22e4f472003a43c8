"""Networks for targets whose layers of weights alone have integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.branched_networks import data
from support.layer_params import real_params

from n2d2py.graph import Graph, Node, Precision
from n2d2py.graph.forms import Weighted
from n2d2py.graph.precision import TargetForm
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip
from n2d2py.operators.pool import Pool
from n2d2py.quant.calibration import quantize
from n2d2py.quant.correct.channels import channel_factors, scale_channels
from n2d2py.quant.observe.layerwise import LayerwiseRun, expected_error
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import float_tensors, insert_conversions
from n2d2py.quant.types.float_regions import with_target_forms
from n2d2py.reference.engine import FloatEngine

RANGES = {"x": (-1.0, 1.0)}


def network(precisions: dict[str, Precision] | None = None) -> Graph:
    """x - a - b - add(b, x's c) - pool - d (fully connected)."""
    graph, rng = Graph("between"), np.random.default_rng(7)
    graph.add_input("x", (1, 2, 8, 8))
    graph.add(Node("a", Conv(pads=(1, 1, 1, 1)), ["x"], ["a"], real_params(rng, 8, 2, 3, 3), Clip(0.0)))
    graph.add(Node("b", Conv(), ["a"], ["b"], real_params(rng, 4, 8, 1, 1)))
    graph.add(Node("c", Conv(), ["x"], ["c"], real_params(rng, 4, 2, 1, 1), Clip(0.0)))
    graph.add(Node("add", ElemWise("Sum"), ["b", "c"], ["add"], {}, Clip(0.0)))
    graph.add(Node("pool", Pool("Average", (8, 8)), ["add"], ["pool"]))
    graph.add(Node("d", Fc(), ["pool"], ["d"], real_params(rng, 3, 4), Clip(0.0)))
    graph.add(Node("e", Fc(), ["d"], ["e"], real_params(rng, 5, 3)))
    graph.outputs = ["e"]
    graph.precisions = precisions or {}
    graph.verify()
    return graph


def marked(precisions: dict[str, Precision] | None = None) -> Graph:
    return with_target_forms(network(precisions), lambda node: isinstance(node.op, (Conv, Fc)))


def test_only_what_convolutions_alone_read_stays_integer():
    graph = marked()
    forms = {node.name: graph.precision(node).target for node in graph.nodes}
    integers, sums, real = TargetForm.INTEGERS, TargetForm.SUMS, TargetForm.REAL
    assert forms == {"a": integers, "b": sums, "c": sums, "add": real, "pool": real, "d": sums, "e": sums}
    converted = insert_conversions(graph)
    assert [node.inputs[0] for node in converted.nodes if isinstance(node.op, Convert)] == ["pool", "d"]
    assert float_tensors(converted) == {"b", "c", "add", "pool", "d", "e"}


def test_a_layer_that_was_asked_to_stay_real_does():
    graph = marked({"b": Precision(quantize=False)})
    assert graph.precision(graph.node("b")) == Precision(quantize=False, target=TargetForm.REAL)
    assert graph.precision(graph.node("a")).target is TargetForm.SUMS
    assert "a" in float_tensors(insert_conversions(graph))


def test_real_results_are_the_sums_and_lose_no_rounding():
    graph, stimuli = insert_conversions(marked()), data(24)
    typed, _ = quantize(graph, collect(graph, [stimuli]).histograms, QuantOptions(unsigned=False), RANGES, [stimuli])
    (x,) = quantize_inputs(typed, [data(4, 5)])
    values, node = simulate(typed, [x], keep=True), next(node for node in typed.nodes if node.name == "c")
    weights, steps = node.params["weights"].reshape(4, 2), node.rescaling.effective()
    sums = np.einsum("oc,nchw->nohw", weights.astype(int), x.astype(int)) + node.params["bias"].reshape(1, -1, 1, 1)
    assert np.allclose(values["c"], np.maximum(sums * steps.reshape(1, -1, 1, 1), 0), rtol=1e-6)
    assert typed.type("c").is_float and node.clamp is None and typed.sums_integers(node) and not typed.is_integer(node)
    assert np.allclose(values["add"], np.maximum(values["b"] + values["c"], 0), atol=1e-6)


def test_the_error_of_real_results_is_that_of_values_that_no_clamp_cuts():
    graph, stimuli = insert_conversions(marked()), data(48)
    typed, _ = quantize(graph, collect(graph, [stimuli]).histograms, QuantOptions(unsigned=False), RANGES, [stimuli])
    run = LayerwiseRun(graph, typed, [stimuli[k : k + 4] for k in range(0, 48, 4)])
    for node, layer in zip(graph.nodes, typed.nodes, strict=True):
        if node.name == "c":
            steps, form = layer.rescaling.effective(), layer.form_as(Weighted)
            shift = np.rint(0.05 / steps).astype(np.int32)
            layer = replace(layer, form=Weighted(form.weights, form.bias + shift))
        run.advance_real(node)
        found = run.advance_with_errors(node, layer)
        if node.name == "c":
            assert found is not None
            error = expected_error(*(np.concatenate(values) for values in zip(*found, strict=True)))
            counts = np.concatenate([count for _, count in found]).sum(axis=0)
            assert (counts < 48 * 64).any() and np.allclose(error[counts > 100], -0.05, atol=0.01)
            return


def test_channels_are_evened_out_through_the_rounding_of_what_is_read():
    graph = insert_conversions(marked())
    graph.node("d").params["weights"][1:] *= 1e-3
    graph.node("d").params["bias"] *= 0
    factors = channel_factors(graph, [data(8)])
    assert "d" in factors and factors["d"].max() > 1
    x = data(4, 5)
    before, after = FloatEngine(graph).run(x)["e"], FloatEngine(scale_channels(graph, factors)).run(x)["e"]
    assert np.allclose(before, after, atol=1e-5)
