"""Several memories for one network, such as a small fast one and a large slow one.

They follow each other in one address space, the cheapest first, and no buffer crosses a border. The usual checker proves the
plan. Its cost is the number of bytes that layers read and write, times the cost of their memory. The search is a first fit by
bytes moved per byte held, then seeded random moves.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from n2d2py.arithmetic.exact import round_up
from n2d2py.errors import N2D2Error
from n2d2py.memory.access import Window
from n2d2py.memory.buffers import Buffers, concats_in_place
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.plan import Memory, MemoryPlan, number_at
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import MODES, WHOLE_MODES, Settings
from n2d2py.memory.stream import StreamPacking

_WORK = 300_000  # random moves times blocks


@dataclass(frozen=True, order=True)
class Spread:
    """Rating of a placement: bytes beyond the last memory, cost of the bytes moved, arena."""

    beyond: int
    cost: float
    bytes: int


def plan_memories(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of least cost in the memories of the settings, of all packings, with and without layers that run row by
    row. States lie in the first memory. Raise E607 if the memories are too small."""
    settings = _reserving_states(problem, settings)
    best: tuple[Spread, MemoryPlan] | None = None
    for packing in _packings(problem, settings):
        placement = spread(packing)
        judged, plan = judge(packing, placement.offsets), packing.plan("Memories", placement)
        better = best is None or (judged.beyond, judged.cost) < (best[0].beyond, best[0].cost)
        if better and _is_coherent(problem, plan, settings.tensor_memories):
            best = judged, plan
    if best is None or best[0].beyond:
        missing = f"{best[0].beyond:,} bytes are missing" if best else "no plan was found"
        what = f"the memories {', '.join(memory.name for memory in settings.tensor_memories)} are too small: {missing}"
        raise N2D2Error("E607", what, where="export parameters", remedy="make the last one larger, or add one")
    return replace(best[1], memories=settings.tensor_memories, bound=None)


def _reserving_states(problem: MemoryProblem, settings: Settings) -> Settings:
    """Return the settings of the search: the first memory without the bytes of the states."""
    first, *others = settings.tensor_memories
    names = () if settings.state_memory else problem.state_inputs
    states = sum(round_up(problem.tensors[name].bytes, Memory.ALIGNMENT) for name in names)
    return replace(
        settings,
        clock="op",
        include_input=settings.include_input or settings.stream_input,
        optimize_buffer=settings.optimize_buffer and settings.mode != MODES[0],
        memories=(replace(first, bytes=max(1, first.bytes - states)), *others),
    )


def _packings(problem: MemoryProblem, settings: Settings) -> Iterator[Packing]:
    """Yield packings of whole buffers, with concatenations copied and in place, then with layers row by row, as many as the
    first memory needs and all."""
    if not settings.stream_input:
        possible = concats_in_place(problem) if settings.no_branch_concat else ()
        for in_place in {tuple(possible): None, (): None}:
            yield Packing(Buffers(problem, settings, in_place))
    if settings.mode not in WHOLE_MODES:
        for budget in (settings.tensor_memories[0].bytes, 0):
            yield StreamPacking(Buffers(problem, replace(settings, budget=budget), ()))


def _is_coherent(problem: MemoryProblem, plan: MemoryPlan, memories: Sequence[Memory]) -> bool:
    """True if partial results lie in the memory of the output that they become."""
    runs = ((plan.planes[op.output], plan.op(op.name).partial) for op in problem.ops)
    partial_runs = [(plane, partial) for plane, partial in runs if partial is not None]
    return all(
        plane.external or number_at(memories, plane.offset) == number_at(memories, offset) for plane, offset in partial_runs
    )


def moved_bytes(problem: MemoryProblem, views: Sequence[str] | set[str]) -> dict[str, float]:
    """Return the bytes that an inference writes and reads, by tensor; a pixel counts once for each output reading it."""
    moved = {name: float(problem.tensors[name].bytes) for name in chain(problem.inputs, problem.outputs)}
    for op in problem.ops:
        if op.name in views:
            continue
        moved[op.output] = moved.get(op.output, 0) + problem.tensors[op.output].bytes
        repeats = max(1.0, prod(op.access.kernel) / prod(op.access.stride)) if isinstance(op.access, Window) else 1.0
        for name in op.inputs:
            moved[name] = moved.get(name, 0) + repeats * problem.tensors[name].bytes
    return moved


def _moved_by_memory(problem: MemoryProblem, plan: MemoryPlan) -> dict[Memory, float]:
    moved, by_memory = moved_bytes(problem, plan.views), dict.fromkeys((*plan.memories, *plan.roms), 0.0)
    for name, plane in plan.planes.items():
        if plan.memories and not plane.external:
            by_memory[plan.memories[plan.memory_at(plane.offset)]] += moved.get(name, 0)
    named = {memory.name: memory for memory in by_memory}
    for name, value in (each for one in plan.constants for each in one.moved):
        by_memory[named[name]] += value
    return by_memory


def shares(problem: MemoryProblem, plan: MemoryPlan) -> dict[str, float]:
    """Return, by memory, the share of the bytes that an inference moves; empty for a single memory."""
    by_memory = _moved_by_memory(problem, plan)
    total = sum(by_memory.values()) or 1
    return {memory.name: value / total for memory, value in by_memory.items()}


def moving_cost(problem: MemoryProblem, plan: MemoryPlan) -> float:
    """Return the bytes that an inference moves, times the cost of their memories."""
    return sum(value * memory.cost for memory, value in _moved_by_memory(problem, plan).items())


def _moved_by_block(packing: Packing) -> list[float]:
    """Return the bytes moved by block; a workspace is written and read once."""
    moved = moved_bytes(packing.buffers.problem, packing.buffers.views)
    totals = [2.0 * block.size if block.scratch else 0.0 for block in packing.blocks]
    for name, index in packing.block_of().items():
        totals[index] += moved.get(name, 0)
    return totals


def judge(packing: Packing, offsets: Sequence[int], moved: Sequence[float] | None = None) -> Spread:
    """Rate the addresses of all blocks."""
    memories, moved = packing.buffers.settings.tensor_memories, moved or _moved_by_block(packing)
    cost = sum(value * memories[number_at(memories, offset)].cost for value, offset in zip(moved, offsets, strict=True))
    top = max((offset + block.size for block, offset in zip(packing.blocks, offsets, strict=True)), default=0)
    return Spread(max(0, top - memories[-1].end), cost, top)


def spread(packing: Packing) -> Placement:
    """Return the placement of least cost that was found."""
    blocks, moved = packing.blocks, _moved_by_block(packing)
    if not blocks:
        return Placement((), (), 0)
    sizes, lives = [max(1, block.size) for block in blocks], [block.death - block.birth + 1 for block in blocks]
    keys = (
        lambda i: -moved[i] / sizes[i],
        lambda i: -moved[i] / (sizes[i] * lives[i]),
        lambda i: -moved[i],
        lambda i: -sizes[i],
    )
    ways = [[way] * len(packing.ops) for way in (False, True)]
    starts = [(judge(packing, start[2].offsets, moved), *start) for start in packing.starts(keys, ways)]
    starts.sort(key=lambda start: start[0])
    rng, placements = random.Random(1), []
    for score, order, backwards, placement in starts[:3]:
        for _ in range(min(1500, _WORK // len(blocks) + 20)):
            move = packing.moved(order, backwards, rng.randrange(len(blocks)), rng, 0.3)
            other = packing.first_fit(move.order, move.backwards)
            judged = judge(packing, other.offsets, moved)
            if judged <= score:
                score, order, backwards, placement = judged, move.order, move.backwards, other
        placements.append((score, placement))
    return min(placements, key=lambda each: each[0])[1]
