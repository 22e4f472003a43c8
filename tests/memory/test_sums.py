"""Sums in the last stage of a convolution: where they are possible, what they save, and that the checker knows when a plan is wrong."""

from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.memory_graphs import residual
from support.memory_networks import Net, with_sums
from support.tables import every

from n2d2py.exports import load_params
from n2d2py.memory.checker import check_plan
from n2d2py.memory.problem import MemoryProblem, residual_sums
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.stages import memory as stage

# sums; arenas of OptimizeOverlap without and with them, of MemoryMode=Speed without and with them
FIGURES = {
    "resnet8": (networks.resnet8, 3, (33_792, 32_768), (49_152, 32_768)),
    "resnet18": (networks.resnet18, 8, (806_400, 806_400), (1_003_520, 1_003_520)),
    "resnet50": (networks.resnet50, 16, (1_609_216, 1_207_808), (2_408_448, 1_304_576)),
    "mobilenet_v2": (lambda: networks.mobilenet_v2(1.0, 224), 10, (1_209_600, 1_209_600), (1_505_280, 1_505_280)),
}


def fused(problem: MemoryProblem) -> MemoryProblem:
    return with_sums(problem, residual_sums(problem))


def block(*, same: bool = False, late: bool = False, twice: bool = False, shown: bool = False) -> MemoryProblem:
    """conv, conv, conv, sum of the first and the last, conv; what `residual_sums` must refuse by the flags."""
    net = Net(6, 6, 8)
    first = net.conv(net.input, 8, 3)
    middle = first if same else net.conv(first, 8, 3)
    last = net.conv(middle, 8, 3)
    if late:  # the residual is read after the convolution that would store over it
        other = net.conv(first, 8, 1, pads=0)
    total = net.add(first, last)
    if late:
        total = net.add(total, other)
    if twice:
        total = net.add(total, net.conv(last, 8, 1, pads=0))
    return net.done(net.conv(total, 4, 1, pads=0), *([total] if shown else []))


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name):
    make, count, overlap, speed = FIGURES[name]
    problem = make()
    sums = residual_sums(problem)
    assert len(sums) == count
    for plan, arenas in ((plan_memory, overlap), (lambda each: plan_memory(each, mode="Speed"), speed)):
        plans = [plan(problem), plan(with_sums(problem, sums))]
        assert [each.arena_bytes for each in plans] == list(arenas)
        assert not check_plan(with_sums(problem, sums), plans[1])


def test_what_a_plan_says():
    """The sum lies where the residual is, what the convolution makes by itself nowhere, and the plan says which input it is."""
    problem = block()
    (found,) = residual_sums(problem)
    plan = plan_memory(fused(problem))
    own, total = (problem.op(name).output for name in (found.conv, found.sum))
    assert len({(plan.planes[name].offset, plan.planes[name].stride) for name in (found.residual, total)}) == 1
    assert own not in plan.planes and found.sum not in plan.order and plan.views == ()
    assert {name: run.aliases for name, run in plan.ops.items() if run.aliases} == {found.conv: found.residual}
    assert not plan.overlaps(fused(problem), found.conv)


@every("flags, left", [({}, 1), ({"same": True}, 0), ({"twice": True}, 1), ({"shown": True}, 0)])
def test_conditions(flags, left):
    """Not where the convolution reads the residual itself, its output has another reader, or the sum is an output of the network."""
    problem = block(**flags)
    assert len(residual_sums(problem)) == left
    if flags.get("twice"):  # the later convolution does the second sum
        assert residual_sums(problem)[0].sum == [op.name for op in problem.ops if op.layer == "ElemWise"][1]


def test_a_residual_that_is_read_later_is_kept():
    problem = block(late=True)
    conv = problem.op(residual_sums(problem)[0].conv) if residual_sums(problem) else None
    assert conv is None or conv.inputs != (problem.ops[1].output,)
    plan = plan_memory(fused(problem))
    assert not check_plan(fused(problem), plan)


def test_a_kernel_may_refuse():
    assert not residual_sums(block(), lambda conv, sum: False)


def test_the_checker_refuses_another_place():
    problem = fused(block())
    plan = plan_memory(problem)
    conv = next(op for op in problem.ops if op.aliased)
    moved = {name: replace(plan.planes[name], offset=plan.planes[name].offset + 16) for name in (conv.output,)}
    bad = replace(plan, arena_bytes=plan.arena_bytes + 16, planes={**plan.planes, **moved})
    assert "residual" in {fault.kind for fault in check_plan(problem, bad)}


def test_the_checker_refuses_a_lost_residual():
    """Another tensor over the residual while it waits for its sum."""
    problem = fused(block())
    plan = plan_memory(problem)
    conv = next(op for op in problem.ops if op.aliased)
    middle = problem.ops[1].output
    bad = replace(plan, planes={**plan.planes, middle: replace(plan.planes[middle], offset=plan.planes[conv.aliased].offset)})
    assert any(fault.kind == "overwritten" and fault.tensor == conv.aliased for fault in check_plan(problem, bad))


def test_the_checker_refuses_lines():
    problem = fused(block())
    plan = plan_memory(problem)
    steps = [replace(step, rows=(0, 6)) if problem.op(step.op).aliased else step for step in plan.schedule]
    assert "unsupported" in {fault.kind for fault in check_plan(problem, replace(plan, schedule=tuple(steps)))}


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 80), marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_networks(seeds):
    """Plans of random networks: proved, and never larger than without sums where there is the choice."""
    found = 0
    for seed in seeds:
        problem = residual(seed)
        problem.validate()
        sums = residual_sums(problem)
        found += len(sums)
        other = with_sums(problem, sums)
        other.validate()
        plan = plan_memory(other)
        assert not check_plan(other, plan), seed
        chosen, best = stage.smaller_plan(problem, other, plan_memory)
        assert best.arena_bytes == min(plan.arena_bytes, plan_memory(problem).arena_bytes), seed
        assert not check_plan(chosen, best), seed
    assert found > len(seeds)


def bottlenecks() -> MemoryProblem:
    """Blocks as those of ResNet-50: 25,312 bytes by overlap, 16,128 with sums, 15,232 line by line; 37,632 and 18,816 with MemoryMode=Speed."""
    net = Net(14, 14, 3)
    x = net.conv(net.input, 16, 3)
    for _ in range(2):
        own = net.conv(net.conv(net.conv(x, 16, 1, pads=0), 16, 3), 64, 1, pads=0)
        x = net.add(own, net.conv(x, 64, 1, pads=0) if net.tensors[x].channels != 64 else x)
    return net.done(net.fc(x, 10))


@every(
    "text, with_sum, mode",
    [
        ("", True, None),
        ("OptimizeBufferMemory=0", False, None),
        ("MemoryManagerStrategy=None", False, None),
        ("MemoryManagerStrategy=OptimizeReorder", True, None),
        ("MemoryMode=Speed", True, "Speed"),
        ("MemoryMode=Minimum", False, "Minimum"),
        ("MemoryMode=Small", False, "Small"),
        ("StreamInput=1", False, "Small"),
        ("MemoryBudget=0", False, "Minimum"),
        ("MemoryBudget=17000", True, "Balanced"),
        ("MemoryBudget=20000", True, "Speed"),
        ("MemoryBudget=15500", False, "Small"),
        ("MemoryMode=Balanced\nMemoryBudget=17000", True, "Balanced"),
    ],
)
def test_parameters(tmp_path, text, with_sum, mode):
    """Each parameter of the memory with sums: a budget between 16,128 and 25,312 bytes is met without a layer line by line."""
    path = tmp_path / "params.ini"
    path.write_text(text + "\n")
    params, problem = load_params(path), bottlenecks()
    chosen, plan = stage._plan_by(problem, fused(problem), Settings.of(params))
    assert not check_plan(chosen, plan)
    assert any(op.aliased for op in chosen.ops) == with_sum
    assert plan.options.get("MemoryMode") == mode
    if with_sum:
        assert not plan.streamed
