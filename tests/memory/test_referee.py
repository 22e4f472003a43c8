"""A reader written from the description of the map files alone accepts the maps of every strategy, and no others."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import memory_networks as networks
from support.memory_graphs import random_problem
from support.memory_networks import Net
from support.memory_referee import referee

from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.modes import MODES, plan_mode
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import PLANNERS, plan_memory
from n2d2py.memory.stream import StreamPlanner

STRATEGIES = [name for name in PLANNERS if name != "OptimizeOptimal"]


def accepted(problem: MemoryProblem, plan) -> list[str]:
    return referee(json.loads(json.dumps(graph_json(problem))), json.loads(json.dumps(map_json(plan))))


def branches() -> MemoryProblem:
    """Two inputs, a concatenation, sums, a reshape, two outputs, one of them read again."""
    net = Net(6, 5, 3)
    other = net.tensor("other", 6, 5, 2)
    joined = net.concat(net.conv(net.input, 3, 3), net.conv(other, 4, 1), net.dw(net.input, 3))
    x = net.conv(joined, 4, 3, 2)
    y = net.add(x, net.conv(x, 4, 1))
    z = net.softmax(net.fc(net.flatten(net.global_pool(net.ew(y))), 5))
    net.upsample(y, 2)
    problem = net.done(y, z, net.ops[-1].output)
    return replace(problem, inputs=(net.input, other))


def chain() -> MemoryProblem:
    net = Net(12, 5, 2)
    net.softmax(net.fc(net.global_pool(net.conv(net.dw(net.conv(net.input, 4, 3), 3, 2), 3, 1)), 3))
    return net.done()


@pytest.mark.parametrize("problem", [branches(), chain()], ids=["branches", "chain"])
@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(alignment=4, buffer_alignment=1),
        pytest.param(Settings(optimize_buffer=False), marks=pytest.mark.slow),
        pytest.param(Settings(no_branch_concat=False, buffer_alignment=64), marks=pytest.mark.slow),
    ],
    ids=["default", "aligned 4 1", "apart", "copied 64"],
)
def test_every_strategy_and_mode(problem, settings):
    for name in STRATEGIES:
        assert accepted(problem, plan_memory(problem, settings, strategy=name)) == [], name
    for mode in MODES:
        assert accepted(problem, plan_mode(problem, settings, mode)) == [], mode
        assert accepted(problem, plan_mode(problem, settings, mode, stream_input=True)) == [], mode


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 24))])
def test_random_networks(seed):
    problem = random_problem(seed, ops=8)
    for plan in (
        *(plan_memory(problem, strategy=name) for name in STRATEGIES),
        StreamPlanner().plan(problem, Settings()),
        StreamPlanner(True).plan(problem, Settings()),
    ):
        assert accepted(problem, plan) == [], plan.strategy


@pytest.mark.parametrize("problem", [branches(), chain()], ids=["branches", "chain"])
def test_the_solver(problem):
    pytest.importorskip("ortools.sat.python.cp_model")
    for alignment in (1, 16):
        plan = plan_memory(problem, Settings(buffer_alignment=alignment), strategy="OptimizeOptimal")
        assert accepted(problem, plan) == []
        assert plan.bound <= plan.arena_bytes + alignment - 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_the_solver_on_random_networks(seed):
    pytest.importorskip("ortools.sat.python.cp_model")
    problem = random_problem(seed, ops=8)
    assert (
        accepted(problem, plan_memory(problem, Settings(buffer_alignment=(1, 16)[seed % 2]), strategy="OptimizeOptimal")) == []
    )


def test_wrong_maps_are_refused():
    problem = chain()
    graph, good = graph_json(problem), map_json(StreamPlanner().plan(problem, Settings()))
    assert referee(graph, good) == []
    ring = next(name for name, plane in good["tensors"].items() if plane.get("ring_rows", 0) > 1)
    wrapped = map_json(plan_memory(problem, strategy=networks.N2D2))
    turned = next(name for name, plane in wrapped["tensors"].items() if "limit" in plane)

    def refused(data, change) -> bool:
        broken = copy.deepcopy(data)
        change(broken)
        return bool(referee(graph, broken))

    assert refused(good, lambda d: d["tensors"][ring].update(ring_rows=d["tensors"][ring]["ring_rows"] - 1))
    assert refused(good, lambda d: d["schedule"].pop(2))
    assert refused(good, lambda d: d["tensors"][ring].update(release=-1))
    assert refused(wrapped, lambda d: d["tensors"][turned].update(wrap_offset=d["tensors"][turned]["wrap_offset"] + 1))


def test_graphs_of_networks_use_the_terms_of_the_format():
    """Layers of an INI file, those included that the format has no word for."""

    from n2d2py import log
    from n2d2py.options import read_command
    from n2d2py.pipeline import load_network
    from n2d2py.quant.quantize import float_graph
    from n2d2py.stages.fuse import fuse_stage

    log.setup(quiet=True)
    path = Path(__file__).resolve().parents[1] / "e2e" / "branches.ini"
    network = load_network(*read_command([str(path), "-memory-report", "-seed", "1"]))
    graph, _ = fuse_stage(network, integer=True)
    problem = memory_problem(float_graph(graph.graph, -32))
    assert {op["type"] for op in graph_json(problem)["ops"]} >= {"conv", "concat", "fc"}
    assert accepted(problem, plan_mode(problem, Settings(), "Small")) == []
