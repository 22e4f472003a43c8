"""Row streaming: figures, plans that are proved and run, the checker's objections to broken ones."""

import random
from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_networks import NETWORKS, Net
from support.tables import few_fast

from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.memory.stream import plan_streamed

# bytes, offsets aligned to 16: input in the arena, input arriving by rows.
FIGURES = {
    "vww": (28_032, 14_592),
    "ad": (768, 768),
    "mbv1_0.25_128": (49_664, 22_144),
    "mbv1_0.25_224": (151_424, 49_504),
    "mbv1_0.5_224": (168_448, 96_992),
    "mbv1_1.0_224": (240_128, 191_968),
    "resnet18": (223_328, 208_992),
    "unet": (345_088, 345_088),
    "resnet8": (15_616, 12_896),
    "ds_cnn": (6_192, 5_872),
}
SLOW_FIGURES = {"mbv2_0.35_128": (53_248, 24_704), "mbv2_1.0_224": (204_288, 131_040), "googlenet": (268_352, 268_352)}


def test_an_input_by_rows_costs_nothing_where_no_layer_does():
    problem = networks.ds_cnn()
    assert plan_memory(problem, mode="Balanced", stream_input=True).arena_bytes == 8_640


def streamed(problem, stream_input=False, **settings) -> MemoryPlan:
    return plan_streamed(problem, Settings(stream_input=stream_input, **settings))


@pytest.mark.parametrize("name", [*FIGURES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_FIGURES)])
def test_figures(name):
    problem = NETWORKS[name]()
    for stream_input, figure in zip((False, True), {**FIGURES, **SLOW_FIGURES}[name], strict=True):
        plan = streamed(problem, stream_input)
        assert plan.arena_bytes == figure
        assert check_plan(problem, plan) == []


@pytest.fixture
def chain():
    """24x24x2 -> conv 3x3 of 16 -> depthwise 3x3 stride 2 -> conv 1x1 of 4: a ring in between."""
    net = Net(24, 24, 2)
    net.conv(net.dw(net.conv(net.input, 16, 3), 3, 2), 4, 1)
    problem = net.done()
    plan = streamed(problem)
    assert plan.planes["conv0.y"].ring_rows == 3 and check_plan(problem, plan) == []
    return problem, plan


def test_a_shorter_ring_loses_a_line(chain):
    problem, plan = chain
    planes = {**plan.planes, "conv0.y": replace(plan.planes["conv0.y"], ring_rows=2)}
    faults = check_plan(problem, replace(plan, planes=planes))
    assert ("overwritten", "conv1", "conv0.y", "conv0.y") in {(f.kind, f.op, f.tensor, f.by) for f in faults}


def test_steps_out_of_order_or_missing(chain):
    problem, plan = chain
    data = map_json(plan)
    first = next(i for i, s in enumerate(data["schedule"]) if s["op"] == "conv1")
    for change in ("swap", "drop", "twice", "rows"):
        schedule = [dict(step) for step in data["schedule"]]
        if change == "swap":
            schedule[first - 1], schedule[first] = schedule[first], schedule[first - 1]
        elif change == "drop":
            del schedule[first]
        elif change == "twice":
            schedule.insert(first, dict(schedule[first]))
        else:
            schedule[first]["rows"] = [0, 99]
        assert check_map(graph_json(problem), {**data, "schedule": schedule}), change


def test_every_broken_stream_that_runs_wrong_is_refused():
    """A buffer or ring moved by some bytes: whenever the network then computes other bytes, the checker objects."""
    rng = random.Random(9)
    wrong = refused = 0
    for seed in range(60):
        problem = random_problem(seed)
        expected = run(problem, None)
        plan = streamed(problem, seed % 2 == 1)
        for name in rng.sample(list(plan.planes), min(3, len(plan.planes))):
            plane = plan.planes[name]
            moved = max(0, plane.offset + 16 * rng.randint(-4, 4))
            if plane.external or moved + plane.bytes > plan.arena_bytes:
                continue
            broken = replace(plan, planes={**plan.planes, name: replace(plane, offset=moved)})
            faults = check_plan(problem, broken)
            refused += bool(faults)
            if run(problem, broken, seed) != expected:
                wrong += 1
                assert faults, (seed, name)
    assert wrong > 20 and refused >= wrong


def test_a_whole_operator_does_not_run_by_lines():
    net = Net(4, 4, 2)
    net.fc(net.input, 3)
    problem = net.done()
    data = map_json(streamed(problem))
    data["schedule"][0]["rows"] = [0, 1]
    assert "unsupported" in {f.kind for f in check_map(graph_json(problem), data)}


@pytest.mark.parametrize("beyond, refused", [(0, False), (4, True)])
def test_partial_results_lie_in_the_arena(beyond, refused):
    """At its end, and one sum beyond."""
    net = Net(32, 32, 3)
    net.fc(net.global_pool(net.conv(net.conv(net.input, 8, 3), 16, 3)), 4)
    problem = net.done()
    data = map_json(streamed(problem))
    steps = [step for step in data["schedule"] if "in_rows" in step]
    assert len(steps) > 1 and all(len(step["scratch"]) == 1 for step in steps)
    data["arena_size"] += steps[0]["scratch"][0]["size"]
    for step in steps:
        (part,) = step["scratch"]
        part["offset"] = data["arena_size"] - part["size"] + beyond
    kinds = {fault.kind for fault in check_map(graph_json(problem), data)}
    assert ("arena" in kinds) == bool(kinds) == refused


def test_an_input_is_read_before_it_arrives():
    problem = networks.vww()
    data = map_json(streamed(problem, True))
    assert check_map(graph_json(problem), data) == []
    at = [i for i, step in enumerate(data["schedule"]) if "input" in step]
    assert len(at) > 10
    data["schedule"][at[1]], data["schedule"][at[1] + 1] = (data["schedule"][at[1] + 1], data["schedule"][at[1]])
    assert "overwritten" in {f.kind for f in check_map(graph_json(problem), data)}


def lines_made(plan: MemoryPlan, op: str) -> list[int]:
    return [y for step in plan.schedule if step.op == op for y in range(*step.rows)]


def strided(lines: int = 40) -> Net:
    """40 lines -> conv 3x3 of 16 -> conv 1x1 stride 3: of the first convolution every third line is read."""
    net = Net(lines, lines, 4)
    net.conv(net.conv(net.input, 16, 3), 8, 1, 3)
    return net


@pytest.mark.parametrize("stream_input", [False, True])
def test_lines_that_nobody_reads_are_not_made(stream_input):
    problem = strided().done()
    plan = streamed(problem, stream_input)
    assert lines_made(plan, "conv0") == list(range(0, 40, 3)) and plan.planes["conv0.y"].ring_rows == 1
    assert lines_made(plan, "conv1") == list(range(14))
    assert check_plan(problem, plan) == []
    assert run(problem, plan) == run(problem, None)
    if stream_input:  # every line of an input arrives
        assert lines_made(plan, "input") == list(range(40))


def test_lines_that_only_unread_lines_read_are_not_made():
    net = Net(36, 8, 4)
    net.conv(net.conv(net.conv(net.conv(net.input, 16, 3), 16, 1), 128, 1, 3), 4, 1, 3)
    problem = net.done()
    plan = streamed(problem)
    assert lines_made(plan, "conv0") == lines_made(plan, "conv1") == [0, 9, 18, 27]
    assert lines_made(plan, "conv2") == [0, 3, 6, 9]
    assert check_plan(problem, plan) == [] and run(problem, plan) == run(problem, None)


def test_lines_between_those_of_a_dilated_window_are_not_made():
    net = Net(32, 8, 4)
    net.conv(net.conv(net.input, 16, 3), 4, 3, (2, 1), (2, 2, 2, 2), 2)
    problem = net.done()
    plan = streamed(problem)
    assert lines_made(plan, "conv0") == list(range(0, 32, 2))
    assert check_plan(problem, plan) == [] and run(problem, plan) == run(problem, None)


def test_one_line_is_made_where_padding_alone_is_read():
    net = Net(2, 8, 4)
    net.conv(net.conv(net.input, 64, 3), 4, 1, 9, (3, 0, 14, 0))
    problem = net.done()
    plan = streamed(problem)
    assert [step.op for step in plan.schedule].count("conv0") >= 1 and check_plan(problem, plan) == []
    assert run(problem, plan) == run(problem, None)


def test_another_reader_needs_the_lines_that_the_first_does_not():
    net = Net(40, 8, 4)
    first = net.conv(net.input, 16, 3)
    net.concat(net.conv(first, 4, 1, 4), net.conv(first, 4, 3, 4))
    problem = net.done()
    plan = streamed(problem)
    assert lines_made(plan, "conv0") == [y for y in range(40) if y % 4 != 3]
    assert check_plan(problem, plan) == [] and run(problem, plan) == run(problem, None)


def test_a_line_that_is_read_may_not_be_left_out():
    problem = strided().done()
    data = map_json(streamed(problem))
    step = next(s for s in data["schedule"] if s["op"] == "conv0" and s["rows"] == [3, 4])
    without = {**data, "schedule": [s for s in data["schedule"] if s is not step]}
    assert {f.kind for f in check_map(graph_json(problem), without)} == {"overwritten"}


@pytest.mark.parametrize("include_output", [True, False])
def test_no_line_of_an_output_may_be_left_out(include_output):
    net = strided()
    problem = net.done("conv0.y", "conv1.y")
    plan = streamed(problem, include_output=include_output)
    assert check_plan(problem, plan) == []
    data = map_json(plan)
    rows = {name: [s for s in data["schedule"] if s["op"] == name and "rows" in s] for name in ("conv0", "conv1")}
    for steps in rows.values():
        for step in (steps[0], steps[-1]) if steps else ():
            without = {**data, "schedule": [s for s in data["schedule"] if s is not step]}
            assert check_map(graph_json(problem), without), step
    assert rows["conv1"] or not rows["conv0"]


@pytest.mark.parametrize("block", few_fast(range(2)))
def test_random_networks_make_each_line_that_is_read(block):
    """In random networks with tables and large strides lines are left out, and the bytes are the same."""
    left_out = 0
    for seed in range(1000 + block * 40, 1040 + block * 40):
        problem = random_problem(seed, tables=True)
        plan = streamed(problem, seed % 2 == 1)
        assert check_plan(problem, plan) == [], seed
        assert run(problem, plan, seed) == run(problem, None), seed
        for op in problem.ops:
            steps = [step for step in plan.schedule if step.op == op.name and step.rows]
            left_out += bool(steps) and sum(b - a for a, b in (s.rows for s in steps)) < problem.tensors[op.output].height
    assert left_out > 0
