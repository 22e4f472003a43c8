"""What layers are told to the C++ compiler as, read back: loops that visit the same elements, functors with the same limits."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from support.lowered_layers import lowered

from n2d2py.arithmetic import FLOAT32, FloatRescale, NumType
from n2d2py.graph.forms import Aligned
from n2d2py.operators.arrays.index_select.op import ArrayIndexSelect
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Step
from n2d2py.operators.pool import Pool


def visited(text: str, first: int | None, arrays: dict[str, np.ndarray]) -> list[int | None]:
    """The indices that nested `Axis<size, step...>` and `TakeAxis<size, offsets>` visit, by their meaning in array.hpp; -1: filled."""
    axis = re.match(r"n2d2::Axis<(\d+), (-?\d+), 0, 0, (.*) >$", text)
    if axis:
        inner = visited(axis[3], 0, arrays)
        assert int(axis[1]) > 1 or axis[2] == "0", "a single element has no neighbour"
        return [_plus(_plus(first, k * int(axis[2])), at) for k in range(int(axis[1])) for at in inner]
    taken = re.match(r"n2d2::TakeAxis<(\d+), (\w+), (.*) >$", text)
    if taken:
        offsets, inner = arrays[taken[2]].tolist(), visited(taken[3], 0, arrays)
        assert len(offsets) == int(taken[1])
        return [_plus(_plus(first, offset if offset >= 0 else None), at) for offset in offsets for at in inner]
    assert text == "n2d2::AxisEnd"
    return [first]


def _plus(base: int | None, at: int | None):
    return None if base is None or at is None else base + at


@pytest.mark.parametrize("seed", range(30))
def test_loops_visit_the_elements_that_offsets_name(seed):
    rng = random.Random(seed)
    offsets, size = [], 1
    for _ in range(rng.randint(1, 5)):
        count, form = rng.randint(1, 4), rng.choice(("run", "run", "back", "table", "filled"))
        step = rng.randint(1, 5)
        line = [k * step for k in range(count)]
        if form == "back":
            line = line[::-1]
        elif form != "run":
            line = rng.sample(range(3 * count), count)
            line[0] = -1 if form == "filled" else line[0]
        offsets.append(tuple(line))
        size += max(0, *line)
    op = ArrayIndexSelect(size, tuple(offsets), 3.0)
    count = int(np.prod([len(line) for line in offsets]))
    kind = NumType(8)
    types, functions, arrays = lowered(op, [(1, size)], (1, count), kind)
    wanted: list[int | None] = [0]
    for line in offsets:
        wanted = [_plus(at, offset if offset >= 0 else None) for at in wanted for offset in line]
    assert visited(str(types["Axes"]), int(types["First"]), arrays) == wanted
    assert functions["y_fill"] == {"value": 3}


@pytest.mark.parametrize(
    "kernel, kind",
    [
        ((255, 257), NumType(16)),
        ((256, 256), NumType(16)),
        ((1, 65535), NumType(16)),
        ((65537, 1), NumType(16)),
        ((2, 4), NumType(8)),
        ((255, 257), NumType(16, False)),
        ((256, 129), NumType(16, False)),
        ((256, 128), NumType(16, False)),
        ((256, 128), NumType(16, False, zero_point=7)),
        ((256, 129), NumType(16, False, zero_point=32768)),
        ((256, 256), NumType(16, False, zero_point=32768)),
        ((257, 129), NumType(16, False, zero_point=65535)),
    ],
)
def test_sums_of_windows_have_the_bits_that_they_need(kernel, kind):
    """The sum of the largest values of a window, without their zero point, or with it."""
    largest = max(abs(kind.qmax), abs(kind.qmax - kind.zero_point), abs(kind.qmin - kind.zero_point))
    wide = kernel[0] * kernel[1] * largest >= 2**31
    fields = {"rescale": FloatRescale(np.array([1 / (kernel[0] * kernel[1])], np.float32))}
    types, _, _ = lowered(Pool("Average", kernel), [(1, 1, *kernel)], (1, 1, 1, 1), kind, **fields)
    assert types["Sum"] == ("std::int64_t" if wide else "std::int32_t")


@pytest.mark.parametrize("below", [None, 0.0, -0.5, 0.25])
@pytest.mark.parametrize("above", [None, 0.0, 1.0, -2.0])
def test_the_functor_of_a_step_has_its_values(below, above):
    """A side that keeps its input is a flag; its value is then not read."""
    functor = Step(0.5, below, above).functor()
    assert functor.template == "n2d2::Step" and functor.flags == (below is None, above is None)
    assert functor.parameters == {"threshold": 0.5, "below": below or 0, "above": above or 0}


@pytest.mark.parametrize("operation", ["Sum", "AbsSum", "Max", "Min", "Prod", "EuclideanSum"])
def test_the_terms_of_floating_point_layers_are_those_of_the_operator(operation):
    weighted = operation in ("Sum", "AbsSum", "EuclideanSum")
    op = ElemWise(operation, (2.0, -3.0), (0.5, 0.25)) if weighted else ElemWise(operation)
    _, functions, _ = lowered(op, [(1, 2, 3, 3)] * 2, (1, 2, 3, 3), FLOAT32)
    found = [(constants["weight"], constants["shift"]) for name, constants in sorted(functions.items()) if "operand" in name]
    assert found == ([(2.0, 0.5), (-3.0, 0.25)] if weighted else [(1, 0), (1, 0)])


@pytest.mark.parametrize("operation", ["Sum", "AbsSum", "Max", "Min"])
def test_the_terms_of_integer_layers_are_their_multipliers(operation):
    """Only a sum has an offset, which its first term adds."""
    form = Aligned(np.array([5, -3], np.int32), np.array([77], np.int32))
    rescale = FloatRescale(np.array([0.01], np.float32))
    fields = {"form": form, "rescale": rescale, "bound": 5000}
    _, functions, _ = lowered(ElemWise(operation), [(1, 2, 3, 3)] * 2, (1, 2, 3, 3), NumType(8), **fields)
    found = [(constants["weight"], constants["shift"]) for name, constants in sorted(functions.items()) if "operand" in name]
    assert found == [(5, 77 if operation == "Sum" else 0), (-3, 0)]
