"""Workspaces in the arena: bytes that a kernel needs only while its layer runs, placed where no tensor is live.

Tensors are placed first, and workspaces take the holes. If the holes are too small for a layer to run at speed, the arena grows
by at most a tenth, or as far as the layer's form requires.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.plan import MemoryPlan, OpPlan, Scratch
from n2d2py.memory.problem import MemoryProblem

ALIGNMENT = 64
"""Alignment of a workspace in bytes: a cache line, and the largest vector."""
_GROWTH = 10  # an arena grows by at most one part in so many


@dataclass(frozen=True)
class ScratchNeed:
    """Workspace bytes that the kernel of a layer needs for one thread.

    Attributes:
        least: minimum to run at all.
        form: enough for the best kernel form.
        enough: nearly full speed.
        most: more than this has no use.
    """

    least: int
    form: int
    enough: int
    most: int

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.form <= self.enough <= self.most:
            raise ValueError(f"{self} is not in ascending order")


def place_scratch(
    problem: MemoryProblem, plan: MemoryPlan, needs: Mapping[str, ScratchNeed], limit: int | None = None
) -> tuple[MemoryProblem, MemoryPlan]:
    """Return problem and plan with workspaces for the operators of `needs`, each as large as useful in the largest hole. The
    arena grows until each has `enough`, by at most a tenth, and until each has its `form`, up to `limit` bytes. An operator
    with less room than its `least` gets no workspace."""
    holes = _holes_of(plan, [name for name in needs if not plan.op(name).view and plan.op(name).scratch is None])
    if not holes:
        return problem, plan
    before = plan.arena_bytes
    if plan.memories:
        holes = {name: _holes_near_output(problem, plan, name, ranges) for name, ranges in holes.items()}
        top = plan.memories[-1].end  # holes end with their memory
    else:
        tenth = before + before // _GROWTH
        top = max(before, min(tenth, max(_end(holes[name], needs[name].enough) for name in holes)))
        top = max(top, *(_end(holes[name], needs[name].form) for name in holes))
    if limit is not None:
        top = min(top, max(limit, before))
    workspaces: dict[str, Scratch] = {}
    for name, ranges in holes.items():
        begin, size = max(((begin, min(end, top) - begin) for begin, end in ranges), key=lambda hole: (hole[1], -hole[0]))
        if size >= needs[name].least:
            workspaces[name] = Scratch(begin, min(size, needs[name].most))
    ops = dict(plan.ops)
    for name, scratch in workspaces.items():
        ops[name] = replace(ops.get(name, OpPlan()), scratch=scratch)
    arena = max([before, *(each.offset + each.size for each in workspaces.values())])
    specs = tuple(replace(op, scratch_bytes=workspaces[op.name].size) if op.name in workspaces else op for op in problem.ops)
    return replace(problem, ops=specs), replace(plan, ops=ops, arena_bytes=arena, tensor_arena_bytes=before)


def _holes_near_output(
    problem: MemoryProblem, plan: MemoryPlan, name: str, holes: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the holes in an operator's output, or in its input if the caller has the output; empty without any."""
    op = problem.op(name)
    planes = [plan.planes[tensor] for tensor in (op.output, *op.operands)]
    offset = next((plane.offset for plane in planes if not plane.external), 0)
    memory = plan.memories[plan.memory_at(offset)]
    inside = [(max(begin, memory.start), min(end, memory.end)) for begin, end in holes]
    return [(begin, end) for begin, end in inside if begin < end] or [(memory.start, memory.start)]


def _holes_of(plan: MemoryPlan, names: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the `_holes` while each of these operators runs."""
    clocks: dict[str, set[int]] = {name: set() for name in names}
    for step in plan.schedule:
        if step.op in clocks:
            clocks[step.op].add(step.clock)
    used = used_at(plan, sorted(set().union(*clocks.values())))
    holes = {each: holes_between(set().union(*(used[clock] for clock in each))) for each in {*map(frozenset, clocks.values())}}
    return {name: holes[frozenset(each)] for name, each in clocks.items()}


def used_at(plan: MemoryPlan, clocks: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """Return, by clock, the ranges of the arena in use; `clocks` in ascending order."""
    used: dict[int, list[tuple[int, int]]] = {clock: [] for clock in clocks}
    for plane in plan.planes.values():
        for clock in clocks[bisect_left(clocks, plane.alloc) : bisect_right(clocks, plane.release)]:
            used[clock] += plane.intervals()
    scratch = plan.scratch
    for step in plan.schedule:
        if step.op in scratch and step.clock in used:
            one = scratch[step.op]
            used[step.clock].append((one.offset, one.offset + one.size))
    for one in plan.copies.values():
        for clock in clocks[bisect_left(clocks, one.life[0]) : bisect_right(clocks, one.life[1])]:
            used[clock].append((one.copy or 0, (one.copy or 0) + one.bytes))
    return used


def holes_between(used: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of the arena, aligned, next to those that are used; the last one has no end."""
    holes, offset = [], 0
    for begin, end in sorted(used):
        if offset < begin:
            holes.append((offset, begin))
        offset = max(offset, round_up(end, ALIGNMENT))
    return [*holes, (offset, 1 << 62)]


def _end(holes: list[tuple[int, int]], size: int) -> int:
    """Return the end of the first `size` free bytes."""
    return next(begin + size for begin, end in holes if end - begin >= size)
