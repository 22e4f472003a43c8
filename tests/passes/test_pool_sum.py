"""Max pools with the sum behind them: one layer in floating point, none where it would compute something else."""

from __future__ import annotations

import pytest
from support.tables import every

from n2d2py.graph.chains import CHAINS
from n2d2py.operators.activation import Activation
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip, Tanh
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.passes.chain import ChainPass
from n2d2py.passes.fuse import fuse

MAX = Pool("Max", (2, 3), (1, 2), (0, 1, 1, 0))
SUM = ElemWise("Sum")


def fuse_pool_sum() -> ChainPass:
    return ChainPass(CHAINS["fuse-pool-sum"])


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
    "changes, reason",
    [
        ({"pool": Pool("Average", (2, 3), (1, 2), (0, 1, 1, 0))}, "it is not a max pool"),
        ({"pool": Pool("Max", (2, 3), (1, 2), (0, -1, 1, 0))}, "it crops"),
        ({"total": ElemWise("Max")}, "s is not a plain addition"),
        ({"total": ElemWise("Sum", (1.0, 2.0))}, "s is not a plain addition"),
        ({"total": ElemWise("Sum", (1.0, 1.0), (0.0, 0.5))}, "s is not a plain addition"),
        ({"inputs": ("p", "t", "t")}, "s does not add one other tensor"),
        ({"inputs": ("p",)}, "s does not add one other tensor"),
        ({"inputs": ("p", "p")}, "s does not add one other tensor"),
        ({"first": Clip(0.0)}, "p carries the activation Clip"),
    ],
)
def test_what_is_no_such_sum_stays(build, run, changes, reason):
    after, report = run(pooled(build, **changes).done("s", "t"), fuse_pool_sum())
    assert [each.name for each in after.nodes] == ["t", "p", "s"]
    assert ("p", reason) in [(each.layer, each.text) for each in report.refused]


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
