"""A Softmax is one of rows of an array; a logarithm stays as it is."""

from __future__ import annotations

import pytest
from support.tables import every

from n2d2py.graph import Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.norm import ArraySoftmax
from n2d2py.operators.functions import Clip
from n2d2py.operators.softmax import Softmax
from n2d2py.passes import fuse
from n2d2py.passes.softmax_rows import SoftmaxRows
from n2d2py.quant.float_fallback import float_layers


def network(b, op: Softmax, activation=None):
    b.layer("s", op, activation=activation)
    b.layer("last", Activation(Clip(0.125)), "s")
    return b.done("last")


@every("group, rows, size", [(0, 6, 8), (8, 6, 8), (4, 12, 4), (1, 48, 1)])
def test_channels_of_an_image(build, run, kinds, group, rows, size):
    after, _ = run(network(build(8, 2, 3), Softmax(group)), SoftmaxRows())
    assert kinds(after) == [
        ("s_rows", "ToChannelsLast"),
        ("s_shares", "ArraySoftmax"),
        ("s_line", "FromChannelsLast"),
        ("s", "Reshape"),
        ("last", "Activation"),
    ]
    assert after.node("s_shares").op == ArraySoftmax(rows, size, 1)
    assert float_layers(after) == set()


@pytest.mark.parametrize("group, rows, size", [(0, 5, 8), (4, 10, 4)])
def test_channels_of_a_line(build, run, kinds, group, rows, size):
    after, _ = run(network(build(8, 5), Softmax(group)), SoftmaxRows())
    assert kinds(after)[:2] == [("s_rows", "ToChannelsLast"), ("s_shares", "ArraySoftmax")]
    assert after.node("s_shares").op == ArraySoftmax(rows, size, 1) and float_layers(after) == set()


def test_a_vector(build, run, kinds):
    after, _ = run(network(build(6), Softmax(3)), SoftmaxRows())
    assert kinds(after) == [("s", "ArraySoftmax"), ("last", "Activation")] and after.node("s").op == ArraySoftmax(2, 3, 1)


@pytest.mark.parametrize("op, activation", [(Softmax(log=True), None), (Softmax(), Clip(0.25))])
def test_others_stay(build, run, kinds, op, activation):
    after, report = run(network(build(8, 2, 3), op, activation), SoftmaxRows())
    assert kinds(after)[0] == ("s", "Softmax") and not report.refused


def test_one_that_the_user_wants_in_floating_point_stays(build, run, kinds):
    graph = network(build(8, 2, 3), Softmax())
    graph.precisions["s"] = Precision(quantize=False)
    assert kinds(run(graph, SoftmaxRows())[0])[0] == ("s", "Softmax")


def test_only_where_the_target_takes_rows(build):
    graph = network(build(8, 2, 3), Softmax())
    for rows in (True, False):
        after, _ = fuse(graph, integer=True, rows=rows)
        assert any(isinstance(node.op, Softmax) for node in after.nodes) != rows
