"""Checksums of what plans are made of, for many networks: blocks, pairs, bounds, segments, lines, spaces, orders.

`tests/support/memory_families.py` draws the networks. Reached are `n2d2py.memory.access`, `n2d2py.memory.buffers`, `n2d2py.memory.crowding`,
`n2d2py.memory.cut`, `n2d2py.memory.generate`, `n2d2py.memory.manager`, `n2d2py.memory.overlap`, `n2d2py.memory.packing`, `n2d2py.memory.problem`,
`n2d2py.memory.relax`, `n2d2py.memory.reorder`, `n2d2py.memory.rows`, `n2d2py.memory.scratch`, `n2d2py.memory.search`, `n2d2py.memory.slices`,
`n2d2py.memory.strips`, `n2d2py.memory.sums`. Bounds are below what they bound. Whoever changes that on purpose writes the checksums again:

    PYTHONPATH=tests python tests/memory/test_same_many_parts.py
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.memory_families import FAMILIES, settings_of, strip_chain
from support.outcomes import write_lines

from n2d2py.memory.access import Overlay
from n2d2py.memory.buffers import Buffers, concats_in_place
from n2d2py.memory.crowding import bytes_beside
from n2d2py.memory.cut import Cutter
from n2d2py.memory.generate import Generation
from n2d2py.memory.overlap import line_reads, reach
from n2d2py.memory.packing import Packing
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.relax import overlap_cost
from n2d2py.memory.reorder import best_order
from n2d2py.memory.rows import Rows, lines_read, streamable
from n2d2py.memory.scratch import ScratchNeed, place_scratch
from n2d2py.memory.search import quick
from n2d2py.memory.settings import Settings
from n2d2py.memory.slices import divisions, sliced_from
from n2d2py.memory.strategies import planner
from n2d2py.memory.strips import cuts_of, extra_work, needed_columns, read_columns, segment_columns
from n2d2py.memory.sums import residual_sums

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_parts.json"
BLOCK, BLOCKS = 6, 16
"""Networks in a case, cases of each part and family."""


def accesses(problem: MemoryProblem, settings: Settings) -> list[str]:
    """How each layer goes through each input: lines that it reads, lines that are dead, what its output may lie over."""
    buffers, tensors, found = Buffers(problem, settings, ()), problem.tensors, []
    for op in problem.ops:
        output = tensors[op.output]
        found.append(f"{op.name} {streamable(op, problem)} {op.work(tensors)} {op.access.lead} {op.accumulates(tensors)}")
        for name in dict.fromkeys(op.operands):
            source = tensors[name]
            if op.access.over(source, output) is Overlay.WINDOW:
                dead = op.dead(source)
                found += [f"{[dead(y) for y in range(output.height + 2)]} {line_reads(op, source, output.height)}"]
            if streamable(op, problem):
                found.append(str(lines_read(op, name, tensors)))
            forms = buffers.geometry(name), buffers.form(buffers.of[op.output])
            found.append(str(reach(op, source, forms[0], 0, output, forms[1], buffers.offset(op.output))))
    shapes = [
        f"{name} {buffer.root.name} {buffer.birth} {buffer.death} {buffer.external}" for name, buffer in buffers.of.items()
    ]
    return [*found, *shapes, str(concats_in_place(problem)), str(residual_sums(problem)), str(bytes_beside(problem))]


def packings(problem: MemoryProblem, settings: Settings) -> list[str]:
    """Blocks, pairs and bounds, and the best of the first placements, which none of them beats."""
    found = []
    settings = replace(settings, clock="op")
    for in_place in ([], concats_in_place(problem)):
        packing = Packing(Buffers(problem, settings, in_place))
        found += [f"{block.size} {block.birth} {block.death} {block.scratch}" for block in packing.blocks]
        found += [f"{pair.op} {pair.source} {pair.output} {pair.reach} {pair.exact}" for pair in packing.pairs]
        found += [str(sorted(near)) for near in packing.closed]
        found += [f"{packing.bound} {[packing.live(clock) for clock in range(-1, len(packing.ops) + 2)]}"]
        if packing.blocks:
            placement = quick(packing)
            assert placement.bytes >= packing.bound
            found.append(f"{placement} {overlap_cost(packing, placement)} {[packing.cost(n) for n in range(len(packing.ops))]}")
    return [*found, str([op.name for op in best_order(problem, settings).ops])]


def segments(problem: MemoryProblem, settings: Settings) -> list[str]:
    """All segments of up to six layers: what they hold, at least and exactly; the lines of the longest ones."""
    buffers = Buffers(problem, replace(settings, clock="op"), ())
    ops = [op for op in buffers.order() if op.name not in buffers.views]
    found = []
    for pooled in (False, True):
        cutter = Cutter(buffers, ops, lambda size: -(-size // 4) * 4, pooled)
        for begin in range(len(ops)):
            for end, least in list(zip(cutter.ends(begin), cutter.at_least(begin), strict=True))[: 2 if pooled else 6]:
                segment = cutter.weigh(begin, end)
                assert least <= segment.bytes or end == begin + 1
                found.append(f"{begin} {end} {least} {segment.bytes} {segment.pairs} {segment.rings} {segment.partial}")
        found += [f"{each.begin} {each.end} {each.bytes} {each.runs}" for each in cutter.cut()]
    chain = [op for op in ops if streamable(op, problem)][:5]
    if chain and all(b.inputs[0] == a.output for a, b in pairwise(chain)):
        rows = Rows(chain, problem, {len(chain) - 1})
        found += [f"{rows.order} {rows.lines} {[rows.ring(n) for n in range(len(chain))]} {rows.runs(0)} {rows.runs(1)}"]
    return found


def spaces(problem: MemoryProblem, settings: Settings) -> list[str]:
    """N2D2's spaces before they are placed; scratch for every second layer of a plan, without and with a limit."""
    generation = Generation(problem, settings)
    found = [
        f"{space.size} {space.allocated} {space.released} {[(p.start, p.limit, p.end, p.intervals) for p in space.planes]}"
        for space in generation.spaces
    ]
    rng, plan = random.Random(len(problem.ops)), planner("OptimizeMaxLifetimeMaxSizeFirst").plan(problem, settings)
    needs = {}
    for op in problem.ops[::2]:
        least = rng.randint(1, 200)
        needs[op.name] = ScratchNeed(
            least, least + rng.randint(0, 99), least + rng.randint(99, 300), least + rng.randint(300, 900)
        )
    for limit in (None, plan.arena_bytes, plan.arena_bytes + 150):
        made, placed = place_scratch(problem, plan, needs, limit)
        found.append(f"{placed.arena_bytes} {placed.scratch} {[op.scratch_bytes for op in made.ops]}")
    return found


PARTS: dict[str, Callable[[MemoryProblem, Settings], list[str]]] = {
    "accesses": accesses,
    "packings": packings,
    "segments": segments,
    "spaces": spaces,
}
CASES = [(family, block) for family in FAMILIES for block in range(BLOCKS)]


def checksum(found: list[str]) -> str:
    return f"{zlib.crc32(chr(10).join(found).encode()):08x}"


def made(part: str, family: str, block: int) -> str:
    """Of a block of networks; sums do not go with segments."""
    found = []
    for seed in range(block * BLOCK, block * BLOCK + BLOCK):
        problem = (strip_chain if part == "segments" and family == "summed" else FAMILIES[family])(seed + 300)
        found += PARTS[part](problem, settings_of(seed + 300))
    return checksum(found)


def columns(block: int) -> str:
    """Which columns strips of chains read, what they compute twice, and slices of channels."""
    found = []
    for seed in range(block * 20, block * 20 + 20):
        problem = strip_chain(seed + 300)
        tensors, ops = problem.tensors, problem.ops
        width = tensors[ops[-1].output].width
        for count in range(1, min(width, 5) + 1):
            for before, after in ((0, 0), (1, 0), (0, 2)):
                cuts = cuts_of(width, count, before, after)
                found.append(str(cuts))
                if all(first < stop for first, stop in cuts):
                    strips = [segment_columns(ops, tensors, each) for each in cuts]
                    found.append(f"{strips} {extra_work(ops, tensors, strips)}")
        found += [str(read_columns(op.access, (0, 1), tensors[op.inputs[0]].width)) for op in ops]
        found.append(
            f"{sliced_from(ops[:-1], tensors)} {divisions(seed + 17)} {len(needed_columns(ops, tensors, np.array([[0, width]])))}"
        )
    return checksum(found)


@pytest.fixture(scope="module")
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("family", "block"), CASES)
def test_accesses_change_on_purpose_only(kept, family, block):
    assert made("accesses", family, block) == kept[f"{family}, accesses"][block]


@pytest.mark.parametrize(("family", "block"), CASES)
def test_packings_change_on_purpose_only(kept, family, block):
    assert made("packings", family, block) == kept[f"{family}, packings"][block]


@pytest.mark.parametrize(("family", "block"), CASES)
def test_segments_change_on_purpose_only(kept, family, block):
    assert made("segments", family, block) == kept[f"{family}, segments"][block]


@pytest.mark.parametrize(("family", "block"), CASES)
def test_spaces_change_on_purpose_only(kept, family, block):
    assert made("spaces", family, block) == kept[f"{family}, spaces"][block]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_columns_change_on_purpose_only(kept, block):
    assert columns(block) == kept["columns"][block]


def main() -> None:
    """Writes what the tests compare with."""
    sums = {
        f"{family}, {part}": [made(part, family, block) for block in range(BLOCKS)] for family in FAMILIES for part in PARTS
    }
    sums["columns"] = [columns(block) for block in range(BLOCKS)]
    write_lines(KEPT, sums)


if __name__ == "__main__":
    main()
