"""In an arena that is settled, layers overlap only where it takes that: never a byte more, never more overlapping work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import memory_networks as networks
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_networks import Net

from n2d2py.exports.cpp.layer import same_place
from n2d2py.memory.checker import check_plan
from n2d2py.memory.relax import overlap_cost, relax
from n2d2py.memory.reorder import ReorderPlanner
from n2d2py.memory.search import OverlapPlanner, best_packing, improve, quick
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.memory.stream import StreamPlanner

NETWORKS = {
    "resnet8": networks.resnet8,
    "vww": networks.vww,
    "kws": networks.ds_cnn,
    "mobilenet_v2": lambda: networks.mobilenet_v2(1.0, 224),
    "resnet50": networks.resnet50,
    "squeezenet": networks.squeezenet11,
    "unet": networks.unet,
}


def forced(packing, arena: int) -> set[str]:
    """The operators whose live bytes do not fit side by side, but those that can store over their own operands."""
    exact = {pair.op for pair in packing.pairs if pair.exact}
    return {
        packing.ops[pair.op].name
        for pair in packing.pairs
        if pair.op not in exact and packing.live(packing.blocks[pair.output].birth) > arena
    }


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_only_what_must_overlaps(name):
    problem = NETWORKS[name]()
    packing, placement = best_packing(problem, replace(Settings(), clock="op"), improve)
    relaxed = relax(packing, placement)
    assert relaxed.bytes == placement.bytes
    plan = packing.plan("OptimizeOverlap", relaxed)
    assert check_plan(problem, plan) == []
    apart = {op.name for op in packing.ops if not plan.overlaps(problem, op.name)}
    added = {
        op.name
        for op in packing.ops
        if op.layer == "ElemWise" and any(same_place(plan.planes[name], plan.planes[op.output]) for name in op.inputs)
    }
    assert {op.name for op in packing.ops} - apart - added == forced(packing, relaxed.bytes)
    assert relax(packing, placement) == relaxed


def test_the_live_bytes_of_every_clock():
    for seed in range(20):
        packing, _ = best_packing(random_problem(seed, ops=18), replace(Settings(), clock="op"), quick)
        last = max(block.death for block in packing.blocks)
        for clock in range(-1, last + 3):
            assert packing.live(clock) == sum(block.size for block in packing.blocks if block.birth <= clock <= block.death)
        assert packing.live(last) > 0 == packing.live(last + 1)


def test_random_networks_keep_their_arena_and_their_bytes():
    less = overlapping = 0
    for seed in range(40):
        problem = random_problem(seed, ops=18)
        packing, placement = best_packing(problem, replace(Settings(), clock="op"), improve)
        relaxed = relax(packing, placement)
        assert relaxed.bytes <= placement.bytes
        before, after = overlap_cost(packing, placement), overlap_cost(packing, relaxed)
        assert after <= before
        plan = packing.plan("OptimizeOverlap", relaxed)
        assert check_plan(problem, plan) == [], seed
        assert run(problem, plan) == run(problem, None), seed
        less += after < before
        overlapping += after > 0
    assert less > 10 and overlapping > 10, (less, overlapping)


def test_a_sum_goes_over_its_own_operand_and_not_beside_it():
    """Two maps of 1,024 bytes are live when the sum is stored over one of them: no third place, no order of its lines."""
    net = Net(16, 16, 4)
    net.add(net.conv(net.input, 4, 1), net.input)
    problem = net.done()
    plan = plan_memory(problem, strategy="OptimizeOverlap")
    (total,) = [op for op in problem.ops if op.layer == "ElemWise"]
    assert plan.arena_bytes == 2048 and check_plan(problem, plan) == []
    assert any(same_place(plan.planes[name], plan.planes[total.output]) for name in total.inputs)


def test_segments_that_run_by_lines_overlap_for_nothing():
    problem = networks.vww()
    plan = plan_memory(problem, strategy="OptimizeStream")
    before = {op.name for op in problem.ops if plan.overlaps(problem, op.name)} - set(plan.streamed)
    assert check_plan(problem, plan) == [] and len(before) < 6, before


@pytest.mark.parametrize("layers", [1, 2])
def test_what_has_nothing_in_the_arena_has_no_bytes(layers):
    """Input and output are of the caller: a layer alone has no blocks to place, two have one between them."""
    net = Net(4, 4, 2)
    x = net.input
    for _ in range(layers):
        x = net.conv(x, 3, 3)
    problem = net.done(x)
    settings = Settings(include_input=False, include_output=False)
    for planner in (StreamPlanner(), StreamPlanner(pooled=True), OverlapPlanner(), ReorderPlanner()):
        plan = planner.plan(problem, settings)
        assert (plan.arena_bytes > 0) == (layers == 2) and check_plan(problem, plan) == []
