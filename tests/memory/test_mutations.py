"""Each kind of wrong plan, made from a right one by the smallest change, is refused: everywhere that it can be made.

They look at `n2d2py.memory.case`, `n2d2py.memory.checker`, `n2d2py.memory.replay`, `n2d2py.memory.replay_lines` and
`n2d2py.memory.stamps`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.memory_networks import Net

from n2d2py.memory.checker import check_plan
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.planning import plan_memory
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import StreamPlanner


def changed(plan: MemoryPlan, name: str, **changes) -> MemoryPlan:
    """The plan with another plane for a tensor, in an arena that has room for it."""
    return replace(
        plan, planes={**plan.planes, name: replace(plan.planes[name], **changes)}, arena_bytes=plan.arena_bytes + 4096
    )


def kinds(problem: MemoryProblem, plan: MemoryPlan) -> set[str]:
    return {fault.kind for fault in check_plan(problem, plan)}


def net(element_bytes: int = 1) -> MemoryProblem:
    """Convolutions that shrink and grow, a residual, a concatenation, a global pool."""
    n = Net(16, 12, 3, element_bytes)
    x = n.conv(n.conv(n.input, 8, 3, 2), 24, 1)
    x = n.add(x, n.conv(n.dw(x, 3), 24, 1))
    x = n.conv(n.concat(n.conv(x, 5, 3), n.conv(x, 7, 1)), 6, 3, 2)
    n.fc(n.global_pool(x), 4)
    return n.done()


@pytest.mark.parametrize("channels", [2, 4, 9])
def test_an_overlap_of_one_byte_too_many(channels):
    """An output as far over its input as it may be, in either direction of the loop."""
    n = Net(10, 6, 4)
    n.conv(n.input, channels, 3)
    problem = n.done()
    plan = plan_memory(problem, buffer_alignment=1)
    assert plan.arena_bytes == plan.bound < sum(t.bytes for t in problem.tensors.values())
    closer = -1 if plan.backwards else 1
    moved = changed(plan, "conv0.y", offset=plan.planes["conv0.y"].offset + 100)
    moved = changed(moved, "input", offset=plan.planes["input"].offset + 100)
    assert kinds(problem, moved) == set()
    offset = moved.planes["conv0.y"].offset
    assert kinds(problem, changed(moved, "conv0.y", offset=offset + closer)) == {"overwritten"}


@pytest.mark.parametrize("strategy", ["OptimizeOverlap", networks.N2D2, "None"])
def test_two_buffers_that_live_together_share_a_byte(strategy):
    """Every tensor moved so that its first byte is the last one of each other tensor that lives with it."""
    problem = net()
    plan = plan_memory(problem, strategy=strategy)
    read = {name: max([i for i, op in enumerate(problem.ops) if name in op.inputs], default=99) for name in problem.tensors}
    made = {op.output: i for i, op in enumerate(problem.ops)} | {"input": -1}
    tried = 0
    for name in made:
        for other in made:
            if made[other] < made[name] < read[other] and not plan.planes[name].limit and not plan.planes[other].limit:
                end = max(end for _, end in plan.planes[other].intervals())
                assert kinds(problem, changed(plan, name, offset=end - 1)), (name, other)
                tried += 1
    assert tried


def test_a_wrap_at_another_line_or_to_another_byte():
    problem = net()
    plan = plan_memory(problem, strategy=networks.N2D2)
    wrapped = {name: plane for name, plane in plan.planes.items() if plane.limit is not None}
    assert wrapped
    for name, plane in wrapped.items():
        assert kinds(problem, changed(plan, name, limit=plane.limit + 1)) == {"wrap"}
        assert kinds(problem, changed(plan, name, wrap_offset=plane.wrap_offset + 2 * plane.line_bytes)), name


@pytest.mark.parametrize(
    "plan_of",
    [
        lambda p: plan_memory(p),
        lambda p: plan_memory(p, strategy=networks.N2D2),
        lambda p: StreamPlanner(True).plan(p, Settings()),
    ],
    ids=["overlap", "N2D2", "streamed input"],
)
def test_a_lifetime_that_begins_late_or_ends_early(plan_of):
    problem = net()
    plan = plan_of(problem)
    views = {problem.op(name).output for name in plan.views}
    for name, plane in plan.planes.items():
        if name not in views:
            late = changed(plan, name, alloc=plane.alloc + 1)
            assert "lifetime" in kinds(problem, late) or name in problem.inputs, name
        reading = [step.clock for step in plan.schedule if not step.arrives and name in problem.op(step.op).inputs]
        if name not in problem.outputs:
            assert "lifetime" in kinds(problem, changed(plan, name, release=max(reading) - 1)), name


@pytest.mark.parametrize("element_bytes", [2, 4])
def test_an_element_off_its_alignment(element_bytes):
    problem = net(element_bytes)
    plan = plan_memory(problem)
    for name, plane in plan.planes.items():
        for off in range(1, element_bytes):
            assert "alignment" in kinds(problem, changed(plan, name, offset=plane.offset + off)), (name, off)


@pytest.mark.parametrize("stream_input", [False, True])
def test_every_line_buffer_one_line_too_short(stream_input):
    tried = 0
    for problem in (net(), networks.resnet8()):
        plan = StreamPlanner(stream_input).plan(problem, Settings())
        for name, plane in plan.planes.items():
            if plane.ring_rows is not None and plane.ring_rows > 1:
                assert "overwritten" in kinds(problem, changed(plan, name, ring_rows=plane.ring_rows - 1)), name
                tried += 1
    assert tried >= 6


def test_the_parts_of_a_concatenation_with_another_stride_or_place():
    problem = net()
    plan = plan_memory(problem, strategy=networks.N2D2)
    (concat,) = plan.views
    for name in problem.op(concat).inputs:
        plane = plan.planes[name]
        assert plane.stride == 12 > plane.size
        for stride in (plane.size, 11, 13):
            assert kinds(problem, changed(plan, name, stride=stride)), (name, stride)
        for offset in (plane.offset - 1, plane.offset + 1):
            assert kinds(problem, changed(plan, name, offset=offset)), (name, offset)


def test_a_loop_in_the_other_direction():
    tried = 0
    for problem in (net(), networks.resnet8(), networks.ds_cnn()):
        plan = plan_memory(problem, buffer_alignment=1)
        for name in plan.backwards:
            ops = {**plan.ops, name: replace(plan.ops[name], backwards=False)}
            assert "overwritten" in kinds(problem, replace(plan, ops=ops)), name
            tried += 1
    assert tried >= 3
