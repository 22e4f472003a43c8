"""The choice of number types: what -mixed-precision asks for, and what it needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node, Tensor
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.norm import ArraySoftmax
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import FUNCTIONS, Abs, Clip, Tanh
from n2d2py.operators.pool import Pool
from n2d2py.quant.calibration import choose, observe, observed_before, prepare
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.types import _unit_type
from n2d2py.quant.widths import _are_shares


@pytest.fixture
def observed():
    """Two convolutions whose tensor between has one large channel and small ones."""
    rng = np.random.default_rng(3)
    graph = Graph("net")
    graph.add_input("x", (1, 2, 6, 6))
    gains = np.array([1, 1e-3, 1e-3, 1e-3]).reshape(4, 1, 1, 1)
    for name, source, weights in (
        ("a", "x", rng.normal(size=(4, 2, 1, 1)) * gains),
        ("y", "a", rng.normal(size=(3, 4, 1, 1)) / gains.reshape(1, 4, 1, 1)),
    ):
        params = {"weights": weights.astype(np.float32), "bias": np.zeros(len(weights), np.float32)}
        graph.add(Node(name, Conv(), [source], [name], params, Clip(0.0) if name == "a" else None))
    graph.outputs = ["y"]
    graph.verify()
    samples = [rng.normal(size=(4, 2, 6, 6)).astype(np.float32) for _ in range(3)]
    return observe(prepare(graph, False, False), samples, samples, {}, False, "")


def bits(observed, **options) -> dict[str, int]:
    return {name: kind.bits for name, kind in choose(observed, QuantOptions(**options)).types.items()}


def test_mixed_precision_widens_what_costs_most(observed):
    plain, mixed = bits(observed), bits(observed, mixed=True)
    assert set(plain.values()) == {8} and mixed["a"] == 16 and set(mixed) == set(plain)


def test_without_samples_nothing_is_widened(observed):
    assert bits(replace(observed, samples=[]), mixed=True) == bits(observed)


def test_the_statistics_of_an_earlier_calibration_give_the_same_types(observed):
    again = observed_before(observed.graph, observed.statistics, observed.samples, observed.ranges)
    first, second = (choose(one, QuantOptions()).types for one in (observed, again))
    assert first == second


@pytest.mark.parametrize("asked", [False, True])
def test_inputs_have_the_bits_that_were_asked_for(asked):
    """Whatever reads them: `-input-bits 16` did nothing where no layer with weights does."""
    graph = Graph("pooled")
    graph.add_input("x", (1, 2, 4, 4))
    graph.add(Node("p", Pool("Average", (2, 2), (2, 2)), ["x"], ["p"]))
    graph.outputs = ["p"]
    x = np.random.default_rng(2).normal(size=(20, 2, 4, 4)).astype(np.float32)
    made = observe(prepare(graph, False, False), [x], [x], {}, False, "")
    assert bits(made, input_bits=16, input_asked=asked)["x"] == (16 if asked else 8)


@pytest.mark.parametrize("outputs", [["y"], ["y", "s"]])
@pytest.mark.parametrize("reader", ["matmul", "sum"])
def test_shares_that_only_products_read_keep_16_bits(outputs, reader):
    graph = Graph("net")
    graph.inputs, graph.outputs = ["x"], outputs
    graph.tensors = {name: Tensor(name, (1, 16)) for name in ("x", "s", "y")}
    product = ArrayMatMul((4, 4), (4, 4)) if reader == "matmul" else ElemWise("Sum")
    graph.nodes = [Node("s", ArraySoftmax(4, 4, 1), ["x"], ["s"]), Node("y", product, ["s", "x"], ["y"])]
    assert _are_shares(graph, "s") == (outputs == ["y"] and reader == "matmul")
    assert not _are_shares(graph, "x") and not _are_shares(graph, "y")


UNIT, SIGNED = NumType(8, False).with_scale(1 / 256), NumType(8).with_scale(1 / 128)


@pytest.mark.parametrize(
    "op, unsigned, signed",
    [
        (Activation(FUNCTIONS["Logistic"]()), UNIT, None),
        (Activation(Tanh()), SIGNED, SIGNED),
        (Activation(Abs()), None, None),
        (Activation(Clip(0.0, 1.0)), None, None),
        (ArraySoftmax(4, 4, 1), UNIT, None),
        (ArraySoftmax(4, 4, 1, True), None, None),
        (Conv(), None, None),
    ],
)
def test_results_between_fixed_ends_have_fixed_types(op, unsigned, signed):
    """Of what is unsigned where that is allowed; none of a layer with an activation, or of an input."""
    assert (_unit_type(Node("y", op, ["x"], ["y"]), True), _unit_type(Node("y", op, ["x"], ["y"]), False)) == (unsigned, signed)
    assert _unit_type(Node("y", op, ["x"], ["y"], {}, Clip(0.0)), True) is None and _unit_type(None, True) is None
