"""The searches: the order of operators, the solver, settled arenas, and small networks in which every address and direction is tried."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations

import pytest
from support import memory_networks as networks
from support.errors import error_line
from support.memory_compiled import NETWORKS as FILES
from support.memory_execute import run
from support.memory_graphs import FAMILIES, random_problem
from support.memory_networks import Net
from support.memory_plans import check
from support.tables import every, few_fast

from n2d2py.cli import main
from n2d2py.contracts.cpp.layer import same_place
from n2d2py.memory.buffers import Buffers
from n2d2py.memory.checker import check_plan
from n2d2py.memory.packing import Packing, Pair, Placement
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.relax import overlap_cost, relax
from n2d2py.memory.search import best_order, best_packing, improve, plan_whole, quick
from n2d2py.memory.settings import MODES, Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.memory.stream import plan_streamed


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
    for seed in range(10):
        problem = random_problem(seed, ops=18)
        given = plan_memory(problem, strategy="OptimizeOverlap")
        plan = plan_memory(problem, strategy="OptimizeReorder")
        assert plan.arena_bytes <= given.arena_bytes
        assert check_plan(problem, plan) == []
        better += plan.arena_bytes < given.arena_bytes
    assert better > 2


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
    assert tuple(found.ops) in orders and peak(problem, found.ops) == min(peaks)
    assert make is drawn_branches or min(peaks) < max(peaks)


def test_the_solver_proves_what_the_search_leaves_open():
    pytest.importorskip("ortools.sat.python.cp_model")
    proved = 0
    for seed in (7, 11, 14, 16):
        problem = random_problem(seed)
        quick = plan_memory(problem, strategy="OptimizeOverlap")
        plan = plan_memory(problem, strategy="OptimizeOptimal")
        assert check_plan(problem, plan) == []
        assert plan.arena_bytes <= quick.arena_bytes and plan.bound >= quick.bound
        proved += plan.arena_bytes <= plan.bound
    assert proved >= 3


def test_without_the_solver_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    line = error_line(lambda: plan_whole(two_branches(), Settings(), "OptimizeOptimal"))
    assert "E606" in line and "pip install ortools" in line


def test_the_report_names_every_strategy(capsys, tmp_path):
    words = ("-memory-report", "-export", "CPP_MCU")  # whose kernels have no scratch in the arena
    assert main([str(FILES["MobileNet"]), "-w", "/dev/null", *words, "-quiet", "-o", str(tmp_path)]) == 0
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


UNITS = 6
"""Addresses are multiples of so small a part of the largest tensor that all of them can be tried."""


def small(seed: int, ops: int = 7) -> Packing:
    problem = random_problem(seed, ops=ops)
    unit = max(1, max(tensor.bytes for tensor in problem.tensors.values()) // UNITS)
    return Packing(Buffers(problem, Settings(clock="op", buffer_alignment=unit), ()))


def apart(packing: Packing, i: int, at: int, j: int, other: int) -> bool:
    """Whether block `i` at address `at` and block `j` at `other` have no byte in common."""
    return at + packing.blocks[i].size <= other or other + packing.blocks[j].size <= at


def ways(pair: Pair, distance: int) -> set[bool]:
    """The directions of the operator in which its output may lie so far above its input."""
    return ({False} if distance <= pair.safe_distances.ahead else set()) | (
        {True} if distance >= pair.safe_distances.backward else set()
    )


class Exhaustive:
    """All placements of a packing in an arena whose overlapping layers cost less than a limit."""

    def __init__(self, packing: Packing, arena: int, limit: float):
        self.packing, self.arena, self.limit = packing, arena, limit
        self.order = sorted(range(len(packing.blocks)), key=lambda i: (-packing.blocks[i].size, packing.blocks[i].birth))
        self.at: dict[int, int] = {}

    def found(self) -> bool:
        return next(self._from(0, {}, frozenset()), False)

    def _from(self, n: int, directions: dict[int, set[bool]], paid: frozenset[int]) -> Iterator[bool]:
        if n == len(self.order):
            yield True
            return
        i, packing = self.order[n], self.packing
        for at in range(0, self.arena - packing.blocks[i].size + 1, packing.step):
            chosen, costs = dict(directions), set(paid)
            if self._fits(i, at, chosen, costs) and sum(map(packing.cost, costs)) < self.limit:
                self.at[i] = at
                yield from self._from(n + 1, chosen, frozenset(costs))
                del self.at[i]

    def _fits(self, i: int, at: int, chosen: dict[int, set[bool]], costs: set[int]) -> bool:
        """Beside the blocks that are placed; narrows the directions and adds the operators that overlap."""
        for j, pair in self.packing.neighbours[i].items():
            if j not in self.at or apart(self.packing, i, at, j, self.at[j]):
                continue
            if pair is None:
                return False
            distance = (at - self.at[j]) * (1 if i == pair.output else -1)
            left = chosen.get(pair.op, {False, True}) & ways(pair, distance)
            if not left:
                return False
            chosen[pair.op] = left
            if not (pair.exact and distance == 0):
                costs.add(pair.op)
        return True


def overlapping_work(packing: Packing, placement: Placement) -> int:
    """The work of the layers that overlap, of a placement that keeps every rule."""
    overlapping = set()
    for i, near in enumerate(packing.neighbours):
        for j, pair in near.items():
            at, other = placement.offsets[i], placement.offsets[j]
            if apart(packing, i, at, j, other):
                continue
            assert pair is not None, (i, j)
            distance = placement.offsets[pair.output] - placement.offsets[pair.source]
            assert placement.backwards[pair.op] in ways(pair, distance), (i, j, distance)
            if not (pair.exact and distance == 0):
                overlapping.add(pair.op)
    ends = [at + block.size for at, block in zip(placement.offsets, packing.blocks, strict=True)]
    assert min(placement.offsets) >= 0 and max(ends) <= placement.bytes
    return sum(map(packing.cost, overlapping))


SEEDS = [seed for seed in range(150) if 2 < len(small(seed).blocks) <= 8]


@every("seed", SEEDS)
def test_no_smaller_arena_and_no_cheaper_placement_in_it(seed):
    packing = small(seed)
    placement = improve(packing)
    assert packing.bound <= placement.bytes
    if placement.bytes > packing.bound:
        assert not Exhaustive(packing, placement.bytes - packing.step, float("inf")).found()
    for room in (0, packing.step):
        given = Placement(placement.offsets, placement.backwards, placement.bytes + room)
        relaxed = relax(packing, given)
        cost = overlapping_work(packing, relaxed)
        assert (
            overlapping_work(packing, placement) == overlap_cost(packing, placement) >= overlap_cost(packing, relaxed) == cost
        )
        assert relaxed.bytes <= given.bytes
        assert cost == 0 or not Exhaustive(packing, given.bytes, cost).found()


def test_the_networks_are_such_that_overlapping_less_matters():
    """Some begin cheap, some are made cheaper, some must overlap."""
    before, after = [], []
    for packing in map(small, SEEDS):
        placement = improve(packing)
        before.append(overlap_cost(packing, placement))
        after.append(overlap_cost(packing, relax(packing, placement)))
    less = sum(a < b for a, b in zip(after, before, strict=True))
    assert less > 10 and sum(cost > 0 for cost in after) > 20 and after.count(0) > 30


@pytest.mark.parametrize("seed", few_fast(SEEDS[::4], 6))
def test_the_solver_proves_the_same_arena(seed):
    pytest.importorskip("ortools")
    from n2d2py.memory.search import solve

    packing = small(seed)
    best = improve(packing)
    forwards = packing.first_fit(list(range(len(packing.blocks))), [False] * len(packing.ops))
    found = solve(packing, forwards)
    assert overlapping_work(packing, found) >= 0 and found.bytes == best.bytes == packing.bound


def forced(packing, arena: int) -> set[str]:
    """The operators whose live bytes do not fit side by side, but those that can store over their own operands."""
    exact = {pair.op for pair in packing.pairs if pair.exact}
    return {
        packing.ops[pair.op].name
        for pair in packing.pairs
        if pair.op not in exact and packing.live(packing.blocks[pair.output].birth) > arena
    }


@pytest.mark.parametrize("name", ["resnet8", "vww", "ds_cnn", "mbv2_1.0_224", "resnet50", "squeezenet", "unet"])
def test_only_what_must_overlaps(name):
    problem = networks.NETWORKS[name]()
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
    for seed in range(20):
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
    assert less > 5 and overlapping > 5, (less, overlapping)


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
    for planned in (
        plan_streamed,
        partial(plan_streamed, pooled=True),
        plan_whole,
        partial(plan_whole, strategy="OptimizeReorder"),
    ):
        plan = planned(problem, settings)
        assert (plan.arena_bytes > 0) == (layers == 2) and check_plan(problem, plan) == []


def test_a_tensor_that_is_read_under_two_names():
    assert check(random_problem(223), 223) > 20


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seeds", few_fast([range(2000, 2002), *(range(first, first + 10) for first in range(4000, 4040, 10))]))
def test_every_optimization_on_and_off(family, seeds):
    assert all(check(FAMILIES[family](seed), seed) > 20 for seed in seeds)
