"""Segments in vertical strips: the same integers in less memory, for work that is counted."""

import json
import random
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support import memory_networks as networks
from support.e2e_run import assert_compiled_is_simulated
from support.memory_compiled import arena_symbol, export, memory_map, needs_tools
from support.memory_execute import run
from support.memory_files import read_graph
from support.memory_graphs import strip_chain
from support.memory_networks import Net
from support.memory_strips import with_strips
from support.tables import every, few_fast

import n2d2py
from n2d2py.cli import main
from n2d2py.exports import Target, load_params
from n2d2py.memory.access import LineTable
from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.scratch import ScratchNeed, place_scratch
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import plan_streamed
from n2d2py.memory.strip_search import StripSearch, cuts_of, extra_work, multiply_accumulates, segment_columns
from n2d2py.memory.strips import SegmentCut, read_columns
from n2d2py.passes.integer.strips import by_channels, by_columns
from n2d2py.stages.memory import plan_network

_OUTSIDE = Settings(include_input=False, clock="op", buffer_alignment=4)
"""The input is not in the arena."""


def _least(problem: MemoryProblem, most: float, settings: Settings = _OUTSIDE):
    """(problem in strips, its plan, share of work done twice) of the smallest cut with at most `most` more work."""
    search = StripSearch(problem, settings)
    point = search.curve(int(search.work * most))[-1]
    narrow = with_strips(problem, point.cuts)
    return narrow, plan_streamed(narrow, settings), point.extra / search.work


def _cut(problem: MemoryProblem, first: int, stop: int, count: int) -> SegmentCut:
    """Operators [first, stop) in even strips."""
    ops = problem.ops[first:stop]
    columns = cuts_of(problem.tensors[ops[-1].output].width, count)
    return SegmentCut(tuple(op.name for op in ops), tuple(segment_columns(ops, problem.tensors, each) for each in columns))


@every(("width", "count", "before", "after"), [(10, 3, 0, 0), (28, 3, 1, 0), (7, 2, 1, 1), (9, 9, 0, 0)])
def test_ranges_cover_the_columns_once(width, count, before, after):
    found = cuts_of(width, count, before, after)
    assert len(found) == count and [x for first, stop in found for x in range(first, stop)] == list(range(width))


@every("seed", range(30))
def test_the_columns_that_are_read_are_those_of_the_windows(seed):
    rng = random.Random(seed)
    net = Net(5, rng.randint(6, 30), 1)
    kernel, stride, dilation = rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 2)
    pads = (0, rng.randint(0, 3), 0, rng.randint(0, 3))
    net.conv(net.input, 1, (1, kernel), (1, stride), pads, dilation)
    (op,), source, output = net.ops, net.tensors["input"], net.tensors["conv0.y"]
    first = rng.randrange(output.width)
    stop = rng.randint(first + 1, output.width)
    taps = [x * stride - pads[1] + k * dilation for x in range(first, stop) for k in range(kernel)]
    inside = [x for x in taps if 0 <= x < source.width]
    begin, end = read_columns(op.access, (first, stop), source.width)
    assert 0 <= begin < end <= source.width
    assert not inside or (begin <= min(inside) and max(inside) < end)
    assert dilation > 1 or not inside or (begin, end) == (min(inside), max(inside) + 1)


@pytest.mark.parametrize(
    ("name", "most", "arena"),
    [("vww", 0.04, 10_184), ("mobilenet_v1", 0.05, 134_176), ("mobilenet_v2", 0.03, 70_000), ("resnet18", 0.055, 161_088)],
)
def test_known_networks(name, most, arena):
    """The figures that msf-CNN's way of cutting promises here: two strips, three for MobileNetV2."""
    make = getattr(networks, name)
    problem = make(1.0, 224) if name.startswith("mobilenet") else make()
    narrow, plan, extra = _least(problem, most)
    assert check_plan(narrow, plan) == []
    assert plan.arena_bytes <= arena and 0 < extra <= most
    assert multiply_accumulates(narrow) <= multiply_accumulates(problem) * (1 + most)
    assert plan_streamed(problem, _OUTSIDE).arena_bytes > 1.25 * plan.arena_bytes


def test_the_curve_gives_memory_for_work():
    search = StripSearch(networks.vww(), _OUTSIDE)
    curve = search.curve(search.work // 5)
    assert len(curve) > 2 and curve[0].extra == 0 and not curve[0].cuts
    for one, next_one in pairwise(curve):
        assert one.bytes > next_one.bytes and one.extra < next_one.extra <= search.work // 5
    for point in curve:
        names = [name for cut in point.cuts for name in cut.ops]
        known = {op.name: op for op in search.problem.ops}
        assert point.repeated_work == sum(
            extra_work([known[name] for name in cut.ops], search.problem.tensors, cut.strips)
            for cut in point.cuts
            if cut.strips
        ), names


def _random(seed: int) -> tuple[MemoryProblem, list[SegmentCut]]:
    """A chain of windows and sums with a cut at a random place."""
    rng, problem = random.Random(seed), strip_chain(seed)
    stop = rng.randint(2, len(problem.ops))
    first = rng.randrange(stop - 1)
    inside = {op.output for op in problem.ops[first : stop - 1]}
    if any(name in inside for op in problem.ops[stop:] for name in op.inputs):
        first, stop = 0, len(problem.ops)
    width = problem.tensors[problem.ops[stop - 1].output].width
    return problem, [_cut(problem, first, stop, rng.randint(2, min(4, width)))] if width > 1 else []


@pytest.mark.parametrize("seed", few_fast(range(60), 15))
def test_random_plans_are_proved_and_lose_no_byte(seed):
    problem, cuts = _random(seed)
    narrow = with_strips(problem, cuts)
    narrow.validate()
    assert read_graph(json.loads(json.dumps(graph_json(narrow)))).tensors == narrow.tensors
    expected = run(narrow, None)
    if not any(isinstance(op.access, LineTable) or op.layer == "ElemWise" for op in narrow.ops):
        if not any(op.access.overlay.name == "POINTWISE" for op in narrow.ops):
            assert expected == run(problem, None), "strips compute other bytes than the whole"
    for settings in (Settings(), _OUTSIDE, Settings(optimize_buffer=False), Settings(alignment=4)):
        plan = plan_streamed(narrow, replace(settings, clock="op"))
        assert check_plan(narrow, plan) == []
        assert run(narrow, plan, seed) == expected


def _faults(change) -> list:
    problem = networks.vww()
    narrow, plan, _ = _least(problem, 0.04)
    graph, found = graph_json(narrow), map_json(plan)
    change(graph, found)
    return check_map(graph, found)


def test_the_checker_finds_a_ring_that_is_too_short():
    def change(graph, found):
        ring = next(p for name, p in found["tensors"].items() if ".strip1" in name and p.get("ring_rows", 0) > 1)
        ring["ring_rows"] -= 1

    assert any(fault.kind == "overwritten" for fault in _faults(change))


@pytest.mark.parametrize("by", [-1, 1])
def test_the_checker_finds_a_strip_beside_its_place(by):
    def change(graph, found):
        join = next(op for op in graph["ops"] if op.get("axis") == "columns")
        plane = found["tensors"][join["inputs"][1]]
        plane["offset"] += by * plane["stride"]

    assert _faults(change)


def test_the_checker_finds_a_wrong_pitch():
    def change(graph, found):
        join = next(op for op in graph["ops"] if op.get("axis") == "columns")
        plane = found["tensors"][join["inputs"][0]]
        plane["pitch"] -= plane["stride"]

    assert _faults(change)


def test_the_checker_finds_a_missing_strip():
    def change(graph, found):
        found["schedule"] = [step for step in found["schedule"] if not step.get("op", "").endswith("conv7.strip1")]

    assert _faults(change)


_SMALL = "IncludeInputInBuffer = 0\nMemoryMode = {mode}\nMaxExtraMacs = {most}\n"


def stripped(folder, mode: str = "Small", most: int = 60):
    folder.mkdir(exist_ok=True)
    return export("strips", folder, _SMALL.format(mode=mode, most=most))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The export in strips that several tests look at."""
    return stripped(tmp_path_factory.mktemp("small"))


@needs_tools
@pytest.mark.parametrize("mode", few_fast(["Small", "Minimum"]))
def test_compiled(mode, tmp_path, small):
    """Every layer is that of the simulator; the layers outside of the strips are those of the network without strips."""
    whole = stripped(tmp_path / "whole", mode, 0)
    folder = small if mode == "Small" else stripped(tmp_path / "strips", mode)
    found, before = memory_map(folder), memory_map(whole)
    assert "ExtraMacs" in found["options"] and 0 < found["options"]["ExtraMacs"] <= 60
    assert any(name.endswith(".strip1") for name in found["tensors"])
    assert found["arena_size"] < before["arena_size"]
    assert_compiled_is_simulated(folder)
    assert arena_symbol(folder) == found["arena_size"]
    first, second = n2d2py.load_simulator(whole), n2d2py.load_simulator(folder)
    info = first.info.inputs[0]
    x = np.random.default_rng(1).integers(info.type.qmin, info.type.qmax + 1, (4, *info.shape[1:])).astype(info.dtype)
    expected, layers = first.layers(x), second.layers(x)
    kept = set(expected) & set(layers)
    assert {"conv1.strip0", "fc"} <= set(layers)
    assert len(kept) > 1 and all(np.array_equal(expected[name], layers[name]) for name in kept)


@needs_tools
def test_constants_are_in_the_program_once(small):
    sources = "".join(path.read_text() for path in sorted((small / "dnn" / "parameters").glob("*.cpp")))
    assert "conv1_strip0_weights" in sources and "conv1_strip1_weights" not in sources


@pytest.mark.slow
def test_a_budget_does_the_least_work_twice(tmp_path, small):
    sizes = {20: memory_map(stripped(tmp_path / "20", most=20)), 60: memory_map(small)}
    assert sizes[60]["arena_size"] <= sizes[20]["arena_size"]
    budget = sizes[20]["arena_size"]
    text = _SMALL.format(mode="Small", most=60) + f"MemoryBudget = {budget}\n"
    found = memory_map(export("strips", tmp_path, text))
    assert found["arena_size"] <= budget and found["options"]["ExtraMacs"] <= sizes[20]["options"]["ExtraMacs"]


@needs_tools
def test_a_budget_leaves_room_for_scratch(tmp_path):
    """Where the tensors of the strips with the least work done twice fill the budget, and scratch does not fit, others are taken."""
    graph = n2d2py.load_simulator(export("strips", tmp_path, "FuseResidualAdd = 0\n")).graph
    params = load_params(None).with_values({"IncludeInputInBuffer": False, "MemoryMode": "Small", "MaxExtraMacs": 60.0})
    search = StripSearch(memory_problem(graph), replace(Settings.of(params), clock="op"), by_columns(graph), by_channels(graph))
    points = [point for point in search.curve(search.work * 6 // 10) if point.cuts]
    assert len(points) > 1 and points[0].bytes > points[-1].bytes + 640
    params = params.with_values({"MemoryBudget": points[0].bytes})

    class Narrow(Target):
        def scratch_needs(self, graph, plan, parameters):
            return {node.name: ScratchNeed(512, 512, 512, 512) for node in graph.nodes if node.name.startswith("narrow")}

    without, found = plan_network(graph, params), plan_network(graph, params, Narrow())
    assert max(without.plan.arena_bytes, found.plan.arena_bytes) <= points[0].bytes
    layers = {op.name for op in found.problem.ops if op.name.startswith("narrow")}
    assert layers and layers <= set(found.plan.scratch)
    assert found.plan.options["ExtraMacs"] >= without.plan.options["ExtraMacs"]
    served = place_scratch(without.problem, without.plan, Narrow().scratch_needs(without.graph, None, None), points[0].bytes)[
        1
    ].scratch
    assert not {op.name for op in without.problem.ops if op.name.startswith("narrow")} <= set(served), "nothing is shown here"


def test_without_layers_line_by_line_it_is_warned_of(tmp_path, capsys):
    (tmp_path / "params.ini").write_text("MaxExtraMacs = 5\n")
    words = ["-seed", "1", "-w", "/dev/null", "-export", "CPP", "-calib", "2", "-db-export", "0", "-o", str(tmp_path)]
    network = str(__file__).replace("test_strips.py", "strips.ini")
    assert main([network, *words, "-export-parameters", str(tmp_path / "params.ini")]) == 0
    assert "N2D2-W109" in capsys.readouterr().err


def test_the_memory_report_shows_what_strips_save(capsys):
    network = str(__file__).replace("test_strips.py", "strips.ini")
    assert main([network, "-seed", "1", "-w", "/dev/null", "-memory-report"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("MaxExtraMacs: bytes"))
    sizes = [int(line.split()[0].replace(",", "")) for line in lines[begin + 1 :] if line.strip()]
    assert len(sizes) >= 2 and sizes == sorted(sizes, reverse=True)


def test_a_budget_that_strips_would_meet_is_refused_with_the_strips(tmp_path, capsys):
    (tmp_path / "params.ini").write_text(_SMALL.format(mode="Small", most=0) + "MemoryBudget = 1\n")
    network = str(__file__).replace("test_strips.py", "strips.ini")
    words = [network, *"-seed 1 -w /dev/null -export CPP -calib 2 -o".split(), str(tmp_path), "-export-parameters"]
    assert main([*words, str(tmp_path / "params.ini")]) == 1
    refused = capsys.readouterr().err
    assert "N2D2-E607" in refused and "MaxExtraMacs" not in refused
    whole = int(re.search(r"requires ([\d,]+) bytes", refused)[1].replace(",", ""))
    (tmp_path / "params.ini").write_text(_SMALL.format(mode="Small", most=0) + f"MemoryBudget = {whole - 1}\n")
    assert main([*words, str(tmp_path / "params.ini")]) == 1
    told = re.search(r"use MaxExtraMacs=([\d.]+), whose strips need ([\d,]+) bytes", capsys.readouterr().err)
    (tmp_path / "params.ini").write_text(_SMALL.format(mode="Small", most=told[1]) + f"MemoryBudget = {whole - 1}\n")
    assert main([*words, str(tmp_path / "params.ini")]) == 0
    found = memory_map(tmp_path / "export_CPP_int8")
    assert found["arena_size"] <= whole - 1 and found["options"]["ExtraMacs"] <= float(told[1])
