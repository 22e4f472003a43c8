"""The rewrites together: when they end, what they leave out, and what their report holds."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from n2d2py.errors import InternalError
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Clip, Tanh
from n2d2py.passes import fuse
from n2d2py.passes.base import Entry

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
