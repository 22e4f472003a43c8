"""What the checker says of damaged maps of many networks: with strips, lines, rings, packed tensors, sums, wraps and parts of others.

`tests/support/memory_families.py` draws the networks, `memory_changes.py` damages them. Reached are `n2d2py.memory.case`, `n2d2py.memory.checker`,
`n2d2py.memory.format`, `n2d2py.memory.problem`, `n2d2py.memory.replay`, `n2d2py.memory.replay_lines`, `n2d2py.memory.stamps`,
`n2d2py.memory.taps`. Whoever changes that on purpose writes same_many_faults.json again:

    PYTHONPATH=tests python tests/memory/test_same_many_faults.py
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.memory_changes import change
from support.memory_families import FAMILIES, settings_of, strip_chain
from support.outcomes import write_lines

from n2d2py.errors import N2D2Error
from n2d2py.memory.checker import check_map
from n2d2py.memory.format import graph_json, map_json, read_graph
from n2d2py.memory.modes import plan_strips
from n2d2py.memory.strategies import planner
from n2d2py.memory.stream import StreamPlanner
from n2d2py.memory.strip_search import StripSearch
from n2d2py.memory.strips import with_strips

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_faults.json"
KINDS = {**dict.fromkeys(FAMILIES, 24), "strips": 40}
"""Networks of each kind."""
CHANGES = 24
WAYS = ("OptimizeStream", "OptimizeOverlap", "arrives", "OptimizeMaxLifetimeMaxSizeFirst", "OptimizeReorder", "None")


@cache
def files(kind: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph and the map of a network, planned in one of the ways."""
    settings = settings_of(seed)
    if kind == "strips":
        problem, settings = strip_chain(seed), replace(settings, clock="op")
        search = StripSearch(problem, settings)
        problem = with_strips(problem, search.curve(search.work)[-1].cuts)
        plan = plan_strips(problem, settings, "Small")
    else:
        problem, way = FAMILIES[kind](seed), WAYS[seed % len(WAYS)]
        if kind == "summed" and way in ("OptimizeStream", "arrives"):
            way = "OptimizeOverlap"
        if way == "arrives":
            plan = StreamPlanner(not problem.states).plan(problem, settings)
        else:
            plan = planner(way).plan(problem, settings)
    return graph_json(problem), map_json(plan)


def found(kind: str, seed: int) -> str:
    """A checksum of what was changed and the faults that are found then; of what reading a changed graph gives."""
    rng, result = random.Random(seed + 17), []
    for number in range(CHANGES):
        graph, memory_map = copy.deepcopy(files(kind, seed))
        told = change(graph, rng) if number % 6 == 5 else change(memory_map, rng)
        try:
            faults = [f"{fault.kind} {fault} {fault.op} {fault.tensor} {fault.by}" for fault in check_map(graph, memory_map)]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            faults = ["no files that the tool would write"]
        result += [told, *faults]
        if number % 6 == 5:
            try:
                read = read_graph(graph)
                result.append(f"{read.ops} {list(read.tensors.values())}")
            except N2D2Error as error:
                result.append(error.line().split(" lacks or misspells ")[0])
    return f"{zlib.crc32(chr(10).join(result).encode()):08x}"


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, count in KINDS.items() for seed in range(count)])
def test_faults_change_on_purpose_only(kind, seed):
    assert check_map(*files(kind, seed)) == []
    assert found(kind, seed) == json.loads(KEPT.read_text(encoding="utf-8"))[kind][seed]


def main() -> None:
    """Writes what the tests compare with."""
    sums = {kind: [found(kind, seed) for seed in range(count)] for kind, count in KINDS.items()}
    write_lines(KEPT, sums)


if __name__ == "__main__":
    main()
