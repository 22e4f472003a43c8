"""Buffers: tensors that share bytes by construction, and their lifetimes.

Every tensor belongs to a buffer: its own, that of the tensor it reshapes, that of a concatenation in place, or that of the
input it overwrites.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from math import lcm

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.access import Concatenated, Joined, View
from n2d2py.memory.plan import PlaneLayout
from n2d2py.memory.problem import MemoryProblem, OpSpec, TensorSpec
from n2d2py.memory.settings import Settings


@dataclass(eq=False)
class Buffer:
    """A root tensor with its parts and reshapes.

    Attributes:
        parts: byte offset of each tensor within a pixel of the root; `columns`: its first column.
        reshaped: tensors that view the bytes in another shape.
        dense: a kernel takes the plane as one contiguous run.
        birth, death: first and last clock of the lifetime, both included.
        external: it lies in a buffer of the caller.
    """

    root: TensorSpec
    parts: dict[str, int]
    columns: dict[str, int] = field(default_factory=dict)
    external: bool = False
    produced: bool = True
    reshaped: set[str] = field(default_factory=set)
    dense: bool = False
    birth: int = -1
    death: int = -1
    readers: list[str] = field(default_factory=list)
    is_output: bool = False

    @property
    def whole(self) -> bool:
        """True if the plane must be contiguous."""
        return self.dense or bool(self.reshaped)


def _needs_runs(op: OpSpec, tensor: TensorSpec) -> bool:
    """True if an operator takes a tensor of several pixels as one contiguous run."""
    return op.access.dense and tensor.height * tensor.width > 1


def concats_in_place(problem: MemoryProblem) -> list[str]:
    """Return the concatenations whose inputs can be written directly into the output. Each input feeds only this concatenation,
    once; is written by an operator that is neither a concatenation nor a reshape nor takes dense planes; is not a network
    output; and keeps its values."""
    writers = {op.output: op for op in problem.ops}
    uses = Counter([*problem.outputs, *(name for op in problem.ops for name in op.inputs)])

    def direct(name: str, output: TensorSpec) -> bool:
        writer = writers.get(name)
        if writer is None or isinstance(writer.access, (Concatenated, View)) or uses[name] != 1:
            return False
        tensor = problem.tensors[name]
        return not _needs_runs(writer, tensor) and tensor.element_bytes == output.element_bytes

    concats = [op for op in problem.ops if isinstance(op.access, Concatenated) and not op.access.rescales]
    return [op.name for op in concats if all(direct(name, problem.tensors[op.output]) for name in op.inputs)]


def dense(tensor: TensorSpec, whole: bool = False) -> PlaneLayout:
    """Return the layout of a tensor without gaps between its pixels."""
    size = tensor.pixel_bytes
    return PlaneLayout(size, size, tensor.width, tensor.height, tensor.element_bytes, whole)


def pop_ready(waiting: list[OpSpec], complete: set[str]) -> Iterator[OpSpec]:
    """Remove and yield the views in `waiting` whose inputs are complete, until none is left; their outputs become complete."""
    while ready := [op for op in waiting if complete.issuperset(op.inputs)]:
        for op in ready:
            waiting.remove(op)
            complete.add(op.output)
            yield op


class Buffers:
    """The buffers of a problem: `of` by tensor name, `clock` and `views` by operator name. `in_place` names the concatenations
    that need no code, out of `concats_in_place`."""

    def __init__(self, problem: MemoryProblem, settings: Settings, in_place: Collection[str]):
        self.problem, self.settings = problem, settings
        self.in_place = set(in_place)
        self.views = self.in_place | problem.views
        self._joins = self.in_place | {op.name for op in problem.ops if isinstance(op.access, Joined)}
        self.clock = self._clocks()
        self.of = self._make()

    def _clocks(self) -> dict[str, int]:
        """Return the clock of each operator: its longest-path depth, or its position among those with code."""
        clocks: dict[str, int] = {}
        depth = dict.fromkeys(self.problem.inputs, -1)
        position = 0
        for op in self.problem.ops:
            depth[op.output] = 1 + max(depth[name] for name in op.inputs)
            clocks[op.name] = depth[op.output] if self.settings.clock == "level" else position
            position += op.name not in self.views
        return clocks

    @property
    def last(self) -> int:
        """The highest clock, -1 without operators."""
        return max(self.clock.values(), default=-1)

    def order(self) -> list[OpSpec]:
        """Return the operators in execution order."""
        return sorted(self.problem.ops, key=lambda op: self.clock[op.name])

    def distinct(self) -> list[Buffer]:
        """Return every buffer once, in the order of first appearance."""
        return list(dict.fromkeys(self.of[name] for name in self.problem.tensors if name in self.of))

    def _make(self) -> dict[str, Buffer]:
        problem, tensors = self.problem, self.problem.tensors
        buffers: dict[str, Buffer] = {}
        for name in problem.inputs:
            outside = not self.settings.include_input or name in problem.state_inputs
            buffers[name] = Buffer(tensors[name], {name: 0}, external=outside, produced=False)
        part_of = {name: op for op in problem.ops if op.name in self._joins for name in op.inputs}
        for op in problem.ops:
            clock, name = self.clock[op.name], op.output
            buffers[name] = self._written(op, buffers, part_of.get(name))
            if op.name not in self.views:
                for source in op.inputs:
                    buffers[source].readers.append(op.name)
            for touched in (name, *op.inputs):
                buffers[touched].death = max(buffers[touched].death, clock)
                buffers[touched].dense |= _needs_runs(op, tensors[touched])
        for name in problem.outputs:
            buffers[name].is_output = True
            buffers[name].death = self.last + 1
        writers = {op.output: op for op in problem.ops}
        for name in problem.outputs:
            if buffers[name].produced:
                buffers[name].external = self._stays_outside(buffers[name], writers[buffers[name].root.name])
        return buffers

    def _written(self, op: OpSpec, buffers: dict[str, Buffer], join: OpSpec | None) -> Buffer:
        name, clock, tensor = op.output, self.clock[op.name], self.problem.tensors[op.output]
        if op.name in self._joins:
            return buffers[op.inputs[0]]
        if isinstance(op.access, View):
            buffer = buffers[op.inputs[0]]
            buffer.parts[name] = 0
            if tensor.shape != buffer.root.shape:
                buffer.reshaped.add(name)
        elif op.aliased is not None:
            buffer = buffers[op.aliased]
            buffer.parts[name] = buffer.parts[op.aliased]
        elif join is not None:
            buffer = next((buffers[t] for t in join.inputs if t in buffers), None) or self._joined_buffer(join, clock)
            buffer.birth = min(buffer.birth, clock)
        else:
            buffer = Buffer(tensor, {name: 0}, birth=clock)
        return buffer

    def _stays_outside(self, buffer: Buffer, writer: OpSpec) -> bool:
        """True if a network output is written directly to the caller. Excluded are parts of concatenations in place, pools with
        partial results, and states."""
        if not set(self.problem.state_outputs).isdisjoint(buffer.parts):
            return False
        if writer.name in self._joins or writer.accumulates(self.problem.tensors) or self.settings.include_output:
            return False
        return self.settings.include_output is False or (not buffer.readers and writer.access.prefers_caller)

    def _joined_buffer(self, join: OpSpec, birth: int) -> Buffer:
        in_columns = isinstance(join.access, Joined)
        starts, start = {}, 0
        for name in join.inputs:
            starts[name] = start
            start += self.problem.tensors[name].width if in_columns else self.problem.tensors[name].pixel_bytes
        parts = {join.output: 0, **(dict.fromkeys(join.inputs, 0) if in_columns else starts)}
        return Buffer(self.problem.tensors[join.output], parts, starts if in_columns else {}, birth=birth)

    def form(self, buffer: Buffer) -> PlaneLayout:
        """Return the layout of a buffer's root; MemoryAlignment rounds the pixel stride of what operators write."""
        root = buffer.root
        stride = root.pixel_bytes
        if buffer.produced and not buffer.whole and not buffer.external:
            step = lcm(self.settings.alignment, root.element_bytes)
            stride = round_up(stride, step)
        return PlaneLayout(root.pixel_bytes, stride, root.width, root.height, root.element_bytes, buffer.whole)

    def geometry(self, name: str) -> PlaneLayout:
        """Return the layout of a tensor in its buffer; reshapes and strips have their own."""
        buffer = self.of[name]
        if name in buffer.reshaped:
            return dense(self.problem.tensors[name], True)
        form = self.form(buffer)
        return replace(form, length=self.problem.tensors[name].width, pitch=form.line) if name in buffer.columns else form

    def offset(self, name: str) -> int:
        """Return the byte of the buffer at which a tensor begins."""
        buffer = self.of[name]
        return buffer.parts[name] + buffer.columns.get(name, 0) * self.form(buffer).stride

    def belongs_to(self, name: str, op: OpSpec) -> bool:
        """True if only `op` reads the bytes of tensor `name`, and only once."""
        buffer = self.of[name]
        return not buffer.external and not buffer.is_output and buffer.readers == [op.name]

    def dies_at(self, name: str, op: OpSpec) -> bool:
        """True if `op` is the last reader of the bytes of tensor `name`, and reads them once; the clock counts operators."""
        buffer = self.of[name]
        if buffer.external or buffer.is_output or buffer.readers.count(op.name) != 1:
            return False
        return max(self.clock[reader] for reader in buffer.readers) == self.clock[op.name]
