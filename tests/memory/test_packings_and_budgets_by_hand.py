"""Blocks, placements, segments and budgets of networks so small that every figure is counted by hand."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from n2d2py.errors import N2D2Error
from n2d2py.memory.access import Access, Pointwise, PoolWindow, TensorSpec, Whole, Window
from n2d2py.memory.buffers import Buffers
from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.cut import Cutter
from n2d2py.memory.manager import PlaneLayout, Space, SpacePlane
from n2d2py.memory.modes import peak_layers, plan_mode, runs_by_lines
from n2d2py.memory.packing import Move, Packing, Placement, address_step
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.planning import plan_memory
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.reorder import best_order
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import ORDERS, place_online, place_sorted

SETTINGS = Settings(clock="op", buffer_alignment=1)


def chain(*parts: tuple[Access, int], first: int = 8, element: int = 1, height: int = 1) -> MemoryProblem:
    """x of `first` channels, then an operator for each part: its access, and the channels of what it makes."""
    tensors = {"x": TensorSpec("x", height, 1, first, element)}
    ops, source = [], "x"
    for number, (access, channels) in enumerate(parts):
        name = f"t{number}"
        tensors[name] = TensorSpec(name, height, 1, channels, element)
        ops.append(OpSpec(f"o{number}", access, (source,), name))
        source = name
    return MemoryProblem(tensors, ("x",), (source,), tuple(ops))


def packing(problem: MemoryProblem, settings: Settings = SETTINGS) -> Packing:
    return Packing(Buffers(problem, settings, ()))


# ---- packings ----------------------------------------------------------------------------------
def test_blocks_and_their_lives():
    """8, 12 and 4 bytes: at the first operator 20 of them live, at the second 16, at the end 4."""
    found = packing(chain((Whole(), 12), (Whole(), 4)))
    assert [(b.size, b.birth, b.death) for b in found.blocks] == [(8, -1, 0), (12, 0, 1), (4, 1, 2)]
    assert [found.live(clock) for clock in (-1, 0, 1, 2, 3, 99)] == [8, 20, 16, 4, 0, 0] and found.bound == 20
    assert found.pairs == [] and [sorted(near) for near in found.neighbours] == [[1], [0, 2], [1]]
    assert found.closed[1] == [(0, -1, (-12, 8), (-12, 8)), (2, -1, (-12, 4), (-12, 4))]


@pytest.mark.parametrize(
    ("order", "offsets", "top"),
    [([0, 1, 2], (0, 8, 0), 20), ([0, 2, 1], (0, 8, 0), 20), ([1, 0, 2], (12, 0, 12), 20), ([2, 1, 0], (16, 4, 0), 24)],
)
def test_first_fit(order, offsets, top):
    found = packing(chain((Whole(), 12), (Whole(), 4)))
    assert found.first_fit(order, [False, True]) == Placement(offsets, (False, True), top)


def test_sizes_are_multiples_of_the_step():
    problem = chain((Whole(), 3), (Whole(), 1), first=2, element=4)
    assert address_step(problem, replace(SETTINGS, buffer_alignment=6)) == 12
    found = packing(problem, replace(SETTINGS, buffer_alignment=6))
    assert [b.size for b in found.blocks] == [12, 12, 12] and found.bound == 24
    assert [b.size for b in packing(problem).blocks] == [8, 12, 4]


@pytest.mark.parametrize(
    ("access", "channels", "ahead", "behind", "bound", "exact"),
    [
        (Pointwise(), 8, 0, 0, 32, True),
        (Window((1, 1)), 8, -8, 8, 40, False),
        (Window((3, 1), pads=(1, 0, 1, 0)), 8, -16, 16, 48, False),
        (Window((1, 1)), 4, -4, 20, 36, False),
        (Window((1, 1)), 12, -24, 8, 56, False),
    ],
)
def test_an_output_over_its_input(access, channels, ahead, behind, bound, exact):
    """4 lines of 8 bytes; a line of the output after the lines that are read no more, or before them."""
    found = packing(chain((access, channels), height=4))
    (pair,) = found.pairs
    assert (pair.op, pair.source, pair.output, pair.exact) == (0, 0, 1, exact)
    assert (pair.reach.ahead, pair.reach.behind, pair.reach.source, pair.reach.output) == (ahead, behind, 32, 4 * channels)
    out = 4 * channels
    assert found.closed[1] == [(0, 0, (max(-out, ahead), 32), (-out, min(32, behind)))]
    assert found.closed[0] == [(1, 0, (-32, min(out, -ahead)), (max(-32, -behind), out))]
    assert found.bound == bound


def test_distances_are_rounded_to_the_safe_side():
    found = packing(chain((Window((1, 1)), 5), first=7, height=4), replace(SETTINGS, buffer_alignment=4))
    (pair,) = found.pairs
    # ahead: 7 y - 5 (y + 1) is -5 at the least; behind: 7 (y + 1) - 5 y is 13 at the most
    assert (pair.reach.ahead, pair.reach.behind, pair.reach.source, pair.reach.output) == (-8, 16, 28, 20)


def test_what_overlapping_costs():
    problem = chain((Window((2, 1), pads=(0, 0, 1, 0)), 3), height=4)
    assert packing(problem).cost(0) == 4 * 3 * 2 * 8 + 4 * (32 + 12)


def test_a_refit_is_a_first_fit_of_what_has_changed():
    found = packing(chain((Whole(), 12), (Whole(), 4), (Whole(), 9), (Whole(), 2)))
    rng, order, backwards = Random(7), [3, 1, 0, 4, 2], [False] * 4
    placed = found.first_fit(order, backwards)
    for _ in range(60):
        move = found.moved(order, backwards, rng.randrange(5), rng, 0.3)
        assert sorted(move.order) == [0, 1, 2, 3, 4]
        whole = found.first_fit(move.order, move.backwards)
        assert found.refit(move, placed, whole.bytes) == whole
        order, backwards, placed = move.order, move.backwards, whole


def test_a_refit_ends_where_the_arena_is_too_large():
    found = packing(chain((Whole(), 12), (Whole(), 4)))
    before = found.first_fit([0, 1, 2], [False, False])
    move = Move([2, 1, 0], [False, False], 0, {0, 1, 2})
    assert found.refit(move, before, 24) == Placement((16, 4, 0), (False, False), 24)
    assert found.refit(move, before, 23) is None


# ---- segments ----------------------------------------------------------------------------------
def cutter(problem: MemoryProblem) -> Cutter:
    buffers = Buffers(problem, SETTINGS, ())
    return Cutter(buffers, [op for op in buffers.order() if op.name not in buffers.views], lambda size: size)


def test_bytes_of_segments():
    """5 lines of 8, 6, 4 and 2 bytes, windows of one line: alone an output lies over its input but for one line."""
    found = cutter(chain((Window((1, 1)), 6), (Window((1, 1)), 4), (Window((1, 1)), 2), height=5))
    assert [found.crossing(at) for at in range(4)] == [40, 30, 20, 10]
    assert [found.weigh(at, at + 1).bytes for at in range(3)] == [46, 34, 22]
    assert [list(found.ends(at)) for at in range(3)] == [[1, 2, 3], [2, 3], [3]]
    # together: what crosses the begin, and a line between each two; a line of the last output lies where one of the input was
    three = found.weigh(0, 3)
    assert three.rings == {"t0": 1, "t1": 1} and three.rows is not None and three.partial == {}
    assert three.bytes == 40 + 6 + 4
    assert found.weigh(1, 3).bytes == 30 + 4 and found.at_least(0) == [0, 46, 50]
    assert found.weigh(0, 1).runs == [] and found.weigh(0, 2).runs[:3] == [(0, 0, 1), (1, 0, 1), (0, 1, 2)]


def test_the_fewest_layers_run_by_lines():
    found = cutter(chain((Window((1, 1)), 6), (Window((1, 1)), 4), (Window((1, 1)), 2), height=5))
    assert [(s.begin, s.end) for s in found.cut(46)] == [(0, 1), (1, 2), (2, 3)]
    assert [(s.begin, s.end) for s in found.cut(0)] == [(0, 1), (1, 2), (2, 3)]
    wide = cutter(chain((Window((1, 1)), 20), (Window((1, 1)), 4), height=5))
    assert [(s.begin, s.end) for s in wide.cut(1000)] == [(0, 1), (1, 2)]
    assert [(s.begin, s.end) for s in wide.cut(0)] == [(0, 2)] and wide.weigh(0, 2).bytes == 40 + 20
    assert wide.weigh(0, 1).bytes == 100 + 8  # behind the line that is read
    assert [(s.begin, s.end) for s in wide.cut(wide.weigh(0, 1).bytes)] == [(0, 1), (1, 2)]
    assert [(s.begin, s.end) for s in wide.cut(wide.weigh(0, 1).bytes - 1)] == [(0, 2)]


def test_a_sum_over_its_residual_takes_no_bytes():
    """x and p of 8 bytes each live at the convolution that adds p; the sum lies over p."""
    tensors = {name: TensorSpec(name, 2, 1, 4) for name in "xps"}
    ops = (OpSpec("a", Whole(), ("x",), "p"), OpSpec("b", Window((1, 1), aliases=1), ("x", "p"), "s"))
    problem = MemoryProblem(tensors, ("x",), ("s",), ops)
    found = cutter(problem)
    assert found.weigh(1, 2).bytes == 16 and found.weigh(0, 1).bytes == 16 and found.crossing(1) == 16


@pytest.mark.parametrize("height", [2, 4, 6])
@pytest.mark.parametrize("pads", [(1, 0, 0, 0), (0, 0, 1, 0)])
@pytest.mark.parametrize("strategy", ["OptimizeStream", "OptimizeOverlap", "OptimizeReorder"])
def test_a_sum_lies_over_its_residual_and_not_over_what_its_convolution_reads(height, pads, strategy):
    """Both live since the residual was computed."""
    tensors = {name: TensorSpec(name, height, 1, 4) for name in "xps"}
    ops = (OpSpec("a", Whole(), ("x",), "p"), OpSpec("b", Window((2, 1), pads=pads, aliases=1), ("x", "p"), "s"))
    problem = MemoryProblem(tensors, ("x",), ("s",), ops)
    plan = plan_memory(problem, strategy=strategy, buffer_alignment=1)
    assert check_plan(problem, plan) == [] and plan.arena_bytes == 8 * height == plan.bound


def test_a_pool_keeps_partial_results_in_a_segment():
    problem = chain((Window((1, 1)), 6), height=5)
    tensors = {**problem.tensors, "p": TensorSpec("p", 1, 1, 6)}
    ops = (*problem.ops, OpSpec("pool", PoolWindow((5, 1), partial_bytes=2), ("t0",), "p"))
    found = cutter(replace(problem, tensors=tensors, ops=ops, outputs=("p",)))
    both = found.weigh(0, 2)
    assert both.partial == {"pool": 12} and both.rings == {"t0": 1} and found.rings(2) == {"t0": 1}
    assert both.bytes == max(40 + 6 + 6 + 12 - 6, 0)  # the result lies over the input
    assert found.weigh(1, 2).bytes == 30 + 6 and found.weigh(1, 2).partial == {}


# ---- orders and spaces -------------------------------------------------------------------------
def test_spaces_in_the_lowest_gap():
    spaces = [Space(10, 0, 2), Space(6, 1, 1), Space(4, 2, 3), Space(20, 3, 3)]
    place_online(spaces)
    assert [space.offset for space in spaces] == [0, 10, 10, 14]
    for space in spaces:
        space.planes.append(SpacePlane(space, PlaneLayout(space.size, space.size, 1, 1), 0, space.allocated, space.released))
    place_sorted(spaces, lambda space: (-space.size,))
    assert [space.offset for space in spaces] == [0, 10, 20, 0]
    place_sorted(spaces, lambda space: (space.size,), 8)
    assert [space.offset for space in spaces] == [8, 0, 0, 8]


def test_the_keys_of_n2d2s_orders():
    space = Space(30, 2, 7)
    for size, allocated in ((10, 2), (5, 2), (28, 4)):
        space.planes.append(SpacePlane(space, PlaneLayout(size, size, 1, 1), 0, allocated, 7))
    keys = {name: order(space) for name, order in ORDERS.items() if order is not None}
    assert next(iter(ORDERS)) == "None" and ORDERS["None"] is None
    assert keys == {
        "OptimizeMaxLifetimeMinSizeFirst": (-5, 30),
        "OptimizeMaxLifetimeMaxSizeFirst": (-5, -30),
        "OptimizeMaxHoleMaxLifetimeFirst": (-15, -5),
    }


def test_an_output_that_is_read_is_not_stored_over():
    """p, an output of the network, stays while b, whose result nobody reads, runs: with r before it 141 bytes live, else 131."""
    sizes = {"x": 30, "p": 40, "r": 60, "u": 1, "q": 40}
    tensors = {name: TensorSpec(name, 1, 1, size) for name, size in sizes.items()}
    ops = (
        OpSpec("a", Whole(), ("x",), "p"),
        OpSpec("c", Whole(), ("x",), "r"),
        OpSpec("d", Whole(), ("p",), "u"),
        OpSpec("b", Pointwise(), ("p", "u"), "q"),
    )
    problem = MemoryProblem(tensors, ("x",), ("p", "r", "u"), ops)
    assert [op.name for op in best_order(problem, SETTINGS).ops] == ["a", "d", "b", "c"]


# ---- budgets -----------------------------------------------------------------------------------
def test_the_layers_at_the_peak():
    """Bytes of the arena that something holds, each counted once: 30 at clock 0, 40 at 1, 40 at 2, 12 at 3."""
    planes = {
        "x": Plane(0, 10, 10, 1, 1, -1, 0),
        "m": Plane(10, 20, 20, 1, 1, 0, 2),
        "n": Plane(20, 30, 30, 1, 1, 1, 2),
        "y": Plane(60, 12, 12, 1, 1, 3, 4),
    }
    steps = (ScheduleStep("a", 0), ScheduleStep("v", 1), ScheduleStep("b", 1), ScheduleStep("c", 2), ScheduleStep("d", 3))
    plan = MemoryPlan("by hand", 72, planes, steps, {"v": OpPlan(view=True)})
    problem = MemoryProblem({}, (), (), ())
    assert peak_layers(problem, plan) == ["b"]
    more = replace(plan, ops={"v": OpPlan(view=True), "c": OpPlan(scratch=Scratch(49, 2))})
    assert peak_layers(problem, more) == ["c"]  # one byte more
    inside = replace(plan, ops={"v": OpPlan(view=True), "c": OpPlan(scratch=Scratch(10, 40))})
    assert peak_layers(problem, inside) == ["b"]
    twice = (*steps, ScheduleStep("b", 1, (1, 2)))
    assert peak_layers(problem, replace(plan, schedule=twice)) == ["b"]


def whole(first: int, channels: int) -> MemoryProblem:
    return chain((Whole(), channels), first=first)


@pytest.mark.parametrize(
    ("mode", "budget", "settings", "text", "remedy"),
    [
        (
            "Minimum",
            15,
            SETTINGS,
            "MemoryBudget=15 cannot be met by MemoryMode=Minimum: it needs 30 bytes, at the peak for o0; the smallest reachable "
            "figure is 10 bytes (MemoryMode=Minimum IncludeOutputInBuffer=0)",
            "use MemoryMode=Minimum IncludeOutputInBuffer=0, which needs 10 bytes",
        ),
        (
            "Speed",
            10,
            SETTINGS,
            "MemoryBudget=10 cannot be met by MemoryMode=Speed: it needs 30 bytes, at the peak for o0; the smallest reachable "
            "figure is 10 bytes (MemoryMode=Minimum IncludeOutputInBuffer=0)",
            "use MemoryMode=Speed IncludeOutputInBuffer=0, which needs 10 bytes",
        ),
        (
            "Small",
            9,
            SETTINGS,
            "MemoryBudget=9 cannot be met by MemoryMode=Small: it needs 30 bytes, at the peak for o0; the smallest reachable "
            "figure is 10 bytes (MemoryMode=Minimum IncludeOutputInBuffer=0)",
            "allow 10 bytes, or make the input or the layers at the peak smaller",
        ),
        (
            "Balanced",
            25,
            replace(SETTINGS, include_output=True),
            "MemoryBudget=25 cannot be met by MemoryMode=Balanced: it needs 30 bytes, at the peak for o0; the smallest reachable "
            "figure is 10 bytes (MemoryMode=Minimum IncludeOutputInBuffer=0)",
            "use MemoryMode=Balanced IncludeOutputInBuffer=0, which needs 10 bytes",
        ),
        (
            "Balanced",
            5,
            replace(SETTINGS, include_output=False),
            "MemoryBudget=5 cannot be met by MemoryMode=Balanced: it needs 10 bytes, at the peak for o0; the smallest reachable "
            "figure is 0 bytes (MemoryMode=Minimum IncludeInputInBuffer=0)",
            "use MemoryMode=Balanced IncludeInputInBuffer=0, which needs 0 bytes",
        ),
        (
            "Balanced",
            5,
            replace(SETTINGS, include_input=False),
            "MemoryBudget=5 cannot be met by MemoryMode=Balanced: it needs 20 bytes, at the peak for o0; the smallest reachable "
            "figure is 0 bytes (MemoryMode=Minimum IncludeOutputInBuffer=0)",
            "use MemoryMode=Balanced IncludeOutputInBuffer=0, which needs 0 bytes",
        ),
    ],
)
def test_a_budget_that_cannot_be_met(mode, budget, settings, text, remedy):
    with pytest.raises(N2D2Error) as caught:
        plan_mode(whole(10, 20), settings, mode, budget=budget)
    assert (caught.value.code, caught.value.where, caught.value.what, caught.value.remedy) == ("E607", "memory", text, remedy)


def test_a_budget_that_is_just_met():
    plan = plan_mode(whole(10, 20), SETTINGS, "Minimum", budget=30)
    assert plan.arena_bytes == 30 and plan.options["MemoryMode"] == "Speed" and plan.options["MemoryBudget"] == 30


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, False),
        ({"MemoryManagerStrategy": "OptimizeStream"}, True),
        ({"MemoryManagerStrategy": "OptimizeStream", "StreamInput": True}, False),
        ({"MemoryBudget": 0}, True),
        ({"MemoryBudget": 5}, True),
        ({"MemoryBudget": 5, "MemoryMode": "Speed"}, False),
        ({"MemoryMode": "Speed"}, False),
        ({"MemoryMode": "Balanced"}, False),
        ({"MemoryMode": "Small"}, True),
        ({"MemoryMode": "Minimum"}, True),
        ({"MemoryMode": "Minimum", "StreamInput": True}, False),
        ({"MemoryMode": "Balanced", "MemoryManagerStrategy": "OptimizeStream"}, False),
    ],
)
def test_which_parameters_let_layers_run_by_lines(changes, wanted):
    parameters = {"StreamInput": False, "MemoryMode": "auto", "MemoryManagerStrategy": "OptimizeOverlap", "MemoryBudget": -1}
    assert runs_by_lines({**parameters, **changes}) is wanted


# ---- partial results ---------------------------------------------------------------------------
def pools(size: int, names: str, between: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Pools over x of two lines, which is the caller's: each takes the first line, then `between` runs, then they take the second one.
    Their partial results all begin at byte 0 and have 1 byte."""
    ops = [
        {"name": name, "type": "pool", "inputs": ["x"], "output": f"{name}.y", "kh": 2, "kw": 1, "sh": 1, "sw": 1}
        | {"pads": [0, 0, 0, 0], "sum_bytes": 1}
        for name in names
    ]
    ops.append({"name": "q", "type": "fc", "inputs": ["x"], "output": "z", "scratch_bytes": 0})
    outputs = [op["output"] for op in ops]
    tensors = {name: {"h": 1, "w": 1, "c": 1} for name in outputs} | {}
    graph = {"tensors": {"x": {"h": 2, "w": 1, "c": 1}, **tensors}, "inputs": ["x"], "outputs": outputs[:-1], "ops": ops}
    form = {"size": 1, "stride": 1, "length": 1, "offset": 0}
    planes = {name: {**form, "count": 1, "external": True} for name in outputs[:-1]}
    planes |= {"x": {**form, "count": 2, "external": True}, "z": {**form, "count": 1}}
    scratch = [{"offset": 0, "size": 1}]
    steps: list[dict[str, Any]] = [{"op": name, "in_rows": [0, 1], "scratch": scratch} for name in names]
    steps += between
    steps += [{"op": name, "in_rows": [1, 2], "scratch": scratch, "commit": True} for name in names]
    faults = check_map(graph, {"arena_size": size, "tensors": planes, "schedule": steps})
    return [(fault.kind, fault.op) for fault in faults]


def test_partial_results_are_lost_to_a_tensor_to_scratch_and_to_each_other():
    """The last byte of the last tensor, scratch, and partial results of another operator are all told from one's own."""
    over = [("overwritten", "p")]
    assert pools(2, "p", [{"op": "q", "clock": 1}]) == over  # z at byte 0
    assert pools(1, "p", [{"op": "q", "clock": 1}]) == over
    missing = [("schedule", "q")]
    assert pools(2, "p", []) == missing
    assert pools(2, "p", [{"op": "q", "scratch": [{"offset": 0, "size": 1}]}])[-1] == over[0]
    for size in (1, 2, 5):
        assert pools(size, "pr", [{"op": "q"}])[:2] == [("overwritten", "p"), ("overwritten", "r")]
