"""What shares its bytes by construction, how long it lives, and where N2D2's placements put it: small networks counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.memory_networks import Net

from n2d2py.errors import N2D2Error
from n2d2py.memory.access import Concatenated, Joined, LineTable, Pointwise, PoolWindow, TensorSpec, View, Whole, Window
from n2d2py.memory.buffers import Buffers, concats_in_place, dense
from n2d2py.memory.checker import check_plan, refuse_violations
from n2d2py.memory.format import map_json, read_graph
from n2d2py.memory.generate import Generation
from n2d2py.memory.manager import PlaneLayout
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep
from n2d2py.memory.planning import plan_memory
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import N2D2Planner

OP = Settings(clock="op")


def tensors(**shapes: tuple[int, ...]) -> dict[str, TensorSpec]:
    return {name: TensorSpec(name, *shape) for name, shape in shapes.items()}


def joined(**changes) -> MemoryProblem:
    """x -> a -> p; x -> b -> q; p and q are concatenated to c, which d reads."""
    given = tensors(x=(2, 3, 4), p=(2, 3, 5), q=(2, 3, 6), c=(2, 3, 11), y=(1, 1, 7))
    ops = (
        OpSpec("a", Whole(), ("x",), "p"),
        OpSpec("b", Whole(), ("x",), "q"),
        OpSpec("j", Concatenated(), ("p", "q"), "c"),
        OpSpec("d", Whole(), ("c",), "y"),
    )
    return replace(MemoryProblem(given, ("x",), ("y",), ops), **changes)


def with_op(problem: MemoryProblem, name: str, **changes) -> MemoryProblem:
    return replace(problem, ops=tuple(replace(op, **changes) if op.name == name else op for op in problem.ops))


PLAIN = joined()
IN_PLACE = {
    "as it is": (PLAIN, True),
    "values that change": (with_op(PLAIN, "j", access=Concatenated(True)), False),
    "a copy": (with_op(PLAIN, "j", access=Whole()), False),
    "an output of the network": (replace(PLAIN, outputs=("y", "p")), False),
    "another reader": (with_op(PLAIN, "d", inputs=("c", "q")), False),
    "twice": (with_op(PLAIN, "j", inputs=("p", "p")), False),
    "an input of the network": (with_op(PLAIN, "j", inputs=("p", "x")), False),
    "a view": (with_op(PLAIN, "b", access=View()), False),
    "a concatenation of its own": (with_op(PLAIN, "b", access=Concatenated()), False),
    "wider elements": (replace(PLAIN, tensors={**PLAIN.tensors, "q": TensorSpec("q", 2, 3, 6, 2)}), False),
    "columns": (with_op(PLAIN, "b", access=Joined()), True),
}


@pytest.mark.parametrize(("problem", "found"), IN_PLACE.values(), ids=IN_PLACE)
def test_concatenations_in_place(problem, found):
    assert concats_in_place(problem) == (["j"] if found else [])


def test_the_buffer_of_a_concatenation_in_place():
    found = Buffers(PLAIN, OP, ["j"])
    buffer = found.of["c"]
    assert found.of["p"] is found.of["q"] is buffer and found.views == {"j"}
    assert (buffer.parts, buffer.columns, buffer.birth, buffer.death) == ({"c": 0, "p": 0, "q": 5}, {}, 0, 2)
    assert buffer.readers == ["d"] and not buffer.whole and buffer.produced and not buffer.is_output
    assert found.clock == {"a": 0, "b": 1, "j": 2, "d": 2}  # a view takes no clock
    assert [found.offset(name) for name in "pqc"] == [0, 5, 0]
    assert found.form(buffer) == PlaneLayout(11, 11, 3, 2, 1, False) == found.geometry("q")
    assert [each.root.name for each in found.distinct()] == ["x", "c", "y"] and found.last == 2
    aligned = Buffers(PLAIN, replace(OP, alignment=4), ["j"])
    assert aligned.form(aligned.of["c"]).stride == 12 and aligned.form(aligned.of["x"]).stride == 4


def test_clocks_by_level_and_by_operator():
    """By level, what reads the same tensors runs at one clock."""
    level = Buffers(PLAIN, Settings(), [])
    assert level.clock == {"a": 0, "b": 0, "j": 1, "d": 2} and level.last == 2
    assert [op.name for op in level.order()] == ["a", "b", "j", "d"]
    lives = {name: (buffer.birth, buffer.death) for name, buffer in level.of.items()}
    assert lives == {"x": (-1, 0), "p": (0, 1), "q": (0, 1), "c": (1, 2), "y": (2, 3)}
    copied = Buffers(PLAIN, OP, [])
    lives = {name: (buffer.birth, buffer.death) for name, buffer in copied.of.items()}
    assert lives == {"x": (-1, 1), "p": (0, 2), "q": (1, 2), "c": (2, 3), "y": (3, 4)}
    assert Buffers(MemoryProblem(tensors(x=(1, 1, 1)), ("x",), (), ()), OP, []).last == -1


def test_who_is_the_last_to_read():
    found = Buffers(PLAIN, OP, [])
    a, b, j, d = PLAIN.ops
    assert not found.belongs_to("x", a) and not found.dies_at("x", a) and found.dies_at("x", b)
    assert found.belongs_to("p", j) and found.belongs_to("c", d) and not found.belongs_to("c", j)
    shown = replace(PLAIN, outputs=("y", "p"))
    assert not Buffers(shown, OP, []).belongs_to("p", j) and not Buffers(shown, OP, []).dies_at("p", j)
    outside = Buffers(PLAIN, replace(OP, include_input=False), [])
    assert not outside.dies_at("x", b) and outside.of["x"].external
    twice = with_op(PLAIN, "j", inputs=("p", "p"))
    assert not Buffers(twice, OP, []).dies_at("p", twice.op("j")) and not Buffers(twice, OP, []).belongs_to("p", twice.op("j"))


def test_the_buffer_of_views():
    given = tensors(x=(2, 3, 4), p=(2, 3, 4), r=(1, 1, 24), s=(2, 3, 4), y=(1, 1, 2))
    ops = (
        OpSpec("a", Whole(), ("x",), "p"),
        OpSpec("v", View(), ("p",), "r"),
        OpSpec("w", View(), ("r",), "s"),
        OpSpec("b", Whole(), ("s",), "y"),
    )
    problem = MemoryProblem(given, ("x",), ("y",), ops)
    found = Buffers(problem, replace(OP, alignment=8), [])
    buffer = found.of["s"]
    assert buffer is found.of["r"] is found.of["p"] and buffer.reshaped == {"r"} and buffer.whole
    assert found.form(buffer) == PlaneLayout(4, 4, 3, 2, 1, True)  # dense, whatever the alignment
    assert found.geometry("r") == PlaneLayout(24, 24, 1, 1, 1, True) == dense(given["r"], True)
    assert dense(given["p"]) == PlaneLayout(4, 4, 3, 2, 1, False)
    assert (buffer.birth, buffer.death, buffer.readers) == (0, 1, ["b"])
    plain = Buffers(with_op(with_op(problem, "v", output="s"), "w", inputs=("s",), output="r"), OP, [])
    assert plain.of["s"].reshaped == {"r"}


def test_the_buffer_of_columns_beside_each_other():
    given = tensors(x=(2, 5, 4), p=(2, 2, 4), q=(2, 3, 4), c=(2, 5, 4))
    ops = (OpSpec("a", Whole(), ("x",), "p"), OpSpec("b", Whole(), ("x",), "q"), OpSpec("j", Joined(), ("p", "q"), "c"))
    found = Buffers(MemoryProblem(given, ("x",), ("c",), ops), replace(OP, alignment=8), [])
    buffer = found.of["q"]
    assert (buffer.parts, buffer.columns, buffer.birth, buffer.death) == ({"c": 0, "p": 0, "q": 0}, {"p": 0, "q": 2}, 0, 3)
    assert [found.offset(name) for name in "pqc"] == [0, 16, 0] and buffer.is_output
    assert found.geometry("q") == PlaneLayout(4, 8, 3, 2, 1, False, 40) and found.geometry("c").pitch == 0


OUTSIDE = {
    "auto": (PLAIN, None, False),
    "asked for": (PLAIN, False, True),
    "inside": (PLAIN, True, False),
    "faster outside": (with_op(PLAIN, "d", access=Whole(prefers_caller=True)), None, True),
    "faster outside, but asked for": (with_op(PLAIN, "d", access=Whole(prefers_caller=True)), True, False),
    "a pool by lines": (
        with_op(replace(PLAIN, tensors={**PLAIN.tensors, "y": TensorSpec("y", 1, 1, 11)}), "d", access=PoolWindow((2, 3))),
        False,
        False,
    ),
    "a state": (replace(PLAIN, inputs=("x",), states=1), False, False),
    "two states": (replace(PLAIN, states=1, outputs=("y", "c")), False, True),
}


@pytest.mark.parametrize(("problem", "asked", "outside"), OUTSIDE.values(), ids=OUTSIDE)
def test_outputs_that_stay_with_the_caller(problem, asked, outside):
    found = Buffers(problem, replace(OP, include_output=asked), [])
    assert found.of["y"].external is outside
    assert found.of["x"].external is (problem.states == 1)  # the only input is the state


def test_an_output_that_is_read_again_is_not_faster_outside():
    problem = with_op(replace(PLAIN, outputs=("y", "p")), "a", access=Whole(prefers_caller=True))
    assert not Buffers(problem, OP, []).of["p"].external
    assert Buffers(problem, replace(OP, include_output=False), []).of["p"].external


# ---- N2D2's generation ---------------------------------------------------------------------------
def chain(access, shape: tuple[int, ...], first: tuple[int, ...] = (4, 1, 8)) -> MemoryProblem:
    return MemoryProblem(tensors(x=first, y=shape), ("x",), ("y",), (OpSpec("a", access, ("x",), "y"),))


@pytest.mark.parametrize(
    ("access", "shape", "size", "place"),
    [
        (Whole(), (4, 1, 8), None, None),
        (Pointwise(), (4, 1, 8), 32, (0, None)),
        (Window((1, 1)), (4, 1, 8), 40, (32, 8)),  # a line more than the input
        (Window((3, 1), pads=(1, 0, 1, 0)), (4, 1, 8), 48, (32, 16)),
        (Window((2, 1), (2, 1)), (2, 1, 8), 40, (32, 8)),
        (Window((1, 1)), (4, 1, 4), 40, (32, 8)),  # whole lines of both
    ],
)
def test_the_space_that_an_input_and_its_output_share(access, shape, size, place):
    """The output begins where the input ends, and wraps to the first byte."""
    plan = plan_memory(chain(access, shape), strategy="None")
    if size is None:
        assert plan.arena_bytes == 64 and not plan.overlaps(chain(access, shape), "a")
        return
    y = plan.planes["y"]
    assert plan.arena_bytes == size and check_plan(chain(access, shape), plan) == []
    assert (y.offset, y.limit) == place and plan.overlaps(chain(access, shape), "a")
    apart = plan_memory(chain(access, shape), strategy="None", optimize_buffer=False)
    assert apart.arena_bytes == 32 + y.bytes


def test_spaces_are_in_the_order_of_the_network():
    generation = Generation(with_op(PLAIN, "d", scratch_bytes=9), OP)
    assert [(s.size, s.allocated, s.released) for s in generation.spaces] == [(24, -1, 1), (66, 0, 2), (7, 2, 3), (9, 2, 2)]
    apart = Generation(PLAIN, replace(OP, no_branch_concat=False))
    assert [space.size for space in apart.spaces] == [24, 30, 36, 66, 7]
    assert (
        generation.unit == 1 and Generation(joined(tensors={**PLAIN.tensors, "y": TensorSpec("y", 1, 1, 7, 4)}), OP).unit == 4
    )
    outside = Generation(PLAIN, replace(OP, include_input=False, include_output=False))
    assert [space.size for space in outside.spaces] == [66]


def test_a_table_shares_a_space_where_that_saves_bytes():
    lines = tuple((y, y + 1) for y in range(4))
    problem = chain(LineTable((lines,), (((0, 1),),)), (4, 1, 8))
    plan = N2D2Planner("None").plan(problem, OP)
    assert plan.arena_bytes == 40 and plan.overlaps(problem, "a")


@pytest.mark.parametrize(
    ("settings", "text", "remedy"),
    [
        ({"alignment": 0}, "MemoryAlignment=0 is below 1", "give 1, 2, 4, 8, ..."),
        ({"buffer_alignment": -1}, "BufferAlignment=-1 is below 1", "give 1, 2, 4, 8, ..."),
        ({"clock": "cell"}, "memory clock cell is unknown", "use level or op"),
    ],
)
def test_settings_out_of_range(settings, text, remedy):
    with pytest.raises(N2D2Error) as caught:
        plan_memory(PLAIN, **settings)
    assert (caught.value.code, caught.value.what, caught.value.remedy) == ("E603", text, remedy)
    assert plan_memory(PLAIN, alignment=1, buffer_alignment=1, clock="op").arena_bytes > 0


def test_a_strategy_that_is_far_from_all_has_no_suggestion():
    with pytest.raises(N2D2Error) as caught:
        plan_memory(PLAIN, strategy="qqqqqqqq")
    assert (caught.value.what, caught.value.where) == ("the memory strategy qqqqqqqq is unknown", "MemoryManagerStrategy")
    assert caught.value.remedy.startswith("known: None, OptimizeMaxLifetimeMinSizeFirst, ")


def test_the_words_of_a_plan_that_is_not_safe():
    problem = chain(Whole(), (4, 1, 8))
    plan = plan_memory(problem, buffer_alignment=1)
    moved = replace(plan, planes={**plan.planes, "y": replace(plan.planes["y"], offset=plan.planes["x"].offset)})
    with pytest.raises(N2D2Error) as caught:
        refuse_violations(check_plan(problem, moved)[:1])
    assert (caught.value.code, caught.value.where, caught.value.remedy) == (
        "E604",
        "memory",
        "report this plan; MemoryManagerStrategy=None or OptimizeBufferMemory=0 may avoid it",
    )
    assert caught.value.what == (
        "the memory plan overwrites live bytes: a: its output y overwrites 32 bytes of x that are still to be read, "
        "first line 0, pixel 0, byte 0"
    )


# ---- maps ----------------------------------------------------------------------------------------
def by_hand(*steps: ScheduleStep, release: int = 9, **planes: dict) -> MemoryPlan:
    made = {name: Plane(0, 2, 2, 3, 4, -1, release, **more) for name, more in planes.items()}
    return MemoryPlan("ByHand", 99, made, steps, {"v": OpPlan(view=True), "b": OpPlan(backwards=True)}, {"Clock": "op"})


def test_the_entries_of_a_map():
    found = map_json(
        by_hand(
            ScheduleStep("x", 0, (0, 2), arrives=True),
            ScheduleStep("a", 1, (0, 1)),
            ScheduleStep("p", 1, in_rows=(0, 4), commit=True),
            ScheduleStep("v", 2),
            ScheduleStep("b", 2),
            x={"limit": 12, "wrap_offset": 5},
            y={"ring_rows": 2},
            z={"pitch": 8},
            w={"external": True},
        )
    )
    assert found["schedule"] == [
        {"input": "x", "rows": [0, 2], "clock": 0},
        {"op": "a", "rows": [0, 1], "loop": "hwc", "unit": "elem", "clock": 1},
        {"op": "p", "in_rows": [0, 4], "commit": True, "loop": "hwc", "unit": "elem", "clock": 1},
        {"op": "v", "view": True, "clock": 2},
        {"op": "b", "loop": "-h-w-c", "unit": "elem", "clock": 2},
    ]
    common = {"offset": 0, "size": 2, "stride": 2, "length": 3, "count": 4}
    life = {"alloc": -1, "release": 5}  # behind the last step
    assert found["tensors"] == {
        "x": {**common, "limit": 12, "wrap_offset": 5, **life},
        "y": {**common, "ring_rows": 2, **life},
        "z": {**common, "pitch": 8, **life},
        "w": {**common, **life, "external": True},
    }
    assert (found["arena_size"], found["strategy"], found["options"]) == (99, "ByHand", {"Clock": "op"})


@pytest.mark.parametrize(
    ("clocks", "release", "wanted"),
    [((0, 0, 0), 0, 0), ((0, 0, 0), 1, 3), ((0, 4, 7), 7, 7), ((0, 4, 7), 8, 8), ((), 3, 0), ((), -1, -1)],
)
def test_a_tensor_of_the_end_is_released_behind_all_steps(clocks, release, wanted):
    steps = [ScheduleStep("abc"[at], clock) for at, clock in enumerate(clocks)]
    assert map_json(by_hand(*steps, release=release, x={}))["tensors"]["x"]["release"] == wanted


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, "the memory graph has a missing or wrong entry: 'tensors'"),
        ({"tensors": {"x": {"h": 1, "w": 1}}}, "the memory graph has a missing or wrong entry: 'c'"),
        ({"tensors": {}, "ops": []}, "the memory graph has a missing or wrong entry: 'inputs'"),
        ({"tensors": {}, "ops": [{"inputs": []}]}, "the memory graph has a missing or wrong entry: 'type'"),
    ],
)
def test_graphs_that_lack_a_part(data, text):
    with pytest.raises(N2D2Error) as caught:
        read_graph(data)
    assert (caught.value.code, caught.value.what, caught.value.remedy) == ("E602", text, "correct the memory graph")


def test_the_network_of_the_helpers_is_planned_in_every_order():
    net = Net(4, 4, 3)
    net.conv(net.concat(net.conv(net.input, 5, 3), net.conv(net.input, 6, 1)), 2, 3)
    problem = net.done()
    for strategy in ("None", "OptimizeAuto", "OptimizeReorder"):
        assert check_plan(problem, plan_memory(problem, strategy=strategy, clock="op")) == []


def test_columns_beside_each_other_in_n2d2s_spaces():
    """Two and three columns of lines of five pixels of 4 bytes, each with lines as far apart as those of the whole."""
    given = tensors(x=(2, 5, 4), p=(2, 2, 4), q=(2, 3, 4), c=(2, 5, 4))
    ops = (OpSpec("a", Whole(), ("x",), "p"), OpSpec("b", Whole(), ("x",), "q"), OpSpec("j", Joined(), ("p", "q"), "c"))
    problem = MemoryProblem(given, ("x",), ("c",), ops)
    plan = plan_memory(problem, strategy="None", clock="op")
    first = plan.planes["c"].offset
    found = {name: (each.offset - first, each.length, each.line_bytes) for name, each in plan.planes.items() if name != "x"}
    assert found == {"p": (0, 2, 20), "q": (8, 3, 20), "c": (0, 5, 20)} and check_plan(problem, plan) == []
