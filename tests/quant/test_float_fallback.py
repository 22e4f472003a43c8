"""Which layers have an integer form, which stay in floating point, and what joins them."""

from dataclasses import replace

import numpy as np
import pytest
from support import ops
from support.branched_networks import data
from support.errors import error_of
from support.small_graphs import graph_of, real_params
from support.tables import every

from n2d2py.contracts.functions import ChannelClip, Clip, Elu, Erf, Exp, Log, Logistic, Softplus, Sqrt, Tanh
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, Precision, TargetForm, Weighted
from n2d2py.quant.calibration import quantize
from n2d2py.quant.correct.channels import channel_factors, scale_channels
from n2d2py.quant.observe.layerwise import LayerwiseRun, expected_error
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import float_layers, float_tensors, insert_conversions, with_target_forms
from n2d2py.reference.engine import FloatEngine

SHAPE = (1, 3, 4, 4)


def network(*layers, inputs=("x", "z"), shape=SHAPE, outputs=None, precisions=None) -> Graph:
    """Layers (name, operator, inputs[, activation, parameters]); the network's outputs are what nothing reads."""
    graph = Graph("net")
    for name in inputs:
        graph.add_input(name, shape)
    for name, op, sources, *more in layers:
        activation, params = (*more, None, None)[:2]
        arrays = {key: np.asarray(value, np.float32) for key, value in (params or {}).items()}
        graph.add(Node(name, op, sources.split(), [name], arrays, activation))
    read = {name for node in graph.nodes for name in node.inputs}
    graph.outputs = outputs or [node.output for node in graph.nodes if node.output not in read]
    graph.precisions = dict(precisions or {})
    graph.verify()
    return graph


FORMLESS = [
    ("Softmax", [("y", ops.Softmax(log=True), "x")]),
    ("LRN", [("y", ops.LRN(3, 1e-4, 0.75, 1.0), "x")]),
    ("shifted EuclideanSum", [("y", ops.ElemWise("EuclideanSum", (), (0.0, 1.0)), "x z")]),
    ("weighted maximum", [("y", ops.ElemWise("Max", (2.0, 1.0)), "x z")]),
    ("maximum with negative weight", [("y", ops.ElemWise("Max", (1.0, -1.0)), "x z")]),
    ("shifted minimum", [("y", ops.ElemWise("Min", (1.0, 1.0), (0.0, 0.5)), "x z")]),
    ("weighted minimum", [("y", ops.ElemWise("Min", (1.0, 3.0)), "x z")]),
    ("Unpool with overlaps", [("p", ops.Pool("Max", (2, 2), (1, 1)), "x"), ("y", ops.Unpool((2, 2), (1, 1)), "p x")]),
]
FORMED = [
    ("maximum", [("y", ops.ElemWise("Max"), "x z")]),
    ("minimum with weights of 1", [("y", ops.ElemWise("Min", (1.0, 1.0), (0.0, 0.0)), "x z")]),
    ("sum", [("y", ops.ElemWise("Sum"), "x z")]),
    ("weighted sum with shifts", [("y", ops.ElemWise("Sum", (2.0, -0.5), (1.0, 0.0)), "x z")]),
    ("sum of magnitudes", [("y", ops.ElemWise("AbsSum", (2.0, 1.0)), "x z")]),
    ("product", [("y", ops.ElemWise("Prod"), "x z")]),
    ("EuclideanSum", [("y", ops.ElemWise("EuclideanSum", (2.0, 1.0)), "x z")]),
    ("Unpool", [("p", ops.Pool("Max", (2, 2), (2, 2)), "x"), ("y", ops.Unpool((2, 2), (2, 2)), "p x")]),
    ("function", [("y", ops.Activation(Tanh()), "x")]),
    ("mean", [("y", ops.Pool("Average", (2, 2)), "x")]),
]


@every("layers", [layers for _, layers in FORMLESS], ids=[name for name, _ in FORMLESS])
def test_without_integer_form(layers):
    assert float_layers(network(*layers)) == {"y"}


@every("layers", [layers for _, layers in FORMED], ids=[name for name, _ in FORMED])
def test_with_integer_form(layers):
    assert float_layers(network(*layers)) == set()


FOLLOWERS = {
    "Clip": (ops.Activation(Clip(0.0, 6.0)), True),
    "Tanh": (ops.Activation(Tanh()), False),
    "Concat": (ops.Concat(), True),
    "Pool Max": (ops.Pool("Max", (2, 2)), True),
    "Pool Average": (ops.Pool("Average", (2, 2)), False),
    "Reshape": (ops.Reshape((48,)), True),
    "Transpose": (ops.Transpose((0, 1, 3, 2)), True),
    "Identity": (ops.Identity(), True),
}
PAIRS = {
    "Sum": (ops.ElemWise("Sum"), True),
    "Sub": (ops.ElemWise("Sum", (1.0, -1.0)), True),
    "weighted sum": (ops.ElemWise("Sum", (1.0, 2.0)), False),
    "shifted sum": (ops.ElemWise("Sum", (1.0, 1.0), (0.0, 1.0)), False),
    "AbsSum": (ops.ElemWise("AbsSum"), False),
    "Prod": (ops.ElemWise("Prod"), True),
    "Max": (ops.ElemWise("Max"), True),
    "Min": (ops.ElemWise("Min"), True),
}


@every("op, joins", FOLLOWERS.values(), ids=FOLLOWERS)
def test_what_is_exact_follows(op, joins):
    """Behind a layer without integer form; not behind one that was only asked to stay in floating point."""
    graph = network(("s", ops.Softmax(log=True), "x"), ("y", op, "s"))
    assert float_layers(graph) == ({"s", "y"} if joins else {"s"})
    asked = network(("s", ops.Activation(Tanh()), "x"), ("y", op, "s"), precisions={"s": Precision(quantize=False)})
    assert float_layers(asked) == ({"s", "y"} if isinstance(op, ops.Concat) else {"s"})  # a concatenation of reals stays real


@every("op, joins", PAIRS.values(), ids=PAIRS)
def test_what_combines_exactly_follows_where_both_are_real(op, joins):
    graph = network(("s", ops.Softmax(log=True), "x"), ("t", ops.Softmax(log=True), "z"), ("y", op, "s t"))
    assert float_layers(graph) == ({"s", "t", "y"} if joins else {"s", "t"})
    half = network(("s", ops.Softmax(log=True), "x"), ("y", op, "s z"))
    assert float_layers(half) == {"s"}


@every("activation, joins", [(None, True), (Clip(0.0), True), (ChannelClip(0.0, (1.0, 2.0, 3.0)), False), (Tanh(), False)])
def test_activations_of_followers(activation, joins):
    graph = network(("s", ops.Softmax(log=True), "x"), ("y", ops.Pool("Max", (2, 2)), "s", activation))
    assert float_layers(graph) == ({"s", "y"} if joins else {"s"})


def test_a_follower_that_was_asked_to_be_integer():
    graph = network(
        ("s", ops.Softmax(log=True), "x"), ("y", ops.Pool("Max", (2, 2)), "s"), precisions={"y": Precision(quantize=True)}
    )
    assert float_layers(graph) == {"s"}


def test_followers_of_followers():
    graph = network(
        ("s", ops.Softmax(log=True), "x"),
        ("a", ops.Identity(), "s"),
        ("b", ops.Pool("Max", (2, 2)), "a"),
        ("c", ops.Activation(Tanh()), "b"),
        ("d", ops.Identity(), "c"),
    )
    assert float_layers(graph) == {"s", "a", "b"}


MAPS = {Logistic(): "Sigmoid", Exp(): "Exp", Log(): "Log", Erf(): "Erf", Softplus(): "Softplus", Sqrt(): "Sqrt"}


def vectors(function, activation=None) -> Graph:
    return network(
        ("s", ops.Softmax(log=True), "x"), ("y", ops.Activation(function), "s", activation), inputs=["x"], shape=(1, 7)
    )


@every("function", MAPS, ids=MAPS.values())
def test_functions_of_vectors_are_maps_of_arrays(function):
    """With the same bits everywhere, so they follow; of images they have tables."""
    graph = vectors(function)
    assert float_layers(graph) == {"s", "y"}
    converted = insert_conversions(graph)
    assert converted.node("y").op == ops.ArrayMap(MAPS[function], (7,), ((7,),))
    assert [node.name for node in converted.nodes] == ["x_float", "s", "y"]
    image = network(("s", ops.Softmax(log=True), "x"), ("y", ops.Activation(function), "s"))
    assert float_layers(image) == {"s"} and insert_conversions(image).node("y").op == ops.Activation(function)


def test_other_functions_of_vectors_are_no_maps():
    for graph in (vectors(Elu()), vectors(Exp(), Tanh()), vectors(Exp(), Clip(0.0, 2.0))):
        assert float_layers(graph) == {"s"}


def test_layers_that_move_values_between_floating_point():
    asked = {name: Precision(quantize=False) for name in ("a", "d")}
    layers = [
        ("a", ops.Activation(Tanh()), "x"),
        ("b", ops.Identity(), "a"),
        ("c", ops.Reshape((48,)), "b"),
        ("d", ops.Activation(Tanh()), "c"),
    ]
    assert float_layers(network(*layers, precisions=asked)) == {"a", "b", "c", "d"}
    assert float_layers(network(*layers, ("e", ops.Activation(Tanh()), "b"), precisions=asked)) == {"a", "d"}
    assert float_layers(network(*layers, precisions={**asked, "c": Precision(quantize=True)})) == {"a", "d"}
    layers = [("a", ops.Activation(Tanh()), "x"), ("b", ops.Identity(), "a"), ("d", ops.Activation(Tanh()), "b")]
    assert float_layers(network(*layers, precisions=asked)) == {"a", "b", "d"}
    assert float_layers(network(*layers, precisions=asked, outputs=["d", "b"])) == {"a", "d"}
    assert float_layers(network(*layers, precisions={"a": asked["a"]})) == {"a"}
    assert float_layers(network(*layers, precisions={"d": asked["d"]})) == {"d"}
    assert float_layers(network(*layers, precisions={**asked, "b": Precision(quantize=True)})) == {"a", "d"}
    other = [*layers, ("e", ops.Activation(Tanh()), "b")]
    assert float_layers(network(*other, precisions=asked)) == {"a", "d"}
    both = {**asked, "e": Precision(quantize=False)}
    assert float_layers(network(*other, precisions=both)) == {"a", "b", "d", "e"}
    computing = [
        ("a", ops.Activation(Tanh()), "x"),
        ("b", ops.Pool("Average", (2, 2)), "a"),
        ("d", ops.Activation(Tanh()), "b"),
    ]
    assert float_layers(network(*computing, precisions=asked)) == {"a", "d"}


@every(
    "op, joins",
    [
        (ops.Affine(), True),
        (ops.ElemWise("Sum", (1.0, -0.97)), True),
        (ops.Pool("Average", (2, 2)), False),
        (ops.Activation(Tanh()), False),
    ],
)
def test_layers_that_scale_values_between_floating_point(op, joins):
    """What floating point alone reads is not rounded to 8 bits on its way."""
    asked = {name: Precision(quantize=False) for name in ("a", "d")}
    sources = "a a" if isinstance(op, ops.ElemWise) else "a"
    params = {"weights": [2.0, 3.0, 4.0], "bias": [0.0, 1.0, 2.0]} if isinstance(op, ops.Affine) else None
    layers = [("a", ops.Activation(Tanh()), "x"), ("b", op, sources, None, params), ("d", ops.Activation(Tanh()), "b")]
    assert float_layers(network(*layers, precisions=asked)) == ({"a", "b", "d"} if joins else {"a", "d"})
    assert float_layers(network(*layers, precisions={"a": asked["a"]})) == {"a"}
    assert float_layers(network(*layers, precisions={**asked, "b": Precision(quantize=True)})) == {"a", "d"}


def test_what_moves_a_network_input_stays_integer():
    layers = [("b", ops.Identity(), "x"), ("d", ops.Activation(Tanh()), "b")]
    assert float_layers(network(*layers, precisions={"d": Precision(quantize=False)})) == {"d"}


@pytest.mark.parametrize(
    "moving", [ops.Pool("Max", (2, 1), (1, 1)), ops.Transpose((0, 1, 3, 2)), ops.Resize((8, 4), "Bilinear")]
)
def test_a_concat_of_what_was_moved_in_integers_stays_real(moving):
    """A layer of integers reads the moved values too, so they are integers; the Concat was chosen for where they come from."""
    layers = [
        ("a", ops.ElemWise("Sum"), "x z"),
        ("m", moving, "a"),
        ("b", ops.Activation(Tanh()), "m"),
        ("c", ops.Concat(), "m b"),
        ("d", ops.Activation(Tanh()), "c"),
    ]
    graph = network(*layers, precisions={"a": Precision(quantize=False)})
    assert float_layers(graph) == {"a", "c"}
    result = insert_conversions(graph)
    assert result.node("c").inputs == ["m_float", "b_float"] and result.node("d").inputs == ["c_integer"]
    assert float_tensors(result) == {"x_float", "z_float", "a", "m_float", "b_float", "c"}


def refused(*layers, **options) -> N2D2Error:
    error = error_of(lambda: insert_conversions(network(*layers, **options)))
    assert error.code == "E510"
    return error


def test_neither_form_is_refused():
    """No integer form, and no kernel with the same bits everywhere."""
    shifted = ops.ElemWise("EuclideanSum", (), (1.0, 0.0))
    assert "layer 'y' (ElemWise EuclideanSum)" in refused(("y", shifted, "x z")).what
    assert "layer 'y' (ElemWise Max)" in refused(("y", ops.ElemWise("Max", (2.0, 1.0)), "x z")).what
    pooled = ("p", ops.Pool("Max", (2, 2), (1, 1)), "x")
    assert "layer 'y' (Unpool with overlapping windows)" in refused(pooled, ("y", ops.Unpool((2, 2), (1, 1)), "p x")).what
    norm = {"scale": [1] * 3, "bias": [0] * 3, "mean": [0] * 3, "variance": [1] * 3}
    assert "layer 'y' (BatchNorm)" in refused(("y", ops.BatchNorm(), "x", None, norm)).what


def test_asked_for_it_is_computed_in_floating_point():
    graph = network(("y", ops.ElemWise("EuclideanSum"), "x z"), precisions={"y": Precision(quantize=False)})
    assert [node.name for node in insert_conversions(graph).nodes] == ["x_float", "z_float", "y"]


def test_positions_of_extremes_are_found_among_the_integers():
    """Of integers and of real numbers: nothing is converted for them."""
    found = [ops.ArrayReduce(name, (7,), (0,), "int64") for name in ("ArgMax", "ArgMin", "ArgMaxLast", "ArgMinLast")]
    for op in (*found, ops.ArrayTopK(1, 7, 1, 2)):
        graph = network(("y", op, "x"), inputs=["x"], shape=(1, 7))
        assert float_layers(graph) == set() and insert_conversions(graph) is graph
        graph = network(("s", ops.Softmax(log=True), "x"), ("y", op, "s"), inputs=["x"], shape=(1, 7))
        assert float_layers(graph) == {"s"}
        assert [node.inputs for node in insert_conversions(graph).nodes] == [["x"], ["x_float"], ["s"]]
    largest = network(("y", ops.ArrayReduce("Max", (7,), (0,)), "x"), inputs=["x"], shape=(1, 7))
    assert float_layers(largest) == {"y"}


RANGES = {"x": (-1.0, 1.0)}


def of_regions(precisions: dict[str, Precision] | None = None) -> Graph:
    """x - a - b - add(b, x's c) - pool - d (fully connected)."""
    rng = np.random.default_rng(7)
    graph = graph_of(
        {"x": (1, 2, 8, 8)},
        Node("a", ops.Conv(pads=(1, 1, 1, 1)), ["x"], ["a"], real_params(rng, 8, 2, 3, 3), Clip(0.0)),
        Node("b", ops.Conv(), ["a"], ["b"], real_params(rng, 4, 8, 1, 1)),
        Node("c", ops.Conv(), ["x"], ["c"], real_params(rng, 4, 2, 1, 1), Clip(0.0)),
        Node("add", ops.ElemWise("Sum"), ["b", "c"], ["add"], {}, Clip(0.0)),
        Node("pool", ops.Pool("Average", (8, 8)), ["add"], ["pool"]),
        Node("d", ops.Fc(), ["pool"], ["d"], real_params(rng, 3, 4), Clip(0.0)),
        Node("e", ops.Fc(), ["d"], ["e"], real_params(rng, 5, 3)),
    )
    graph.precisions = precisions or {}
    graph.verify()
    return graph


def marked(precisions: dict[str, Precision] | None = None) -> Graph:
    return with_target_forms(of_regions(precisions), lambda node: isinstance(node.op, (ops.Conv, ops.Fc)))


def test_only_what_convolutions_alone_read_stays_integer():
    graph = marked()
    forms = {node.name: graph.precision(node).target for node in graph.nodes}
    integers, sums, real = TargetForm.INTEGERS, TargetForm.SUMS, TargetForm.REAL
    assert forms == {"a": integers, "b": sums, "c": sums, "add": real, "pool": real, "d": sums, "e": sums}
    converted = insert_conversions(graph)
    assert [node.inputs[0] for node in converted.nodes if isinstance(node.op, ops.Convert)] == ["pool", "d"]
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
