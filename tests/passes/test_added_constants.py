"""Constants added to arrays, repeated along the leading axes, and gains along an axis before the last one, get integers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.tables import every

from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.functions import Clip
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.array_elemwise import AddedConstants
from n2d2py.passes.gains import GainsOfRows
from n2d2py.quant.types.float_fallback import float_layers


def network(b, function, dims, shape, slots=(0, -1), values=None):
    shapes = tuple(shape if slot < 0 else dims for slot in slots)
    constant = b.array(*(size for size in shape if size > 1)) if values is None else values
    b.layer("f", Activation(Clip(-4.0)))
    b.layer("y", ArrayMap(function, dims, shapes, slots), "f", {f"operand{slots.index(-1)}": constant})
    b.layer("last", Activation(Clip(0.125)), "y")
    return b.done("last")


@every("function, slots", [("Add", (0, -1)), ("Add", (-1, 0)), ("Sub", (0, -1))])
@every("shape", [(1, 3, 4, 5), (1, 1, 4, 5), (2, 3, 4, 5), (1, 1, 1, 5)])
def test_constants_of_the_last_axes(build, run, run_all, kinds, function, slots, shape):
    graph = network(build(120), function, (2, 3, 4, 5), shape, slots)
    after, _ = run(graph, AddedConstants())
    assert ("y", "AddConstants") in kinds(after) and len(after.node("y").params["constants"]) == prod(shape)
    fused, _ = run_all(graph, integer=True)
    assert float_layers(fused) == set()


@pytest.mark.parametrize(
    "function, slots, shape", [("Sub", (-1, 0), (1, 3, 4, 5)), ("Mul", (0, -1), (1, 3, 4, 5)), ("Add", (0, -1), (1, 3, 1, 5))]
)
def test_others_stay(build, run, kinds, function, slots, shape):
    after, report = run(network(build(120), function, (2, 3, 4, 5), shape, slots), AddedConstants())
    assert ("y", "ArrayMap") in kinds(after) and not report.refused


@every("function", ["Mul", "Sub", "Div"])
@every("shape", [(1, 3, 1, 1), (1, 3, 4, 1), (1, 3, 1, 5), (1, 1, 4, 1)])
def test_gains_along_an_axis_before_the_last(build, run, run_all, kinds, function, shape):
    graph = network(build(120), function, (2, 3, 4, 5), shape)
    after, _ = run(graph, GainsOfRows())
    row = (3, 4, 5) if shape[1] > 1 else (4, 5)
    assert ("y", "Affine") in kinds(after) and len(after.node("y").params["weights"]) == prod(row)
    assert float_layers(run_all(graph, integer=True)[0]) == set()


def test_a_sign_that_is_turned(build, run, run_all, kinds):
    b = build(120)
    b.layer("f", Activation(Clip(-4.0)))
    b.layer("y", ArrayMap("Neg", (2, 3, 4, 5), ((2, 3, 4, 5),)), "f")
    b.layer("last", Activation(Clip(-2.0)), "y")
    graph = b.done("last")
    after, _ = run(graph, GainsOfRows())
    assert ("y", "Affine") in kinds(after) and (after.node("y").params["weights"] == -1).all()
    assert float_layers(run_all(graph, integer=True)[0]) == set()


def test_very_long_rows_stay(build, run, kinds):
    after, _ = run(network(build(2 * 3 * 5000), "Mul", (2, 3, 5000), (1, 3, 1)), GainsOfRows())
    assert ("y", "ArrayMap") in kinds(after)


@pytest.mark.parametrize("largest, sum_of", [(16.0, "AddConstants"), (1e4, "ArrayMap")])
def test_a_mask_of_scores_stays(build, run, kinds, largest, sum_of):
    b = build(24)
    constant = np.linspace(-largest, 0, 12, dtype=np.float32).reshape(3, 4)
    b.layer("y", ArrayMap("Add", (2, 3, 4), ((2, 3, 4), (1, 3, 4)), (0, -1)), "x", {"operand1": constant})
    b.layer("s", Softmax(4), "y")
    after, report = run(b.done("s"), AddedConstants())
    assert ("y", sum_of) in kinds(after) and len(report.refused) == (sum_of == "ArrayMap")


DIMS, SHAPE = (2, 3, 4, 5), (1, 3, 4, 5)
NEARLY = {
    "the sum": ({}, {}, True),
    "an activation": ({"activation": Clip(0.0)}, {}, False),
    "another type": ({}, {"result": "int32"}, False),
    "two tensors": ({"inputs": ["f", "f"]}, {"shapes": (DIMS, DIMS), "slots": (0, 1)}, False),
    "a tensor that is repeated": ({}, {"shapes": ((2, 3, 4, 5), (3, 1, 3, 4, 5)), "dims": (3, 2, 3, 4, 5)}, False),
    "one constant": ({"params": np.ones(1, np.float32)}, {"shapes": (DIMS, (1, 1, 1, 1))}, False),
    "integers": ({"params": np.ones(60, np.int64)}, {}, False),
    "a constant for all": ({"params": np.ones(1, np.float32)}, {}, False),
    "no number": ({"params": np.full(60, np.nan, np.float32)}, {}, False),
}


@every("name", NEARLY)
def test_what_is_nearly_a_sum_with_constants(build, name):
    node, op, taken = NEARLY[name]
    b = build(120)
    b.layer("f", Activation(Clip(-4.0)))
    made = ArrayMap(**{"function": "Add", "dims": DIMS, "shapes": (DIMS, SHAPE), "slots": (0, -1), **op})
    params = {"operand1": node.get("params", b.array(prod(made.shapes[1])))}
    b.layer("y", made, node.get("inputs", "f"), params, node.get("activation"))
    found = AddedConstants().match(b.graph, b.graph.node("y"))
    assert (found is not None) == taken
