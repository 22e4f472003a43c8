"""The order of operators, the solver, the report of all strategies."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from support.memory_compiled import NETWORKS
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_networks import Net
from support.tables import every

from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.memory.checker import check_plan
from n2d2py.memory.modes import MODES
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.reorder import best_order
from n2d2py.memory.search import OptimalPlanner
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory


def two_branches():
    """Two large maps, each reduced at once, but listed side by side: one after the other needs half."""
    net = Net(16, 16, 2)
    a, b = net.conv(net.input, 32, 1), net.conv(net.input, 32, 1)
    net.add(net.conv(a, 2, 1), net.conv(b, 2, 1))
    return net.done()


def test_branches_run_one_after_the_other():
    problem = two_branches()
    given = plan_memory(problem, strategy="OptimizeOverlap")
    plan = plan_memory(problem, strategy="OptimizeReorder")
    assert given.arena_bytes > 16_384 > plan.arena_bytes == plan.bound
    assert [step.op for step in plan.schedule] in (
        ["conv0", "conv2", "conv1", "conv3", "add4"],
        ["conv1", "conv3", "conv0", "conv2", "add4"],
    )
    assert check_plan(problem, plan) == [] and run(problem, plan) == run(problem, None)


def test_reordering_is_never_worse_and_sometimes_better():
    better = 0
    for seed in range(20):
        problem = random_problem(seed, ops=18)
        given = plan_memory(problem, strategy="OptimizeOverlap")
        plan = plan_memory(problem, strategy="OptimizeReorder")
        assert plan.arena_bytes <= given.arena_bytes
        assert check_plan(problem, plan) == []
        better += plan.arena_bytes < given.arena_bytes
    assert better > 4


def test_the_best_order_is_a_topological_one_of_the_same_operators():
    for seed in range(40):
        problem = random_problem(seed, ops=18)
        ordered = best_order(problem, Settings())
        ordered.validate()
        assert sorted(op.name for op in ordered.ops) == sorted(op.name for op in problem.ops)


def peak(problem, order) -> int:
    """The most bytes that live at once in this order of the operators: a tensor does until its last reader ran."""
    most, live = 0, list(problem.inputs)
    for index, op in enumerate(order):
        live.append(op.output)
        most = max(most, sum(problem.tensors[name].bytes for name in live))
        needed = {*problem.outputs, *(name for later in order[index + 1 :] for name in later.inputs)}
        live = [name for name in live if name in needed]
    return most


def three_branches(rng: random.Random) -> MemoryProblem:
    """Three layers of the input, listed side by side, each with a small one behind it."""
    net = Net(4, 4, 2)
    wide = [net.conv(net.input, rng.randint(1, 40), 1) for _ in range(3)]
    net.add(*(net.conv(x, 2, 1) for x in wide))
    return net.done()


def drawn_branches(rng: random.Random) -> MemoryProblem:
    """Behind a layer that is smaller than the input: layers of drawn sizes, each of one of those before, summed at the end."""
    net = Net(8, 8, rng.randint(2, 6))
    made = [net.conv(net.input, 2, 1, rng.choice((1, 2)))]
    for _ in range(4):
        made.append(net.conv(rng.choice(made), rng.randint(1, 30), 1))
    net.add(*(net.conv(x, 1, 1) for x in made[-2:]))
    return net.done()


@every("make, seed", [*((three_branches, seed) for seed in range(6)), *((drawn_branches, seed) for seed in range(20))])
def test_no_order_has_a_smaller_peak_than_the_best_one(make, seed):
    """Against all orders in which every tensor is written before it is read, without overlaps."""
    problem = make(random.Random(seed))
    orders = [
        order
        for order in permutations(problem.ops)
        if all(
            name in (*problem.inputs, *(op.output for op in order[:at])) for at, op in enumerate(order) for name in op.inputs
        )
    ]
    found = best_order(problem, Settings(optimize_buffer=False))
    peaks = [peak(problem, order) for order in orders]
    assert peak(problem, found.ops) == min(peaks) and (make is drawn_branches or min(peaks) < max(peaks))


def test_the_solver_proves_what_the_search_leaves_open():
    pytest.importorskip("ortools.sat.python.cp_model")
    proved = 0
    for seed in (7, 11, 14, 16, 24, 29, 44):
        problem = random_problem(seed)
        quick = plan_memory(problem, strategy="OptimizeOverlap")
        plan = plan_memory(problem, strategy="OptimizeOptimal")
        assert check_plan(problem, plan) == []
        assert plan.arena_bytes <= quick.arena_bytes and plan.bound >= quick.bound
        proved += plan.arena_bytes <= plan.bound
    assert proved >= 6


def test_without_the_solver_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    with pytest.raises(N2D2Error) as caught:
        OptimalPlanner().plan(two_branches(), Settings())
    assert caught.value.code == "E606" and "pip install ortools" in str(caught.value)


def test_the_report_names_every_strategy(capsys, tmp_path):
    words = ("-memory-report", "-export", "CPP_MCU")  # whose kernels have no scratch in the arena
    assert main([str(NETWORKS["MobileNet"]), "-w", "/dev/null", *words, "-quiet", "-o", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1] for line in lines[4 : lines.index("")]}
    assert list(rows) == [
        *"None OptimizeMaxLifetimeMinSizeFirst OptimizeMaxLifetimeMaxSizeFirst".split(),
        *"OptimizeMaxHoleMaxLifetimeFirst OptimizeAuto OptimizeOverlap OptimizeOptimal OptimizeReorder".split(),
        *"OptimizeStream OptimizeStream,".split(),
        *(f"MemoryMode={mode}" for mode in MODES),
    ]
    assert rows["OptimizeMaxLifetimeMaxSizeFirst"] == "8,704" and rows["OptimizeOverlap"] == "8,448"
    assert list(tmp_path.iterdir()) == []
