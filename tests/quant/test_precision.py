"""Precision of single layers: 16-bit integers, floating-point islands and the conversions at their borders."""

import numpy as np
import pytest
from support.branched_networks import data, error, network, quantized
from support.ops import Activation, Affine, Concat, Conv, ElemWise, Pool
from support.small_graphs import graph_of
from support.tables import every

from n2d2py.arithmetic import FLOAT32
from n2d2py.contracts.functions import FUNCTIONS, Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Node, Precision
from n2d2py.quant.calibration import quantize
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import float_layers, float_tensors, insert_conversions
from n2d2py.reference.engine import FloatEngine


def test_a_precision_of_a_merged_layer_counts():
    graph = network({"bn": Precision(16), "a": Precision(weight_bits=16)})
    node = graph.node("a")
    node.source = ["a", "bn"]
    assert graph.precision(node) == Precision(16, 16)
    assert graph.copy().precision(node) == Precision(16, 16) and graph.precision(graph.node("b")) == Precision()


def test_an_island_is_converted_once_at_each_border():
    graph = insert_conversions(network({"b": Precision(quantize=False), "c": Precision(quantize=False)}))
    assert [(node.name, node.inputs) for node in graph.nodes] == [
        ("a", ["x"]),
        ("a_float", ["a"]),
        ("b", ["a_float"]),
        ("c", ["a_float"]),
        ("b_integer", ["b"]),
        ("c_integer", ["c"]),
        ("add", ["b_integer", "c_integer"]),
        ("pool", ["c_integer"]),
    ]
    assert float_tensors(graph) == {"a_float", "b", "c"}
    x = data(2)
    for name, values in FloatEngine(network()).run(x).items():
        np.testing.assert_array_equal(FloatEngine(graph).run(x)[name], values)


def test_layers_that_only_move_values_join_an_island():
    island = {name: Precision(quantize=False) for name in ("c", "add")}
    graph = network(island)
    graph.add(Node("copy", Pool("Max", (1, 1), (1, 1)), ["c"], ["copy"]), at=graph.nodes.index(graph.node("add")))
    graph.node("add").inputs = ["b", "copy"]
    assert float_layers(graph) == {"c", "copy", "add"}
    graph.outputs.append("copy")
    assert float_layers(graph) == {"c", "add"}


def test_nothing_changes_without_islands():
    graph = network()
    assert insert_conversions(graph) is graph and float_tensors(graph) == set()


@pytest.mark.parametrize("correct", [False, True])
def test_an_island_computes_in_floating_point_and_helps(correct):
    options = {"correct_bias": correct, "adaptive_rounding": correct, "output_bits": 16}
    _, all_integer, _ = quantized(network(), **options)
    graph, mixed, _ = quantized(network({"b": Precision(quantize=False)}), **options)
    assert [node.name for node in mixed.nodes if mixed.is_float(node)] == ["b"]
    assert mixed.type("b") == FLOAT32 and not mixed.type("b_integer").is_float and mixed.is_mixed
    assert not all_integer.is_mixed
    assert error(graph, mixed, "add") < error(network(), all_integer, "add")


def test_an_output_of_an_island_stays_a_real_number():
    _graph, typed, _ = quantized(network({"pool": Precision(quantize=False)}))
    assert typed.type("pool") == FLOAT32 and not typed.type("c").is_float
    assert simulate(typed, quantize_inputs(typed, [data(3)]))["pool"].dtype == np.float32


def test_sixteen_bits_are_what_a_layer_reads_and_writes():
    _, typed, _ = quantized(network({"b": Precision(16)}))
    assert [typed.type(name).bits for name in ("x", "a", "b", "c", "add")] == [8, 16, 16, 8, 8]
    assert all(node.params["weights"].dtype == np.int8 for node in typed.nodes if "weights" in node.params)
    _, wide, _ = quantized(network({"b": Precision(16, 16)}))
    assert wide.nodes[1].params["weights"].dtype == np.int16 and wide.nodes[0].params["weights"].dtype == np.int8


def test_eight_bits_in_a_network_of_sixteen():
    _, typed, _ = quantized(network({"c": Precision(8, 8)}), bits=16, output_bits=16)
    assert [typed.type(name).bits for name in ("x", "a", "b", "c", "add")] == [16, 8, 16, 8, 16]


def test_sixteen_bits_help():
    everything = {name: Precision(16, 16) for name in ("a", "b", "c", "add")}
    _, narrow, _ = quantized(network())
    graph, wide, _ = quantized(network(everything))
    assert error(graph, wide, "add") < 0.2 * error(graph, narrow, "add")


def test_sums_beyond_32_bits_take_64_where_weights_would_become_coarse():
    graph = network({name: Precision(16) for name in ("a", "b", "c", "add")}, channels=160)
    _, typed, _ = quantized(graph)
    layer = next(node for node in typed.nodes if node.name == "b")
    assert typed.type("a").bits == 16 and layer.bound >= 2**31 and layer.params["bias"].dtype == np.int64


@every("size, wide", [(8, True), (2, False)])
def test_layers_after_the_last_weights_have_16_bits_where_these_cost_little(size, wide):
    """Boxes of a detector: c -> Sigmoid -> square -> gain, small next to the convolutions (kernels of `size`), or not."""
    rng = np.random.default_rng(1)
    weights = rng.normal(0, 0.1, (64, 3, size, size)).astype(np.float32), rng.normal(0, 0.3, (4, 64, 1, 1)).astype(np.float32)
    params = [{"weights": each, "bias": np.zeros(len(each), np.float32)} for each in weights]
    gain = {"weights": np.full(4, 64, np.float32), "bias": np.zeros(4, np.float32)}
    graph = graph_of(
        {"x": (1, 3, 24, 24)},
        Node("a", Conv((size, size)), ["x"], ["a"], params[0], Clip(0.0)),
        Node("c", Conv(), ["a"], ["c"], params[1]),
        Node("s", Activation(FUNCTIONS["Logistic"]()), ["c"], ["s"]),
        Node("p", ElemWise("Prod"), ["s", "s"], ["p"]),
        Node("y", Affine(), ["p"], ["y"], gain),
    )
    x = rng.normal(size=(16, 3, 24, 24)).astype(np.float32)
    histograms, real = collect(graph, [x]).histograms, FloatEngine(graph).run(x)["y"]
    lost = {}
    for bits in (0, 8):  # 8: as asked for the output, and so before it
        typed, _ = quantize(graph, histograms, QuantOptions(output_bits=bits), {"x": (-4.0, 4.0)})
        assert [typed.type(name).bits for name in "acspy"] == [8, *[16 if wide and not bits else 8] * 3, 8]
        stored = simulate(typed, quantize_inputs(typed, [x]))["y"]
        lost[bits] = np.square(typed.type("y").dequantize(stored) - real).mean()
    assert lost[0] < 0.9 * lost[8] if wide else lost[0] == lost[8], lost


def test_inputs_of_a_concat_of_another_width_are_rescaled():
    graph = network({"b": Precision(16)})
    graph.add(Node("cat", Concat(), ["b", "c"], ["cat"]))
    graph.outputs.append("cat")
    _, typed, _ = quantized(graph)
    assert typed.type("b").bits == 16 and typed.type("cat").bits == 8
    assert next(node for node in typed.nodes if node.name == "cat").rescale is not None


def test_a_concatenation_has_the_widest_range_of_its_inputs():
    """Its type reaches as far as theirs; an input that comes near takes it, one that does not is rescaled."""
    graph = network()
    for name, gain in (("b", 1.0), ("c", 0.05)):
        params = graph.node(name).params
        graph.node(name).params = {role: (array * np.float32(gain)).astype(np.float32) for role, array in params.items()}
    graph.add(Node("cat", Concat(), ["b", "c"], ["cat"]))
    graph.outputs.append("cat")
    _, typed, _ = quantized(graph)
    reach = {name: typed.type(name).scale * typed.type(name).qmax for name in ("b", "c", "cat")}
    assert reach["c"] < reach["b"] / 5 and np.isclose(reach["cat"], reach["b"])


@pytest.mark.parametrize("mode", ["KL-Divergence", "Quantile"])
def test_inputs_and_outputs_are_never_clipped(mode):
    """Tensors between them are, where one value lies far from the others."""
    graph = network()
    x = data(16)
    x[3, 1, 2, 2] = 40.0
    typed, _ = quantize(graph, collect(graph, [x]).histograms, QuantOptions(act_clipping=mode, quantile=0.99), {"x": None}, [])
    real = FloatEngine(graph).run(x)
    for name, largest in (("x", 40.0), ("add", np.abs(real["add"]).max())):
        assert np.isclose(typed.type(name).scale * typed.type(name).qmax, largest, rtol=0.01)
    assert typed.type("a").scale * typed.type("a").qmax < 30
