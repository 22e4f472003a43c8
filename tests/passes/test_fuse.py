"""The rewrites together: what they leave out, shapes that one breaks, and what they cost as layers grow."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.ops import Activation, ArrayMap, BatchNorm, Conv, Identity, Transpose

import n2d2py
from n2d2py.contracts.functions import Clip, Tanh
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import InternalError
from n2d2py.graph import Graph, Node
from n2d2py.passes import FuseReport, Pass, fuse
from n2d2py.passes.base import Done
from n2d2py.quant.calibration import quantize
from n2d2py.quant.statistics import collect


@pytest.mark.parametrize("integer", [False, True])
def test_what_only_integers_need(build, integer):
    b = build(60)
    b.layer("f", Activation(Tanh()))
    b.layer("s", ArrayMap("Add", (3, 4, 5), ((3, 4, 5), (1, 4, 5)), (0, -1)), "f", {"operand1": b.array(20)})
    after, _ = fuse(b.done("s"), integer=integer)
    assert [node.op.kind for node in after.nodes] == ["Activation", "AddConstants" if integer else "ArrayMap"]


def write_a_wrong_operator(graph: Graph, node: Node) -> Done:
    node.op = Transpose((0, 3, 1, 2))
    return Done("broken")


def test_a_pass_that_breaks_the_shapes_is_caught(build):
    b = build(4, 3, 2)
    b.layer("t", Activation(Tanh()))
    with pytest.raises(InternalError, match="t: shape"):
        Pass("break", "", (Activation,), write_a_wrong_operator).run(b.done("t"), FuseReport())


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
