"""The checker objects to every broken plan, and to nothing else."""

import copy
import random
import re
import tracemalloc
from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.errors import error_line
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_networks import UNSAFE_IN_N2D2, Net, single_conv
from support.tables import every

from n2d2py.memory import case
from n2d2py.memory.access import Concatenated
from n2d2py.memory.checker import check_map, check_plan, refuse_violations
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.strategies import plan_memory


def kinds(problem, plan) -> set[str]:
    return {v.kind for v in check_plan(problem, plan)}


def with_plane(plan: MemoryPlan, name: str, **changes) -> MemoryPlan:
    return replace(plan, planes={**plan.planes, name: replace(plan.planes[name], **changes)})


def n2d2_plan(problem, slack: int = 0) -> MemoryPlan:
    """One convolution in a ring of N2D2's size max(|X|, |Y|) + (1 + floor(pad / stride)) lines,
    plus `slack`.
    """
    op = problem.ops[0]
    x, y = problem.tensors["input"], problem.tensors[op.output]
    line = y.width * y.channels
    size = max(x.bytes, y.bytes) + (1 + op.access.pads[0] // op.access.stride[0]) * line + slack
    limit = (size - x.bytes) // line * line
    wraps = {"limit": limit, "wrap_offset": 0} if limit < y.bytes else {}
    planes = {
        "input": Plane(0, x.channels, x.channels, x.width, x.height, -1, 0),
        op.output: Plane(x.bytes, y.channels, y.channels, y.width, y.height, 0, 1, **wraps),
    }
    return MemoryPlan("test", size, planes, (ScheduleStep(op.name, 0),))


@every("case", UNSAFE_IN_N2D2)
def test_n2d2s_margin_is_refused_where_it_is_short(case):
    problem = single_conv(*case)
    faults = check_plan(problem, n2d2_plan(problem))
    assert [(v.kind, v.op, v.tensor, v.by) for v in faults] == [("overwritten", "conv0", "input", "conv0.y")]
    line = problem.tensors["conv0.y"].width * case[1]
    assert check_plan(problem, n2d2_plan(problem, 2 * line)) == []


def test_n2d2s_margin_is_accepted_where_it_is_right():
    problem = single_conv((16, 16, 8), 8, 3, 1, 1)
    assert check_plan(problem, n2d2_plan(problem)) == []


@pytest.fixture
def chain():
    """16x16x3 -> conv 3x3 -> conv 3x3, both wrapped over their inputs, with its proved plan."""
    problem = networks.two_convs()
    plan = plan_memory(problem, strategy=networks.N2D2)
    assert check_plan(problem, plan) == [] and plan.overlaps(problem, "conv1")
    return problem, plan


@every(
    "change, found",
    [
        (lambda d: d.update(arena_size=d["arena_size"] - 1), {"arena"}),
        (lambda d: d["tensors"]["input"].update(offset=-1), {"arena"}),
        (lambda d: d["tensors"]["conv0.y"].update(offset=d["tensors"]["input"]["offset"]), {"overwritten"}),
        (
            lambda d: d["tensors"]["conv1.y"].update(limit=8 * line(d), wrap_offset=d["tensors"]["conv1.y"]["offset"]),
            {"overwritten"},
        ),
        *(
            (lambda d, key=key: d["tensors"]["conv0.y"].update({key: 7}), {"form"})
            for key in ("size", "stride", "length", "count")
        ),
        (lambda d: d["tensors"]["conv0.y"].update(ring_rows=3), {"form"}),
        (lambda d: d["tensors"]["conv0.y"].update(external=True), {"external"}),
        (lambda d: d["schedule"].reverse(), {"schedule"}),
        (lambda d: d["schedule"].pop(), {"schedule"}),
        (lambda d: d["schedule"].append(d["schedule"][0]), {"schedule"}),
        (lambda d: d["schedule"][1].update(view=True), {"view"}),
        (lambda d: d["schedule"][0].update(rows=[0, 3]), {"overwritten"}),
        (lambda d: d["schedule"][0].update(rows=[0, 99]), {"schedule"}),
        (lambda d: d["schedule"][0].update(rows=[2, 2]), {"schedule"}),
        (lambda d: d["schedule"][0].update(in_rows=[0, 3]), {"schedule"}),
        (lambda d: d["tensors"]["conv0.y"].pop("offset"), {"missing"}),
        (lambda d: d["tensors"].pop("conv0.y"), {"missing"}),
        (lambda d: d["schedule"][1].update(clock=-1), {"clock", "lifetime"}),
        (
            lambda d: d["tensors"]["conv1.y"].update({key: d["tensors"]["input"][key] for key in ("alloc", "release")}),
            {"lifetime"},
        ),
    ],
)
def test_broken_maps(chain, change, found):
    problem, plan = chain
    memory_map = copy.deepcopy(map_json(plan))
    change(memory_map)
    assert found <= {fault.kind for fault in check_map(graph_json(problem), memory_map)}


def line(memory_map: dict) -> int:
    plane = memory_map["tensors"]["conv1.y"]
    return plane["stride"] * plane["length"]


def test_a_wrap_inside_a_line():
    problem = single_conv((16, 16, 8), 8, 3, 1, 1)
    plan = n2d2_plan(problem)
    limit = plan.planes["conv0.y"].limit
    assert kinds(problem, with_plane(plan, "conv0.y", limit=limit - 1)) == {"wrap"}
    assert kinds(problem, with_plane(plan, "conv0.y", limit=10**6 * 128)) == {"wrap"}


def test_a_wrap_to_the_wrong_place():
    problem = single_conv((16, 16, 8), 8, 3, 1, 1)
    plan = n2d2_plan(problem)
    assert kinds(problem, with_plane(plan, "conv0.y", wrap_offset=128)) == {"overwritten"}


def test_an_unaligned_element():
    net = Net(4, 4, 2, element_bytes=4)
    net.conv(net.input, 2, 1)
    problem = net.done()
    plan = plan_memory(problem)
    moved = replace(with_plane(plan, "conv0.y", offset=plan.planes["conv0.y"].offset + 2), arena_bytes=plan.arena_bytes + 4)
    assert "alignment" in kinds(problem, moved)


@every("shift", [0, 1])
def test_faults_in_multiples_of_bytes_are_those_of_bytes(chain, shift):
    """Four times the channels, addresses and sizes: the same faults, with four times the bytes."""
    problem, plan = chain
    offset = plan.planes["conv1.y"].offset - shift * plan.planes["conv1.y"].line_bytes
    graph, memory_map = graph_json(problem), map_json(with_plane(plan, "conv1.y", offset=offset))
    faults = [str(fault) for fault in check_map(graph, memory_map)]
    assert bool(faults) == bool(shift)
    for tensor in graph["tensors"].values():
        tensor["c"] *= 4
    memory_map["arena_size"] *= 4
    for plane in memory_map["tensors"].values():
        plane.update(
            {key: plane[key] * 4 for key in ("offset", "size", "stride", "limit", "wrap_offset", "pitch") if key in plane}
        )
    four_times = [re.sub(r"\d+(?= bytes)|(?<=byte )\d+", lambda found: str(int(found[0]) * 4), fault) for fault in faults]
    assert [str(fault) for fault in check_map(graph, memory_map)] == four_times


def test_elements_of_two_sizes_share_bytes_in_the_order_of_elements():
    """int32 over int8: in place its later elements are lost; from the last element to the first none is."""
    net = Net(1, 4, 4)
    output = net.tensor(net.ew(net.input), 1, 4, 4, 4)
    planes = {"input": Plane(0, 4, 4, 4, 1, -1, 0), output: Plane(0, 16, 16, 4, 1, 0, 1)}
    for backwards, lost in ((False, {"overwritten"}), (True, set())):
        plan = MemoryPlan("test", 64, planes, (ScheduleStep("ew0", 0),), ops={"ew0": OpPlan(backwards=backwards)})
        assert kinds(net.done(), plan) == lost


def test_a_large_plan_takes_little_memory():
    net = Net(256, 256, 16, element_bytes=4)
    net.add(net.conv(net.conv(net.input, 16, 3), 16, 3), net.input)
    problem = net.done()
    plan = plan_memory(problem)
    tracemalloc.start()
    assert check_plan(problem, plan) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * plan.arena_bytes


def test_a_view_that_is_not_in_place():
    net = Net(4, 4, 3)
    net.conv(net.concat(net.conv(net.input, 5, 3), net.conv(net.input, 6, 1)), 2, 3)
    problem = net.done()
    plan = plan_memory(problem)
    moved = replace(with_plane(plan, "conv1.y", offset=plan.planes["conv1.y"].offset + 1), arena_bytes=plan.arena_bytes + 8)
    assert any(v.op == "concat2" and v.tensor == "concat2.y" for v in check_plan(problem, moved))


def test_a_view_that_rescales():
    net = Net(4, 4, 3)
    net.concat(net.conv(net.input, 5, 3), net.conv(net.input, 6, 1))
    plan = plan_memory(net.done())
    net.ops[-1] = replace(net.ops[-1], access=Concatenated(True))
    assert "view" in kinds(net.done(), plan)


def test_scratch_over_a_live_tensor():
    net = Net(8, 8, 4)
    skip = net.conv(net.input, 4, 3)
    net.add(skip, net.conv(skip, 4, 3))
    net.ops[1] = replace(net.ops[1], scratch_bytes=50)
    problem = net.done()
    plan = plan_memory(problem)
    assert check_plan(problem, plan) == []
    for name, by in (("conv0.y", "conv0.y"), ("conv1.y", "conv1.y")):
        over = replace(plan, ops={"conv1": OpPlan(scratch=Scratch(plan.planes[name].offset, 50))})
        assert any(v.tensor == by and v.by == "scratch" for v in check_plan(problem, over))
    small = OpPlan(scratch=Scratch(plan.op("conv1").scratch.offset, 49))
    assert kinds(problem, replace(plan, ops={"conv1": small})) == {"scratch"}
    assert kinds(problem, replace(plan, ops={})) == {"scratch"}


def test_fc_over_its_input_is_refused():
    net = Net(1, 1, 64)
    net.fc(net.input, 32)
    problem = net.done()
    planes = {"input": Plane(0, 64, 64, 1, 1, -1, 0), "fc0.y": Plane(0, 32, 32, 1, 1, 0, 1)}
    assert kinds(problem, MemoryPlan("test", 64, planes, (ScheduleStep("fc0", 0),))) == {"overwritten"}


def test_pointwise_shifts():
    """Output one element before its input is safe, one element after is not."""
    net = Net(4, 4, 3)
    net.ew(net.input)
    problem = net.done()

    def plan(source: int, output: int) -> MemoryPlan:
        planes = {"input": Plane(source, 3, 3, 4, 4, -1, 0), "ew0.y": Plane(output, 3, 3, 4, 4, 0, 1)}
        return MemoryPlan("test", 52, planes, (ScheduleStep("ew0", 0),))

    assert kinds(problem, plan(1, 0)) == kinds(problem, plan(1, 1)) == set()
    assert kinds(problem, plan(0, 1)) == {"overwritten"}


def mutated(plan: MemoryPlan, rng: random.Random) -> MemoryPlan:
    """The plan with one plane moved, its wrap changed, or two planes' places exchanged."""
    name = rng.choice(sorted(plan.planes))
    plane = plan.planes[name]
    how = rng.randrange(4)
    if how == 0:
        return with_plane(plan, name, offset=plane.offset + rng.choice((-1, 1)) * rng.choice((1, plane.line_bytes)))
    if how == 1 and plane.count > 1:
        return with_plane(
            plan,
            name,
            limit=rng.randrange(plane.count + 1) * plane.line_bytes,
            wrap_offset=rng.randrange(max(1, plan.arena_bytes - plane.bytes + 1)),
        )
    if how == 2:
        other = plan.planes[rng.choice(sorted(plan.planes))]
        return with_plane(plan, name, offset=other.offset)
    return with_plane(plan, name, offset=rng.randrange(max(1, plan.arena_bytes)))


def test_what_is_accepted_runs_and_what_runs_wrong_is_refused(monkeypatch):
    """Mutated plans of random networks: where outputs are wrong, the checker has objected, also in parts of a few bytes."""
    refused = wrong = 0
    for seed in range(75):
        problem = random_problem(seed, uniform=True, ops=8)
        expected = run(problem, None)
        rng = random.Random(seed)
        plan = plan_memory(problem, strategy=rng.choice(networks.available_strategies()))
        for _ in range(4):
            broken = mutated(plan, rng)
            faults = check_plan(problem, broken)
            with monkeypatch.context() as parts:
                parts.setattr(case, "_BLOCK", rng.choice((1, 7, 40)))
                assert check_plan(problem, broken) == faults
            if {v.kind for v in faults} <= {"overwritten"}:
                differs = run(problem, broken, seed) != expected
                assert faults or not differs, (seed, broken)
                wrong += differs
                refused += bool(faults)
    assert refused > 50 and wrong > 40


def test_violations_stop_the_export(chain):
    problem, plan = chain
    refuse_violations(check_plan(problem, plan))
    faults = check_plan(problem, with_plane(plan, "conv0.y", offset=plan.planes["input"].offset))
    line = error_line(refuse_violations, faults)
    assert "E604" in line
    assert "input" in line and "conv0.y" in line


def test_an_operator_type_the_checker_does_not_know():
    net = Net(2, 2, 2)
    net.softmax(net.input)
    problem = net.done()
    graph, memory_map = graph_json(problem), map_json(plan_memory(problem))
    graph["ops"][0]["type"] = "mystery"
    assert "unsupported" in {fault.kind for fault in check_map(graph, memory_map)}
