"""Where the searches for orders and strips end, what they leave out, and which needs of scratch there are."""

from __future__ import annotations

from itertools import product

import pytest
from support.memory_networks import Net

from n2d2py.memory import reorder
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


@pytest.mark.parametrize("count", range(2, 9))
def test_strips_of_other_widths_have_columns(count):
    """All of them, and together all columns once, where there are few for so many strips."""
    net = Net(8, 10, 2)
    net.conv(net.conv(net.input, 4, 3), 2, 3)
    problem = net.done()
    strips = tuple(segment_columns(problem.ops, problem.tensors, each) for each in cuts_of(10, count))
    cut = StripCut(tuple(op.name for op in problem.ops), strips)
    found = StripSearch(problem, _OUTSIDE).other_widths(StripPoint(0, 10**9, (cut,)))
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
