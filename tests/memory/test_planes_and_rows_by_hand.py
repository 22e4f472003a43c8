"""Planes, scratch and rows of lines in numbers counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.memory_networks import Net

from n2d2py.memory.access import Arrival, LineTable, Pointwise, PoolWindow, TensorSpec, Upsample, View, Whole, Window
from n2d2py.memory.log_text import mapping_text
from n2d2py.memory.manager import Manager, PlaneLayout, Space, SpacePlane
from n2d2py.memory.overlap import Reach, reach
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.rows import Rows, lines_read, streamable
from n2d2py.memory.scratch import ScratchNeed, place_scratch
from n2d2py.memory.slices import SliceCut, divisions, sliced_from
from n2d2py.memory.sums import ResidualSum, residual_sums, with_sums

# ---- planes ------------------------------------------------------------------------------------
PLANE = Plane(100, 3, 5, 4, 6, 0, 1)
"""6 lines of 4 pixels of 3 bytes every 5."""


@pytest.mark.parametrize(
    ("changes", "line", "size", "before", "lines", "parts"),
    [
        ({}, 20, 120, 6, [100, 120, 200], [(100, 218)]),
        ({"pitch": 32}, 32, 180, 6, [100, 132, 260], [(100, 278)]),
        ({"limit": 40, "wrap_offset": 7}, 20, 120, 2, [100, 120, 67], [(100, 138), (7, 85)]),
        ({"limit": 20, "wrap_offset": 7}, 20, 120, 1, [100, 7, 87], [(100, 118), (7, 105)]),
        ({"ring_rows": 2}, 20, 40, 6, [100, 120, 120], [(100, 138)]),
        ({"ring_rows": 4, "pitch": 32}, 32, 116, 6, [100, 132, 132], [(100, 214)]),
        ({"external": True}, 20, 120, 6, [100, 120, 200], []),
        ({"size": 5}, 20, 120, 6, [100, 120, 200], [(100, 220)]),
    ],
)
def test_bytes_and_places_of_planes(changes, line, size, before, lines, parts):
    plane = replace(PLANE, **changes)
    assert (plane.line_bytes, plane.bytes, plane.lines_before_wrap) == (line, size, before)
    assert [plane.line_offset(y) for y in (0, 1, 5)] == lines and plane.intervals() == parts
    assert plane.contiguous == ("limit" not in changes)


def line_of_three() -> tuple[MemoryProblem, MemoryPlan]:
    """x of 8 bytes, m of 8, y of 4: a, a view, b with scratch."""
    tensors = {
        name: TensorSpec(name, h, w, c) for name, h, w, c in (("x", 2, 2, 2), ("m", 2, 2, 2), ("v", 1, 1, 8), ("y", 1, 1, 4))
    }
    ops = (OpSpec("a", Pointwise(), ("x",), "m"), OpSpec("r", View(), ("m",), "v"), OpSpec("b", Whole(), ("v",), "y", 6))
    planes = {
        "x": Plane(0, 2, 2, 2, 2, -1, 0),
        "m": Plane(8, 2, 3, 2, 2, 0, 2, limit=6, wrap_offset=0),
        "v": Plane(8, 8, 8, 1, 1, 1, 2),
        "y": Plane(0, 4, 4, 1, 1, 2, 3, external=True),
    }
    steps = (ScheduleStep("a", 0), ScheduleStep("r", 1), ScheduleStep("b", 2))
    run = {"r": OpPlan(view=True), "b": OpPlan(backwards=True, scratch=Scratch(20, 6))}
    return MemoryProblem(tensors, ("x",), ("y",), ops), MemoryPlan("ByHand", 26, planes, steps, run)


def test_the_log_of_a_plan():
    problem, plan = line_of_three()
    assert mapping_text(problem, plan).splitlines() == [
        "# arena 26 bytes, ByHand",
        "# start -> end [bytes] @ first clock to last clock",
        "",
        "x",
        "  0 (0x00000000) -> 8 (0x00000008) [8] @ -1 to 0",
        "",
        "a",
        "  8 (0x00000008) -> 13 (0x0000000D) + 0 (0x00000000) -> 5 (0x00000005) [12] @ 0 to 2 stride 3 of 2",
        "",
        "r",
        "  8 (0x00000008) -> 16 (0x00000010) [8] @ 1 to 2  (view, no code)",
        "",
        "b",
        "  outside the arena [4] @ 2 to 3",
        "  20 (0x00000014) -> 26 (0x0000001A) [6] @ 2 to 2  (scratch)",
    ]


def test_the_log_of_lines_names_the_first_step():
    problem, plan = line_of_three()
    steps = (
        ScheduleStep("x", 0, (0, 2), arrives=True),
        ScheduleStep("a", 1, (0, 1)),
        ScheduleStep("a", 2, (1, 2)),
        ScheduleStep("r", 3),
        ScheduleStep("b", 4, in_rows=(0, 1)),
        ScheduleStep("b", 5, in_rows=(1, 2), commit=True),
    )
    text = mapping_text(problem, replace(plan, schedule=steps)).splitlines()
    assert [line.split("]")[-1] for line in text if "(by lines)" in line or "(scratch)" in line] == [
        " @ 0 to 2 stride 3 of 2  (by lines)",
        " @ 2 to 3  (by lines)",
        " @ 4 to 4  (scratch)",
    ]


def test_what_a_plan_says_of_its_operators():
    _, plan = line_of_three()
    assert (plan.order, plan.backwards, plan.streamed, plan.views) == (("a", "r", "b"), ("b",), (), ("r",))
    assert plan.scratch == {"b": Scratch(20, 6)} and plan.op("a") == OpPlan() and plan.op("b").backwards
    assert [step.lines for step in plan.schedule] == [None, None, None]
    assert ScheduleStep("a", 0, (0, 1)).lines == (0, 1) and ScheduleStep("a", 0, in_rows=(2, 3)).lines == (2, 3)


@pytest.mark.parametrize(("x", "shared"), [(0, True), (4, True), (5, False), (6, True), (12, True), (13, False), (-8, False)])
def test_an_output_that_shares_a_byte_with_an_input_overlaps(x, shared):
    """The output lies at bytes 8 to 13 and 0 to 5, x in one piece of 1 byte, or of 8 at -8."""
    problem, plan = line_of_three()
    planes = {**plan.planes, "x": Plane(x, 1, 1, 1, 1, -1, 0)}
    if x == 6:
        planes["x"] = Plane(6, 2, 2, 2, 1, -1, 0)  # 6 to 10
    if x == -8:
        planes["x"] = Plane(-8, 2, 2, 2, 2, -1, 0)  # to 0
    plan = replace(plan, planes=planes)
    assert plan.overlaps(problem, "a") is shared
    assert not plan.overlaps(problem, "r")  # a view stores nothing


# ---- scratch -----------------------------------------------------------------------------------
def used(*ranges: tuple[int, int, int, int], scratch: tuple[int, int, int] | None = None) -> MemoryPlan:
    """Planes (begin, end, alloc, release) of two operators at the clocks 0 and 1."""
    planes = {str(at): Plane(b, e - b, e - b, 1, 1, alloc, release) for at, (b, e, alloc, release) in enumerate(ranges)}
    ops = {"q": OpPlan(scratch=Scratch(*scratch[:2]))} if scratch else {}
    steps = (ScheduleStep("p", 0), ScheduleStep("q", scratch[2] if scratch else 1))
    return MemoryPlan("by hand", max(end for _, end, _, _ in ranges), planes, steps, ops)


@pytest.mark.parametrize(
    ("plan", "need", "limit", "place", "arena"),
    [
        (used((0, 640, 0, 0)), (64, 64, 64, 64), None, (640, 64), 704),
        (used((0, 640, 0, 0)), (1, 1, 65, 65), None, (640, 64), 704),  # a tenth more
        (used((0, 640, 0, 0)), (65, 65, 65, 65), None, (640, 65), 705),
        (used((0, 630, 0, 0)), (1, 1, 100, 100), None, (640, 53), 693),  # from a multiple of 64 on
        (used((64, 640, 0, 0)), (10, 10, 10, 100), None, (0, 64), 640),
        (used((63, 640, 0, 0)), (10, 10, 10, 100), None, (0, 63), 640),
        (used((64, 640, 0, 0)), (10, 10, 64, 100), None, (0, 64), 640),
        (used((64, 640, 0, 0)), (10, 10, 65, 100), None, (0, 64), 640),  # as large as the other one: the lower
        (used((64, 640, 0, 0)), (10, 65, 65, 100), None, (640, 65), 705),
        (used((64, 640, 0, 0)), (10, 65, 65, 100), 704, (0, 64), 640),
        (used((64, 640, 0, 0)), (65, 65, 65, 100), 704, None, 640),
        (used((64, 640, 0, 0)), (65, 65, 65, 100), 705, (640, 65), 705),
        (used((64, 640, 0, 0)), (10, 10, 10, 100), 5, (0, 64), 640),  # a limit below what there is
        (used((0, 640, -1, -1)), (10, 10, 10, 1000), None, (0, 640), 640),  # released before
        (used((0, 640, 1, 3)), (10, 10, 10, 1000), None, (0, 640), 640),  # written later
        (used((0, 640, -1, 0)), (10, 10, 10, 10), None, (640, 10), 650),
        (used((0, 640, 0, 5)), (10, 10, 10, 10), None, (640, 10), 650),
        (used((0, 128, 0, 5), (100, 200, 0, 0), (512, 640, 0, 0)), (10, 10, 10, 1000), None, (256, 256), 640),
        (used((0, 128, 0, 5), (512, 640, 0, 0), (576, 600, 0, 0)), (10, 10, 10, 1000), None, (128, 384), 640),
        (used((512, 640, 0, 0), scratch=(0, 100, 0)), (10, 10, 10, 1000), None, (128, 384), 640),
        (used((512, 640, 0, 0), scratch=(0, 100, 1)), (10, 10, 10, 1000), None, (0, 512), 640),
    ],
)
def test_scratch_takes_the_largest_hole_while_its_layer_runs(plan, need, limit, place, arena):
    problem = MemoryProblem({}, (), (), (OpSpec("p", Whole(), (), "y"), OpSpec("q", Whole(), (), "z")))
    specs, found = place_scratch(problem, plan, {"p": ScratchNeed(*need)}, limit)
    assert found.op("p").scratch == (None if place is None else Scratch(*place))
    assert (found.arena_bytes, found.tensor_arena_bytes) == (arena, 640 if plan.arena_bytes == 640 else 630)
    assert [op.scratch_bytes for op in specs.ops] == [0 if place is None else place[1], 0]
    assert found.op("q") == plan.op("q")


def test_views_and_layers_with_scratch_get_none():
    plan = used((0, 640, 0, 0), scratch=(0, 100, 1))
    problem = MemoryProblem({}, (), (), (OpSpec("q", Whole(), (), "z"),))
    assert place_scratch(problem, plan, {"q": ScratchNeed(1, 1, 1, 1)}) == (problem, plan)
    viewed = replace(plan, ops={"p": OpPlan(view=True)})
    assert place_scratch(problem, viewed, {"p": ScratchNeed(1, 1, 1, 1)}) == (problem, viewed)
    assert plan.tensor_arena_bytes is None


def test_a_layer_in_steps_needs_its_scratch_in_all_of_them():
    plan = used((0, 64, 0, 0), (128, 192, 3, 3), (300, 640, 0, 9))
    plan = replace(plan, schedule=(ScheduleStep("p", 0, (0, 1)), ScheduleStep("q", 1), ScheduleStep("p", 3, (1, 2))))
    problem = MemoryProblem({}, (), (), (OpSpec("p", Whole(), (), "y"),))
    assert place_scratch(problem, plan, {"p": ScratchNeed(1, 1, 1, 999)})[1].op("p").scratch == Scratch(192, 108)
    assert place_scratch(problem, plan, {"q": ScratchNeed(1, 1, 1, 999)})[1].op("q").scratch == Scratch(0, 300)


# ---- spaces ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("start", "size", "whole", "limit", "end", "intervals", "sound"),
    [
        (0, 24, False, 24, 24, [(0, 24)], True),
        (10, 34, False, 24, 34, [(10, 34)], True),
        (10, 33, False, 18, 6, [(10, 28), (0, 6)], True),
        (10, 28, False, 18, 6, [(10, 28), (0, 6)], True),
        (10, 27, False, 12, 12, [(10, 22), (0, 12)], False),
        (12, 27, False, 12, 12, [(12, 24), (0, 12)], True),
        (20, 25, False, 0, 24, [(0, 24)], True),
        (20, 23, False, 0, 24, [(0, 24)], False),
        (30, 24, False, 0, 24, [(0, 24)], True),
        (10, 33, True, 0, 24, [(0, 24)], True),
        (10, 34, True, 24, 34, [(10, 34)], True),
    ],
)
def test_planes_in_spaces(start, size, whole, limit, end, intervals, sound):
    """4 lines of 6 bytes from `start` on in a space: whole lines before the wrap, the others at its first byte."""
    plane = SpacePlane(Space(size, 0, 1), PlaneLayout(2, 2, 3, 4, whole=whole), start, 0, 1)
    assert (plane.limit, plane.end, plane.intervals, plane.sound) == (limit, end, intervals, sound)
    lines = [at + 6 * n for at, stop in intervals for n in range((stop - at) // 6)]
    assert [plane.line_offset(y) for y in range(4)] == lines


def test_elements_of_planes_in_spaces_are_aligned():
    form = PlaneLayout(4, 4, 3, 2, element=4)
    assert [SpacePlane(Space(99, 0, 1), form, start, 0, 1).sound for start in (0, 2, 4, 6, 8)] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert SpacePlane(Space(24, 0, 1), form, 30, 0, 1).sound  # at the first byte of the space


@pytest.mark.parametrize(
    ("form", "line", "size", "unit"),
    [
        (PlaneLayout(2, 3, 4, 5), 12, 60, 12),
        (PlaneLayout(2, 3, 4, 5, pitch=20), 20, 100, 20),
        (PlaneLayout(2, 3, 4, 1), 12, 12, 3),
        (PlaneLayout(8, 8, 1, 1), 8, 8, 1),
        (PlaneLayout(8, 8, 1, 2), 8, 16, 8),
    ],
)
def test_what_the_size_of_a_space_is_a_multiple_of(form, line, size, unit):
    assert (form.line, form.bytes, form.unit) == (line, size, unit)


def test_spaces_in_the_order_of_their_allocation():
    manager = Manager()
    first = manager.allocate(PlaneLayout(2, 2, 3, 4), -1, 3)
    second = manager.allocate(PlaneLayout(5, 5, 1, 1), 2, 7)
    assert manager.spaces == [first.space, second.space]
    assert [(s.size, s.allocated, s.released, s.lifetime, s.offset, len(s.planes)) for s in manager.spaces] == [
        (24, -1, 3, 4, 0, 1),
        (5, 2, 7, 5, 0, 1),
    ]
    assert (first.start, first.allocated, first.released) == (0, -1, 3)


# ---- distances ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ahead", "behind", "forwards", "backwards"),
    [
        (-4, 6, (18, 6), (16, 8)),
        (0, 0, (14, 10), (14, 10)),
        (3, -3, (14, 10), (14, 10)),
        (-10, 14, (24, 0), (24, 0)),
        (-1, 1, (15, 9), (14, 10)),
        (-6, 5, (20, 4), (15, 9)),
    ],
)
def test_what_an_overlap_saves(ahead, behind, forwards, backwards):
    """An input of 14 bytes and an output of 10."""
    found = Reach(ahead, behind, 14, 10)
    assert ((found.span(False), found.gain(False)), (found.span(True), found.gain(True))) == (forwards, backwards)


def form(tensor: TensorSpec) -> PlaneLayout:
    return PlaneLayout(tensor.pixel_bytes, tensor.pixel_bytes, tensor.width, tensor.height, tensor.element_bytes)


X = TensorSpec("x", 4, 3, 2)


@pytest.mark.parametrize(
    ("access", "output", "wanted"),
    [
        (Window((1, 1)), (4, 3, 2), (-6, 6)),
        (Window((3, 1), pads=(1, 0, 1, 0)), (4, 3, 2), (-12, 12)),
        (Window((2, 1), (2, 1)), (2, 3, 2), (-6, 18)),
        (Window((1, 1)), (4, 3, 4), (-30, 6)),
        (Window((1, 1)), (4, 3, 1), (-3, 15)),
        (Upsample((2, 1)), (8, 3, 2), (-30, 6)),
        (LineTable((((0, 0), (1, 2), (0, 0)),), (((0, 1),) * 3,)), (3, 3, 2), (-6, 6)),
        (LineTable((((3, 4), (1, 2), (0, 1)),), (((0, 1),) * 3,)), (3, 3, 2), (-18, 24)),
        (Pointwise(), (4, 3, 2), (0, 0)),
        (Whole(), (4, 3, 2), None),
        (View(), (4, 3, 2), None),
    ],
)
def test_distances_by_hand(access, output, wanted):
    y = TensorSpec("y", *output)
    found = reach(OpSpec("a", access, ("x",), "y"), X, form(X), 0, y, form(y), 0)
    assert found == (None if wanted is None else Reach(*wanted, X.bytes, y.bytes))


# ---- rows --------------------------------------------------------------------------------------
def rows(net: Net, whole: tuple[int, ...] | None = None) -> Rows:
    problem = net.done()
    ops = list(problem.ops)
    return Rows(ops, problem, (len(ops) - 1,) if whole is None else whole)


def test_two_windows_line_by_line():
    """3 lines of the first for the first line of the second, then one for each; both with padding only beside."""
    net = Net(7, 4, 2)
    net.conv(net.conv(net.input, 3, (3, 1), pads=0), 5, (3, 1), pads=0)
    found = rows(net)
    assert found.order == [0, 0, 0, 1, 0, 1, 0, 1] and found.lines == [[0, 1, 2, 3, 4], [0, 1, 2]]
    assert [found.ring(0), found.ring(1)] == [3, 1]
    assert found.runs(0) == [(0, 0, 3), (1, 0, 1), (0, 3, 4), (1, 1, 2), (0, 4, 5), (1, 2, 3)]
    assert found.runs(1) == [(1, 0, 3)]
    # line y of the second is stored while line y + 2 of the first is the last that was read: 8 bytes and 12 a line
    assert found.ahead("input", 8, 0, 12) == min(8 * y - 12 * (y + 1) for y in range(5))
    # before the first line of the second line 3 of the input is not read: 1 line of 20 bytes after 3 of 8
    assert found.ahead("input", 8, 1, 20) == min(8 * (y + 3) - 20 * (y + 1) for y in range(2))
    assert found.ahead("conv0.y", 12, 1, 20) == min(12 * y - 20 * (y + 1) for y in range(3))


def test_lines_that_are_skipped_are_not_made():
    net = Net(9, 4, 2)
    net.conv(net.conv(net.input, 3, 1, pads=0), 5, (1, 1), (4, 1), pads=0)
    assert rows(net).lines == [[0, 4, 8], [0, 1, 2]] and rows(net).order == [0, 1, 0, 1, 0, 1]
    every = rows(net, (0, 1))
    assert every.lines[0] == list(range(9)) and every.order == [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert every.runs(0) == [(0, 0, 1), (1, 0, 1), (0, 1, 5), (1, 1, 2), (0, 5, 9), (1, 2, 3)]
    assert every.ring(0) == 1 and rows(net).runs(0)[2:4] == [(0, 4, 5), (1, 1, 2)]


def test_a_pool_takes_each_line_and_stores_at_the_last():
    net = Net(3, 4, 2)
    net.ew(net.global_pool(net.conv(net.input, 3, 1, pads=0)))
    found = rows(net)
    assert found.accumulating == [False, True, False] and found.lines == [[0, 1, 2], [0, 1, 2], [0]]
    assert found.order == [0, 1, 0, 1, 0, 1, 2] and [found.ring(n) for n in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("access", "inputs", "wanted"),
    [
        (Window((1, 1)), ("x",), True),
        (Window((1, 1), by_lines=False), ("x",), False),
        (Window((1, 1), aliases=1), ("x", "z"), False),
        (Pointwise(), ("x", "z"), True),
        (Pointwise(), ("x", "v"), False),
        (Whole(), ("x",), False),
        (View(), ("x",), False),
    ],
)
def test_what_can_run_line_by_line(access, inputs, wanted):
    tensors = {name: replace(X, name=name) for name in "xyz"} | {"v": TensorSpec("v", 1, 1, 2)}
    problem = MemoryProblem(tensors, inputs, ("y",), (OpSpec("a", access, inputs, "y"),))
    assert streamable(problem.ops[0], problem) is wanted


def test_lines_that_operators_read():
    tensors = {"x": X, "y": replace(X, name="y"), "p": TensorSpec("p", 1, 1, 2)}
    pool = OpSpec("p", PoolWindow((4, 3)), ("x",), "p")
    assert [list(each) for each in lines_read(pool, "x", tensors)] == [[0], [1], [2], [3]]
    assert [list(each) for each in lines_read(OpSpec("e", Pointwise(), ("x",), "y"), "x", tensors)] == [[0], [1], [2], [3]]
    window = OpSpec("w", Window((2, 1), pads=(0, 0, 1, 0)), ("x",), "y")
    assert [list(each) for each in lines_read(window, "x", tensors)] == [[0, 1], [1, 2], [2, 3], [3]]


def test_lines_of_an_input_arrive_whether_they_are_read_or_not():
    net = Net(5, 4, 2)
    net.conv(net.input, 3, 1, (2, 1), pads=0)
    problem = net.done()
    ops = [OpSpec("input", Arrival(), (), "input"), *problem.ops]
    found = Rows(ops, problem, (1,))
    assert found.lines == [[0, 1, 2, 3, 4], [0, 1, 2]] and found.order == [0, 1, 0, 0, 1, 0, 0, 1]


# ---- slices and sums ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("channels", "sizes"),
    [
        (16, []),
        (17, [16]),
        (32, [16]),
        (33, [32, 16]),
        (64, [32, 16]),
        (100, [64, 48, 32, 16]),
        (512, [256, 176, 128, 112, 96, 80, 64, 48, 32]),
    ],
)
def test_ways_to_cut_channels(channels, sizes):
    assert [way[0][1] for way in divisions(channels)] == sizes
    for way in divisions(channels):
        assert [first for first, _ in way] == list(range(0, channels, way[0][1])) and way[-1][1] == channels


def tail() -> MemoryProblem:
    net = Net(4, 4, 3)
    net.global_pool(net.ew(net.conv(net.conv(net.input, 4, 3), 40, 1)))
    return net.done()


CUTS = {
    "as it is": (lambda ops: ops, 1),
    "a pool alone": (lambda ops: ops[-1:], None),
    "no pool": (lambda ops: ops[:-1], None),
    "nothing before the convolution": (lambda ops: ops[1:], 0),
    "no convolution": (lambda ops: ops[2:], None),
    "groups": (lambda ops: [ops[0], replace(ops[1], access=replace(ops[1].access, groups=2)), *ops[2:]], None),
    "scratch": (lambda ops: [ops[0], replace(ops[1], scratch_bytes=1), *ops[2:]], None),
    "scratch of the function": (lambda ops: [*ops[:2], replace(ops[2], scratch_bytes=1), ops[3]], None),
    "another input": (lambda ops: [*ops[:2], replace(ops[2], inputs=("input",)), ops[3]], None),
    "a sum": (lambda ops: [*ops[:2], replace(ops[2], inputs=("conv1.y", "conv1.y")), ops[3]], None),
    "a residual": (
        lambda ops: [ops[0], replace(ops[1], access=replace(ops[1].access, aliases=1), inputs=("conv0.y", "z")), *ops[2:]],
        None,
    ),
    "another operator": (lambda ops: [*ops[:2], replace(ops[2], access=Whole()), ops[3]], None),
    "a pool between": (lambda ops: [*ops[:2], replace(ops[2], access=PoolWindow((1, 1))), ops[3]], None),
}


@pytest.mark.parametrize(("change", "wanted"), CUTS.values(), ids=CUTS)
def test_from_where_on_layers_can_be_sliced(change, wanted):
    problem = tail()
    assert sliced_from(change(list(problem.ops)), problem.tensors) == wanted


def test_operators_slice_by_slice():
    problem, tensors = tail(), {}
    cut = SliceCut(tuple(op.name for op in problem.ops[1:]), ((0, 32), (32, 40)))
    made = cut.rewritten(problem, tensors)
    assert cut.count == 2 and [(op.name, op.inputs, op.output) for op in made] == [
        ("conv1.slice0", ("conv0.y",), "conv1.y.slice0"),
        ("ew2.slice0", ("conv1.y.slice0",), "ew2.y.slice0"),
        ("pool3.slice0", ("ew2.y.slice0",), "pool3.y.slice0"),
        ("conv1.slice1", ("conv0.y",), "conv1.y.slice1"),
        ("ew2.slice1", ("conv1.y.slice1",), "ew2.y.slice1"),
        ("pool3.slice1", ("ew2.y.slice1",), "pool3.y.slice1"),
        ("pool3", ("pool3.y.slice0", "pool3.y.slice1"), "pool3.y"),
    ]
    assert made[-1].layer == "Concat" and {name: t.channels for name, t in tensors.items()} == {
        f"{name}.y.slice{at}": (32, 8)[at] for at in (0, 1) for name in ("conv1", "ew2", "pool3")
    }


def base() -> MemoryProblem:
    """x -> a -> p; x -> b -> q; s = q + p -> c -> y: b can do the sum."""
    tensors = {name: TensorSpec(name, 2, 2, 4) for name in ("x", "p", "q", "s", "y")}
    ops = (
        OpSpec("a", Window((1, 1)), ("x",), "p"),
        OpSpec("b", Window((1, 1)), ("x",), "q"),
        OpSpec("t", Pointwise(), ("q", "p"), "s", layer="ElemWise"),
        OpSpec("c", Window((1, 1)), ("s",), "y"),
    )
    return MemoryProblem(tensors, ("x",), ("y",), ops)


def changed(at: int, **changes) -> MemoryProblem:
    problem = base()
    ops = list(problem.ops)
    ops[at] = replace(ops[at], **changes)
    return replace(problem, ops=tuple(ops))


def sized(name: str, **changes) -> MemoryProblem:
    problem = base()
    return replace(problem, tensors={**problem.tensors, name: replace(problem.tensors[name], **changes)})


def read(access, source: str, at: int) -> MemoryProblem:
    problem = base()
    ops = (*problem.ops[:at], OpSpec("e", access, (source,), "u"), *problem.ops[at:])
    return replace(problem, ops=ops, tensors={**problem.tensors, "u": TensorSpec("u", 2, 2, 4)})


SUMS = {
    "as it is": (base(), True),
    "operands the other way round": (changed(2, inputs=("p", "q")), True),
    "the convolution reads the residual": (changed(1, inputs=("p",)), False),
    "another function": (changed(2, layer="Maximum"), False),
    "not pointwise": (changed(2, access=Window((1, 1))), False),
    "one operand twice": (changed(2, inputs=("q", "q")), False),
    "three operands": (changed(2, inputs=("q", "p", "p")), False),
    "one operand": (changed(2, inputs=("q",)), False),
    "an input of the network": (changed(2, inputs=("q", "x")), False),
    "the sum is an output": (replace(base(), outputs=("y", "s")), False),
    "the residual is an output": (replace(base(), outputs=("y", "p")), False),
    "the convolution is an output": (replace(base(), outputs=("y", "q")), False),
    "wide sums": (sized("s", element_bytes=2), False),
    "wide operands": (sized("q", element_bytes=2), False),
    "a wide residual": (sized("p", element_bytes=2), False),
    "another shape of the sum": (sized("s", channels=5), False),
    "a residual that is repeated": (sized("p", height=1), False),
    "a pool": (changed(1, access=PoolWindow((1, 1))), False),
    "another kind of layer": (changed(1, access=Whole()), False),
    "the residual of a whole layer": (changed(0, access=Whole()), True),
    "a view": (changed(0, access=View()), False),
    "a view of the sum": (changed(3, access=View()), False),
    "a reader of the convolution": (read(Whole(), "q", 2), False),
    "a later reader of the residual": (read(Whole(), "p", 2), False),
    "a reader of the residual after the sum": (read(Whole(), "p", 3), False),
    "a reader of the residual before": (read(Whole(), "p", 1), True),
    "a view of the residual": (read(View(), "p", 1), False),
    "another view": (read(View(), "y", 4), True),
}


@pytest.mark.parametrize(("problem", "found"), SUMS.values(), ids=SUMS)
def test_where_a_convolution_does_a_sum(problem, found):
    assert residual_sums(problem) == ([ResidualSum("b", "t", "p")] if found else [])


def test_who_decides_is_asked_for_the_convolution_and_the_sum():
    asked = []
    assert residual_sums(base(), lambda conv, sum: asked.append((conv, sum)) or False) == [] and asked == [("b", "t")]


def test_the_network_with_its_sum():
    found = with_sums(base(), [ResidualSum("b", "t", "p")])
    assert [(op.name, op.inputs, op.output, op.aliased) for op in found.ops] == [
        ("a", ("x",), "p", None),
        ("b", ("x", "p"), "s", "p"),
        ("c", ("s",), "y", None),
    ]
    assert set(found.tensors) == {"x", "p", "s", "y"} and with_sums(base(), []) == base()
