"""Runs a planned network on real bytes, with the least convenient order that the kernel contract
allows.

Each operator computes a mixing function of all it reads, so that a single lost byte changes the
outputs. Windows and concatenations take the bytes of a line in random order and store each at once;
pointwise operators go element by element, the others forwards. Lines and elements run backwards
where the plan says so. Slow and simple on purpose: it shares nothing with planner or
checker.
"""

import random

from n2d2py.memory.access import Concatenated, Joined, LineTable, Overlay, Upsample, View
from n2d2py.memory.plan import MemoryPlan, OpPlan, ScheduleStep
from n2d2py.memory.problem import MemoryProblem


def run(problem: MemoryProblem, plan: MemoryPlan | None, seed: int = 0) -> dict[str, bytes]:
    """The bytes of the network outputs; without a plan, every tensor has memory of its own."""
    return _Run(problem, plan, random.Random(seed)).go()


class _Run:
    def __init__(self, problem, plan, rng):
        self.problem, self.plan, self.rng = problem, plan, rng
        self.arena = bytearray(plan.arena_bytes if plan else 0)
        self.own = {name: bytearray(t.bytes) for name, t in problem.tensors.items()}

    def _place(self, name, y, x):
        """(memory, address) of a pixel."""
        t = self.problem.tensors[name]
        if self.plan is None or self.plan.planes[name].external:
            return self.own[name], (y * t.width + x) * t.pixel_bytes
        plane = self.plan.planes[name]
        at = y % (plane.ring_rows or plane.count) * (plane.pitch or plane.stride * plane.length)
        at = plane.offset + at if plane.limit is None or at < plane.limit else plane.wrap_offset + at - plane.limit
        return self.arena, at + x * plane.stride

    def _pixel(self, name, y, x):
        memory, at = self._place(name, y, x)
        return memory[at : at + self.problem.tensors[name].pixel_bytes]

    def _put(self, name, y, x, value):
        memory, at = self._place(name, y, x)
        memory[at : at + len(value)] = value

    def _tensor(self, name):
        t = self.problem.tensors[name]
        return b"".join(bytes(self._pixel(name, y, x)) for y in range(t.height) for x in range(t.width))

    def _fill(self, name, data, rows=None):
        t = self.problem.tensors[name]
        for y in range(*(rows or (0, t.height))):
            for x in range(t.width):
                at = (y * t.width + x) * t.pixel_bytes
                self._put(name, y, x, data[at : at + t.pixel_bytes])

    def go(self):
        source = random.Random(7)
        self.inputs = {
            name: bytes(source.randrange(256) for _ in range(self.problem.tensors[name].bytes)) for name in self.problem.inputs
        }
        for name, data in self.inputs.items():
            self._fill(name, data)
        views = self.plan.views if self.plan else ()
        steps = self.plan.schedule if self.plan else [ScheduleStep(op.name, clock) for clock, op in enumerate(self.problem.ops)]
        if any(step.arrives for step in steps):
            self.arena[:] = self.rng.randbytes(len(self.arena))
        for step in steps:
            name, self.rows = step.op, step.rows
            if step.arrives:
                self._fill(name, self.inputs[name], step.rows)
                continue
            run = self.plan.op(name) if self.plan else OpPlan()
            self.step = -1 if run.backwards else 1
            if step.in_rows:
                self._accumulate(self.problem.op(name), step)
                continue
            if run.scratch is not None:
                scratch = run.scratch
                self.arena[scratch.offset : scratch.offset + scratch.size] = bytes([0xA5]) * scratch.size
            op = self.problem.op(name)
            if isinstance(op.access, Joined):
                if self.plan is None:
                    self._beside(op)
            elif name in views:
                if self.problem.tensors[op.inputs[0]] and self.plan.planes[op.output].external:
                    self._fill(op.output, self._tensor(op.inputs[0]))
            elif isinstance(op.access, Concatenated):
                self._concat(op)
            elif op.access.overlay is Overlay.WINDOW:
                self._window(op)
            elif op.access.overlay is Overlay.POINTWISE:
                self._pointwise(op)
            else:
                self._whole(op)
        return {name: self._tensor(name) for name in self.problem.outputs}

    def _beside(self, op):
        first = 0
        for name in op.inputs:
            t = self.problem.tensors[name]
            for y in range(t.height):
                for x in range(t.width):
                    self._put(op.output, y, first + x, self._pixel(name, y, x))
            first += t.width

    def _lines(self, out):
        return range(*(self.rows or (0, out.height)))[:: self.step]

    def _taps(self, op, y, x):
        a = op.access
        if isinstance(a, LineTable):
            return [
                (name, i, j)
                for name, lines, columns in zip(op.inputs, a.lines, a.columns, strict=True)
                for i in range(*lines[y])
                for j in range(*columns[x])
            ]
        first = op.inputs[0]
        if isinstance(a, Upsample):
            return [(first, y // a.factors[0], x // a.factors[1])]
        taps = [
            (y * a.stride[0] - a.pads[0] + i * a.dilation[0], x * a.stride[1] - a.pads[1] + j * a.dilation[1])
            for i in range(a.kernel[0])
            for j in range(a.kernel[1])
        ]
        t = self.problem.tensors[first]
        return [(first, i, j) for i, j in taps if 0 <= i < t.height and 0 <= j < t.width]

    def _window(self, op):
        out = self.problem.tensors[op.output]
        for y in self._lines(out):
            units = [(x, b) for x in range(out.width) for b in range(out.pixel_bytes)]
            self.rng.shuffle(units)
            for x, b in units:
                value = 17 * b + 1
                for name, i, j in self._taps(op, y, x):
                    for byte in self._pixel(name, i, j):
                        value = (value * 31 + byte) & 0xFFFFFF
                if op.aliased is not None:
                    value = value * 31 + self._pixel(op.aliased, y, x)[b]
                memory, at = self._place(op.output, y, x)
                memory[at + b] = (value ^ value >> 9) & 0xFF

    def _accumulate(self, op, step):
        """The mixture of `_window` with the sum over the lines so far kept in the scratch, every byte of it used."""
        source, out = (self.problem.tensors[n] for n in (op.inputs[0], op.output))
        scratch = self.plan.scratch[op.name]
        begin, end = scratch.offset, scratch.offset + scratch.size
        kept = bytes(self.arena[begin:end]) if step.in_rows[0] else bytes(scratch.size)
        value = int.from_bytes(kept[:3], "little") if kept == (kept[:3] * scratch.size)[: scratch.size] else 999
        for i in range(*step.in_rows):
            for j in range(source.width):
                for byte in self._pixel(op.inputs[0], i, j):
                    value = (value * 31 + byte) & 0xFFFFFF
        self.arena[begin:end] = (value.to_bytes(3, "little") * scratch.size)[: scratch.size]
        if step.commit:
            power = pow(31, source.bytes, 1 << 24)
            memory, at = self._place(op.output, 0, 0)
            for b in range(out.pixel_bytes):
                mixed = ((17 * b + 1) * power + value) & 0xFFFFFF
                memory[at + b] = (mixed ^ mixed >> 9) & 0xFF

    def _pointwise(self, op):
        out = self.problem.tensors[op.output]
        whole = {n: self._tensor(n) for n in op.inputs if self.problem.tensors[n].shape != out.shape}
        for y in self._lines(out):
            for x in range(out.width)[:: self.step]:
                for c in range(out.channels)[:: self.step]:
                    value = c
                    for n in op.inputs:
                        size = self.problem.tensors[n].element_bytes
                        data = self._tensor(n) if n in whole else self._pixel(n, y, x)[c * size : (c + 1) * size]
                        for byte in data:
                            value = (value * 31 + byte) & 0xFFFFFF
                    memory, at = self._place(op.output, y, x)
                    for b in range(out.element_bytes):
                        memory[at + c * out.element_bytes + b] = (value >> b ^ value >> 9) & 0xFF

    def _concat(self, op):
        out = self.problem.tensors[op.output]
        starts, at = [], 0
        for n in op.inputs:
            starts.append(at)
            at += self.problem.tensors[n].channels * out.element_bytes
        for y in self._lines(out):
            units = [(x, i) for x in range(out.width) for i in range(len(op.inputs))]
            self.rng.shuffle(units)
            for x, i in units:
                pixel = bytes(self._pixel(op.inputs[i], y, x))
                memory, start = self._place(op.output, y, x)
                if op.access.rescales:
                    size = self.problem.tensors[op.inputs[i]].channels * out.element_bytes
                    pixel = bytes((sum(pixel) * 7 + b) & 0xFF for b in range(size))
                memory[start + starts[i] : start + starts[i] + len(pixel)] = pixel

    def _whole(self, op):
        out = self.problem.tensors[op.output]
        if isinstance(op.access, View):
            self._fill(op.output, self._tensor(op.inputs[0]))
        else:
            for y in range(out.height):
                for x in range(out.width):
                    value = y * 5 + x
                    for n in op.inputs:
                        for byte in self._tensor(n):
                            value = (value * 31 + byte) & 0xFFFFFF
                    self._put(op.output, y, x, bytes((value >> b % 16) & 0xFF for b in range(out.pixel_bytes)))
