"""Exact overlap: first fit over several orders and directions, then random moves, down to the bound.

Seeded and counted, never timed: a problem has the same plan on every machine. OptimizeOptimal continues with a constraint
solver, which proves the arena or bounds it. OptimizeReorder looks for the operator order with the fewest live bytes before.
"""

import heapq
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from n2d2py.errors import N2D2Error
from n2d2py.memory.buffers import Buffers, concats_in_place, pop_ready
from n2d2py.memory.overlap import safe_distances
from n2d2py.memory.packing import Packing, Placement, Start
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.relax import relax
from n2d2py.memory.settings import Settings

OVERLAP = "OptimizeOverlap"
_WORK = 150_000  # random moves times blocks, about two seconds on one core
_STATES = 200_000  # number of explored sets of executed operators before the given order is kept


def _directions(packing: Packing) -> list[list[bool]]:
    count = len(packing.ops)
    return [packing.best_directions(), [False] * count, [True] * count, [n % 2 == 1 for n in range(count)]]


def _starts(packing: Packing, directions: list[list[bool]]) -> list[Start]:
    """Return placements of several orders with each of the directions, up to the first at the bound."""
    blocks = packing.blocks
    keys = (
        lambda i: -blocks[i].size,
        lambda i: (blocks[i].birth - blocks[i].death, -blocks[i].size),
        lambda i: blocks[i].birth,
        lambda i: -blocks[i].death,
    )
    starts = []
    for start in packing.starts(keys, directions):
        starts.append(start)
        if start[2].bytes <= packing.bound:
            break
    return starts


def quick(packing: Packing) -> Placement:
    """Return the best of the initial orders and directions."""
    return min((placement for _, _, placement in _starts(packing, _directions(packing))), key=lambda p: p.bytes)


def improve(packing: Packing) -> Placement:
    """Return the best placement after random moves of one block or one direction, from the best starts. Directions that
    alternate from the second operator on are tried last."""
    if not packing.blocks:
        return Placement((), (), 0)
    starts = sorted(_starts(packing, _directions(packing)), key=lambda start: start[2].bytes)
    best = starts[0][2]
    rng = random.Random(1)
    for order, backwards, current in starts[:3]:
        for _ in range(min(1500, _WORK // len(packing.blocks) + 20)):
            if best.bytes <= packing.bound:
                return best
            move = packing.moved(order, backwards, _critical(packing, current, rng), rng, 0.4)
            placement = packing.refit(move, current, current.bytes)
            if placement is not None:
                order, backwards, current = move.order, move.backwards, placement
                best = min(best, current, key=lambda each: each.bytes)
    other = [n % 2 == 0 for n in range(len(packing.ops))]
    return min([best, *(start[2] for start in _starts(packing, [other]))], key=lambda placement: placement.bytes)


def _critical(packing: Packing, placement: Placement, rng: random.Random) -> int:
    """Return a block to move: in two of three cases one that ends at the top of the arena, or a neighbour of one."""
    if rng.random() >= 0.67:
        return rng.randrange(len(packing.blocks))
    ends = [offset + block.size for offset, block in zip(placement.offsets, packing.blocks, strict=True)]
    top = rng.choice([i for i, end in enumerate(ends) if end == placement.bytes])
    return rng.choice([top, *packing.neighbours[top]])


_EFFORT = 10.0  # the solver's deterministic measure of time, roughly seconds: it stops at the same point everywhere


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


def best_order(problem: MemoryProblem, settings: Settings) -> MemoryProblem:
    """Return the problem with an operator order of the smallest peak of live bytes, overlaps counted. Best-first search over
    the sets of executed operators. The given order stays if the search is cut off, or if an operator stores over an input,
    whose other consumers come before it."""
    if any(op.aliased is not None for op in problem.ops):
        return problem
    buffers = Buffers(problem, replace(settings, clock="op"), ())
    ops = [op for op in problem.ops if op.name not in buffers.views]
    orders = _Orders(buffers, ops)
    full = (1 << len(ops)) - 1
    reached: dict[int, tuple[int, int]] = {0: (-1, -1)}
    queue = [(orders.live(0), 0, 0)]
    cost = {0: orders.live(0)}
    while queue and len(reached) <= _STATES:
        value, executed, done = heapq.heappop(queue)
        if value > cost[done]:
            continue
        if done == full:
            return _in_order(problem, buffers, ops, reached)
        for i, peak in orders.next_peaks(done):
            after, largest = done | 1 << i, max(value, peak)
            if largest < cost.get(after, largest + 1):
                cost[after], reached[after] = largest, (done, i)
                heapq.heappush(queue, (largest, executed - 1, after))
    return problem


class _Orders:
    """The live bytes of sets of executed operators; sets of operators are the bits of a number, buffers have indices."""

    def __init__(self, buffers: Buffers, ops: Sequence[OpSpec]):
        distinct = buffers.distinct()
        numbers = {buffer: i for i, buffer in enumerate(distinct)}
        of = {name: numbers[buffer] for name, buffer in buffers.of.items()}
        self.sizes = [0 if buffer.external else buffers.form(buffer).bytes for buffer in distinct]
        self.stays = [buffer.is_output for buffer in distinct]
        self.inputs, self.outputs = [of[name] for name in buffers.problem.inputs], [of[op.output] for op in ops]
        sources = [{of[name] for name in op.inputs} for op in ops]
        self.readers = [sum(1 << i for i, read in enumerate(sources) if buffer in read) for buffer in range(len(distinct))]
        writer = {output: i for i, output in enumerate(self.outputs)}
        self.needs = [sum(1 << writer[source] for source in read if source in writer) for read in sources]
        self.gains: list[list[tuple[int, int, int]]] = [[] for _ in ops]
        for op, gains in zip(ops, self.gains, strict=True):
            single = [name for name in op.inputs if op.inputs.count(name) == 1 and not buffers.of[name].external]
            for name in single if buffers.settings.optimize_buffer else ():
                form, output = buffers.form(buffers.of[op.output]), buffers.problem.tensors[op.output]
                distances = safe_distances(op, buffers.problem.tensors[name], buffers.geometry(name), 0, output, form, 0)
                if distances is not None:
                    gains.append((of[name], distances.gain(False), distances.gain(True)))

    def _is_needed(self, buffer: int, done: int) -> bool:
        return self.stays[buffer] or bool(self.readers[buffer] & ~done)

    def live(self, done: int) -> int:
        """Return the bytes of the buffers that later operators or the caller need."""
        present = self.inputs + [output for i, output in enumerate(self.outputs) if done >> i & 1]
        return sum(self.sizes[buffer] for buffer in dict.fromkeys(present) if self._is_needed(buffer, done))

    def next_peaks(self, done: int) -> Iterator[tuple[int, int]]:
        before = self.live(done)
        for i, output in enumerate(self.outputs):
            if not (done >> i & 1 or self.needs[i] & ~done):
                dying = [gains for buffer, *gains in self.gains[i] if not self._is_needed(buffer, done | 1 << i)]
                saved = max(map(sum, zip(*dying, strict=True)), default=0)
                yield i, before + self.sizes[output] - min(self.sizes[output], saved)


def _in_order(
    problem: MemoryProblem, buffers: Buffers, ops: list[OpSpec], reached: dict[int, tuple[int, int]]
) -> MemoryProblem:
    """Return the problem in the order that `reached` leads back from; views follow their sources."""
    order, done = [], (1 << len(ops)) - 1
    while done:
        done, i = reached[done]
        order.append(ops[i])
    waiting = [op for op in problem.ops if op.name in buffers.views]
    known, result = set(problem.inputs), []
    for op in [None, *reversed(order)]:
        if op is not None:
            result.append(op)
            known.add(op.output)
        result += pop_ready(waiting, known)
    return replace(problem, ops=tuple(result))


def plan_whole(problem: MemoryProblem, settings: Settings, strategy: str = OVERLAP) -> MemoryPlan:
    """Return the plan in which outputs overlap inputs after their last use, as far as the kernels allow: of the best placement
    found, which is proved to be the smallest at the packing's bound. `strategy`: OptimizeReorder also tries the best order of
    the operators; OptimizeOptimal improves and bounds the placement by CP-SAT of ortools, within its limit. Raise E606 for
    OptimizeOptimal without ortools."""
    orders = [problem]
    if strategy == "OptimizeReorder":
        ordered = best_order(problem, settings)
        orders += [ordered] if ordered.ops != problem.ops else []
    elif strategy == "OptimizeOptimal":
        _solver()
    packing, placement = min((best_packing(each, settings) for each in orders), key=lambda best: best[1].bytes)
    if strategy == "OptimizeOptimal":
        placement = solve(packing, placement)
    return packing.plan(strategy, relax(packing, placement))


def best_packing(
    problem: MemoryProblem, settings: Settings, search: Callable[[Packing], Placement] = improve
) -> tuple[Packing, Placement]:
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
