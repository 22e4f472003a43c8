"""Tensors in several memories: what a plan costs, what the checker refuses, and exports whose arrays lie where they should."""

import subprocess
from dataclasses import replace
from itertools import product

import pytest
from support import memory_networks as networks
from support.e2e_run import assert_compiled_is_simulated
from support.errors import error_line, refused
from support.memory_compiled import export, needs_tools
from support.memory_networks import Net
from support.tables import few_fast

from n2d2py.errors import N2D2Error
from n2d2py.memory.buffers import Buffers
from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.constants import Constant, place_constants
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.memories import judge, moved_bytes, moving_cost, shares, spread
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.settings import Settings, read_memories
from n2d2py.memory.strategies import plan_memory


def settings(*texts: str) -> Settings:
    return Settings(clock="op", memories=read_memories(texts))


def test_memories_are_read_the_cheapest_first_each_at_a_whole_line():
    fast, slow = read_memories(("AXI:1k:4", "DTCM:100:1.5"))
    assert (fast.name, fast.bytes, fast.cost, fast.start) == ("DTCM", 100, 1.5, 0)
    assert (slow.name, slow.bytes, slow.cost, slow.start) == ("AXI", 1024, 4.0, 128)


def test_memories_of_constants_and_states():
    ram, states, flash = read_memories(("FLASH:1M:4:rom", "RAM:1k:1", "BKP:4k:2:states"))
    assert [(each.name, each.kind, each.start) for each in (ram, states, flash)] == [
        ("RAM", "", 0),
        ("BKP", "states", 0),
        ("FLASH", "rom", 0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "A:1k:1:ram",
        "A:1k:1:states,B:1k:1:states",
        "DTCM",
        "DTCM:0:1",
        "DTCM:1k:0",
        "DTCM:1k",
        "DTCM:-1:1",
        "9:1k:1",
        "A:1k:1,A:1k:2",
        "a:1:1,A:1:2",
    ],
)
def test_texts_of_another_form_are_refused(text):
    assert "E603" in error_line(lambda: read_memories(text.split(",")))


def test_the_tensors_that_move_most_are_in_the_fast_memory():
    """By hand: x (64 bytes) is read nine times by a window of 3 x 3, y (64) once; one of the two fits."""
    net = Net(8, 8, 1)
    y = net.conv("input", 1, 3)
    problem = net.done(net.ew(y))
    moved = moved_bytes(problem, set())
    assert moved["input"] == 64 + 9 * 64 and moved[y] == 64 + 64
    plan = plan_memory(problem, settings("A:64:1", "B:1k:10"), mode="Speed")
    assert plan.memory_at(plan.planes["input"].offset) == 0 and plan.memory_at(plan.planes[y].offset) == 1
    assert check_plan(problem, plan) == []


def test_a_plan_costs_no_more_than_the_best_of_all_choices():
    """Of a chain whose layers read whole: every choice of tensors whose neighbours fit together is tried."""
    net = Net(1, 1, 96)
    x, names = "input", ["input"]
    for channels in (200, 64, 160, 32, 120):
        x = net.fc(x, channels)
        names.append(x)
    problem, sizes = net.done(), [96, 200, 64, 160, 32, 120]
    given = replace(settings("A:224:1", "B:4k:7"), buffer_alignment=1)
    moved = moved_bytes(problem, set())
    best = min(
        sum(moved[name] * (1 if fast else 7) for name, fast in zip(names, chosen, strict=True))
        for chosen in product((False, True), repeat=len(sizes))
        if all(
            a * s + b * t <= 224
            for (a, s), (b, t) in zip(zip(chosen, sizes, strict=True), zip(chosen[1:], sizes[1:], strict=True), strict=False)
        )
    )
    plan = plan_memory(problem, given, mode="Balanced")
    assert moving_cost(problem, plan) == best and check_plan(problem, plan) == []


def greedy(packing: Packing) -> Placement:
    """First fit of the blocks by bytes moved per byte held."""
    moved, held = moved_bytes(packing.buffers.problem, packing.buffers.views), dict.fromkeys(range(len(packing.blocks)), 0.0)
    for name, at in packing.block_of().items():
        held[at] += moved.get(name, 0) / packing.blocks[at].size
    return packing.first_fit(sorted(held, key=lambda at: -held[at]), [False] * len(packing.ops))


@pytest.mark.parametrize(
    "make", few_fast([lambda: networks.mobilenet_v2(0.35, 96), networks.resnet8, networks.unet, networks.googlenet], 2)
)
def test_spreading_beats_greedy_and_slow_memory(make):
    problem = make()
    given = settings("DTCM:64k:1", "RAM:64M:5")
    packing = Packing(Buffers(problem, given, ()))
    first = judge(packing, greedy(packing).offsets)
    assert judge(packing, spread(packing).offsets) <= first
    plan = plan_memory(problem, given)
    assert check_plan(problem, plan) == [] and not [
        1 for used, memory in zip(plan.used, given.memories, strict=True) if used > memory.bytes
    ]
    slow = 5 * sum(moved_bytes(problem, plan.views).values())
    assert moving_cost(problem, plan) <= first.cost < slow
    assert sum(shares(problem, plan).values()) == pytest.approx(1)


def test_the_checker_refuses_a_tensor_in_two_memories():
    problem = networks.resnet8()
    plan = plan_memory(problem, settings("A:8k:1", "B:1M:3"), mode="Balanced")
    graph, good = graph_json(problem), map_json(plan)
    assert check_map(graph, good) == []
    for memory in good["memories"]:
        memory["start"] += 64
    assert {fault.kind for fault in check_map(graph, good)} == {"memory"}


def test_memories_that_are_too_small_say_how_much_is_missing():
    assert refused("E607.*bytes are missing", lambda: plan_memory(networks.resnet8(), settings("A:1k:1", "B:2k:2")))


ROMS = read_memories(("INT:164:2:rom", "EXT:1M:8:rom"))


def fully_connected() -> tuple:
    """A chain of two layers, whose weights are read ten times and about once."""
    net = Net(1, 1, 96)
    problem = net.done(net.fc(net.fc("input", 128), 64))
    first, second = (op.name for op in problem.ops)
    constants = [Constant("w1", first, 152, 1500, True), Constant("w2", second, 100, 110, True), Constant("b", second, 64, 70)]
    return problem, plan_memory(problem, settings("A:1k:1", "B:64k:8"), mode="Balanced"), constants


def test_constants_by_hand():
    """The most read constant per byte is in the cheaper memory, or in a copy where a read saves more than the copy costs."""
    problem, plan, constants = fully_connected()
    placed = place_constants(plan, constants, ROMS, 0, 1024)
    assert check_plan(problem, placed) == []
    by_name = {one.name: one for one in placed.constants}
    assert by_name["w1"].copy is not None and (by_name["w1"].memory, by_name["w1"].home) == ("A", "EXT")
    assert by_name["w2"].copy is by_name["b"].copy is None  # about once: a copy reads and writes more
    assert by_name["w2"].home == by_name["b"].home == "INT"  # read more often per byte than for a copy
    tensors = moving_cost(problem, plan)
    assert moving_cost(problem, placed) - tensors == 152 * 8 + 152 + 1500 + 2 * (110 + 70)
    filled = place_constants(plan, constants, ROMS, 1024 - plan.used[0], plan.used[0])
    assert {one.memory for one in filled.constants} == {"A"} and not filled.copies and check_plan(problem, filled) == []
    assert moving_cost(problem, filled) - tensors == 1500 + 110 + 70


def test_copies_of_two_layers_begin_while_the_layer_before_runs():
    problem, plan, constants = fully_connected()
    constants = [replace(one, reads=10 * one.reads) for one in constants]
    lives = {}
    for early in (False, True):
        placed = place_constants(plan, constants, ROMS, 0, 1024, early)
        assert check_plan(problem, placed) == [] and len(placed.copies) == 2
        lives[early] = [one.life for one in placed.copies.values()]
    assert lives == {False: [(0, 0), (1, 1)], True: [(0, 0), (0, 1)]}


@pytest.mark.parametrize("early", [False, True])
def test_the_checker_refuses_lost_copies_and_full_memories(early):
    problem = networks.resnet8()
    constants = [Constant(f"{op.name}_weights", op.name, 2000, 400_000, True) for op in problem.ops]
    plan = place_constants(plan_memory(problem, settings("A:40k:1", "B:1M:3")), constants, ROMS, 0, 40 << 10, early)
    graph, good = graph_json(problem), map_json(plan)
    assert check_map(graph, good) == [] and len(plan.copies) > 5
    copied = [each for each in good["constants"] if "copy" in each]
    plane = next(each for each in good["tensors"].values() if each["alloc"] <= copied[3]["life"][0] < each["release"])
    place, copied[3]["copy"] = copied[3]["copy"], plane["offset"]
    assert "overwritten" in {fault.kind for fault in check_map(graph, good)}
    copied[3]["copy"] = place
    copied[3]["life"][0] += 99
    assert {fault.kind for fault in check_map(graph, good)} == {"overwritten"}
    copied[3]["life"][0] -= 99
    good["roms"]["EXT"] = 1000
    assert {fault.kind for fault in check_map(graph, good)} == {"constant"}


def test_constants_that_do_not_fit_are_refused():
    _, plan, constants = fully_connected()
    with pytest.raises(N2D2Error, match="E607.*INT are too small for the constants: 152 bytes are missing"):
        place_constants(plan, constants, ROMS[:1], 0, 1024)


@pytest.mark.parametrize("memories", ["F:1M:1:rom", "A:4k:1,B:1M:4,S:1k:1:states"])
def test_other_exports_place_no_constants(tmp_path, capsys, memories):
    with pytest.raises(AssertionError):
        export("branches", tmp_path, f"Memories={memories}\n")
    assert "E608" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more", ["MemoryBudget=1000", "PackActivations=1", "MaxExtraMacs=5", "MemoryManagerStrategy=OptimizeAuto"]
)
def test_parameters_of_one_memory_are_refused(tmp_path, capsys, more):
    with pytest.raises(AssertionError):
        export("branches", tmp_path, f"Memories=A:4k:1,B:1M:4\n{more}\n")
    assert "E608" in capsys.readouterr().err


@needs_tools
@pytest.mark.parametrize("mode", few_fast(["Balanced", "auto"]))
def test_exports_compute_the_same_integers_in_several_memories(tmp_path, mode):
    folder = export("branches", tmp_path, f"Memories=A:1k:1,B:2k:2,C:1M:9\nMemoryMode={mode}\n")
    assert_compiled_is_simulated(folder)
    symbols = subprocess.run(["nm", "-C", folder / "unit.so"], capture_output=True, text=True).stdout
    assert mode == "auto" or "branches::memory_c" in symbols
