"""What the checker says of damaged maps, and what reading damaged graphs gives: of random changes, the words.

Whoever changes that on purpose writes same_faults.json again and looks at the difference:

    PYTHONPATH=tests python tests/memory/test_same_faults.py

They look at `n2d2py.memory.case`, `n2d2py.memory.checker`, `n2d2py.memory.replay`, `n2d2py.memory.replay_lines` and
`n2d2py.memory.stamps`.
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.memory_changes import change
from support.memory_graphs import random_problem
from support.memory_plans import SETTINGS

from n2d2py.errors import N2D2Error
from n2d2py.memory.checker import check_map
from n2d2py.memory.format import graph_json, map_json, read_graph
from n2d2py.memory.modes import plan_mode
from n2d2py.memory.strategies import planner
from n2d2py.memory.stream import StreamPlanner

KEPT = Path(__file__).resolve().parent / "same_faults.json"
PLANNERS = ("OptimizeOverlap", "OptimizeMaxLifetimeMaxSizeFirst", "OptimizeStream", "arrives", "Minimum", "OptimizeReorder")
NETWORKS, CHANGES = 30, 36


@cache
def data(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph and the map of a random network, planned in one of the ways."""
    problem, settings = random_problem(seed, ops=4 + seed % 7, tables=seed % 4 == 1), SETTINGS[seed % 16]
    way = PLANNERS[seed % len(PLANNERS)]
    if way == "Minimum":
        plan = plan_mode(problem, settings, way)
    else:
        plan = (StreamPlanner(True) if way == "arrives" else planner(way)).plan(problem, settings)
    return graph_json(problem), map_json(plan)


def found(seed: int) -> dict[str, list[str]]:
    """What was changed, and the first faults that the checker finds then."""
    rng, result = random.Random(seed), {}
    for _ in range(CHANGES):
        graph, memory_map = copy.deepcopy(data(seed))
        told = change(graph, rng) if rng.random() < 0.15 else change(memory_map, rng)
        try:
            faults = [str(fault) for fault in check_map(graph, memory_map)]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            continue  # no graph, or no map, that the tool would write
        result[told] = [*faults[:2], *([f"{len(faults)} faults"] if len(faults) > 2 else [])]
    return result


def read(seed: int) -> dict[str, str]:
    """What was changed in a graph, and what reading it gives: the refusal, or a checksum of the problem."""
    rng, result = random.Random(seed + 1000), {}
    for _ in range(CHANGES):
        graph = copy.deepcopy(data(seed)[0])
        told = change(graph, rng)
        try:
            problem = read_graph(graph)
            text = f"{problem.inputs} {problem.outputs} {problem.ops} {list(problem.tensors.values())}"
            result[told] = f"{zlib.crc32(text.encode()):08x}"
        except N2D2Error as error:
            result[told] = error.line().split(" lacks or misspells ")[0]  # what follows are Python's words
    return result


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_graphs_are_read_alike(seed):
    assert read(seed) == json.loads(KEPT.read_text())[f"read {seed}"]


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_faults_change_on_purpose_only(seed):
    assert found(seed) == json.loads(KEPT.read_text())[str(seed)]


def main() -> None:
    """Writes what the tests compare with."""
    records = {
        **{str(seed): found(seed) for seed in range(NETWORKS)},
        **{f"read {seed}": read(seed) for seed in range(NETWORKS)},
    }
    KEPT.write_text(json.dumps(records, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
