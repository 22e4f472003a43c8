"""What the planners leave out changes no plan: first fit that goes on from a placement, segments that are not weighed, plans that are not made."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.memory_graphs import random_problem

from n2d2py.memory.buffers import Buffers
from n2d2py.memory.cut import Cutter
from n2d2py.memory.modes import plan_strips, plan_strips_within
from n2d2py.memory.packing import Packing
from n2d2py.memory.relax import _Fitter
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.search import improve
from n2d2py.memory.settings import Settings
from n2d2py.memory.strip_search import StripSearch
from n2d2py.memory.strips import with_strips

_SETTINGS = Settings(clock="op")
_OUTSIDE = replace(_SETTINGS, include_input=False, buffer_alignment=4)


def _packing(seed: int) -> Packing:
    return Packing(Buffers(random_problem(seed, ops=14), _SETTINGS, ()))


@pytest.mark.parametrize("seed", range(30))
def test_first_fit_goes_on_as_it_would_from_the_start(seed):
    packing, rng = _packing(seed), random.Random(seed)
    order, backwards = list(range(len(packing.blocks))), [False] * len(packing.ops)
    placement, refused = packing.first_fit(order, backwards), 0
    for _ in range(80):
        move = packing.moved(order, backwards, rng.randrange(len(order)), rng, 0.4)
        expected = packing.first_fit(move.order, move.backwards)
        found = packing.refit(move, placement, placement.bytes)
        assert found == (expected if expected.bytes <= placement.bytes else None)
        refused += found is None
        if found is not None or rng.random() < 0.3:
            order, backwards, placement = move.order, move.backwards, expected
    assert len(order) < 6 or refused


@pytest.mark.parametrize("seed", range(30))
def test_relaxed_placements_go_on_as_they_would_from_the_start(seed):
    packing, rng = _packing(seed), random.Random(seed)
    fitter = _Fitter(packing, improve(packing))
    order, backwards = fitter.orders()[0], fitter.directions()[0]
    fit = fitter.fit(order, backwards)
    assert fit is not None
    for _ in range(60):
        move = packing.moved(order, backwards, rng.randrange(len(order)), rng, 0.3)
        expected = fitter.fit(move.order, move.backwards)
        found = fitter.fit(move.order, move.backwards, fit, move.kept)
        assert expected is not None
        assert found == (expected if expected.score <= fit.score else None)
        if found is not None or rng.random() < 0.3:
            order, backwards, fit = move.order, move.backwards, expected


def _best(cutter: Cutter, budget: int) -> tuple[int, int]:
    """Of all cuts the fewest bytes, `budget` at the least, and of these cuts the fewest streamed operators."""
    count = len(cutter.ops)
    peaks = [budget] * (count + 1)
    for begin in reversed(range(count)):
        peaks[begin] = min(max(cutter.weigh(begin, end).bytes, peaks[end]) for end in cutter.ends(begin))
    fused = [0] * (count + 1)
    for begin in reversed(range(count)):
        ways = [
            fused[end] + (end - begin if end > begin + 1 else 0)
            for end in cutter.ends(begin)
            if cutter.weigh(begin, end).bytes <= peaks[0]
        ]
        fused[begin] = min(ways, default=count + 1)
    return peaks[0], fused[0]


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_is_the_best_of_all(seed):
    buffers = Buffers(random_problem(seed, ops=16, tables=seed % 2 == 0), _SETTINGS if seed % 3 else _OUTSIDE, ())
    ops = [op for op in buffers.order() if op.name not in buffers.views]

    def up(size: int) -> int:
        return -(-size // 16) * 16

    every, some = Cutter(buffers, ops, up), Cutter(buffers, ops, up)
    for begin in range(len(ops)):
        for end, least in zip(every.ends(begin), every.at_least(begin), strict=True):
            assert least <= every.weigh(begin, end).bytes
    for budget in (0, max(segment.bytes for segment in some.cut()) + 200):
        segments = some.cut(budget)
        streamed = sum(segment.end - segment.begin for segment in segments if segment.rows is not None)
        assert (max(budget, *(segment.bytes for segment in segments)), streamed) == _best(every, budget)


def test_a_plan_that_is_known_to_be_larger_is_not_made():
    problem = networks.vww()
    search = StripSearch(problem, _OUTSIDE)
    point = search.curve(search.work // 5)[-1]
    narrow = with_strips(problem, point.cuts)
    plan = plan_strips(narrow, _OUTSIDE, "Small")
    known = KnownRows()
    for _ in range(2):  # the second time from known rows
        assert plan_strips_within(narrow, _OUTSIDE, "Small", plan.arena_bytes, known) == plan
    assert plan_strips_within(narrow, _OUTSIDE, "Small", (plan.bound or 0) - 1, known) is None


def test_strips_of_other_widths_are_tried_once_each():
    search = StripSearch(networks.mobilenet_v1(1.0, 224), _OUTSIDE)
    point = search.curve(search.work // 20)[-1]
    others = search.other_widths(point)
    assert len(others) > 1 and len(others) == len({str(other.cuts) for other in others})
    assert all(other.extra <= point.extra and other.cuts != point.cuts for other in others)
