"""BatchNorm and constant gains and shifts, into Conv and Fc. Error limit: 1e-6 of the largest value (float64 run)."""

import numpy as np
import pytest
from support.ops import Activation, Affine, BatchNorm, Conv, ElemWise, Fc, Pool, Reshape

from n2d2py.contracts.functions import Clip, Tanh
from n2d2py.graph import Node
from n2d2py.operators.linear import gain_and_shift, scale_outputs
from n2d2py.passes.fuse_into import batch_norm_to_affine, fuse_affine, fuse_batch_norm
from n2d2py.passes.gains import merge_gains


def bn(b, channels):
    return {
        "scale": b.array(channels),
        "bias": b.array(channels),
        "mean": b.array(channels),
        "variance": b.array(channels, low=0.1, high=2),
    }


def affine(b, channels):
    return {"weights": b.array(channels), "bias": b.array(channels)}


def conv(b, outputs, per_group, kernel=3):
    return {"weights": b.array(outputs, per_group, kernel, kernel), "bias": b.array(outputs)}


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_batchnorm_into_conv(build, run, kinds, groups):
    b = build(4, 6, 6)
    b.layer("c", Conv(groups=groups, pads=(1, 1, 1, 1)), "x", conv(b, 8, 4 // groups))
    b.layer("n", BatchNorm(), "c", bn(b, 8), Clip(0))
    after, report = run(b.done("n"), fuse_batch_norm)
    assert kinds(after) == [("c", "Conv")] and after.nodes[0].activation == Clip(0)
    assert after.nodes[0].source == ["c", "n"] and after.outputs == ["n"] and after.resolve("c") == "n"
    assert report.counts == {"fuse-batchnorm": 1}


def test_batchnorm_into_fc(build, run, kinds):
    b = build(5)
    b.layer("f", Fc(), "x", {"weights": b.array(3, 5), "bias": b.array(3)})
    b.layer("n", BatchNorm(), "f", bn(b, 3))
    assert kinds(run(b.done("n"), fuse_batch_norm)[0]) == [("f", "Fc")]


def test_batchnorm_without_variance_is_exact(build, run):
    b = build(4, 6, 6)
    params = bn(b, 4) | {"variance": np.array([0, 1e-20, 0.5, 1], np.float32)}
    b.layer("c", Conv(), "x", conv(b, 4, 4))
    b.layer("n", BatchNorm(1e-5), "c", params)
    run(b.done("n"), fuse_batch_norm)


def test_tiny_variance_without_epsilon_takes_the_mean_of_the_others(build):
    from n2d2py.operators.linear import gain_and_shift

    b = build(3)
    params = {
        "scale": np.ones(3, np.float32),
        "bias": np.zeros(3, np.float32),
        "mean": np.zeros(3, np.float32),
        "variance": np.array([1e-13, 1, 3], np.float32),
    }
    b.layer("n", BatchNorm(0.0), "x", params)
    gain, _ = gain_and_shift(b.graph.node("n"))
    np.testing.assert_allclose(gain, [1 / np.sqrt(2), 1, 1 / np.sqrt(3)], rtol=1e-7)


def test_batchnorm_behind_another_layer_becomes_affine(build, run, run_all, kinds):
    b = build(4, 6, 6)
    b.layer("p", Pool("Max", (2, 2)), "x")
    b.layer("n", BatchNorm(), "p", bn(b, 4), Clip(0))
    graph = b.done("n")
    assert run(graph, fuse_batch_norm)[1].refused
    after, _ = run(graph, batch_norm_to_affine)
    assert kinds(after) == [("p", "Pool"), ("n", "Affine")] and after.node("n").activation == Clip(0)


def test_weights_shared_with_another_layer_are_not_changed(build, run):
    b = build(4, 6, 6)
    shared = conv(b, 4, 4)
    b.layer("c", Conv(), "x", shared)
    b.layer("n", BatchNorm(), "c", bn(b, 4))
    b.layer("d", Conv(), "x", shared)
    b.layer("s", ElemWise("Sum"), ["n", "d"])
    before = shared["weights"].copy()
    after, _ = run(b.done("s"), fuse_batch_norm)
    assert np.array_equal(shared["weights"], before) and after.node("d").params["weights"] is shared["weights"]


def test_mul_add_chain_into_conv(build, run_all, kinds):
    b = build(4, 6, 6)
    b.layer("c", Conv(), "x", conv(b, 4, 4))
    b.layer("m", Affine(), "c", affine(b, 4))
    b.layer("a", Affine(), "m", affine(b, 4), Clip(0, 6))
    after, report = run_all(b.done("a"))
    assert kinds(after) == [("c", "Conv")] and after.nodes[0].activation == Clip(0, 6)
    assert report.counts == {"fuse-affine": 2}


@pytest.mark.parametrize(("dims", "left"), [((4, 36), ["c", "r"]), ((4, 1, 36), ["c", "r"]), ((12, 4, 3), ["c", "r", "a"])])
def test_affine_of_reshaped_channels(build, run, kinds, dims, left):
    """A Squeeze between a Conv and its bias; a Reshape that mixes channels stays."""
    b = build(4, 6, 6)
    b.layer("c", Conv(pads=(1, 1, 1, 1)), "x", conv(b, 4, 4))
    b.layer("r", Reshape(dims), "c")
    b.layer("a", Affine(), "r", affine(b, dims[0]), Clip(0, 6))
    after, _ = run(b.done("a"), fuse_affine)
    assert [node.name for node in after.nodes] == left


def test_affine_chain_merges(build, run, kinds):
    b = build(4)
    b.layer("m", Affine(), "x", affine(b, 4))
    b.layer("a", Affine(), "m", affine(b, 4))
    assert kinds(run(b.done("a"), fuse_affine)[0]) == [("m", "Affine")]


def test_neutral_affine_disappears(build, run, kinds):
    b = build(4)
    b.layer("t", Activation(Tanh()), "x")
    b.layer("a", Affine(), "t", {"weights": np.ones(4, np.float32), "bias": np.zeros(4, np.float32)})
    after, _ = run(b.done("a"), fuse_affine)
    assert kinds(after) == [("t", "Activation")] and after.outputs == ["a"]


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_affine_before_conv(build, run, kinds, groups):
    b = build(4, 6, 6)
    b.layer("a", Affine(), "x", affine(b, 4))
    b.layer("c", Conv(groups=groups), "a", conv(b, 8, 4 // groups))
    b.layer("d", Conv(), "a", conv(b, 8, 4))
    b.layer("s", ElemWise("Sum"), ["c", "d"])
    after, _ = run(b.done("s"), merge_gains)
    assert kinds(after) == [("c", "Conv"), ("d", "Conv"), ("s", "ElemWise")]


def test_affine_before_fc_of_an_image(build, run, kinds):
    b = build(4, 3, 2)
    b.layer("a", Affine(), "x", affine(b, 4))
    b.layer("f", Fc(), "a", {"weights": b.array(5, 24), "bias": b.array(5)})
    assert kinds(run(b.done("f"), merge_gains)[0]) == [("f", "Fc")]


def test_affine_before_a_padding_conv_only_without_shift(build, run, kinds):
    b = build(4, 6, 6)
    b.layer("a", Affine(), "x", affine(b, 4))
    b.layer("c", Conv(pads=(1, 0, 0, 0)), "a", conv(b, 8, 4))
    graph = b.done("c")
    assert run(graph, merge_gains)[1].refused
    graph.node("a").params["bias"] = np.zeros(4, np.float32)
    assert kinds(run(graph, merge_gains)[0]) == [("c", "Conv")]


@pytest.mark.parametrize("scales", [np.array([0.5], np.float32), np.array([0.5, 0.25, 1, 2], np.float32)])
def test_gains_of_weights_that_are_integers_of_a_file(scales):
    """The integers stay, their signs change with the gain; what a gain near 0 multiplies is 0, in the scale that it had."""
    integers = np.array([[1, -2], [3, 4], [5, 6], [-7, 8]], np.float32)
    every = np.broadcast_to(scales, 4)
    params = {"weights": integers * every[:, None], "bias": np.arange(4, dtype=np.float32), "weight_scales": scales}
    node = Node("y", Fc(), ["x"], ["y"], params)
    gain, shift = np.array([2.0, -3.0, 0.0, 1e-31]), np.array([0.5, 0, 1, -1])
    scale_outputs(node, gain, shift)
    used = np.array([2.0, -3.0, 0.0, 0.0])
    assert np.array_equal(node.params["weights"], integers * every[:, None] * used[:, None])
    assert np.array_equal(node.params["weight_scales"], every * np.array([2, 3, 1, 1], np.float32))
    assert np.array_equal(node.params["bias"], np.arange(4) * used + shift)
    assert all(array.dtype == np.float32 for array in node.params.values())


def test_small_gains_of_real_weights_are_kept():
    node = Node("y", Fc(), ["x"], ["y"], {"weights": np.full((1, 2), 1e20, np.float32), "bias": np.ones(1, np.float32)})
    scale_outputs(node, np.array([1e-31]), np.array([0.0]))
    assert np.allclose(node.params["weights"], 1e-11, rtol=1e-6, atol=0)


def test_all_variances_tiny():
    node = Node("y", BatchNorm(0.0), ["x"], ["y"], {role: np.full(2, value) for role, value in PARAMS.items()})
    gain, shift = gain_and_shift(node)
    assert gain.tolist() == [3, 3] and shift.tolist() == [-5, -5]


PARAMS = {"scale": 3.0, "bias": 1.0, "mean": 2.0, "variance": 1e-13}
