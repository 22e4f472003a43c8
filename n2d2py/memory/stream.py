"""OptimizeStream: segments of operators run row by row through line buffers; nothing is computed twice.

The operators are cut into segments (`cut.py`), then everything is placed, with one clock for each segment.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

from n2d2py.memory.access import Arrival, Joined
from n2d2py.memory.buffers import Buffer, Buffers, pop_ready
from n2d2py.memory.cut import Cutter, Segment
from n2d2py.memory.packing import Block, Packing, Placement
from n2d2py.memory.plan import MemoryPlan, OpPlan, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.relax import relax
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.search import OVERLAP, improve, plan_whole
from n2d2py.memory.settings import Settings

Improve = Callable[[Packing, Placement], Placement]
"""Improvement of a placement, such as by a solver."""


def plan_streamed(
    problem: MemoryProblem, settings: Settings, search: Improve | None = None, pooled: bool = False
) -> MemoryPlan:
    """Return the plan of OptimizeStream: streams as few layers as the budget allows; `search` improves placement."""
    plan = plan_within(problem, settings, search, pooled)
    assert plan is not None
    return plan


def plan_within(
    problem: MemoryProblem,
    settings: Settings,
    search: Improve | None = None,
    pooled: bool = False,
    known: KnownRows | None = None,
    most: int | None = None,
) -> MemoryPlan | None:
    """Return the plan of `plan_streamed`; None if every placement of the best cut is known to exceed `most` bytes. `known`: row
    orders of the same network. Strips that are all alike are placed first, which is far quicker; strips that may differ follow
    where they may be smaller."""
    settings = replace(settings, clock="op", include_input=settings.include_input or settings.stream_input)
    buffers, known = Buffers(problem, settings, ()), known or KnownRows()
    best: tuple[StreamPacking, Placement] | None = None
    for shared in (True, False) if any(isinstance(op.access, Joined) for op in problem.ops) else (False,):
        packing = StreamPacking(buffers, pooled, shared, known)
        if (best is not None and packing.bound >= best[1].bytes) or (most is not None and packing.bound > most):
            continue
        placement = improve(packing)
        if best is None or placement.bytes < best[1].bytes:
            best = packing, placement
    if best is None:
        return None
    packing, placement = best
    return packing.plan("OptimizeStream", relax(packing, placement if search is None else search(packing, placement)))


def plan_pooled(problem: MemoryProblem, settings: Settings) -> MemoryPlan:
    """Return the plan of exact overlap, or one in which convolutions and pools without overlapping windows run row by row, at
    no loss of speed, if that saves at least a twentieth and no sums are fused into convolutions."""
    plan = plan_whole(problem, settings)
    if not settings.optimize_buffer or any(op.aliased for op in problem.ops):
        return plan
    pooled = plan_streamed(problem, settings, pooled=True)
    return replace(pooled, strategy=OVERLAP) if 20 * pooled.arena_bytes <= 19 * plan.arena_bytes else plan


class StreamPacking(Packing):
    """Blocks and pairs of segments: buffers that cross their borders, and line buffers inside. `shared`: every strip is one
    segment, and consecutive segments with the same layers share the bytes of their line buffers."""

    def __init__(self, buffers: Buffers, pooled: bool = False, shared: bool = False, known: KnownRows | None = None):
        self.stream_input, self.pooled, self.shared = buffers.settings.stream_input, pooled, shared
        self.known = known or KnownRows()
        super().__init__(buffers)

    def _collect(self) -> None:
        problem = self.buffers.problem
        inputs = [OpSpec(name, Arrival(), (), name) for name in problem.inputs]
        self.ops = [*(inputs if self.stream_input else []), *self.ops]
        undivided = [number for first, end in self._strips() for number in range(first + 1, end)] if self.shared else []
        self.cutter = Cutter(self.buffers, self.ops, self._up, self.pooled, undivided, self.known)
        self.segments = self.cutter.cut(max(self.buffers.settings.budget, 0))
        self.ends = [segment.end for segment in self.segments]
        self.blocks, index = [], {}
        for numbers in self._alike():
            for names in zip(*(self.segments[number].rings for number in numbers), strict=True):
                rows = {name: self.segments[number].rings[name] for number, name in zip(numbers, names, strict=True)}
                self.rings |= {name: (len(self.blocks), count) for name, count in rows.items()}
                size = max(self._up(count * self.buffers.geometry(name).line) for name, count in rows.items())
                self.blocks.append(Block(size, numbers[0], numbers[-1]))
        for buffer in self.buffers.distinct():
            if not buffer.external and buffer.root.name not in self.rings:
                birth, death = self._segments(buffer)
                index[buffer] = len(self.blocks)
                size = self._up(self.buffers.form(buffer).bytes)
                self.blocks.append(Block(size, birth, death, buffer))
        self.pairs = [
            self._pair(number, index[self.buffers.of[x]], index[self.buffers.of[y]], distances)
            for number, segment in enumerate(self.segments)
            for (x, y), distances in segment.pairs.items()
        ]
        for number, segment in enumerate(self.segments):
            for op in self.ops[segment.begin : segment.end]:
                size = self._up(op.scratch_bytes + segment.partial.get(op.name, 0))
                if size:
                    self.blocks.append(Block(size, number, number, scratch=op.name))

    def _strips(self) -> list[tuple[int, int]]:
        indices = {op.output: number for number, op in enumerate(self.ops)}
        strips = []
        for op in self.buffers.problem.ops:
            if isinstance(op.access, Joined):
                ends = [indices[name] + 1 for name in op.inputs]
                length = ends[1] - ends[0]
                strips += [(end - length, end) for end in ends]
        return strips

    def _alike(self) -> list[list[int]]:
        numbers = range(len(self.segments))
        if not self.shared:
            return [[number] for number in numbers]
        return [list(each) for _, each in groupby(numbers, lambda number: self._layers(self.segments[number]))]

    def _layers(self, segment: Segment) -> list[tuple[str, int, int, int]]:
        """Return a key that strips of the same layers share."""
        ops, tensors = self.ops[segment.begin : segment.end], self.buffers.problem.tensors
        outputs = [tensors[op.output] for op in ops]
        return [(op.layer, y.height, y.channels, segment.rings.get(y.name, 0)) for op, y in zip(ops, outputs, strict=True)]

    def cost(self, number: int) -> int:
        """Return the cost of storing the rows of segment `number` in order: none if it runs row by row anyway."""
        segment = self.segments[number]
        op = self.ops[segment.begin]
        return 0 if segment.rows is not None or isinstance(op.access, Arrival) else op.work(self.buffers.problem.tensors)

    def _segments(self, buffer: Buffer) -> tuple[int, int]:
        """Return first and last segment of a buffer; inputs that do not stream exist from the start."""
        positions = self.cutter.born[buffer], self.cutter.written[buffer], self.cutter.read[buffer]
        segments = [-1 if position < 0 else bisect_right(self.ends, position) for position in positions]
        return segments[0], max(segments)

    def _options(self) -> dict[str, int | str]:
        return {"Clock": "segment", "StreamInput": int(self.stream_input)}

    def _op_plans(self, backwards: set[int], scratch: dict[str, Scratch]) -> dict[str, OpPlan]:
        ops = {name: OpPlan(view=True) for name in self.buffers.views}
        for number, segment in enumerate(self.segments):
            for op in self.ops[segment.begin : segment.end]:
                if isinstance(op.access, Arrival):
                    continue
                workspace = scratch.get(op.name)
                partial = workspace.offset + op.scratch_bytes if workspace is not None and op.name in segment.partial else None
                runs_backwards = segment.rows is None and number in backwards
                ops[op.name] = OpPlan(False, runs_backwards, segment.rows is not None, workspace, partial)
        return ops

    def _life(self, name: str, end: int) -> tuple[int, int]:
        birth, death = self._segments(self.buffers.of[name])
        return birth, len(self.segments) if self.buffers.of[name].is_output else death

    def _schedule(self) -> tuple[ScheduleStep, ...]:
        steps: list[ScheduleStep] = []
        for number, segment in enumerate(self.segments):
            ops = self.ops[segment.begin : segment.end]
            for n, first, stop in segment.runs:
                op = ops[n]
                if op.name in segment.partial:
                    height = self.buffers.problem.tensors[op.inputs[0]].height
                    steps.append(ScheduleStep(op.name, number, in_rows=(first, stop), commit=stop == height))
                else:
                    steps.append(ScheduleStep(op.name, number, rows=(first, stop), arrives=isinstance(op.access, Arrival)))
            if segment.rows is None:
                op, arrives = ops[0], isinstance(ops[0].access, Arrival)
                lines = (0, self.buffers.problem.tensors[op.output].height) if arrives else None
                steps.append(ScheduleStep(op.name, number, rows=lines, arrives=arrives))
        return tuple(self._with_views(steps))

    def _with_views(self, steps: list[ScheduleStep]) -> list[ScheduleStep]:
        """Add each view as soon as its source is complete."""
        problem = self.buffers.problem
        waiting = [op for op in problem.ops if op.name in self.buffers.views]
        last = {step.op: i for i, step in enumerate(steps)}
        complete = set() if self.stream_input else set(problem.inputs)
        outputs = {op.name: op.output for op in problem.ops}
        result = []
        for i, step in enumerate([None, *steps]):
            if step is not None:
                result.append(step)
                if last[step.op] == i - 1:
                    complete.add(outputs.get(step.op, step.op))
            result += [ScheduleStep(op.name, step.clock if step else 0) for op in pop_ready(waiting, complete)]
        return result
