"""What rewrites and number types cost grows with the layers, not with their square: executed lines are counted, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import n2d2py
from n2d2py.errors import InternalError
from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Clip
from n2d2py.operators.identity import Identity
from n2d2py.passes.fuse import fuse
from n2d2py.quant.calibration import quantize
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.statistics import collect

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
    assert [node.name for node in graph.consumers("c1")] == ["n1"] and graph.maker("c1").name == "c1"
    graph.bypass(graph.node("n1"))
    assert [node.name for node in graph.consumers("c1")] == ["r1"] and graph.producer("n1") is None
    graph.absorb(graph.node("c1"), graph.node("r1"))
    assert graph.maker("r1").name == "c1" and graph.producer("c1") is None
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
