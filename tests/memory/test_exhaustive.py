"""What the searches find in small networks is what trying every address and direction finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.memory_graphs import random_problem
from support.tables import every

from n2d2py.memory.buffers import Buffers
from n2d2py.memory.packing import Packing, Pair, Placement
from n2d2py.memory.relax import overlap_cost, relax
from n2d2py.memory.search import improve
from n2d2py.memory.settings import Settings

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
    return ({False} if distance <= pair.reach.ahead else set()) | ({True} if distance >= pair.reach.backward else set())


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


def check(packing: Packing, placement: Placement) -> int:
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
        cost = check(packing, relaxed)
        assert check(packing, placement) == overlap_cost(packing, placement) >= overlap_cost(packing, relaxed) == cost
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


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_the_solver_proves_the_same_arena(seed):
    pytest.importorskip("ortools")
    from n2d2py.memory.optimal import solve

    packing = small(seed)
    best = improve(packing)
    forwards = packing.first_fit(list(range(len(packing.blocks))), [False] * len(packing.ops))
    found = solve(packing, forwards)
    assert check(packing, found) >= 0 and found.bytes == best.bytes == packing.bound
