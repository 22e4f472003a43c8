"""Exact overlap: first fit over several orders and directions, then random moves, down to the bound.

Seeded and counted, never timed: a problem has the same plan on every machine. OptimizeOptimal continues with a constraint
solver, which proves the arena or bounds it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from n2d2py.errors import N2D2Error
from n2d2py.memory.buffers import Buffers, concats_in_place
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.relax import relax
from n2d2py.memory.settings import Settings

OVERLAP = "OptimizeOverlap"
_WORK = 150_000
"""Random moves times blocks, about two seconds on one core."""

Search = Callable[[Packing], Placement]


def plan_overlap(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of OptimizeOverlap: outputs overlap inputs after their last use, as far as the kernels allow.

    Return the best placement found; at the packing's bound it is proved to be the smallest.
    """
    packing, placement = best_packing(problem, settings, improve)
    return packing.plan(OVERLAP, relax(packing, placement))


def best_packing(problem: MemoryProblem, settings: Settings, search: Search) -> tuple[Packing, Placement]:
    """Return the best of all concatenations copied and all in place, then of changing them one by one."""
    settings = replace(settings, clock="op")

    def packed(in_place: Collection[str]) -> Packing:
        return Packing(Buffers(problem, settings, in_place))

    packing = packed(())
    possible = concats_in_place(problem) if settings.no_branch_concat else []
    if not possible:
        return packing, search(packing)
    chosen: set[str] = set()
    best = quick(packing)
    everywhere = packed(possible)
    candidate = quick(everywhere)
    if candidate.bytes <= best.bytes:
        packing, best, chosen = everywhere, candidate, set(possible)
    for concat in possible:
        changed = chosen ^ {concat}
        other = packed(changed)
        if other.bound < best.bytes:
            candidate = quick(other)
            if candidate.bytes < best.bytes:
                packing, best, chosen = other, candidate, changed
    return packing, search(packing)


def _directions(packing: Packing) -> list[list[bool]]:
    """Return initial directions: by gain, all forwards, all backwards, alternating."""
    count = len(packing.ops)
    return [packing.best_directions(), [False] * count, [True] * count, [n % 2 == 1 for n in range(count)]]


def _starts(packing: Packing, directions: list[list[bool]]) -> list[tuple[list[int], list[bool], Placement]]:
    """Return (order, directions, placement) for several orders with each of the directions; stops at the bound."""
    blocks = packing.blocks
    keys = (
        lambda i: -blocks[i].size,
        lambda i: (blocks[i].birth - blocks[i].death, -blocks[i].size),
        lambda i: blocks[i].birth,
        lambda i: -blocks[i].death,
    )
    starts = []
    for key in keys:
        order = sorted(range(len(blocks)), key=key)
        for backwards in directions:
            starts.append((order, backwards, packing.first_fit(order, backwards)))
            if starts[-1][2].bytes <= packing.bound:
                return starts
    return starts


def quick(packing: Packing) -> Placement:
    """Return the best of the initial orders and directions."""
    return min((placement for _, _, placement in _starts(packing, _directions(packing))), key=lambda p: p.bytes)


def improve(packing: Packing) -> Placement:
    """Return the best placement after random moves of one block or one direction, from the best starts.

    Two of three moves concern the top of the arena: a highest block or one of its neighbours moves earlier, or the operator
    between two of them changes direction. Directions that alternate from the second operator on are tried last.
    """
    if not packing.blocks:
        return Placement((), (), 0)
    starts = sorted(_starts(packing, _directions(packing)), key=lambda start: start[2].bytes)
    best = starts[0][2]
    rng = random.Random(1)
    moves = min(1500, _WORK // len(packing.blocks) + 20)
    for order, backwards, current in starts[:3]:
        state = _State(packing, list(order), list(backwards), current)
        for _ in range(moves):
            if best.bytes <= packing.bound:
                return best
            state.move(rng)
            if state.current.bytes < best.bytes:
                best = state.current
    other = [n % 2 == 0 for n in range(len(packing.ops))]
    return min([best, *(start[2] for start in _starts(packing, [other]))], key=lambda placement: placement.bytes)


@dataclass
class _State:
    """An order and directions under random moves, and their placement."""

    packing: Packing
    order: list[int]
    backwards: list[bool]
    current: Placement

    def move(self, rng: random.Random) -> None:
        """Make one move, unless the result is worse."""
        block = self._critical(rng) if rng.random() < 0.67 else rng.randrange(len(self.order))
        move = self.packing.moved(self.order, self.backwards, block, rng, 0.4)
        placement = self.packing.refit(move, self.current, self.current.bytes)
        if placement is not None:
            self.order, self.backwards, self.current = move.order, move.backwards, placement

    def _critical(self, rng: random.Random) -> int:
        """Return a block that ends at the top of the arena, or a neighbour of one."""
        blocks, placement = self.packing.blocks, self.current
        highest = [i for i, offset in enumerate(placement.offsets) if offset + blocks[i].size == placement.bytes]
        top = rng.choice(highest)
        return rng.choice([top, *self.packing.neighbours[top]])


_EFFORT = 10.0
"""The solver's deterministic measure of time, roughly seconds: it stops at the same point everywhere."""


def plan_optimal(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of OptimizeOptimal: that of OptimizeOverlap, improved and bounded by CP-SAT of ortools, within its limit.

    Raises:
        N2D2Error: E606 without ortools.
    """
    _solver()
    packing, placement = best_packing(problem, settings, improve)
    placement = solve(packing, placement)
    return packing.plan("OptimizeOptimal", relax(packing, placement))


def _solver():
    try:
        from ortools.sat.python import cp_model  # pyright: ignore[reportMissingImports]  (of the extra "solver")
    except ImportError as error:
        what = "MemoryManagerStrategy=OptimizeOptimal requires ortools"
        raise N2D2Error("E606", what, remedy="pip install ortools, or use OptimizeOverlap") from error
    return cp_model


def solve(packing: Packing, start: Placement) -> Placement:
    """Return the best placement that CP-SAT finds from `start`; raises `packing.bound` to the proved bound."""
    if start.bytes <= packing.bound or not packing.blocks:
        return start
    cp_model = _solver()
    unit, blocks = packing.step, packing.blocks
    sizes = [block.size // unit for block in blocks]
    top = start.bytes // unit
    model = cp_model.CpModel()
    at = [model.new_int_var(0, top - size, f"at{i}") for i, size in enumerate(sizes)]
    back = [model.new_bool_var(f"back{n}") for n in range(len(packing.ops))]
    arena = model.new_int_var(-(-packing.bound // unit), top, "arena")
    for i, size in enumerate(sizes):
        model.add(at[i] + size <= arena)
    for i, neighbours in enumerate(packing.neighbours):
        for j, pair in neighbours.items():
            if j < i:
                continue
            below, above = model.new_bool_var(""), model.new_bool_var("")
            model.add(at[i] + sizes[i] <= at[j]).only_enforce_if(below)
            model.add(at[j] + sizes[j] <= at[i]).only_enforce_if(above)
            choices = [below, above]
            if pair is not None:
                ahead, backward = model.new_bool_var(""), model.new_bool_var("")
                distance = at[pair.output] - at[pair.source]
                model.add(distance <= pair.safe_distances.ahead // unit).only_enforce_if(ahead)
                model.add(distance >= pair.safe_distances.backward // unit).only_enforce_if(backward)
                model.add_implication(ahead, back[pair.op].negated())
                model.add_implication(backward, back[pair.op])
                choices += [ahead, backward]
            model.add_bool_or(choices)
    model.minimize(arena)
    for variable, offset in zip(at, start.offsets, strict=True):
        model.add_hint(variable, offset // unit)
    for variable, way in zip(back, start.backwards, strict=True):
        model.add_hint(variable, way)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _EFFORT
    status = solver.solve(model)
    packing.bound = max(packing.bound, int(solver.best_objective_bound + 0.5) * unit)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return start
    placement = Placement(
        tuple(solver.value(variable) * unit for variable in at),
        tuple(bool(solver.value(variable)) for variable in back),
        solver.value(arena) * unit,
    )
    return placement if placement.bytes < start.bytes else start
