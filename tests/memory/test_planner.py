"""Plans: safe on every shape, right about views, alignment, external inputs, scratch; honest about
mistakes.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from support import memory_networks as networks
from support.kernel_cases import U8, Sweep
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_networks import UNSAFE_IN_N2D2, Net, single_conv
from support.memory_plans import line_offset
from support.ops import Reshape
from support.tables import every

from n2d2py.graph.shapes import in_memory_order
from n2d2py.memory.access import View, Whole, same_order
from n2d2py.memory.checker import check_plan
from n2d2py.memory.format import map_json
from n2d2py.memory.problem import MemoryProblem, OpSpec, TensorSpec
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory


def test_random_networks_exercise_wraps_overlaps_and_views():
    plans = [(problem, plan_memory(problem, strategy=networks.N2D2)) for problem in map(random_problem, range(60))]
    assert sum(bool(plan.views) for _, plan in plans) > 20
    assert sum(any(not p.contiguous for p in plan.planes.values()) for _, plan in plans) > 10
    assert sum(any(plan.overlaps(problem, op.name) for op in problem.ops) for problem, plan in plans) > 20
    assert sum(bool(plan.scratch) for _, plan in plans) > 20


@every("case", UNSAFE_IN_N2D2)
def test_the_shapes_of_the_short_margin_are_planned_safely(case):
    problem = single_conv(*case)
    plan = plan_memory(problem)
    sizes = [t.bytes for t in problem.tensors.values()]
    assert check_plan(problem, plan) == []
    assert max(sizes) < plan.arena_bytes < sum(sizes)
    assert plan.overlaps(problem, "conv0")


def test_every_single_window_is_planned_safely():
    rng = random.Random(3)
    for _ in range(400):
        shape = (rng.randint(1, 20), rng.randint(1, 20), rng.choice((1, 2, 3, 4, 8)))
        kernel, stride = rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 2, 3))
        pad = rng.randint(0, kernel - 1)
        if min(shape[:2]) + 2 * pad < kernel:
            continue
        problem = single_conv(shape, rng.choice((1, 2, 3, 8, 16)), kernel, stride, pad)
        assert check_plan(problem, plan_memory(problem)) == [], (shape, kernel, stride, pad)


def test_pointwise_runs_in_place():
    net = Net(6, 5, 4)
    x = net.conv(net.input, 4, 3)
    net.add(net.ew(x), net.conv(net.conv(net.input, 4, 1), 4, 1))
    problem = net.done()
    plan = plan_memory(problem)
    assert line_offset(plan.planes["ew1.y"], 0) == line_offset(plan.planes["conv0.y"], 0)
    assert plan.overlaps(problem, "ew1") and plan.overlaps(problem, "add4")
    assert not plan_memory(problem, Settings(optimize_buffer=False)).overlaps(problem, "add4")


def test_a_broadcast_operand_is_never_overwritten():
    net = Net(4, 4, 6)
    scale = net.fc(net.input, 6)
    net._add("ew", (net.input, scale), (4, 4, 6))
    problem = net.done()
    plan = plan_memory(problem)
    assert check_plan(problem, plan) == []
    assert run(problem, plan) == run(problem, None)


def test_concatenation_in_place_interleaves_the_inputs():
    net = Net(4, 4, 3)
    a, b = net.conv(net.input, 5, 3), net.conv(net.input, 6, 1)
    net.conv(net.concat(a, b), 2, 3)
    problem = net.done()
    plan = plan_memory(problem, Settings(alignment=4))
    left, right, whole = (plan.planes[f"{op}.y"] for op in ("conv0", "conv1", "concat2"))
    assert plan.views == ("concat2",)
    assert (left.stride, right.stride, whole.stride) == (12, 12, 12)
    assert (right.offset - left.offset, whole.offset, whole.size) == (5, left.offset, 11)


def test_a_kernel_of_rows_gets_planes_without_gaps():
    net = Net(4, 4, 3)
    a = net.conv(net.input, 6, 3)
    b = net._add("softmax", (a,), (4, 4, 6), dense=True)
    problem = net.done(net.conv(net.concat(b, net.conv(net.input, 5, 1)), 2, 1))
    plan = plan_memory(problem, Settings(alignment=4))
    assert plan.views == () and check_plan(problem, plan) == []
    assert [(plan.planes[name].stride, plan.planes[name].limit) for name in (a, b)] == [(6, None)] * 2


@every(
    "before, after, kept",
    [
        ((3, 2, 4), (3, 8), True),
        ((3, 1, 8), (3, 2, 4), True),
        ((1, 2, 4), (8,), True),
        ((3, 2, 4), (6, 2, 2), False),
        ((3, 2, 4), (24,), False),
    ],
)
def test_a_reshape_that_keeps_the_order_in_memory_is_a_view(before, after, kept):
    x = np.arange(24 if before[0] == 3 else 8).reshape(1, *before)
    assert np.array_equal(in_memory_order(x), in_memory_order(x.reshape(1, *after))) == kept
    graph = Sweep(1).graph(Reshape(after), {"x": ((1, *before), U8)}, ((1, *after), U8))
    graph.outputs = []
    assert isinstance(same_order(graph.nodes[0], graph), View) == kept


@every("change", ["rescale", "twice", "used", "input", "nested", "output"])
def test_concatenation_is_copied_where_it_must_be(change):
    net = Net(4, 4, 3)
    a, b = net.conv(net.input, 3, 3), net.conv(net.input, 3, 1)
    parts = {"twice": (a, a), "input": (a, net.input)}.get(change, (a, b))
    if change == "nested":
        parts = (net.concat(a, b), net.conv(net.input, 2, 1))
    last = net.concat(*parts, **({"rescale": True} if change == "rescale" else {}))
    outputs = (last, net.conv(a, 2, 1)) if change == "used" else (last, a) if change == "output" else (last,)
    problem = net.done(*outputs)
    plan = plan_memory(problem)
    assert last.removesuffix(".y") not in plan.views
    assert check_plan(problem, plan) == []


def test_reshape_is_a_view_of_one_dense_piece():
    net = Net(7, 3, 5)
    x = net.conv(net.input, 3, 3)
    net.fc(net.flatten(x), 4)
    problem = net.done()
    plan = plan_memory(problem, Settings(alignment=8))
    flat, source = plan.planes["reshape1.y"], plan.planes["conv0.y"]
    assert (flat.offset, flat.bytes) == (source.offset, source.bytes) == (source.offset, 63)
    assert source.contiguous and source.stride == 3
    assert check_plan(problem, plan) == []


def test_alignment_rounds_the_pixel_stride_of_what_is_produced():
    net = Net(8, 8, 1)
    net.conv(net.conv(net.input, 5, 3), 9, 3)
    problem = net.done()
    plan = plan_memory(problem, Settings(alignment=8))
    assert [plan.planes[n].stride for n in ("input", "conv0.y", "conv1.y")] == [1, 8, 16]
    assert check_plan(problem, plan) == []


def test_elements_of_several_bytes_are_aligned():
    for seed in range(200, 260):
        problem = random_problem(seed)
        plan = plan_memory(problem, Settings(alignment=3))
        for name, plane in plan.planes.items():
            element = problem.tensors[name].element_bytes
            assert not any(at % element for at in (plane.offset, plane.stride, plane.wrap_offset))


def test_an_input_outside_the_arena_takes_no_room():
    problem = networks.resnet8()
    plan = plan_memory(problem, Settings(include_input=False), strategy=networks.N2D2)
    assert plan.planes["input"].external and plan.planes["input"].intervals() == []
    assert plan.arena_bytes == 34_816
    assert not plan.overlaps(problem, "conv0")


def test_scratch_is_disjoint_from_everything_live():
    net = Net(8, 8, 4)
    net.conv(net.conv(net.input, 4, 3), 4, 3)
    net.ops = [replace(op, scratch_bytes=100) for op in net.ops]
    problem = net.done()
    plan = plan_memory(problem)
    assert {name: s.size for name, s in plan.scratch.items()} == {"conv0": 112, "conv1": 112}
    assert plan.arena_bytes >= 256 + 100
    assert check_plan(problem, plan) == []


def test_outputs_live_to_the_end():
    net = Net(8, 8, 4)
    early = net.conv(net.input, 4, 1)
    x = net.input
    for _ in range(4):
        x = net.conv(x, 4, 3)
    problem = net.done(early, x)
    plan = plan_memory(problem)
    assert plan.planes[early].release == 5
    assert run(problem, plan) == run(problem, None)


def test_same_problem_same_plan():
    problem = networks.mobilenet_v2(0.35, 128)
    assert map_json(plan_memory(problem)) == map_json(plan_memory(problem))


X, Y = TensorSpec("x", 4, 4, 2), TensorSpec("y", 4, 4, 2)


def test_outputs_stay_with_the_caller():
    """The output of the last layer, one that is read again, and one that is seen in another shape; no other tensor."""
    net = Net(6, 5, 4)
    first = net.conv(net.input, 4, 3)
    second = net.conv(first, 4, 3)
    flat = net.flatten(second)
    problem = net.done(first, flat)
    inside = plan_memory(problem, Settings(include_output=True))
    outside = plan_memory(problem, Settings(include_output=False))
    assert inside.planes == plan_memory(problem).planes and not any(plane.external for plane in inside.planes.values())
    assert {name for name, plane in outside.planes.items() if plane.external} == {first, second, flat}
    assert outside.arena_bytes == problem.tensors[net.input].bytes < inside.arena_bytes
    assert check_plan(problem, outside) == [] and run(problem, outside) == run(problem, None)
    problem, plan = net.done(flat), plan_memory(net.done(flat), Settings(include_output=False))
    assert check_plan(problem, plan) == []
    wrong = replace(plan, planes={**plan.planes, first: replace(plan.planes[first], external=True)})
    assert [fault.kind for fault in check_plan(problem, wrong)] == ["external"]


def test_an_operator_may_ask_for_the_callers_buffer():
    problem = MemoryProblem(
        {"x": TensorSpec("x", 3, 3, 8), "y": TensorSpec("y", 3, 3, 8)},
        ("x",),
        ("y",),
        (OpSpec("op", Whole(prefers_caller=True), ("x",), "y"),),
    )
    arenas = [plan_memory(problem, Settings(include_output=way)).arena_bytes for way in (True, None, False)]
    assert arenas == [152, 72, 72]


@pytest.mark.parametrize("include_output", [True, False, None])
def test_a_pool_that_may_keep_partial_results_writes_into_the_arena(include_output):
    net = Net(6, 5, 4)
    pooled = net.global_pool(net.conv(net.input, 4, 3))
    problem = net.done()
    plan = plan_memory(problem, Settings(include_output=include_output))
    assert not plan.planes[pooled].external and check_plan(problem, plan) == []


def test_the_best_plan_concatenates_in_place_only_where_that_is_allowed():
    net = Net(8, 8, 4)
    net.conv(net.concat(net.conv(net.input, 24, 1), net.conv(net.input, 24, 3)), 2, 1)
    problem = net.done()
    plans = [plan_memory(problem, Settings(no_branch_concat=allowed), strategy="OptimizeAuto") for allowed in (True, False)]
    assert plans[0].arena_bytes < plans[1].arena_bytes
    assert [plan.options["OptimizeNoBranchConcat"] for plan in plans] == [1, 0]
