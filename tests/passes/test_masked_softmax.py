"""Softmax of channels and of masked rows, and softplus with a linear tail, as exporters spell them: what has integers, what disappears."""

import numpy as np
import pytest
from support.onnx_models import decibels, float_results, integer_graph, integer_results, onnx_results, quantized_on, text_model
from support.ops import Activation, ArrayMap, MaskedSoftmax, Reshape, Softmax
from support.tables import every

from n2d2py.contracts.functions import Clip, Softplus
from n2d2py.graph import Precision
from n2d2py.passes import FuseReport, fuse
from n2d2py.passes.idioms import remove_softplus_tail
from n2d2py.passes.masked_softmax import remove_nan_guard
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.types.float_fallback import float_layers

HEADS, ROWS, WIDTH = 2, 5, 8
CAUSAL = np.tril(np.ones((ROWS, ROWS), bool))
LOWEST = float(np.finfo(np.float32).min)


Mask = tuple[str, dict[str, np.ndarray]]
"""The node that makes `masked` of `scores`, and its constants."""


def attention(mask: Mask, guard: bool = False) -> bytes:
    """softmax(mask(x x^T)) x of heads x."""
    masked, constants = mask
    body = f"y = Transpose <perm = [0, 1, 3, 2]> (x) scores = MatMul (x, y) {masked} shares = Softmax <axis = -1> (masked) "
    body += "bad = IsNaN (shares) guarded = Where (bad, zero, shares) " * guard
    body += f"r = MatMul ({'guarded' if guard else 'shares'}, x)"
    end = f"float[1,{HEADS},{ROWS},{WIDTH}]"
    return text_model(f"{end} x => {end} r", body, {"zero": np.float32(0), **constants}).SerializeToString()


def adds(values) -> Mask:
    return "masked = Add (scores, mask)", {"mask": np.asarray(values, np.float32)}


def puts(condition, value: float, kept_where_true: bool) -> Mask:
    choices = "scores, value" if kept_where_true else "value, scores"
    return f"masked = Where (condition, {choices})", {"condition": np.asarray(condition), "value": np.float32(value)}


BIAS = np.random.default_rng(1).normal(0, 1, (HEADS, ROWS, ROWS))
BY_HEAD = np.random.default_rng(2).random((HEADS, ROWS, ROWS)) < 0.5
BY_HEAD[:, :, 1] = True
FORMS = {
    "minus infinity": (adds(np.where(CAUSAL, 0, -np.inf)), ROWS, False),
    "the least float": (adds(np.where(CAUSAL, 0, LOWEST)), ROWS, False),
    "-100": (adds(np.where(CAUSAL, 0, -100)[None]), ROWS, False),
    "a mask for each head": (adds(np.where(BY_HEAD, 0, -1e4)), HEADS * ROWS, False),
    "with a bias": (adds(np.where(CAUSAL, BIAS, -1e9)), ROWS, True),
    "put where true": (puts(~CAUSAL, -np.inf, False), ROWS, False),
    "put where false": (puts(CAUSAL, -1e9, True), ROWS, False),
}


@every("guard", [False, True], ids=["plain", "guarded"])
@every("form", FORMS)
def test_masks_are_part_of_the_softmax(form, guard):
    mask, rows, adds_more = FORMS[form]
    file, x = attention(mask, guard), np.random.default_rng(3).normal(0, 0.8, (24, HEADS, ROWS, WIDTH)).astype(np.float32)
    graph = integer_graph(file)
    (softmax,) = [node for node in graph.nodes if isinstance(node.op, MaskedSoftmax)]
    assert softmax.params["mask"].shape == (rows, ROWS)
    kinds = [node.op.kind for node in graph.nodes]
    assert kinds.count("ArrayMatMul") == 2 and "ArrayMap" not in kinds and ("Affine" in kinds) == adds_more, kinds
    real = onnx_results(file, x)
    for dtype in (np.float32, np.float64):
        assert np.allclose(float_results(graph, x, dtype=dtype), real, rtol=1e-4, atol=1e-5)
    typed = quantized_on(graph, x, input_bits=16, output_bits=16)
    assert decibels(integer_results(typed, x), real) > 35
    stored = simulate(typed, quantize_inputs(typed, [x]), keep=True)
    shares = stored[softmax.output].reshape(len(real), -1, rows, ROWS)
    assert (shares[:, :, ~softmax.params["mask"]] == typed.type(softmax.output).zero_point).all()


AT_RUN_TIME = {
    "-10000": ("far = Mul (masks, value) masked = Add (scores, far)", -1e4),
    "the least float": ("far = Mul (masks, value) masked = Add (scores, far)", LOWEST),
    "with a bias": ("far = Mul (masks, value) both = Add (bias, far) masked = Add (scores, both)", LOWEST),
    "minus infinity, put": ("is = Cast <to = 9> (masks) masked = Where (is, value, scores)", -np.inf),
}


@every("form", AT_RUN_TIME)
def test_masks_of_each_sample_leave_the_steps_to_the_other_scores(form):
    """One of the samples is masked as a whole, where floating point has equal shares."""
    nodes, value = AT_RUN_TIME[form]
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, 0.8, (48, HEADS, ROWS, WIDTH)), rng.random((48, HEADS, ROWS, 1)) < 0.3], -1).astype(
        np.float32
    )
    x[:, :, 1, -1] = 0
    x[5, :, :, -1] = float(value == LOWEST)
    body = f"""
        v, last = Split <axis = 3> (x, sizes) y = Transpose <perm = [0, 1, 3, 2]> (v) scores = MatMul (v, y)
        masks = Transpose <perm = [0, 1, 3, 2]> (last) {nodes} shares = Softmax <axis = -1> (masked) r = MatMul (shares, v)
    """
    constants = {"sizes": np.array([WIDTH, 1]), "value": np.float32(value), "bias": BIAS[None].astype(np.float32)}
    ends = (f"float[1,{HEADS},{ROWS},{width}]" for width in (WIDTH + 1, WIDTH))
    file = text_model("{} x => {} r".format(*ends), body, constants).SerializeToString()
    typed = quantized_on(integer_graph(file), x)
    assert decibels(integer_results(typed, x), onnx_results(file, x)) > 32


NO_MASK = {
    "a bias": adds(BIAS),
    "far below in one line, all of it": adds(np.where(np.arange(ROWS)[:, None] == 2, -1e4, 0) + np.zeros((ROWS, ROWS))),
    "a line of minus infinity": adds(np.where(np.arange(ROWS)[:, None] == 2, -np.inf, 0) + np.zeros((ROWS, ROWS))),
    "near": adds(np.where(CAUSAL, 0, -10)),
    "put near": puts(CAUSAL, -10.0, True),
    "put above": puts(CAUSAL, 1e4, True),
}


@every("form", NO_MASK)
def test_others_stay(form):
    graph = integer_graph(attention(NO_MASK[form]))
    assert "MaskedSoftmax" not in {node.op.kind for node in graph.nodes}


def test_a_guard_stays_where_a_line_may_be_empty():
    graph = integer_graph(attention(NO_MASK["a line of minus infinity"], guard=True))
    assert [node.op.function for node in graph.nodes if node.op.kind == "ArrayMap"] == ["Add", "IsNaN", "Where"]


def test_one_that_the_user_wants_in_floating_point_stays():
    mask = FORMS["minus infinity"][0]
    graph = integer_graph(attention(mask), {"shares": Precision(quantize=False)})
    assert "MaskedSoftmax" not in {node.op.kind for node in graph.nodes}


@every("condition", ["input", "other function", "number of another", "its own"])
def test_only_a_guard_against_what_is_no_number_of_the_softmax_itself_goes(build, condition):
    """Where (IsNaN (softmax), constant, softmax), and nothing that looks alike."""
    b = build(16)
    b.layer("s", Softmax(4), "x")
    source = {"number of another": "x", "its own": "s", "other function": "s"}.get(condition)
    if source is not None:
        b.layer("c", ArrayMap("IsInf" if condition == "other function" else "IsNaN", (16,), ((16,),), (0,), "bool"), source)
    given = ["c" if source is not None else "x", "s"]
    b.layer("w", ArrayMap("Where", (16,), ((16,), (), (16,)), (0, -1, 1)), given, {"operand1": np.zeros(1, np.float32)})
    graph = b.done("w")
    assert remove_nan_guard.run(graph, FuseReport()) == (condition == "its own")


def network(b, op: Softmax):
    b.layer("s", op)
    b.layer("last", Activation(Clip(0.125)), "s")
    return b.done("last")


@every("shape, group", [((8, 2, 3), 0), ((8, 2, 3), 4), ((8, 5), 0), ((6,), 0)])
@pytest.mark.parametrize("rows", [True, False])
def test_in_integers_where_the_target_takes_them(build, kinds, shape, group, rows):
    after, _ = fuse(network(build(*shape), Softmax(group)), integer=True, rows=rows)
    assert kinds(after) == [("s", "Softmax"), ("last", "Activation")]
    assert float_layers(after) == (set() if rows else {"s", "last"})


def test_logarithms_stay_in_floating_point(build):
    after, _ = fuse(network(build(8, 2, 3), Softmax(log=True)), integer=True)
    assert "s" in float_layers(after)


def test_a_plain_one_that_the_user_wants_in_floating_point_stays(build):
    graph = network(build(8, 2, 3), Softmax())
    graph.precisions["s"] = Precision(quantize=False)
    assert "s" in float_layers(fuse(graph, integer=True)[0])


_DIMS = (1, 2, 3, 4)


def with_tail(b, threshold: float, other: bool = False):
    b.layer("a", Reshape((24,)))
    params = {"operand1": np.array([threshold], np.float32)}
    b.layer("above", ArrayMap("Greater", _DIMS, (_DIMS, (1, 1, 1, 1)), (0, -1), "bool"), "a", params)
    b.layer("plus", Activation(Softplus()))
    b.layer("p", Reshape((24,)), "plus")
    b.layer("y", ArrayMap("Where", _DIMS, (_DIMS, _DIMS, _DIMS), (0, 1, 2)), ["above", "p" if other else "a", "p"])
    return b.done("y")


@pytest.mark.parametrize("threshold", [15.0, 20.0])
def test_it_disappears(build, run, run_all, kinds, threshold):
    graph = with_tail(build(2, 3, 4), threshold)
    after, _ = run(graph, remove_softplus_tail)
    assert kinds(after) == [("plus", "Activation"), ("p", "Reshape"), ("y", "Identity")]
    assert "ArrayMap" not in [kind for _, kind in kinds(run_all(graph, integer=True)[0])]


def test_a_low_threshold_stays(build, run):
    after, report = run(with_tail(build(2, 3, 4), 3.0), remove_softplus_tail)
    assert report.refused and after.node("y").op.kind == "ArrayMap"


def test_another_tensor_stays(build, run, kinds):
    assert len(kinds(run(with_tail(build(2, 3, 4), 20.0, other=True), remove_softplus_tail)[0])) == 5
