"""The rewrites together: their contract, when they end, what they leave out, what their report holds, and what they cost as layers grow."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import n2d2py
from n2d2py.errors import InternalError
from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Clip, Tanh
from n2d2py.operators.identity import Identity
from n2d2py.operators.transpose import Transpose
from n2d2py.passes import FuseReport, Match, Pass, fuse, passes
from n2d2py.passes.base import Entry
from n2d2py.quant.calibration import quantize
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.statistics import collect

module = import_module("n2d2py.passes.fuse")


class Changing:
    """A rewrite that changes nothing and says that it did, for some rounds."""

    def __init__(self, rounds: int):
        self.left, self.runs = rounds, 0

    def run(self, graph, report) -> bool:
        self.runs += 1
        self.left -= 1
        report.refuse("changing", [Entry("changing", name, "of no use") for name in ("y", "gone")])
        return self.left >= 0


@pytest.fixture
def graph(build):
    b = build(2, 4, 4)
    b.layer("unread", Activation(Tanh()))
    return b.done(b.layer("y", Activation(Tanh())))


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_until_nothing_changes(graph, monkeypatch, rounds):
    one = Changing(rounds)
    monkeypatch.setattr(module, "passes", lambda **options: [one])
    after, report = fuse(graph, integer=False)
    assert one.runs == rounds + 1 and [node.name for node in after.nodes] == ["y"]
    assert [entry.layer for entry in report.refused] == ["y"]


def test_rewrites_without_end(graph, monkeypatch):
    monkeypatch.setattr(module, "passes", lambda **options: [Changing(10**6)])
    with pytest.raises(InternalError, match="do not come to an end"):
        fuse(graph, integer=False)


@pytest.mark.parametrize("integer", [False, True])
def test_late_rewrites_are_of_integer_exports_and_start_the_others_again(graph, monkeypatch, integer):
    early, late = Changing(0), Changing(2)
    monkeypatch.setattr(module, "passes", lambda **options: [early])
    monkeypatch.setattr(module, "late_passes", lambda: [late])
    fuse(graph, integer=integer)
    assert (early.runs, late.runs) == ((3, 3) if integer else (1, 0))


@pytest.mark.parametrize("integer", [False, True])
def test_what_only_integers_need(build, integer):
    b = build(60)
    b.layer("f", Activation(Tanh()))
    b.layer("s", ArrayMap("Add", (3, 4, 5), ((3, 4, 5), (1, 4, 5)), (0, -1)), "f", {"operand1": b.array(20)})
    after, _ = fuse(b.done("s"), integer=integer)
    assert [node.op.kind for node in after.nodes] == ["Activation", "AddConstants" if integer else "ArrayMap"]


def test_the_results_of_vanished_layers_are_known(build, run_all):
    b = build(2, 4, 4)
    params = {"weights": b.array(3, 2, 1, 1), "bias": b.array(3)}
    b.layer("c", Conv(), params=params)
    graph = b.done(b.layer("r", Activation(Clip(0.0)), "c"))
    after, report = run_all(graph)
    assert [node.name for node in after.nodes] == ["c"] and after.nodes[0].activation == Clip(0.0)
    assert report.counts and not report.refused and np.array_equal(after.nodes[0].params["weights"], params["weights"])


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


PACKAGE = str(Path(n2d2py.__file__).parent)


def chain(layers: int) -> Graph:
    """Convolutions, each with a normalization, a rectifier and a layer that does nothing behind it."""
    rng, graph = np.random.default_rng(1), Graph("chain")
    last = graph.add_input("x", (1, 2, 3, 3))
    for i in range(layers):
        weights = {"weights": rng.standard_normal((2, 2, 1, 1)).astype(np.float32), "bias": np.zeros(2, np.float32)}
        normal = {role: rng.uniform(0.5, 1, 2).astype(np.float32) for role in ("scale", "bias", "mean", "variance")}
        steps = (("c", Conv(), weights), ("n", BatchNorm(), normal), ("r", Activation(Clip(0.0)), {}), ("i", Identity(), {}))
        for letter, op, params in steps:
            last = graph.add(Node(f"{letter}{i}", op, [last], [f"{letter}{i}"], params)).output
    graph.outputs = [last]
    return graph


def lines_of(work: Callable[[], object]) -> int:
    """Lines of the package that `work` executes; each turn of a comprehension is one."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_fusing_grows_with_the_layers():
    small, large = chain(40), chain(80)
    assert lines_of(lambda: fuse(large, integer=True)) < 2.2 * lines_of(lambda: fuse(small, integer=True))


def test_choosing_integers_grows_with_the_layers():
    work = []
    for layers in (40, 80):
        graph, _ = fuse(chain(layers), integer=True)
        histograms = collect(graph, [np.random.default_rng(2).uniform(0, 1, (4, 2, 3, 3)).astype(np.float32)]).histograms
        work.append(lines_of(lambda graph=graph, histograms=histograms: quantize(graph, histograms, QuantOptions())))
    assert work[1] < 2.2 * work[0]


def test_the_index_follows_every_rewrite():
    graph = chain(3)
    assert [node.name for node in graph.consumers("c1")] == ["n1"] and graph.required_producer("c1").name == "c1"
    graph.bypass(graph.node("n1"))
    assert [node.name for node in graph.consumers("c1")] == ["r1"] and graph.producer("n1") is None
    graph.absorb(graph.node("c1"), graph.node("r1"))
    assert graph.required_producer("r1").name == "c1" and graph.producer("c1") is None
    first = graph.add(Node("first", Identity(), ["i0"], ["first"]), at=graph.nodes.index(graph.node("c1")))
    last = graph.add(Node("last", Identity(), ["i0"], ["last"]))
    assert graph.consumers("i0") == [first, graph.node("c1"), last] and last in graph
    last.inputs = ["first"]
    assert graph.consumers("i0") == [first, graph.node("c1")] and graph.consumers("first") == [last]
    graph.redirect("first", "i0")
    assert graph.consumers("i0") == [first, graph.node("c1"), last]
    graph.remove(last)
    graph.remove(first)
    assert graph.consumers("i0") == [graph.node("c1")] and last not in graph and first not in graph
    graph.verify()


def test_a_list_that_is_written_to_is_noticed():
    graph = chain(2)
    assert graph.consumers("x")
    graph.node("c1").inputs[0] = "x"
    with pytest.raises(InternalError, match="the index"):
        graph.verify()
