"""Gains and shifts of a normalisation become part of the weights that read it, through what only moves elements."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.arrays.norm import ArrayNorm
from n2d2py.operators.channels_last import FromChannelsLast
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.fuse_norm import FuseNormForward

ROWS, SIZE = 4, 6


def normed(build, low: float = 0.8, high: float = 1.5):
    """A graph with a norm `n` of ROWS lines of SIZE elements."""
    b = build(ROWS * SIZE)
    b.layer("n", ArrayNorm(ROWS, SIZE, 1e-5), "x", {"gain": b.array(SIZE, low=low, high=high), "shift": b.array(SIZE)})
    return b


def convolved(b, source: str = "n", name: str = "c", **attributes) -> str:
    """A convolution 1 x 1 of the rows of `source`."""
    b.layer(f"{name}_rows", FromChannelsLast(SIZE), source)
    return b.layer(name, Conv((1, 1), **attributes), f"{name}_rows", {"weights": b.array(5, SIZE, 1, 1), "bias": b.array(5)})


def connected(b, source: str, inputs: int) -> str:
    """A fully connected layer."""
    return b.layer("f", Fc(), source, {"weights": b.array(3, inputs), "bias": b.array(3)})


def some(*positions: int) -> ArrayIndexSelect:
    """Elements of the first rows, in an order."""
    return ArrayIndexSelect(ROWS * SIZE, ((0, SIZE), tuple(positions)))


TAKEN = {
    "rows of pixels": lambda b: [convolved(b)],
    "two readers": lambda b: [convolved(b), convolved(b, name="d")],
    "one line, turned": lambda b: [connected(b, b.layer("s", some(5, 0, 3), "n"), 6)],
    "all lines": lambda b: [connected(b, "n", ROWS * SIZE)],
    "an image": lambda b: [connected(b, b.layer("r", Reshape((2, 3, 4)), "n"), ROWS * SIZE)],
    "rows of a choice": lambda b: [convolved(b, b.layer("s", some(*range(SIZE)), "n"))],
}


@every("reader", TAKEN.values(), ids=TAKEN)
def test_weights_take_gain_and_shift(build, run, reader):
    b = normed(build)
    after, report = run(b.done(*reader(b)), FuseNormForward())
    assert len(report.done) == 1 and after.node("n").params == {}


LEFT = {
    "also an output": (lambda b: [convolved(b), "n"], "n: it is a network output"),
    "also in a sum": (lambda b: [convolved(b), b.layer("e", ElemWise("Sum"), ["n", "x"])], "n: it feeds e of type ElemWise"),
    "pads": (lambda b: [convolved(b, pads=(1, 1, 1, 1))], "n: c pads with zeros, which the shift would change"),
    "other rows": (
        lambda b: [
            b.layer("r", FromChannelsLast(SIZE // 2), "n"),
            b.layer("c", Conv((1, 1)), "r", {"weights": b.array(2, SIZE // 2, 1, 1), "bias": b.array(2)}),
        ][1:],
        "n: a channel of c has several elements of a line",
    ),
    "filled": (lambda b: [connected(b, b.layer("s", some(0, -9, 2), "n"), 6)], "n: s fills positions"),
}


@every("reader, why", LEFT.values(), ids=LEFT)
def test_what_would_change_the_result_stays(build, run, reason, reader, why):
    b = normed(build)
    after, report = run(b.done(*reader(b)), FuseNormForward())
    assert set(after.node("n").params) == {"gain", "shift"} and reason(report) == why


def test_gains_that_differ_much_stay(build, run, reason):
    b = normed(build, 0.1, 4.0)
    _, report = run(b.done(convolved(b)), FuseNormForward())
    assert reason(report) == "n: its gains differ by more than a factor of 2"


def test_integer_weights_stay(build, run, reason):
    b = normed(build)
    graph = b.done(convolved(b))
    graph.node("c").params["weight_scales"] = np.ones(5, np.float32)
    _, report = run(graph, FuseNormForward())
    assert reason(report) == "n: the weights of c are integers"
