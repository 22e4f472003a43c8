"""OptimizeReorder: the operator order with the fewest live bytes, then exact overlap."""

from __future__ import annotations

import heapq
from dataclasses import replace

from n2d2py.memory.buffers import Buffers, pop_ready
from n2d2py.memory.overlap import safe_distances
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.relax import relax
from n2d2py.memory.search import best_packing, improve
from n2d2py.memory.settings import Settings

_STATES = 200_000
"""Number of explored sets of executed operators before the given order is kept."""


def plan_reordered(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the smaller plan of the given and the best operator order; the given one on a tie."""
    packing, placement = best_packing(problem, settings, improve)
    ordered = best_order(problem, settings)
    if ordered.ops != problem.ops:
        other, other_placement = best_packing(ordered, settings, improve)
        if other_placement.bytes < placement.bytes:
            packing, placement = other, other_placement
    return packing.plan("OptimizeReorder", relax(packing, placement))


class _Step:
    """An operator with code in the search: buffers by index, bytes that it can save."""

    def __init__(self, op: OpSpec, buffers: Buffers, number: dict):
        tensors = buffers.problem.tensors
        self.output = number[buffers.of[op.output]]
        self.inputs = sorted({number[buffers.of[name]] for name in op.inputs})
        self.gains: list[tuple[int, int, int]] = []
        form = buffers.form(buffers.of[op.output])
        if not buffers.settings.optimize_buffer:
            return
        for name in op.inputs:
            if op.inputs.count(name) == 1 and not buffers.of[name].external:
                distances = safe_distances(op, tensors[name], buffers.geometry(name), 0, tensors[op.output], form, 0)
                if distances is not None:
                    gains = distances.gain(False), distances.gain(True)
                    self.gains.append((number[buffers.of[name]], *gains))


def best_order(problem: MemoryProblem, settings: Settings) -> MemoryProblem:
    """Return the problem with an operator order of the smallest peak of live bytes, overlaps counted.

    Best-first search over the sets of executed operators. The given order stays if the search is cut off, or if an operator
    stores over an input, whose other consumers come before it.
    """
    if any(op.aliased is not None for op in problem.ops):
        return problem
    buffers = Buffers(problem, replace(settings, clock="op"), ())
    distinct = buffers.distinct()
    number = {buffer: i for i, buffer in enumerate(distinct)}
    sizes = [0 if buffer.external else buffers.form(buffer).bytes for buffer in distinct]
    ops = [op for op in problem.ops if op.name not in buffers.views]
    steps = [_Step(op, buffers, number) for op in ops]
    writer = {step.output: i for i, step in enumerate(steps)}
    readers = [0] * len(distinct)
    for i, step in enumerate(steps):
        for source in step.inputs:
            readers[source] |= 1 << i
    needs = [sum(1 << writer[source] for source in step.inputs if source in writer) for step in steps]
    stays = [buffer.is_output for buffer in distinct]
    inputs = [number[buffers.of[name]] for name in problem.inputs]

    def live(done: int) -> int:
        present = list(inputs) + [s.output for i, s in enumerate(steps) if done >> i & 1]
        return sum(sizes[b] for b in dict.fromkeys(present) if stays[b] or readers[b] & ~done)

    def peak(done: int, i: int, before: int) -> int:
        step, after = steps[i], done | 1 << i
        dying = [g for g in step.gains if not stays[g[0]] and not readers[g[0]] & ~after]
        saved = max(sum(g[way] for g in dying) for way in (1, 2)) if dying else 0
        return before + sizes[step.output] - min(sizes[step.output], saved)

    full = (1 << len(steps)) - 1
    seen: dict[int, tuple[int, int]] = {0: (-1, -1)}
    queue = [(live(0), 0, 0)]
    cost = {0: live(0)}
    while queue:
        value, executed, done = heapq.heappop(queue)
        if value > cost[done]:
            continue
        if done == full:
            return _in_order(problem, buffers, ops, seen)
        before = live(done)
        for i in range(len(steps)):
            if done >> i & 1 or needs[i] & ~done:
                continue
            after = done | 1 << i
            largest = max(value, peak(done, i, before))
            if largest < cost.get(after, largest + 1):
                cost[after], seen[after] = largest, (done, i)
                heapq.heappush(queue, (largest, executed - 1, after))
        if len(seen) > _STATES:
            break
    return problem


def _in_order(problem: MemoryProblem, buffers: Buffers, ops: list[OpSpec], seen: dict[int, tuple[int, int]]) -> MemoryProblem:
    """Return the problem in the order that `seen` leads back from; views follow their sources."""
    order, done = [], (1 << len(ops)) - 1
    while done:
        done, i = seen[done]
        order.append(ops[i])
    waiting = [op for op in problem.ops if op.name in buffers.views]
    known, result = set(problem.inputs), []
    for op in [None, *reversed(order)]:
        if op is not None:
            result.append(op)
            known.add(op.output)
        result += pop_ready(waiting, known)
    return replace(problem, ops=tuple(result))
