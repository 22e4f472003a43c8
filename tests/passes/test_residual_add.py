"""A convolution, or a max pool, and the sum after it as one layer: its structure, its integers, its file."""

from dataclasses import replace

import numpy as np
import pytest
from support.export_networks import random_inputs, residual
from support.ops import Activation, ElemWise, Pool, PoolSum
from support.tables import every

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, NumType, ShiftRescale
from n2d2py.contracts.functions import Clip, Tanh
from n2d2py.graph import CHAINS, Aligned, Dequantized, QuantGraph
from n2d2py.passes import Pass
from n2d2py.passes.fuse import chain_pass, fuse
from n2d2py.passes.integer.residual_add import fusable_pairs, fuse_residual_adds
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import read_graph, write_graph


@pytest.fixture(scope="module")
def networks() -> tuple[QuantGraph, QuantGraph]:
    """A network of integers whose convolution `flat` is added to `stem`, and the same with one layer for both."""
    graph = residual(True)
    return graph, fuse_residual_adds(graph, [("flat", "add")])


def test_one_layer_with_the_name_of_the_convolution_and_the_output_of_the_sum(networks):
    graph, fused = networks
    fused.verify()
    assert [node.name for node in fused.nodes] == [node.name for node in graph.nodes if node.name != "add"]
    node = next(node for node in fused.nodes if node.name == "flat")
    (apart,) = (node for node in graph.nodes if node.name == "flat")
    assert node.inputs == [*apart.inputs, "stem"] and node.outputs == ["add"]
    assert node.residual is not None and node.residual.layer == "add" and node.source[-1] == "add"
    assert set(graph.tensors) - set(fused.tensors) == set(apart.outputs)
    assert apart.residual is None and len(apart.inputs) == 1, "the given network is not changed"


def test_every_integer_is_the_same(networks, tmp_path):
    graph, fused = networks
    inputs = random_inputs(graph, 3)
    expected, found = (simulate(each, inputs, keep=True) for each in networks)
    assert set(found) == set(fused.tensors) and expected["add"].std() > 0
    write_graph(fused, tmp_path / "network.npz")
    again = simulate(read_graph(tmp_path / "network.npz"), inputs, keep=True)
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
        np.testing.assert_array_equal(again[name], values, err_msg=name)


def test_only_dense_convolutions_and_sums_of_integers_become_one(networks):
    graph, fused = networks
    fits = fusable_pairs(graph)
    assert fits("flat", "add") and fits("stem", "add")
    assert not fits("deep", "add") and not fits("flat", "flat") and not fits("add", "add")
    assert not fusable_pairs(residual(False))("flat", "add")
    assert not fusable_pairs(fused)("flat", "mean"), "a layer does one sum"


def with_sum(graph: QuantGraph, **changes) -> QuantGraph:
    """The network with another sum `add`."""
    return replace(graph, nodes=[replace(node, **changes) if node.name == "add" else node for node in graph.nodes])


def aligned(first: int, second: int, offset: int = 0) -> Aligned:
    return Aligned(np.array([first, second]), np.array([offset]))


@every(
    "changes, fits",
    [
        ({"bound": 2**31 - 1}, True),
        ({"bound": 2**31}, False),
        # products of all 256 values of a byte with both multipliers
        ({"form": aligned(2**22, 2**22 - 1)}, True),
        ({"form": aligned(2**22, 2**22)}, False),
        ({"form": aligned(-(2**22), 2**22)}, False),
        ({"form": aligned(1 - 2**22, -(2**22))}, True),
        ({"form": aligned(2**23 - 1, 0)}, True),
        ({"form": aligned(2**23, 0)}, False),
        ({"form": aligned(3, 5, 2**31 - 1)}, True),
        ({"form": aligned(3, 5, 2**31)}, False),
        ({"form": aligned(3, 5, 1 - 2**31)}, True),
        ({"form": aligned(3, 5, -(2**31))}, False),
        ({"form": Dequantized(np.ones(2, np.float32))}, False),
        ({"rescale": FixedPointRescale(np.array([5]), 7, 24)}, True),
        ({"rescale": ShiftRescale(np.array([3]))}, True),
        ({"rescale": FloatRescale(np.array([1 / 8, 1 / 4]))}, False),
        ({"rescale": None}, False),
        ({"op": ElemWise("Prod")}, False),
        ({"op": ElemWise("Max")}, False),
    ],
)
def test_a_sum_fits_32_bits_and_has_one_factor(networks, changes, fits):
    assert fusable_pairs(with_sum(networks[0], **changes))("flat", "add") is fits


def test_zero_points_count_in_the_offset(networks):
    """The sum is of 3 (q - 7) and 5 (q - 7): 56 less."""
    graph = networks[0]
    shifted = {name: replace(graph.tensors[name], type=NumType(8, False, zero_point=7)) for name in ("stem", "flat")}
    for offset, fits in ((56 - 2**31, False), (57 - 2**31, True), (2**31 + 55, True), (2**31 + 56, False)):
        changed = replace(with_sum(graph, form=aligned(3, 5, offset)), tensors={**graph.tensors, **shifted})
        assert fusable_pairs(changed)("flat", "add") is fits, offset


def test_the_constants_of_the_sum(networks):
    """Multipliers by what they belong to: the convolution is the second operand of the sum."""
    node = next(node for node in networks[1].nodes if node.name == "flat")
    residual = node.residual
    assert residual is not None
    assert (residual.multiplier, residual.residual_multiplier, residual.offset, residual.bound) == (5, 3, 0, 8 * 255)
    assert node.source == ["flat", "add"]


MAX = Pool("Max", (2, 3), (1, 2), (0, 1, 1, 0))
SUM = ElemWise("Sum")


def fuse_pool_sum() -> Pass:
    return chain_pass(CHAINS["fuse-pool-sum"])


def pooled(build, pool=MAX, total=SUM, inputs=("p", "t"), activation=None, first=None):
    """p pools x, t makes means of the same form, s adds them."""
    b = build(4, 6, 7)
    b.layer("t", Pool("Average", pool.kernel, pool.stride, pool.pads))
    b.layer("p", pool, activation=first)
    b.layer("s", total, list(inputs), activation=activation)
    return b


@pytest.mark.parametrize("inputs", [("p", "t"), ("t", "p")])
def test_a_pool_and_a_sum_are_one_layer(build, run, inputs):
    after, report = run(pooled(build, inputs=inputs, activation=Clip(0.0)).done("s"), fuse_pool_sum())
    node = after.node("s")
    assert [each.name for each in after.nodes] == ["t", "s"]
    assert node.op == PoolSum((2, 3), (1, 2), (0, 1, 1, 0)) and node.inputs == ["x", "t"]
    assert node.activation == Clip(0.0) and after.resolve("p") == "s" and node.source == ["p", "s"]
    assert report.counts == {"fuse-pool-sum": 1}


@every(
    "changes",
    [
        {"pool": Pool("Average", (2, 3), (1, 2), (0, 1, 1, 0))},
        {"pool": Pool("Max", (2, 3), (1, 2), (0, -1, 1, 0))},
        {"pool": Pool("Max", (2, 3), (1, 5), (0, 1, 1, 3))},
        {"total": ElemWise("Max")},
        {"total": ElemWise("Sum", (1.0, 2.0))},
        {"total": ElemWise("Sum", (1.0, 1.0), (0.0, 0.5))},
        {"inputs": ("p", "t", "t")},
        {"inputs": ("p",)},
        {"inputs": ("p", "p")},
        {"first": Clip(0.0)},
    ],
)
def test_what_is_no_such_sum_stays(build, run, changes):
    after, report = run(pooled(build, **changes).done("s", "t"), fuse_pool_sum())
    assert [each.name for each in after.nodes] == ["t", "p", "s"]
    assert "p" in [each.layer for each in report.refused]


@pytest.mark.parametrize("outputs", [("s", "p"), ("s", "q")])
def test_a_pool_that_is_read_twice_or_is_an_output_stays(build, run, outputs):
    b = pooled(build)
    if "q" in outputs:
        b.layer("q", Activation(Tanh()), "p")
    after, report = run(b.done(*outputs), fuse_pool_sum())
    assert "p" in [each.name for each in after.nodes] and not report.counts
    readers = "s (ElemWise), q (Tanh)" if "q" in outputs else "s (ElemWise)"
    assert f"the result of p is read by {readers}, not by a ElemWise alone" in [each.text for each in report.refused]


def test_integers_keep_the_sum_by_itself(build):
    graph = pooled(build).done("s")
    assert [node.op.kind for node in fuse(graph, integer=True)[0].nodes].count("PoolSum") == 0
    assert [node.op.kind for node in fuse(graph, integer=False)[0].nodes].count("PoolSum") == 1
