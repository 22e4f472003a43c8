"""Gains and shifts of a normalisation become part of the weights that read it, through what only moves elements."""

import numpy as np
import pytest
from support.ops import ArrayMap, ArrayRecurrent, Conv, ElemWise, Fc, IndexSelect, MemoryView, Normalize, Reshape
from support.tables import every

from n2d2py.passes.gains import merge_gains_of_arrays

ROWS, SIZE = 4, 6


def normed(build, low: float = 0.8, high: float = 1.5):
    """A graph with a norm `n` of ROWS lines of SIZE elements."""
    b = build(ROWS * SIZE)
    b.layer("n", Normalize(SIZE, 1e-5), "x", {"gain": b.array(SIZE, low=low, high=high), "shift": b.array(SIZE)})
    return b


def convolved(b, source: str = "n", name: str = "c", **attributes) -> str:
    """A convolution 1 x 1 of the rows of `source`."""
    b.layer(f"{name}_rows", MemoryView((SIZE, 1, b.graph.shape(source)[1] // SIZE)), source)
    return b.layer(name, Conv((1, 1), **attributes), f"{name}_rows", {"weights": b.array(5, SIZE, 1, 1), "bias": b.array(5)})


def connected(b, source: str, inputs: int) -> str:
    """A fully connected layer."""
    return b.layer("f", Fc(), source, {"weights": b.array(3, inputs), "bias": b.array(3)})


def some(*positions: int) -> IndexSelect:
    """Elements of the first rows, in an order."""
    return IndexSelect(((0, SIZE), tuple(positions)))


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
    after, report = run(b.done(*reader(b)), merge_gains_of_arrays)
    assert len(report.done) == 1 and after.node("n").params == {}


LEFT = {
    "also an output": lambda b: [convolved(b), "n"],
    "also in a sum": lambda b: [convolved(b), b.layer("e", ElemWise("Sum"), ["n", "x"])],
    "pads": lambda b: [convolved(b, pads=(1, 1, 1, 1))],
    "other rows": lambda b: [
        b.layer("r", MemoryView((SIZE // 2, 1, 2 * ROWS)), "n"),
        b.layer("c", Conv((1, 1)), "r", {"weights": b.array(2, SIZE // 2, 1, 1), "bias": b.array(2)}),
    ][1:],
    "filled": lambda b: [connected(b, b.layer("s", some(0, -9, 2), "n"), 6)],
}


@every("reader", LEFT.values(), ids=LEFT)
def test_what_would_change_the_result_stays(build, run, reader):
    b = normed(build)
    after, report = run(b.done(*reader(b)), merge_gains_of_arrays)
    assert set(after.node("n").params) == {"gain", "shift"} and report.refused


def test_gains_that_differ_much_stay(build, run):
    b = normed(build, 0.1, 4.0)
    _, report = run(b.done(convolved(b)), merge_gains_of_arrays)
    assert report.refused


def test_integer_weights_stay(build, run):
    b = normed(build)
    graph = b.done(convolved(b))
    graph.node("c").params["weight_scales"] = np.ones(5, np.float32)
    _, report = run(graph, merge_gains_of_arrays)
    assert report.refused


def recurrent(b, source: str) -> str:
    """An LSTM over ROWS steps of SIZE elements."""
    params = {
        "input_weights": b.array(12, SIZE),
        "recurrent_weights": b.array(12, 3),
        "gate_bias": b.array(12),
        "recurrent_bias": b.array(3, low=0, high=0),
        "initial_h": b.array(3),
        "initial_c": b.array(3),
    }
    return b.layer("l", ArrayRecurrent("LSTM", ROWS, SIZE, 3), source, params)


SCALED = {
    "a number": ArrayMap("Div", (ROWS * SIZE,), ((ROWS * SIZE,), (1,)), (0, -1)),
    "a row": ArrayMap("Mul", (ROWS, SIZE), ((ROWS, SIZE), (1, SIZE)), (0, -1)),
}


@pytest.mark.parametrize("turned", [False, True], ids=["as is", "steps in another order"])
@pytest.mark.parametrize("op", SCALED.values(), ids=SCALED)
def test_recurrent_weights_take_gains(build, run, op, turned):
    """`run` compares the results with those before, in float64."""
    b = build(ROWS * SIZE)
    size = op.shapes[1][-1]
    tensor = b.layer("g", op, "x", {"operand1": b.array(*op.shapes[1], low=0.7, high=1.3)})
    if turned:
        steps = tuple(SIZE * step for step in (2, 0, 3, 1))
        tensor = b.layer("t", IndexSelect((steps, tuple(range(SIZE)))), tensor)
    before = recurrent(b, tensor)
    after, report = run(b.done(before), merge_gains_of_arrays)
    assert len(report.done) == 1 and "g" not in [node.name for node in after.nodes], size
