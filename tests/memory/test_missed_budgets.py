"""Budgets that a first cut promises and its placement misses: a later try meets them (`n2d2py.memory.modes`)."""

from __future__ import annotations

import pytest
from support.memory_families import FAMILIES, settings_of
from support.tables import few_fast

from n2d2py.memory.checker import check_plan
from n2d2py.memory.modes import budget_curve, plan_mode
from n2d2py.memory.stream import StreamPlanner

CASES = [("packed", 2004), ("packed", 2005), ("packed", 2009), ("crowded", 2026), ("by_lines", 2028), ("packed", 2028)]


@pytest.mark.parametrize(("family", "seed"), few_fast(CASES[::-1], 3))
def test_what_the_fewest_bytes_meet_is_met(family, seed):
    """Whatever budget lies above the smallest plan by lines; where the first try meets it, it runs no more layers by lines than that."""
    problem, settings = FAMILIES[family](seed), settings_of(seed)
    most = StreamPlanner(False, 10**12).plan(problem, settings).arena_bytes
    least = StreamPlanner(False).plan(problem, settings).arena_bytes
    missed = 0
    for part in range(9):
        budget = least + (most - least) * part // 8
        first = StreamPlanner(False, budget).plan(problem, settings)
        plan = plan_mode(problem, settings, "Small", budget=budget)
        assert plan.arena_bytes <= budget and check_plan(problem, plan) == []
        missed += first.arena_bytes > budget
        if first.arena_bytes <= budget and plan.options["MemoryMode"] == "Small":
            assert len(plan.streamed) == len(first.streamed)
    assert missed


@pytest.mark.parametrize(("family", "seed"), few_fast(CASES[::-1], 3))
def test_points_of_a_curve_of_budgets(family, seed):
    """From the plan without lines to the smallest one, each with fewer bytes; ten at the most."""
    problem, settings = FAMILIES[family](seed), settings_of(seed)
    points = budget_curve(problem, settings)
    assert 2 <= len(points) <= 10 and points[0][1] == 0
    sizes = [size for size, _ in points]
    assert sizes == sorted(set(sizes), reverse=True)
    least = StreamPlanner(False).plan(problem, settings)
    assert points[-1] == (least.arena_bytes, len(least.streamed))
