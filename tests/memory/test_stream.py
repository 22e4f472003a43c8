"""Row streaming: figures, plans that are proved and run, the checker's objections to broken ones."""

from __future__ import annotations

import random
from dataclasses import replace

import networks
import pytest
from execute import run
from networks import Net
from random_graphs import random_problem
from test_overlap import network

from n2d2py.memory import MemoryPlan, Settings, StreamPlanner, check_map, check_plan, plan_mode

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
    assert plan_mode(problem, Settings(), "Balanced", stream_input=True).arena_bytes == 8_640


def streamed(problem, stream_input=False, **settings) -> MemoryPlan:
    return StreamPlanner(stream_input).plan(problem, Settings(**settings))


@pytest.mark.parametrize("name", [*FIGURES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_FIGURES)])
def test_figures(name):
    problem = network(name)
    for stream_input, figure in zip((False, True), {**FIGURES, **SLOW_FIGURES}[name], strict=True):
        plan = streamed(problem, stream_input)
        assert plan.arena_bytes == figure
        assert check_plan(problem, plan) == []


@pytest.mark.parametrize("block", range(4))
def test_random_networks_are_proved_and_give_the_same_bytes(block):
    rings = arrivals = 0
    for seed in range(block * 20, block * 20 + 20):
        problem = random_problem(seed)
        expected = run(problem, None)
        for stream_input in (False, True):
            plan = streamed(problem, stream_input, buffer_alignment=(1, 4, 16)[seed % 3])
            assert check_plan(problem, plan) == [], (seed, stream_input)
            assert run(problem, plan, seed) == expected, (seed, stream_input)
            rings += any(p.ring_rows and p.ring_rows < p.count for p in plan.planes.values())
            arrivals += any(step.arrives for step in plan.schedule)
    assert rings > 1 and arrivals == 20


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
    data = plan.to_json()
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
        assert check_map(problem.to_json(), {**data, "schedule": schedule}), change


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
    data = streamed(problem).to_json()
    data["schedule"][0]["rows"] = [0, 1]
    assert "unsupported" in {f.kind for f in check_map(problem.to_json(), data)}


def test_an_input_is_read_before_it_arrives():
    problem = networks.vww()
    data = streamed(problem, True).to_json()
    assert check_map(problem.to_json(), data) == []
    at = [i for i, step in enumerate(data["schedule"]) if "input" in step]
    assert len(at) > 10
    data["schedule"][at[1]], data["schedule"][at[1] + 1] = (data["schedule"][at[1] + 1], data["schedule"][at[1]])
    assert "overwritten" in {f.kind for f in check_map(problem.to_json(), data)}
