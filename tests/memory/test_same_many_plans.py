"""Checksums of the plans of many random networks, of families that differ in kind, by every planner and mode.

`tests/support/memory_families.py` draws the networks. Each plan is proved by the checker, a part of them run on real bytes, and its map,
mapping, bound and graph are compared with same_many_plans.json. Reached are `n2d2py.memory.access`, `n2d2py.memory.buffers`, `n2d2py.memory.cut`,
`n2d2py.memory.format`, `n2d2py.memory.generate`, `n2d2py.memory.log_text`, `n2d2py.memory.manager`, `n2d2py.memory.modes`,
`n2d2py.memory.overlap`, `n2d2py.memory.packing`, `n2d2py.memory.placement`, `n2d2py.memory.plan`, `n2d2py.memory.problem`, `n2d2py.memory.relax`,
`n2d2py.memory.reorder`, `n2d2py.memory.rows`, `n2d2py.memory.search`, `n2d2py.memory.slices`, `n2d2py.memory.strategies`,
`n2d2py.memory.stream`, `n2d2py.memory.strip_search`, `n2d2py.memory.strips`, `n2d2py.memory.sums`. Whoever changes a planner on purpose writes
the checksums again, once test_same_plans.py shows that the sizes are what they should be:

    PYTHONPATH=tests python tests/memory/test_same_many_plans.py
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.memory_execute import run
from support.memory_families import FAMILIES, settings_of, strip_chain
from support.outcomes import write_lines

from n2d2py.errors import N2D2Error
from n2d2py.memory.checker import check_plan
from n2d2py.memory.crowding import bytes_beside
from n2d2py.memory.files import json_text
from n2d2py.memory.format import graph_json, in_known_terms, map_json
from n2d2py.memory.log_text import mapping_text
from n2d2py.memory.modes import budget_curve, peak_layers, plan_mode, plan_strips, plan_strips_within
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import planner
from n2d2py.memory.stream import StreamPlanner
from n2d2py.memory.strip_search import StripSearch
from n2d2py.memory.strips import with_strips

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_plans.json"
BLOCK, BLOCKS = 4, 12
"""Networks in a case, cases of a way."""
N2D2 = (
    "None",
    "OptimizeMaxLifetimeMinSizeFirst",
    "OptimizeMaxLifetimeMaxSizeFirst",
    "OptimizeMaxHoleMaxLifetimeFirst",
    "OptimizeAuto",
)


def text_of(problem: MemoryProblem, plan: MemoryPlan) -> str:
    """All that a plan says, which is proved first."""
    assert check_plan(problem, plan) == []
    graph = json_text(graph_json(in_known_terms(problem, plan)))
    return f"{json_text(map_json(plan))}{mapping_text(problem, plan)}{plan.bound} {peak_layers(problem, plan)}{graph}"


def by_n2d2(problem: MemoryProblem, settings: Settings) -> Iterator[MemoryPlan]:
    for name in N2D2:
        yield planner(name).plan(problem, settings)


def by_overlap(problem: MemoryProblem, settings: Settings) -> Iterator[MemoryPlan]:
    yield planner("OptimizeOverlap").plan(problem, settings)
    yield planner("OptimizeReorder").plan(problem, settings)


def by_stream(problem: MemoryProblem, settings: Settings) -> Iterator[MemoryPlan]:
    """All as few bytes as possible, and as few layers as half of what that saves takes."""
    known = KnownRows()
    for arrives in (False,) if problem.states else (False, True):
        least = StreamPlanner(arrives, known=known).plan(problem, settings)
        most = StreamPlanner(arrives, sys.maxsize).plan(problem, settings)
        yield from (least, most, StreamPlanner(arrives, (least.arena_bytes + most.arena_bytes) // 2).plan(problem, settings))
    yield StreamPlanner(pooled=True).plan(problem, settings)


def by_modes(problem: MemoryProblem, settings: Settings) -> Iterator[MemoryPlan]:
    """Modes without a budget, and up to Small with budgets that are just met, and just not."""
    plans = [plan_mode(problem, settings, mode) for mode in ("Speed", "Balanced", "Small")]
    yield from plans
    for size in sorted({plan.arena_bytes for plan in plans}):
        yield plan_mode(problem, settings, "Small", budget=size)
        if size > min(plan.arena_bytes for plan in plans):
            yield plan_mode(problem, settings, "Small", budget=size - 1)
    if not problem.states:
        yield from (plan_mode(problem, settings, mode, stream_input=True) for mode in ("Speed", "Balanced", "Small"))


WAYS: dict[str, Callable[[MemoryProblem, Settings], Iterator[MemoryPlan]]] = {
    "N2D2": by_n2d2,
    "Overlap": by_overlap,
    "Stream": by_stream,
    "Modes": by_modes,
}
CASES = [
    (family, way, block)
    for family in FAMILIES
    for way in WAYS
    for block in range(BLOCKS)
    if family != "summed" or way in ("N2D2", "Overlap")  # sums do not go with layers that run by lines
]


def checksum(parts: list[str]) -> str:
    return f"{zlib.crc32(chr(10).join(parts).encode()):08x}"


def found(family: str, way: str, block: int) -> str:
    """The checksum of the plans of a block of networks; the first plan of the first network is run on real bytes."""
    parts = []
    for seed in range(block * BLOCK, block * BLOCK + BLOCK):
        problem = FAMILIES[family](seed)
        problem.validate()
        plans = list(WAYS[way](problem, settings_of(seed)))
        parts += [text_of(problem, plan) for plan in plans]
        if seed == block * BLOCK:
            assert run(problem, plans[0], seed) == run(problem, None)
    return checksum(parts)


def in_strips(seed: int) -> str:
    """The curve of strips and slices of a chain, and the plans of its points; also within the bytes that they have, and one less."""
    problem, settings = strip_chain(seed), replace(settings_of(seed), clock="op")
    search = StripSearch(problem, settings)
    parts, known = [str(search.work)], KnownRows()
    for number, point in enumerate(search.curve(search.work * (1 + seed % 3) // 3)):
        parts.append(str(point) + str(point.twice))
        if not point.cuts:
            continue
        parts += [str((other.extra, [cut.count for cut in other.cuts])) for other in search.other_widths(point)[:12]]
        narrow = with_strips(problem, point.cuts)
        narrow.validate()
        plan = plan_strips(narrow, settings, "Small")
        parts += [text_of(narrow, plan), str([op.access for op in narrow.ops])]
        for most in (plan.arena_bytes, plan.arena_bytes - 1, plan.bound - 1 if plan.bound else 0):
            again = plan_strips_within(narrow, settings, "Small", most, known)
            parts.append("none" if again is None else str(again.arena_bytes))
        if number == 1 and seed % 4 == 0:
            assert run(narrow, plan, seed) == run(narrow, None)
    return checksum(parts)


def refusals(seed: int) -> str:
    """What is said of budgets that cannot be met, without the solver; the curve of budgets, and what is beside each tensor."""
    problem, settings = list(FAMILIES.values())[seed % 4](seed), settings_of(seed)
    parts = [str(budget_curve(problem, settings, seed % 3 == 1)), str(bytes_beside(problem))]
    smallest = plan_mode(problem, settings, "Small").arena_bytes
    for mode, budget in (("Speed", smallest), ("Balanced", smallest - 1), ("Small", smallest - 1), ("Minimum", 1)):
        try:
            plan = plan_mode(problem, settings, mode, budget=budget, stream_input=seed % 5 == 1)
            parts.append(str(plan.arena_bytes))
        except N2D2Error as error:
            parts.append(f"{error.line()} {error.remedy}")
    return checksum(parts)


STRIPS, REFUSALS = 60, 30


@pytest.fixture(scope="module")
def kept() -> dict:
    return json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.fixture
def no_solver(monkeypatch):
    """Plans of the mode Minimum do not depend on the version of a solver."""
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)


@pytest.mark.parametrize(("family", "block"), [(family, block) for family, way, block in CASES if way == "N2D2"])
def test_places_of_n2d2_change_on_purpose_only(kept, family, block):
    assert found(family, "N2D2", block) == kept[f"{family}, N2D2"][block]


@pytest.mark.parametrize(("family", "block"), [(family, block) for family, way, block in CASES if way == "Overlap"])
def test_overlaps_change_on_purpose_only(kept, family, block):
    assert found(family, "Overlap", block) == kept[f"{family}, Overlap"][block]


@pytest.mark.parametrize(("family", "block"), [(family, block) for family, way, block in CASES if way == "Stream"])
def test_streams_change_on_purpose_only(kept, family, block):
    assert found(family, "Stream", block) == kept[f"{family}, Stream"][block]


@pytest.mark.parametrize(("family", "block"), [(family, block) for family, way, block in CASES if way == "Modes"])
def test_modes_change_on_purpose_only(kept, family, block):
    assert found(family, "Modes", block) == kept[f"{family}, Modes"][block]


@pytest.mark.parametrize("seed", range(STRIPS))
def test_strips_change_on_purpose_only(kept, seed):
    assert in_strips(seed) == kept["strips"][seed]


@pytest.mark.parametrize("seed", range(REFUSALS))
def test_what_is_said_of_budgets_changes_on_purpose_only(kept, no_solver, seed):
    assert refusals(seed) == kept["budgets"][seed]


def main() -> None:
    """Writes what the tests compare with."""
    sys.modules["ortools.sat.python"] = None  # type: ignore[assignment]
    sums: dict[str, list[str]] = {}
    for family, way, block in CASES:
        sums.setdefault(f"{family}, {way}", []).append(found(family, way, block))
    sums["strips"] = [in_strips(seed) for seed in range(STRIPS)]
    sums["budgets"] = [refusals(seed) for seed in range(REFUSALS)]
    write_lines(KEPT, sums)


if __name__ == "__main__":
    main()
