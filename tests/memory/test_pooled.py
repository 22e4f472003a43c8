"""The default plan runs a convolution and the pool behind it line by line where that holds the peak, and nothing else."""

from __future__ import annotations

from support import memory_networks as networks
from support.memory_compiled import arena_symbol, assert_exact, export, memory_map, needs_tools
from support.memory_networks import Net
from support.tables import every

from n2d2py.memory.checker import check_plan
from n2d2py.memory.modes import plan_mode
from n2d2py.memory.search import OverlapPlanner
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.memory.stream import PooledPlanner


def _streamed(net: Net) -> set[str]:
    problem = net.done()
    plan = PooledPlanner().plan(problem, Settings())
    assert check_plan(problem, plan) == []
    return set(plan.streamed)


def test_tiny_yolo_needs_a_quarter_by_default():
    problem = networks.tiny_yolo_v2()
    plan = plan_memory(problem)
    assert check_plan(problem, plan) == [] and plan.strategy == "OptimizeOverlap"
    assert OverlapPlanner().plan(problem, Settings()).arena_bytes == 804_608
    assert plan.arena_bytes == 208_096 < 255_334
    assert plan_mode(problem, Settings(), "Balanced").arena_bytes == plan.arena_bytes
    assert not plan_mode(problem, Settings(), "Speed").streamed


@every("name", ["resnet8", "vww", "ds_cnn", "unet", "squeezenet11", "googlenet"])
def test_other_plans_stay_as_they_are(name):
    problem = getattr(networks, name)()
    plan = PooledPlanner().plan(problem, Settings())
    assert not plan.streamed and plan.arena_bytes == OverlapPlanner().plan(problem, Settings()).arena_bytes


def test_element_wise_layers_between_run_along():
    net = Net(40, 40, 3)
    net.conv(net.pool(net.ew(net.conv(net.input, 32, 3)), 2, 2), 8, 3)
    assert _streamed(net) == {"conv0", "ew1", "pool2"}


def test_windows_that_overlap_are_not_run_line_by_line():
    net = Net(40, 40, 3)
    net.conv(net.pool(net.conv(net.input, 32, 3), 3, 2), 8, 3)
    assert _streamed(net) == set()


def test_a_result_with_another_reader_is_whole():
    net = Net(40, 40, 3)
    x = net.conv(net.input, 32, 3)
    net.concat(net.pool(x, 2, 2), net.conv(x, 8, 3, 2))
    assert _streamed(net) == set()


@needs_tools
def test_compiled(tmp_path):
    folder = export("pooled", tmp_path, "")
    found = memory_map(folder)
    turns = [step for step in found["schedule"] if step.get("rows")]
    assert {step["op"] for step in turns} >= {"conv1", "pool1"}
    assert "pool2" not in {step["op"] for step in turns}
    assert_exact(folder)
    assert arena_symbol(folder) < 40 * 48 * 24
