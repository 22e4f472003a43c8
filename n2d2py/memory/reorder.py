"""OptimizeReorder: the operator order with the fewest live bytes, then exact overlap."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
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
    """The live bytes of sets of executed operators; sets of operators are the bits of a number."""

    def __init__(self, buffers: Buffers, ops: Sequence[OpSpec]):
        distinct = buffers.distinct()
        number = {buffer: i for i, buffer in enumerate(distinct)}
        self.sizes = [0 if buffer.external else buffers.form(buffer).bytes for buffer in distinct]
        self.steps = [_Step(op, buffers, number) for op in ops]
        self.readers = [0] * len(distinct)
        for i, step in enumerate(self.steps):
            for source in step.inputs:
                self.readers[source] |= 1 << i
        writer = {step.output: i for i, step in enumerate(self.steps)}
        self.needs = [sum(1 << writer[source] for source in step.inputs if source in writer) for step in self.steps]
        self.stays = [buffer.is_output for buffer in distinct]
        self.inputs = [number[buffers.of[name]] for name in buffers.problem.inputs]

    def _is_needed(self, buffer: int, done: int) -> bool:
        return self.stays[buffer] or bool(self.readers[buffer] & ~done)

    def live(self, done: int) -> int:
        """Return the bytes of the buffers that later operators or the caller need."""
        present = self.inputs + [step.output for i, step in enumerate(self.steps) if done >> i & 1]
        return sum(self.sizes[buffer] for buffer in dict.fromkeys(present) if self._is_needed(buffer, done))

    def next_peaks(self, done: int) -> Iterator[tuple[int, int]]:
        """Yield each operator that may come next, and the live bytes while it runs."""
        before = self.live(done)
        for i, step in enumerate(self.steps):
            if not (done >> i & 1 or self.needs[i] & ~done):
                dying = [gains for buffer, *gains in step.gains if not self._is_needed(buffer, done | 1 << i)]
                saved = max(map(sum, zip(*dying, strict=True)), default=0)
                yield i, before + self.sizes[step.output] - min(self.sizes[step.output], saved)


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
