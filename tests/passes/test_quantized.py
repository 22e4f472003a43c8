"""Roundings of networks that come quantized: merged, moved before what moves values, kept elsewhere."""

import pytest
from support.ops import Activation, Concat, ElemWise, Fc, Pool, Quantize, Reshape, Softmax, Transpose
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip, Tanh
from n2d2py.passes import FuseReport
from n2d2py.passes.layout import drop_softmax, transpose_into_fc
from n2d2py.passes.quantized import clip_before_quantize, hoist_quantize, merge_quantize

FINE, COARSE = Quantize(NumType(8, scale=1 / 64)), Quantize(NumType(8, scale=1 / 16))


def test_a_second_rounding_of_the_same_type_disappears(build, run, kinds):
    b = build(3, 4, 4)
    b.layer("q", FINE)
    b.layer("p", Pool("Max", (2, 2)), "q")
    b.layer("r", FINE, "p")
    b.layer("s", COARSE, "r")
    after, _ = run(b.done("s"), merge_quantize)
    assert kinds(after) == [("q", "Quantize"), ("p", "Pool"), ("s", "Quantize")]


@pytest.mark.parametrize("op, activation", [(COARSE, None), (FINE, Clip(0.0))])
def test_a_second_rounding_that_changes_values_stays(build, run, op, activation):
    b = build(3, 4, 4)
    b.layer("q", FINE)
    b.layer("r", op, "q", activation=activation)
    assert run(b.done("r"), merge_quantize)[1].done == []


def test_equal_roundings_of_one_tensor_are_one(build, run, kinds):
    b = build(3, 4, 4)
    b.layer("a", Activation(Tanh()))
    for name, op in (("q", FINE), ("r", COARSE), ("s", FINE)):
        b.layer(name, op, "a")
    b.layer("y", ElemWise("Sum"), ["q", "r", "s"])
    after, _ = run(b.done("y"), merge_quantize)
    assert kinds(after) == [("a", "Activation"), ("q", "Quantize"), ("r", "Quantize"), ("y", "ElemWise")]
    assert after.node("y").inputs == ["q", "r", "q"]


def test_equal_roundings_that_stay(build, run):
    """One is an output of the network, or carries an activation."""
    for outputs, activation in ((("y", "s"), None), (("y",), Clip(0.0))):
        b = build(3, 4, 4)
        b.layer("a", Activation(Tanh()))
        b.layer("q", FINE, "a")
        b.layer("s", FINE, "a", activation=activation)
        b.layer("y", ElemWise("Sum"), ["q", "s"])
        assert run(b.done(*outputs), merge_quantize)[1].done == []


@pytest.mark.parametrize("mover", [Pool("Max", (2, 2)), Transpose((0, 2, 3, 1)), Reshape((48,))])
def test_values_are_rounded_before_they_are_moved(build, run, kinds, mover):
    b = build(3, 4, 4)
    b.layer("a", Activation(Tanh()))
    b.layer("m", mover, "a")
    b.layer("q", FINE, "m")
    after, _ = run(b.done("q"), hoist_quantize)
    assert kinds(after) == [("a", "Activation"), ("a_quantized", "Quantize"), ("m", mover.kind)]
    assert after.nodes[-1].inputs == ["a_quantized"] and after.outputs == ["q"]


def test_each_input_of_a_concatenation_is_rounded_once(build, run, kinds):
    b = build(3, 4, 4)
    b.layer("a", Activation(Tanh()))
    b.layer("a_quantized", Activation(Clip(0.0)), "a")
    b.layer("c", Concat(), ["a", "a_quantized", "a"])
    b.layer("q", FINE, "c")
    after, _ = run(b.done("q"), hoist_quantize)
    assert sorted(name for name, kind in kinds(after) if kind == "Quantize") == ["a_quantized_", "a_quantized_quantized"]
    assert after.nodes[-1].inputs == ["a_quantized_", "a_quantized_quantized", "a_quantized_"]


@pytest.mark.parametrize(
    "mover, activation, outputs",
    [(Pool("Average", (2, 2)), None, "q"), (Pool("Max", (2, 2)), Tanh(), "q"), (Pool("Max", (2, 2)), None, "q m")],
)
def test_roundings_that_stay_behind(build, run, mover, activation, outputs):
    b = build(3, 4, 4)
    b.layer("a", Activation(Tanh()))
    b.layer("m", mover, "a", activation=activation)
    b.layer("q", FINE, "m")
    assert run(b.done(*outputs.split()), hoist_quantize)[1].done == []


def clamped(build, source="a", first=FINE, last=FINE, function=None, activation=None, more=()):
    b = build(3, 4, 4)
    b.layer("a", Activation(Tanh()))
    b.layer("q", first, source)
    b.layer("c", Activation(function or Clip(0.0, 0.5)), "q", activation=activation)
    b.layer("r", last, "c")
    for name in more:
        b.layer(name, Activation(Tanh()), "q")
    return b.done("r", *more, *(["a"] if source == "x" else []))


def test_a_clamp_between_two_roundings_comes_first(build, run, kinds):
    after, _ = run(clamped(build), clip_before_quantize)
    assert kinds(after) == [("a", "Activation"), ("c", "Activation"), ("r", "Quantize")]


@every("options", [{"source": "x"}, {"first": COARSE}, {"last": COARSE}, {"function": Tanh()}, {"activation": Tanh()}], ids=str)
def test_other_clamps_stay(build, run, options):
    assert run(clamped(build, **options), clip_before_quantize)[1].done == []


@pytest.mark.parametrize("rounded", [False, True])
def test_a_softmax_goes_with_its_rounding(build, kinds, rounded):
    b = build(8)
    b.layer("f", Fc(), "x", {"weights": b.array(5, 8), "bias": b.array(5)})
    b.layer("s", Softmax(), "f")
    if rounded:
        b.layer("q", FINE, "s")
    graph, report = b.done("q" if rounded else "s"), FuseReport()
    drop_softmax.run(graph, report)
    assert kinds(graph) == [("f", "Fc")] and report.counts == {"drop-softmax": 1}


def test_a_transposition_before_several_linear_layers(build, run, kinds):
    b = build(4, 3, 2)
    b.layer("t", Transpose((0, 2, 3, 1)))
    b.layer("r", Reshape((3, 8)), "t")
    b.layer("s", Reshape((24,)), "r")
    b.layer("f", Fc(), "s", {"weights": b.array(5, 24), "bias": b.array(5)})
    b.layer("g", Fc(), "t", {"weights": b.array(2, 24), "bias": b.array(2)})
    after, _ = run(b.done("f", "g"), transpose_into_fc)
    assert kinds(after) == [("f", "Fc"), ("g", "Fc")] and after.nodes[0].inputs == ["x"]
