"""What the pictures of many plans show, and what the solver proves from bad placements.

Pictures are not rendered: rectangles, names, marks and axes count. Reached are `n2d2py.memory.picture` and `n2d2py.memory.optimal`. The solver's
results are the smallest arenas, which do not depend on its version, and plans that the checker proves. Whoever changes that on purpose
writes the file again:

    PYTHONPATH=tests python tests/memory/test_same_many_pictures.py
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from support.memory_families import FAMILIES, settings_of, strip_chain

from n2d2py.memory.buffers import Buffers, concats_in_place
from n2d2py.memory.checker import check_plan
from n2d2py.memory.modes import plan_strips
from n2d2py.memory.optimal import solve
from n2d2py.memory.packing import Packing
from n2d2py.memory.picture import plan_figure
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.strategies import planner
from n2d2py.memory.strip_search import StripSearch
from n2d2py.memory.strips import with_strips

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_pictures.json"
PICTURES, SOLVED = 60, 48
WAYS = ("OptimizeOverlap", "OptimizeMaxLifetimeMinSizeFirst", "OptimizeStream", "None")


def planned(seed: int) -> tuple[MemoryProblem, MemoryPlan]:
    """A network of each family in turn, and in strips, by each planner in turn."""
    names = [*(name for name in FAMILIES if name != "summed"), "strips"]
    name, settings = names[seed % len(names)], settings_of(seed)
    if name != "strips":
        problem = FAMILIES[name](seed)
        return problem, planner(WAYS[seed // 7 % 4]).plan(problem, settings)
    problem, settings = strip_chain(seed), replace(settings, clock="op")
    search = StripSearch(problem, settings)
    narrow = with_strips(problem, search.curve(search.work)[-1].cuts)
    return narrow, plan_strips(narrow, settings, "Small")


def shown(seed: int) -> str:
    """A checksum of all that a picture shows."""
    from matplotlib.colors import to_hex

    figure = plan_figure(*planned(seed))
    (axes,) = figure.axes
    found = [
        f"{figure.get_figwidth():.6g} {axes.get_title()} {axes.get_xlabel()} {axes.get_ylabel()} {axes.get_xlim()} {axes.get_ylim()}"
    ]
    for box in axes.patches:
        place = (*box.get_xy(), box.get_width(), box.get_height(), box.get_linewidth(), box.get_alpha())
        colours = to_hex(box.get_facecolor(), True), to_hex(box.get_edgecolor(), True)
        found.append(
            f"{[None if value is None else round(float(value), 6) for value in place]} {colours} {box.get_hatch()} {box.get_linestyle()}"
        )
    for text in axes.texts:
        x, y = text.get_position()
        found.append(
            f"{x:.6g} {y:.6g} {text.get_text()} {text.get_ha()} {text.get_va()} {text.get_fontsize()} {text.get_clip_on()}"
        )
    found.append(
        f"{[round(float(tick), 6) for tick in axes.get_xticks()]} {[label.get_text() for label in axes.get_xticklabels()]}"
    )
    found.append(axes.yaxis.get_major_formatter()(123456.7, 0))
    legend = axes.get_legend()
    found += [] if legend is None else [text.get_text() for text in legend.get_texts()]
    return f"{zlib.crc32(chr(10).join(found).encode()):08x}"


def solved(seed: int) -> str:
    """The arena that the solver finds from the worst of some placements, and whether it is proved to be the smallest."""
    name = ("mixed", "joined", "several", "crowded")[seed % 4]
    problem, settings = FAMILIES[name](seed), replace(settings_of(seed), clock="op")
    packing = Packing(Buffers(problem, settings, concats_in_place(problem) if settings.no_branch_concat else ()))
    count, ops = len(packing.blocks), len(packing.ops)
    orders = [list(range(count)), list(reversed(range(count)))]
    start = max(
        (packing.first_fit(order, [way] * ops) for order in orders for way in (False, True)), key=lambda each: each.bytes
    )
    before = packing.bound
    found = solve(packing, start, 2.0)
    assert before <= packing.bound <= found.bytes <= start.bytes
    assert check_plan(problem, packing.plan("OptimizeOptimal", found)) == []
    return f"{start.bytes} {found.bytes} {packing.bound}" if found.bytes == packing.bound else f"{start.bytes} not proved"


@pytest.mark.parametrize("seed", range(PICTURES))
def test_pictures_change_on_purpose_only(seed):
    assert shown(seed) == json.loads(KEPT.read_text(encoding="utf-8"))["pictures"][seed]


@pytest.mark.parametrize("seed", range(SOLVED))
def test_the_solver_proves_the_same_arenas(seed):
    pytest.importorskip("ortools.sat.python.cp_model")
    assert solved(seed) == json.loads(KEPT.read_text(encoding="utf-8"))["solved"][seed]


def main() -> None:
    """Writes what the tests compare with."""
    sums = {"pictures": [shown(seed) for seed in range(PICTURES)], "solved": [solved(seed) for seed in range(SOLVED)]}
    KEPT.write_text(
        "{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in sums.items()) + "\n}\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
