"""The contract of a pass: the graph is checked before and after it."""

from __future__ import annotations

import pytest

from n2d2py.errors import InternalError
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Tanh
from n2d2py.operators.transpose import Transpose
from n2d2py.passes import FuseReport, Match, Pass, passes


class Break(Pass):
    """Writes a wrong operator into the first node."""

    name = "break"

    def match(self, graph, node):
        return Match(True) if isinstance(node.op, Activation) else None

    def rewrite(self, graph, node, found):
        node.op = Transpose((0, 3, 1, 2))
        return "broken"


def test_a_pass_that_breaks_the_shapes_is_caught(build):
    b = build(4, 3, 2)
    b.layer("t", Activation(Tanh()))
    with pytest.raises(InternalError, match="t: shape"):
        Break().run(b.done("t"), FuseReport())


def test_a_broken_graph_is_not_accepted(build):
    b = build(4, 3, 2)
    b.layer("t", Activation(Tanh()))
    graph = b.done("t")
    graph.outputs = ["absent"]
    with pytest.raises(InternalError, match="output absent is never written"):
        Break().run(graph, FuseReport())


def test_every_pass_says_what_it_does_under_its_own_name():
    every = passes(integer=True)
    assert len({rewrite.name for rewrite in every}) == len(every)
    assert all(rewrite.summary and rewrite.__doc__ for rewrite in every)
    assert [p.name for p in every][-4:] == ["remove-gain", "gains-of-parts", "drop-softmax", "split-activation"]
    assert "drop-softmax" not in [p.name for p in passes(integer=False)]
