"""Where the searches for orders and strips end, what they leave out, and which needs of scratch there are."""

from __future__ import annotations

from itertools import product

import pytest
from support.memory_networks import Net

from n2d2py.memory import reorder, strip_search
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.reorder import best_order
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.memory.settings import Settings
from n2d2py.memory.strip_search import StripPoint, StripSearch
from n2d2py.memory.strips import StripCut, cuts_of, extra_work, segment_columns

_OUTSIDE = Settings(include_input=False, clock="op", buffer_alignment=4)
"""The input is not in the arena."""


def test_the_search_for_an_order_ends_where_there_are_too_many(monkeypatch):
    """It finds the best one with as many sets of operators as it needs here, 9, and leaves the order alone with one less."""
    net = Net(16, 16, 2)
    a, b = net.conv(net.input, 32, 1), net.conv(net.input, 32, 1)
    net.add(net.conv(a, 2, 1), net.conv(b, 2, 1))
    problem, found = net.done(), {}
    for states in range(1, 12):
        monkeypatch.setattr(reorder, "_STATES", states)
        found[states] = best_order(problem, Settings()).ops != problem.ops
    assert found == {states: states >= 9 for states in range(1, 12)}


def _two_layers() -> MemoryProblem:
    net = Net(8, 10, 2)
    net.conv(net.conv(net.input, 4, 3), 2, 3)
    return net.done()


def _even(problem: MemoryProblem, count: int) -> StripCut:
    """All operators in even strips of the ten columns."""
    strips = tuple(segment_columns(problem.ops, problem.tensors, each) for each in cuts_of(10, count))
    return StripCut(tuple(op.name for op in problem.ops), strips)


@pytest.mark.parametrize("count", range(2, 9))
def test_strips_of_other_widths_have_columns(count):
    """All of them, and together all columns once, where there are few for so many strips."""
    problem = _two_layers()
    found = StripSearch(problem, _OUTSIDE).other_widths(StripPoint(0, 10**9, (_even(problem, count),)))
    ranges = [tuple(strip[problem.outputs[0]] for strip in other.strips) for point in found for other in point.cuts]
    ways = {tuple(cuts_of(10, count, *wider)) for wider in (*product(range(3), repeat=2), *product(range(3, 7), range(2, 8)))}
    whole = {way for way in ways if all(first < stop for first, stop in way)}
    assert len(set(ranges)) == len(ranges) > 0 and set(ranges) <= whole
    for point in found:
        assert point.extra == extra_work(problem.ops, problem.tensors, point.cuts[0].strips)


@pytest.mark.parametrize(("width", "counts"), [(1, set()), (2, {2}), (3, {3})])
def test_images_of_few_columns_have_a_strip_for_each(width, counts):
    net = Net(40, width, 8)
    net.conv(net.conv(net.input, 30, 1), 2, 1)
    points = StripSearch(net.done(), _OUTSIDE).curve(10**9)
    assert {len(cut.strips) for point in points for cut in point.cuts if isinstance(cut, StripCut)} == counts


@pytest.mark.parametrize("sizes", [(3, 2, 4, 5), (1, 3, 2, 4), (1, 2, 4, 3), (0, 1, 2, 3), (-1, 1, 1, 1)])
def test_needs_of_scratch_are_positive_and_in_ascending_order(sizes):
    with pytest.raises(ValueError, match="ascending"):
        ScratchNeed(*sizes)
    ScratchNeed(1, 1, 1, 1)


@pytest.mark.parametrize("width", [2, 5, 9, 30])
def test_first_all_even_strips_are_tried(width):
    """Up to twelve, the first and the last one as wide as the others or by up to two columns wider, or both by three."""
    wider = [(first, last) for first in (0, 1, 2) for last in (0, 1, 2)] + [(3, 3)]
    ways = (tuple(cuts_of(width, count, *each)) for count in range(2, 13) for each in wider)
    whole = [way for way in ways if all(first < stop for first, stop in way)]
    assert StripSearch._divisions(width) == list(dict.fromkeys(whole))


def test_then_wider_ends_are_tried_once_each(monkeypatch):
    problem, tried = _two_layers(), []
    search = StripSearch(problem, _OUTSIDE)

    def noted(width: int, count: int, before: int, after: int) -> list[tuple[int, int]]:
        tried.append((before, after))
        return cuts_of(width, count, before, after)

    monkeypatch.setattr(strip_search, "cuts_of", noted)
    search.other_widths(StripPoint(0, 10**9, (_even(problem, 3),)))
    ends = [(3, 4), (3, 2), (4, 4), (4, 5), (4, 3), (5, 5), (5, 6), (5, 4), (6, 6), (6, 7), (6, 5)]
    assert tried == [*((first, last) for first in (0, 1, 2) for last in (0, 1, 2)), (3, 3), *ends]
