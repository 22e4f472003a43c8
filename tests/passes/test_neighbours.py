"""Whether a layer on arrays gets integers, by what stands beside it."""

from __future__ import annotations

import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.functions import Clip, Exp
from n2d2py.operators.quantize import Quantize
from n2d2py.passes.neighbours import left_in_floats


def network(b, before, behind) -> Graph:
    """before -> a mean of rows `n` -> behind."""
    first = b.layer("before", before) if before is not None else "x"
    b.layer("n", ArrayReduce("Mean", (4, 6), (1,)), first)
    b.layer("behind", behind, "n")
    return b.done("behind")


RELU = Activation(Clip(0.0))
REAL = ArrayMap("Round", (24,), ((24,),), (0,))
REAL_BEHIND = ArrayMap("Round", (4,), ((4,),), (0,))
TWICE = ArrayMap("Mul", (4,), ((4,), (4,)), (0, 0))


@pytest.mark.parametrize(
    "before, behind, floats, wanted",
    [
        (None, RELU, "", None),
        (RELU, RELU, "", None),
        (REAL, RELU, "", "it follows before, which has no integers"),
        (RELU, REAL_BEHIND, "", "it feeds behind, which has no integers"),
        (REAL, REAL_BEHIND, "", "it follows before, which has no integers"),
        (RELU, RELU, "n", "it is to stay in floating point"),
        (RELU, RELU, "before", "it follows before, which has no integers"),
        (RELU, RELU, "behind", "it feeds behind, which has no integers"),
        (Quantize(NumType(8, scale=0.5)), RELU, "", "it computes in integers of the file"),
    ],
)
def test_what_stands_beside(before, behind, floats, wanted, build):
    graph = network(build(24), before, behind)
    if floats:
        graph.precisions[floats] = Precision(quantize=False)
    assert left_in_floats(graph, graph.node("n")) == wanted


@pytest.mark.parametrize("last, wanted", [(RELU, None), (REAL_BEHIND, "it feeds middle, which has no integers")])
def test_what_gets_integers_itself_looks_further(last, wanted, build):
    """A layer that a rewrite gives integers has them where those behind it have."""
    b = build(24)
    b.layer("n", ArrayReduce("Mean", (4, 6), (1,)))
    b.layer("middle", ArrayMap("Mul", (4,), ((4,), (1,)), (0, -1)), "n", {"operand1": b.array(1)})
    b.layer("last", last, "middle")
    graph = b.done("last")
    assert left_in_floats(graph, graph.node("n")) == wanted


def test_one_of_two_readers_is_enough(build):
    b = build(24)
    b.layer("n", ArrayReduce("Mean", (4, 6), (1,)))
    b.layer("integers", RELU, "n")
    b.layer("real", Activation(Exp()), "n")
    graph = b.done("integers", "real")
    assert left_in_floats(graph, graph.node("n")) is None
    graph.precisions["real"] = Precision(quantize=False)
    assert left_in_floats(graph, graph.node("n")) == "it feeds real, which has no integers"
