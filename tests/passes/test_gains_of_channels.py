"""Constants of channels that arrays are combined with become Affine layers, wherever the channels are; others stay."""

from __future__ import annotations

from math import prod

import numpy as np
from support.tables import every

from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip, Swish
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.reshape import Reshape
from n2d2py.passes import fuse
from n2d2py.passes.gains import GainsOfChannels, GainsOfRows, gains_of_channels, gains_of_rows


def mapped(
    b, function: str, dims: tuple[int, ...], shape: tuple[int, ...], *, first: bool = False, low: float = 0.5, source="x"
):
    """A layer that combines an array with a constant of `shape`, which is the left operand with `first`."""
    op = ArrayMap(function, dims, (shape, dims) if first else (dims, shape), (-1, 0) if first else (0, -1))
    return b.layer(
        f"{function}_{len(b.graph.nodes)}", op, source, {f"operand{0 if first else 1}": b.array(prod(shape), low=low)}
    )


@every("function, first", [("Add", True), ("Sub", True), ("Sub", False), ("Mul", True), ("Div", False)])
@every(
    "dims, shape, expected",
    [
        ((1, 4, 3, 2), (4, 1, 1), ["Reshape", "Affine", "Reshape"]),
        ((4, 6), (1, 4, 1)[1:], ["Reshape", "Affine", "Reshape"]),
        ((2, 3, 4), (4,), ["MemoryView", "Affine", "MemoryView"]),
        ((24,), (24,), ["Affine"]),
        ((1, 2, 12), (2, 12), ["Affine"]),
    ],
)
def test_a_constant_for_each_channel(build, run, kinds, function, first, dims, shape, expected):
    b = build(24)
    after, _ = run(
        b.done(mapped(b, function, dims, shape, first=first)), GainsOfRows() if len(shape) == 1 else GainsOfChannels()
    )
    assert [kind for _, kind in kinds(after)] == expected


@every(
    "function, dims, shape, first, why",
    [
        ("Mul", (2, 3, 4), (3, 1), False, ""),
        ("Mul", (2, 3, 4), (2, 1, 4), False, ""),
        ("Div", (4, 6), (4, 1), True, ""),
        ("Max", (4, 6), (4, 1), False, ""),
        ("Mul", (4, 6), (1,), False, ""),
    ],
)
def test_other_constants_stay(build, run, kinds, reason, function, dims, shape, first, why):
    b = build(24)
    after, report = run(b.done(mapped(b, function, dims, shape, first=first)), GainsOfChannels())
    assert [kind for _, kind in kinds(after)] == ["ArrayMap"]
    assert reason(report).endswith(why) if why else not report.refused


def test_a_divisor_of_zero_stays(build):
    b = build(24)
    b.layer("d", ArrayMap("Div", (4, 6), ((4, 6), (4, 1)), (0, -1)), "x", {"operand1": np.array([1, 0, 2, 3], np.float32)})
    assert gains_of_channels(b.graph.node("d")) is None


def test_what_changes_nothing_disappears(build):
    b = build(24)
    for name, function, constant in (
        ("a", "Mul", np.ones(1)),
        ("b", "Add", np.zeros(4)),
        ("c", "Div", np.ones(4)),
        ("d", "Sub", np.zeros(1)),
    ):
        shape = (constant.size, *(1,) * (constant.size > 1))
        op = ArrayMap(function, (4, 6), ((4, 6), shape), (0, -1))
        b.layer(name, op, b.graph.nodes[-1].output if b.graph.nodes else "x", {"operand1": constant.astype(np.float32)})
    b.layer("last", Activation(Clip(0)), "d")
    after, _ = fuse(b.done("last"), integer=True)
    assert [node.op.kind for node in after.nodes] == ["Activation"]


def test_a_group_normalisation_keeps_the_layout_of_images(build, kinds):
    """Its gains, the function behind it and the sum of the branch are layers of images; one Reshape in front and one behind."""
    b = build(4, 3, 2)
    b.layer("flat", Reshape((24,)))
    b.layer("norm", Normalize(12, 1e-5), "flat")
    b.layer("gain", ArrayMap("Mul", (1, 4, 3, 2), ((1, 4, 3, 2), (4, 1, 1)), (0, -1)), "norm", {"operand1": b.array(4)})
    b.layer("shift", ArrayMap("Add", (1, 4, 3, 2), ((1, 4, 3, 2), (4, 1, 1)), (0, -1)), "gain", {"operand1": b.array(4)})
    b.layer("swish", Activation(Swish()), "shift")
    b.layer("sum", ElemWise("Sum"), ["swish", "flat"])
    b.layer("image", Reshape((4, 3, 2)), "sum")
    b.layer("last", Activation(Clip(0)), "image")
    before = b.done("last")
    after, _ = fuse(before, integer=True)
    assert [kind for _, kind in kinds(after)] == ["Reshape", "Normalize", "Reshape", "Affine", "Activation", "ElemWise"]
    affine = next(node for node in after.nodes if isinstance(node.op, Affine))
    assert after.shape(affine.output) == (1, 4, 3, 2)


@every("function, first", [("Add", True), ("Sub", True), ("Sub", False), ("Mul", True), ("Div", False)])
@every("wrong", [np.inf, -np.inf, np.nan])
@every("every", [False, True])
def test_constants_that_are_not_finite_stay(build, function, first, wrong, every):
    """One of them as all of them: no integers stand for them. What is divided by infinity is 0."""
    b = build(24)
    mapped(b, function, (4, 6), (6,), first=first)
    (node,) = b.graph.nodes
    assert gains_of_rows(node) is not None
    for role, values in node.params.items():
        node.params[role] = np.where(every | (np.arange(6) == 2), np.float32(wrong), values)
    assert (gains_of_rows(node) is None) == (function != "Div" or np.isnan(wrong))
