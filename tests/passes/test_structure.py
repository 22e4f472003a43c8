"""Padding, activations, identities, layouts, Softmax: structure and equal results."""

import numpy as np
import pytest
from support import ops
from support.tables import every

from n2d2py import log
from n2d2py.contracts.functions import Clip, Tanh
from n2d2py.graph import Graph
from n2d2py.operators.linear import nonnegative_tensors
from n2d2py.passes import fuse
from n2d2py.passes.fuse_into import compose, fuse_activation, fuse_padding, remove_unlimited
from n2d2py.passes.layout import merge_transpose, remove_identity, remove_reshape
from n2d2py.passes.products import conv_to_fc


def conv(b, outputs, inputs, kernel=3):
    return {"weights": b.array(outputs, inputs, kernel, kernel), "bias": b.array(outputs)}


def fc(b, outputs, inputs):
    return {"weights": b.array(outputs, inputs), "bias": b.array(outputs)}


# ---- padding --------------------------------------------------------------------------------
def test_padding_into_conv_and_counting_mean(build, run, kinds):
    b = build(4, 6, 7)
    b.layer("p", ops.Padding((1, 0, 2, 3)))
    b.layer("c", ops.Conv(pads=(1, 1, 1, 1)), "p", conv(b, 4, 4))
    b.layer("m", ops.Pool("Average", (3, 3), (1, 1), (1, 1, 1, 1), True), "p")
    b.layer("s", ops.ElemWise("Sum"), ["c", "m"])
    after, _ = run(b.done("s"), fuse_padding)
    assert kinds(after) == [("c", "Conv"), ("m", "Pool"), ("s", "ElemWise")]
    assert after.node("c").op.pads == after.node("m").op.pads == (2, 1, 3, 4) and after.resolve("p") == "x"


def test_padding_into_a_mean_that_does_not_count(build, run):
    b = build(4, 6, 7)
    b.layer("p", ops.Padding((1, 0, 2, 3)))
    b.layer("m", ops.Pool("Average", (3, 3), (1, 1), (0, 0, 0, 0), False), "p")
    graph = b.done("m")
    after, _ = run(graph, fuse_padding)
    assert after.nodes[0].op == ops.Pool("Average", (3, 3), (1, 1), (1, 0, 2, 3), True)
    graph.node("m").op = ops.Pool("Average", (3, 3), (1, 1), (1, 1, 0, 0), False)
    graph.tensors["m"] = type(graph.tensors["m"])("m", (1, 4, 8, 9))
    assert run(graph, fuse_padding)[1].refused


def test_padding_into_max_pool_of_nonnegative_values_only(build, run, kinds):
    b = build(4, 6, 7)
    b.layer("r", ops.Activation(Clip(0)))
    b.layer("p", ops.Padding((1, 1, 1, 1)), "r")
    b.layer("m", ops.Pool("Max", (3, 3), (2, 2)), "p")
    graph = b.done("m")
    assert kinds(run(graph, fuse_padding)[0]) == [("r", "Activation"), ("m", "Pool")]
    graph.node("r").op = ops.Activation(Clip(-1, 1))
    assert run(graph, fuse_padding)[1].refused


def test_known_signs(build):
    b = build(4, 6, 6)
    b.layer("r", ops.Activation(Clip(0)))
    b.layer("m", ops.Pool("Max", (2, 2)), "r")
    b.layer("s", ops.ElemWise("Sum"), ["m", "m"])
    b.layer("d", ops.ElemWise("Sum", (1, -1)), ["m", "m"])
    b.layer("k", ops.Concat(), ["s", "d"])
    b.layer("c", ops.Conv(), "k", conv(b, 4, 8), Clip(0, 6))
    b.layer("n", ops.Pool("Average", (2, 2)), "m", activation=Clip(-2, -1))
    signs = {name: name in nonnegative_tensors(b.graph) for name in b.graph.tensors}
    assert signs == {"x": False, "r": True, "m": True, "s": True, "d": False, "k": False, "c": True, "n": False}


# ---- activations ----------------------------------------------------------------------------
@every("layer", ["conv", "fc", "affine", "sum", "mean"])
def test_clamp_into_the_layer_before(build, run, kinds, layer):
    b = build(4, 6, 6)
    op, params = {
        "conv": (ops.Conv(), conv(b, 4, 4)),
        "fc": (ops.Fc(), fc(b, 5, 144)),
        "affine": (ops.Affine(), {"weights": b.array(4), "bias": b.array(4)}),
        "sum": (ops.ElemWise("Sum"), {}),
        "mean": (ops.Pool("Average", (2, 2)), {}),
    }[layer]
    b.layer("l", op, ["x", "x"] if layer == "sum" else "x", params)
    b.layer("r", ops.Activation(Clip(0, 0.25)), "l")
    after, _ = run(b.done("r"), fuse_activation)
    assert kinds(after) == [("l", op.kind)] and after.nodes[0].activation == Clip(0, 0.25) and after.outputs == ["r"]


def test_clamp_through_max_pool(build, run, kinds):
    b = build(4, 6, 6)
    b.layer("c", ops.Conv(), "x", conv(b, 4, 4))
    b.layer("m", ops.Pool("Max", (2, 2), (2, 2)), "c")
    b.layer("r", ops.Activation(Clip(0)), "m")
    after, _ = run(b.done("r"), fuse_activation)
    assert kinds(after) == [("c", "Conv"), ("m", "Pool")] and after.node("c").activation == Clip(0)


def test_clamps_are_composed(build, run, kinds):
    b = build(4, 6, 6)
    b.layer("c", ops.Conv(), "x", conv(b, 4, 4), Clip(-1, 2))
    b.layer("r", ops.Activation(Clip(0, 6)), "c")
    after, _ = run(b.done("r"), fuse_activation)
    assert after.nodes[0].activation == Clip(0, 2)
    b = build(4)
    b.layer("r", ops.Activation(Clip(0)))
    b.layer("q", ops.Activation(Clip(-3, 1)), "r")
    assert kinds(run(b.done("q"), fuse_activation)[0]) == [("r", "Activation")]


def test_composition_equals_both_clips():
    values = np.linspace(-4, 4, 101)
    limits = [-np.inf, -2.0, -0.5, 0.0, 1.0, 3.0, np.inf]
    clips = [Clip(low, high) for low in limits for high in limits if low <= high and low < np.inf and high > -np.inf]
    for first in clips:
        for second in clips:
            np.testing.assert_array_equal(compose(first, second)(values), second(first(values)))


def test_unlimited_clip_disappears(build, run, kinds):
    b = build(4)
    b.layer("t", ops.Activation(Tanh()))
    b.layer("u", ops.Activation(Clip()), "t")
    assert kinds(run(b.done("u"), remove_unlimited)[0]) == [("t", "Activation")]


def test_other_activations_become_layers_for_integers(build, run_all, kinds):
    b = build(4, 6, 6)
    b.layer("c", ops.Conv(), "x", conv(b, 4, 4), Tanh())
    b.layer("d", ops.Conv(), "c", conv(b, 4, 4), Clip(0))
    graph = b.done("d", "c")
    after, _ = run_all(graph, integer=True)
    assert kinds(after) == [("c", "Conv"), ("c_activation", "Activation"), ("d", "Conv")]
    assert after.outputs == ["d", "c"] and after.resolve("c") == "c" and after.node("c").output == "c_linear"
    assert kinds(run_all(graph)[0]) == [("c", "Conv"), ("d", "Conv")]


# ---- identities and layouts -------------------------------------------------------------------
def test_identity_and_dropout_disappear(build, run, kinds):
    b = build(4)
    b.layer("i", ops.Identity())
    b.layer("t", ops.Activation(Tanh()), "i")
    b.layer("d", ops.Dropout(), "t")
    after, _ = run(b.done("d"), remove_identity)
    assert kinds(after) == [("t", "Activation")] and after.outputs == ["d"]
    assert after.resolve("i") == "x" and after.resolve("t") == "d" and after.resolve("d") == "d"


def test_identity_of_a_tensor_with_other_readers(build, run, kinds):
    b = build(4)
    b.layer("t", ops.Activation(Tanh()))
    b.layer("d", ops.Dropout(), "t")
    b.layer("r", ops.Activation(Clip(0)), "t")
    after, _ = run(b.done("d", "r"), remove_identity)
    assert kinds(after) == [("t", "Activation"), ("r", "Activation")] and after.outputs == ["t", "r"]


def test_reshape_before_fc_disappears(build, run, kinds):
    b = build(4, 3, 2)
    b.layer("r", ops.Reshape((12, 2)))
    b.layer("q", ops.Reshape((24,)), "r")
    b.layer("f", ops.Fc(), "q", fc(b, 5, 24))
    after, _ = run(b.done("f"), remove_reshape)
    assert kinds(after) == [("f", "Fc")]


def test_reshape_of_one_position_disappears_inside(build, run_all, kinds):
    b = build(4, 3, 3)
    b.layer("p", ops.Pool("Average", (3, 3)))
    b.layer("r", ops.Reshape((4,)), "p")
    b.layer("t", ops.Activation(Tanh()), "r")
    b.layer("f", ops.Fc(), "t", fc(b, 5, 4))
    after, _ = run_all(b.done("f"))
    assert kinds(after) == [("p", "Pool"), ("t", "Activation"), ("f", "Fc")] and after.shape("t") == (1, 4, 1, 1)


def test_reshape_before_a_product_of_rows_of_one_element_disappears(build, run_all, kinds):
    """The product becomes a Conv over the pixels of a view, which takes an image of one pixel like a vector."""
    b = build(3, 1, 1)
    b.layer("r", ops.Reshape((3,)))
    b.layer("m", ops.ArrayMatMul((1, 3, 1, 1), (1, 1, 1, 4), (0, -1)), "r", {"operand1": b.array(1, 1, 1, 4)})
    after, _ = run_all(b.done("m"), integer=True)
    assert [kind for _, kind in kinds(after)] == ["MemoryView", "Conv", "MemoryView"]


@pytest.mark.parametrize("outputs", [["q"], ["q", "r"]])
def test_a_reshape_that_leaves_the_network_is_not_lost(build, run, kinds, outputs):
    b = build(4, 3, 3)
    b.layer("r", ops.Reshape((12, 3)))
    b.layer("q", ops.Reshape((6, 6)), "r")
    after, _ = run(b.done(*outputs), remove_reshape)
    assert kinds(after) == [(name, "Reshape") for name in reversed(outputs)] and after.outputs == outputs
    assert all(node.inputs == ["x"] for node in after.nodes)
    after.verify()


def test_inverse_transposes_cancel(build, run_all, kinds):
    b = build(4, 3, 2)
    b.layer("t", ops.Transpose((0, 2, 3, 1)))
    b.layer("a", ops.Activation(Tanh()), "t")
    b.layer("s", ops.Affine(), "a", {"weights": np.full(3, 2, np.float32), "bias": np.full(3, 1, np.float32)})
    b.layer("u", ops.Transpose((0, 3, 1, 2)), "s")
    b.layer("c", ops.Conv(), "u", conv(b, 2, 4, 1))
    after, report = run_all(b.done("c"))
    assert kinds(after) == [("a", "Activation"), ("c", "Conv")] and report.counts["move-transpose"] == 1


def test_transposes_merge_and_transposes_of_vectors_are_reshapes(build, run, kinds):
    b = build(4, 3, 2)
    b.layer("t", ops.Transpose((0, 2, 3, 1)))
    b.layer("u", ops.Transpose((0, 2, 1, 3)), "t")
    after, _ = run(b.done("u"), merge_transpose)
    assert kinds(after) == [("u", "Transpose")] and after.nodes[0].op.perm == (0, 3, 2, 1)
    b = build(4, 1, 1)
    b.layer("t", ops.Transpose((0, 2, 3, 1)))
    after, _ = run(b.done("t"), merge_transpose)
    assert after.nodes[0].op == ops.Reshape((1, 1, 4))


def test_flattening_in_hwc_order_goes_into_the_weights(build, run_all, kinds):
    b = build(4, 3, 2)
    b.layer("t", ops.Transpose((0, 2, 3, 1)))
    b.layer("r", ops.Reshape((24,)), "t")
    b.layer("f", ops.Fc(), "r", fc(b, 5, 24))
    after, _ = run_all(b.done("f"))
    assert kinds(after) == [("f", "Fc")] and after.resolve("r") == "x"


def test_conv_over_the_whole_input(build, run, kinds):
    b = build(4, 3, 2)
    b.layer("c", ops.Conv(), "x", {"weights": b.array(5, 4, 3, 2), "bias": b.array(5)}, Clip(0))
    b.layer("r", ops.Reshape((5,)), "c")
    after, _ = run(b.done("r"), conv_to_fc)
    assert kinds(after) == [("c", "Fc")] and after.shape("r") == (1, 5) and after.nodes[0].activation == Clip(0)
    b = build(4, 3, 2)
    b.layer("c", ops.Conv(), "x", conv(b, 5, 4, 1))
    b.layer("r", ops.Reshape((30,)), "c")
    assert run(b.done("r"), conv_to_fc)[1].refused


# ---- softmax and the whole list ----------------------------------------------------------------
def classifier(build, *outputs: str) -> Graph:
    b = build(6)
    b.layer("f", ops.Fc(), "x", fc(b, 5, 6))
    b.layer("s", ops.Softmax(), "f")
    return b.done(*outputs)


@pytest.mark.parametrize("integer", [True, False])
def test_trailing_softmax_is_dropped_where_logits_are_asked_for(build, kinds, capsys, integer):
    log.setup()
    after, _ = fuse(classifier(build, "s"), integer=integer, logits=True)
    assert kinds(after) == [("f", "Fc")] and after.outputs == ["s"]
    assert "Softmax 's' at the output is" in capsys.readouterr().err
    kept, _ = fuse(classifier(build, "s"), integer=integer)
    assert kinds(kept) == [("f", "Fc"), ("s", "Softmax")]
