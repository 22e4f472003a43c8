"""OptimizeStream: segments of operators run line by line through line buffers, nothing computed twice.

The operators are cut into segments so that the largest sum of what a segment holds is smallest, and
of equal cuts the one with the fewest streamed operators. Then everything is placed, one clock per segment.
Plans of this kind are for reports: no export runs them yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from n2d2py.memory.buffers import Buffers
from n2d2py.memory.overlap import Reach, reach
from n2d2py.memory.packing import Block, Packing, Placement
from n2d2py.memory.plan import MemoryPlan, Plane, Scratch, Step
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.rows import Rows, streamable
from n2d2py.memory.search import improve
from n2d2py.memory.settings import Settings

__all__ = ["StreamPlanner", "Segment"]

_LONGEST, _LONGEST_OF_MANY, _MANY = 32, 14, 100
"""Operators of a segment at the most; fewer in a network of many."""


@dataclass(frozen=True)
class Segment:
    """Operators [begin, end) of the order; `rows` when they run line by line.

    `bytes`: what is live while it runs, overlaps counted. `pairs`: (input, output) -> safe distances.
    """

    begin: int
    end: int
    rows: Rows | None
    bytes: int
    pairs: dict[tuple[str, str], Reach]


class StreamPlanner:
    """The plan with line buffers; `stream_input`: the network inputs arrive line by line when asked for."""

    name = "OptimizeStream"

    def __init__(self, stream_input: bool = False):
        self.stream_input = stream_input

    def plan(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        """The placement of the best cut, for `check_plan`."""
        settings = replace(settings, clock="op")
        if self.stream_input:
            settings = replace(settings, include_input=True)
        packing = _StreamPacking(Buffers(problem, settings, ()), self.stream_input)
        return packing.plan(self.name, improve(packing))


class _StreamPacking(Packing):
    """Blocks and pairs of segments: buffers that cross their ends, rings that do not."""

    def __init__(self, buffers: Buffers, stream_input: bool):
        self.stream_input = stream_input
        super().__init__(buffers)

    def _collect(self) -> None:
        problem = self.buffers.problem
        inputs = [OpSpec(name, "input", (), name) for name in problem.inputs]
        self.ops = [*(inputs if self.stream_input else []), *self.ops]
        self._clocks()
        self.segments = self._cut()
        self.ring_of: dict[str, int] = {}
        self.blocks, index = [], {}
        for number, segment in enumerate(self.segments):
            for name, rows in (segment.rows.rings if segment.rows else {}).items():
                self.ring_of[name] = len(self.blocks)
                form = self.buffers.geometry(name)
                self.blocks.append(Block(self._up(rows * form.line), number, number))
        for buffer in self.buffers.distinct():
            if not buffer.external and buffer.root.name not in self.ring_of:
                birth, death = self._life(buffer)
                index[buffer] = len(self.blocks)
                size = self._up(self.buffers.form(buffer).bytes)
                self.blocks.append(Block(size, birth, death, buffer))
        self.pairs = [
            self._pair(number, index[self.buffers.of[x]], index[self.buffers.of[y]], found)
            for number, segment in enumerate(self.segments)
            for (x, y), found in segment.pairs.items()
        ]
        for number, segment in enumerate(self.segments):
            for op in self.ops[segment.begin : segment.end]:
                if op.scratch_bytes:
                    size = self._up(op.scratch_bytes)
                    self.blocks.append(Block(size, number, number, scratch=op.name))
        self.cut_of = {
            op.name: number
            for number, segment in enumerate(self.segments)
            for op in self.ops[segment.begin : segment.end]
        }

    def _clocks(self) -> None:
        """The position of each operator, and from them when each buffer is written and last read."""
        buffers = self.buffers
        self.written = {buffer: -1 for buffer in buffers.distinct()}
        self.read = dict.fromkeys(self.written, -1)
        for position, op in enumerate(self.ops):
            self.written[buffers.of[op.output]] = position
            for name in op.inputs:
                self.read[buffers.of[name]] = position
        for buffer in self.written:
            if buffer.is_output:
                self.read[buffer] = len(self.ops)

    def _life(self, buffer) -> tuple[int, int]:
        """First and last segment of a buffer; inputs that do not stream are there from the start."""
        at = [self._segment(p) for p in (self.written[buffer], self.read[buffer])]
        return at[0], max(at)

    def _segment(self, position: int) -> int:
        if position < 0:
            return -1
        for number, segment in enumerate(self.segments):
            if position < segment.end:
                return number
        return len(self.segments)

    def _cut(self) -> list[Segment]:
        """Backwards over the operators: the best first segment from each, and the best rest after it."""
        count = len(self.ops)
        longest = _LONGEST_OF_MANY if count > _MANY else _LONGEST
        best: list[tuple[int, int, Segment | None]] = [(0, 0, None)] * (count + 1)
        for begin in reversed(range(count)):
            found = None
            for end in range(begin + 1, min(count, begin + longest) + 1):
                if end > begin + 1 and not streamable(self.ops[end - 1], self.buffers.problem):
                    break
                segment = self._weigh(begin, end)
                fused = end - begin if end > begin + 1 else 0
                rest = best[end]
                cost = (max(segment.bytes, rest[0]), fused + rest[1])
                if found is None or cost < found[:2]:
                    found = (*cost, segment)
                if not streamable(self.ops[begin], self.buffers.problem):
                    break
            best[begin] = found
        segments, at = [], 0
        while at < count:
            segments.append(best[at][2])
            at = segments[-1].end
        return segments

    def _weigh(self, begin: int, end: int) -> Segment:
        """What is live while the operators [begin, end) run."""
        buffers, ops = self.buffers, self.ops[begin:end]
        live, leaving = 0, set()
        for buffer, written in self.written.items():
            if buffer.external or not written < end or self.read[buffer] < begin:
                continue
            inside = begin <= written
            whole = buffer.whole or len(buffer.parts) > 1
            if inside and (self.read[buffer] >= end or whole or end == begin + 1):
                leaving.add(buffer.root.name)
            if not inside or buffer.root.name in leaving:
                live += self._up(buffers.form(buffer).bytes)
        live += sum(self._up(op.scratch_bytes) for op in ops)
        rows = None
        if end > begin + 1:
            rows = Rows(ops, buffers.problem, leaving | self._unread(ops))
            live += sum(self._up(n * buffers.geometry(t).line) for t, n in rows.rings.items())
        pairs = self._overlaps(begin, end, rows, leaving)
        saved = 0
        if pairs:
            total = sum(self._up(buffers.form(buffers.of[y]).bytes) for y in {y for _, y in pairs})
            gains = [sum(r.gain(way) for r in pairs.values()) for way in (False, True)]
            saved = min(total, max(gains) if rows is None else gains[0])
        return Segment(begin, end, rows, live - saved, pairs)

    def _unread(self, ops: list[OpSpec]) -> set[str]:
        """Results that nothing reads: they must be made all the same."""
        return {op.output for op in ops if self.read[self.buffers.of[op.output]] < 0}

    def _overlaps(
        self, begin: int, end: int, rows: Rows | None, leaving: set[str]
    ) -> dict[tuple[str, str], Reach]:
        """Outputs of the segment over inputs that die in it: each input with the best output."""
        buffers = self.buffers
        if not buffers.settings.optimize_buffer:
            return {}
        tensors, found = buffers.problem.tensors, {}
        ops = self.ops[begin:end]
        sources = dict.fromkeys(name for op in ops for name in op.inputs)
        for x in sources:
            source = buffers.of[x]
            dies = self.written[source] < begin and self.read[source] < end
            if source.external or not dies or x in source.reshaped:
                continue
            form = buffers.form(source)
            for op in ops:
                if op.output not in leaving or buffers.of[op.output] is source:
                    continue
                out = buffers.form(buffers.of[op.output])
                if rows is None:
                    if op.inputs.count(x) == 1:
                        near = reach(op, tensors[x], form, 0, tensors[op.output], out, 0)
                        if near is not None:
                            found[x, op.output] = near
                elif not source.whole:
                    ahead = max(rows.ahead(x, form.line, op.output, out.line), -out.bytes)
                    found[x, op.output] = Reach(ahead, form.bytes, form.bytes, out.bytes)
        return found

    def plan(self, strategy: str, placement: Placement) -> MemoryPlan:
        """The plan of a placement: lines of a segment that follow each other in one step."""
        buffers, tensors = self.buffers, self.buffers.problem.tensors
        at = {block.buffer: o for block, o in zip(self.blocks, placement.offsets) if block.buffer}
        backwards = {
            self.segments[pair.op].begin
            for pair in self.pairs
            for distance in [placement.offsets[pair.output] - placement.offsets[pair.source]]
            if pair.reach.ahead < distance < pair.reach.source
        }
        planes = {}
        for name, buffer in buffers.of.items():
            form, tensor = buffers.geometry(name), tensors[name]
            ring = self.ring_of.get(name)
            birth, death = self._life(buffer)
            offset = 0
            if not buffer.external:
                offset = placement.offsets[ring] if ring is not None else at[buffer]
            segment = self.segments[birth] if ring is not None else None
            planes[name] = Plane(
                offset,
                tensor.pixel_bytes,
                tensor.pixel_bytes if buffer.external else form.stride,
                form.length,
                form.count,
                birth,
                len(self.segments) if buffer.is_output else death,
                external=buffer.external,
                backwards=self.written[buffer] in backwards,
                ring_rows=segment.rows.rings[name] if segment else None,
            )
        tops = [
            offset + (buffers.form(block.buffer).bytes if block.buffer else block.size)
            for block, offset in zip(self.blocks, placement.offsets)
        ]
        scratch = {
            block.scratch: Scratch(offset, block.size)
            for block, offset in zip(self.blocks, placement.offsets)
            if block.scratch
        }
        options = {
            **buffers.settings.by_export_name(),
            "Clock": "segment",
            "StreamInput": int(self.stream_input),
        }
        return MemoryPlan(
            strategy, max(tops, default=0), planes, self._schedule(backwards), scratch, options, self.bound
        )

    def _schedule(self, backwards: set[int]) -> tuple[Step, ...]:
        steps: list[Step] = []
        for number, segment in enumerate(self.segments):
            ops = self.ops[segment.begin : segment.end]
            runs: list[list[int]] = []
            for n, line in segment.rows.events if segment.rows else []:
                if runs and runs[-1][0] == n:
                    runs[-1][2] = line + 1
                else:
                    runs.append([n, line, line + 1])
            for n, first, stop in runs:
                op = ops[n]
                steps.append(Step(op.name, number, rows=(first, stop), arrives=op.type == "input"))
            if not segment.rows:
                op = ops[0]
                lines = (0, self.buffers.problem.tensors[op.output].height)
                steps.append(
                    Step(op.name, number, rows=lines, arrives=True)
                    if op.type == "input"
                    else Step(op.name, number, backwards=segment.begin in backwards)
                )
        return tuple(self._with_views(steps))

    def _with_views(self, steps: list[Step]) -> list[Step]:
        """Views as soon as what they see is complete."""
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
            ready = [op for op in waiting if complete.issuperset(op.inputs)]
            while ready:
                for op in ready:
                    waiting.remove(op)
                    complete.add(op.output)
                    result.append(Step(op.name, step.clock if step else 0, True))
                ready = [op for op in waiting if complete.issuperset(op.inputs)]
        return result
