"""Operators of line tables, and operators that run backwards."""

from __future__ import annotations

import random

import pytest
from support.memory_graphs import random_problem

from n2d2py.memory.access import LineTable, Overlay, TensorSpec, Window
from n2d2py.memory.checker import check_plan
from n2d2py.memory.format import read_op
from n2d2py.memory.planning import plan_memory


def test_lines_are_dead_before_all_that_later_lines_read():
    """Output lines that read nothing hold nothing back."""
    rng, source = random.Random(1), TensorSpec("x", 6, 4, 1, 1)
    for _ in range(300):
        table = []
        for _ in range(rng.randint(1, 6)):
            first = rng.randrange(6)
            table.append((first, rng.randint(first, 6)))
        dead = LineTable((tuple(table),), (((0, 4),),)).dead([0], source)
        for y in range(len(table) + 1):
            later = [first for first, stop in table[y:] if first < stop]
            assert dead(y) == min(later, default=6)


def test_pointwise_layers_that_run_backwards_over_their_input_are_sound():
    """Their elements are wider than those that they lie over; forwards they would not be."""
    backwards = 0
    for seed in (50, 293, 495):
        problem = random_problem(seed, ops=6)
        plan = plan_memory(problem, strategy="OptimizeOverlap")
        for name in plan.backwards:
            op = problem.op(name)
            overlays = {op.access.over(problem.tensors[each], problem.tensors[op.output]) for each in op.operands}
            if overlays == {Overlay.POINTWISE} and plan.overlaps(problem, name):
                backwards += 1
                assert check_plan(problem, plan) == [], seed
    assert backwards == 3


@pytest.mark.parametrize("dilation", [2, [2, 3], (2, 3)])
def test_a_dilation_of_both_axes_is_one_number_or_two(dilation):
    form = {"kh": 3, "kw": 3, "sh": 1, "sw": 1, "pads": [0, 0, 0, 0], "dil": dilation}
    op = read_op({"name": "c", "type": "conv", "inputs": ("x",), "output": "y", **form})
    assert isinstance(op.access, Window) and op.access.dilation == ((2, 2) if dilation == 2 else (2, 3))
