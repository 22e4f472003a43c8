"""A budget is met wherever the mode needs less without one, also where placements miss what their cuts promise."""

from __future__ import annotations

import pytest
from support.memory_families import FAMILIES, settings_of

from n2d2py.memory.modes import plan_mode


@pytest.mark.parametrize(
    ("family", "seed"),
    [("mixed", 110), ("crowded", 93), ("by_lines", 98), ("joined", 16), ("joined", 63), ("joined", 79), ("joined", 145)],
)
def test_one_byte_less_than_balanced_needs_is_met_by_lines(family, seed):
    problem, settings = FAMILIES[family](seed), settings_of(seed)
    budget = plan_mode(problem, settings, "Balanced").arena_bytes - 1
    assert plan_mode(problem, settings, "Small").arena_bytes <= budget
    assert plan_mode(problem, settings, "Small", budget=budget).arena_bytes <= budget
