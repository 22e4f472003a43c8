"""Which element-wise layers of one input multiply it and add to it: those that do give the gains and shifts they have, others none."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

from n2d2py.graph import Node
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.map.op import gains_and_shifts, scale_and_shift
from n2d2py.operators.functions import Clip, Tanh

SHAPES = ((2, 3, 4), (1, 3, 4), (2, 1, 4), (1, 1, 1), (1, 1, 4), (2, 3, 1))


def drawn(seed: int) -> Node:
    """A layer of one input and a constant; either may be repeated."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    function = draw.choice(("Add", "Sub", "Mul", "Div", "Div", "Max", "Pow", "PRelu"))
    shapes = [SHAPES[0], draw.choice(SHAPES)]
    if draw.random() < 0.15:
        shapes.reverse()
    slots = draw.choice(((0, -1), (-1, 0)))
    if slots[0] < 0:
        shapes.reverse()
    at = slots.index(-1)
    values = rng.uniform(0.5, 2, prod(shapes[at])) * rng.choice((-1, 1), prod(shapes[at]))
    kind = draw.choice((np.float32, np.float32, np.float32, np.int32))
    values = (np.ceil(values) if kind is np.int32 else values).astype(kind)
    if draw.random() < 0.15:
        values[-1] = 0
    dims = np.broadcast_shapes(*shapes)
    activation = draw.choice((None,) * 8 + (Clip(0.0), Tanh()))
    op = ArrayMap(function, dims, tuple(shapes), slots, draw.choice(("",) * 8 + ("int32",)))
    return Node("y", op, ["x"], ["y"], {f"operand{at}": values}, activation)


def expected(node: Node) -> bool:
    """Whether the layer is one of those, by what it is."""
    op, at = node.op, node.op.slots.index(-1)
    constant = node.params[f"operand{at}"]
    linear = op.function in ("Add", "Sub", "Mul") or (op.function == "Div" and at == 1 and constant.all())
    return linear and not op.result and node.activation is None and op.shapes[1 - at] == op.dims and constant.dtype.kind == "f"


@pytest.mark.parametrize("case", range(12))
def test_gains_and_shifts_are_what_the_layer_does(case):
    for seed in range(50 * case, 50 * case + 50):
        node = drawn(seed)
        found, one = gains_and_shifts(node), scale_and_shift(node)
        assert (found is not None) == expected(node), node
        if found is None:
            assert one is None
            continue
        shape, gains, shifts = found
        assert shape == node.op.shapes[node.op.slots.index(-1)]
        x = np.random.default_rng(seed).normal(size=(2, prod(node.op.dims)))
        (want,) = node.op.run([x], node)
        made = x.reshape(2, *node.op.dims) * gains.reshape(shape) + shifts.reshape(shape)
        np.testing.assert_allclose(made.reshape(2, -1), want, rtol=1e-6, atol=1e-6)
        assert (one is not None) == (prod(shape) == 1)
        if one is not None:
            np.testing.assert_allclose(x * one[0] + one[1], want, rtol=1e-6, atol=1e-6)


def test_what_is_drawn():
    found = [drawn(seed) for seed in range(600)]
    assert sum(map(expected, found)) > 100 and sum(scale_and_shift(node) is not None for node in found) > 15


@pytest.mark.parametrize(
    "op, activation, wanted",
    [
        (ArrayMap("Neg", (2, 3), ((2, 3),)), None, (-1, 0)),
        (ArrayMap("Neg", (2, 3), ((2, 3),)), Tanh(), None),
        (ArrayMap("Neg", (2, 3), ((1, 3),)), None, None),
        (ArrayMap("Neg", (2, 3), ((2, 3),), (0,), "int32"), None, None),
        (ArrayMap("Abs", (2, 3), ((2, 3),)), None, None),
        (ArrayMap("Add", (2, 3), ((2, 3), (2, 3)), (0, 1)), None, None),
        (ArrayMap("Add", (2, 3), ((2, 3), (2, 3)), (0, 0)), None, None),
    ],
    ids=str,
)
def test_without_a_constant(op, activation, wanted):
    assert scale_and_shift(Node("y", op, ["x"], ["y"], {}, activation)) == wanted
