"""The same problem has the same map: addresses, order, directions and sizes of random networks by every planner.

Figures and checksums of `memory_map.json` are kept in same_plans.json. Whoever changes a planner on purpose looks at the sizes
there, which may fall, and writes them again:

    PYTHONPATH=tests python tests/memory/test_same_plans.py
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from support import memory_networks as networks
from support.memory_graphs import random_problem
from support.memory_plans import SETTINGS

from n2d2py.memory.files import json_text
from n2d2py.memory.format import map_json
from n2d2py.memory.modes import budget_curve, plan_mode
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import planner
from n2d2py.memory.stream import StreamPlanner

KEPT = Path(__file__).resolve().parent / "same_plans.json"
SEEDS = {
    "None": range(10),
    "OptimizeMaxLifetimeMinSizeFirst": range(8, 18),
    "OptimizeMaxLifetimeMaxSizeFirst": range(16, 32),
    "OptimizeMaxHoleMaxLifetimeFirst": range(24, 40),
    "OptimizeAuto": range(40, 46),
    "OptimizeOverlap": range(46, 56),
    "OptimizeReorder": range(60, 64),
    "OptimizeStream": range(70, 80),
    "OptimizeStream, input by rows": range(80, 90),
    "MemoryMode=Balanced": range(90, 94),
    "MemoryMode=Small": range(94, 98),
}
"""Each planner with the random networks that it is tried on, and the settings of those numbers."""
CURVES = {"resnet8": networks.resnet8, "ds_cnn": networks.ds_cnn}


def planned(name: str, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """The plan of a planner, or of a mode whose budget lies halfway."""
    if not name.startswith("MemoryMode="):
        chosen = StreamPlanner(True) if "," in name else planner(name)
        return chosen.plan(problem, settings)
    mode = name.split("=")[1]
    sizes = [plan_mode(problem, settings, each).arena_bytes for each in ("Speed", mode)]
    return plan_mode(problem, settings, mode, budget=sum(sizes) // 2) if mode == "Small" else plan_mode(problem, settings, mode)


def found(name: str, seed: int) -> list[int]:
    """The bytes of the arena, and the checksum of the map."""
    problem = random_problem(seed, ops=20, tables=seed % 3 == 0)
    plan = planned(name, problem, SETTINGS[seed % 16])
    return [plan.arena_bytes, zlib.crc32(json_text(map_json(plan)).encode())]


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_a_map_changes_on_purpose_only(name, seed):
    assert found(name, seed) == json.loads(KEPT.read_text())["plans"][name][str(seed)]


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_of_budgets_changes_on_purpose_only(name):
    points = [list(point) for point in budget_curve(CURVES[name](), Settings())]
    assert points == json.loads(KEPT.read_text())["curves"][name]


def main() -> None:
    """Writes what the tests compare with."""
    plans = {name: {str(seed): found(name, seed) for seed in seeds} for name, seeds in SEEDS.items()}
    curves = {name: budget_curve(make(), Settings()) for name, make in CURVES.items()}
    lines = [f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in plans.items()]
    text = '{\n "plans": {\n' + ",\n".join(lines) + '\n },\n "curves": ' + json.dumps(curves) + "\n}\n"
    KEPT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
