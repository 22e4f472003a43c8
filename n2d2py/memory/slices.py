"""Slices of channels: layers that end in a pool over the whole map, some channels at a time.

A convolution, functions of its elements and the pool over all of its map make some channels from start to end, then the next ones: nothing
is computed twice, and the lines between them, and the sums of the pool, are as thin as a slice. Each slice is a convolution with its
part of the weights; a concatenation joins what the pools leave, a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from n2d2py.memory.access import Concatenated, Pointwise, PoolWindow, TensorSpec, Window
from n2d2py.memory.problem import MemoryProblem, OpSpec

Channels = tuple[int, int]
"""Channels [first, stop) of a tensor."""
_STEP = 16
"""Channels of a slice are multiples of these, but for the last one: whole vectors of the kernels."""
_MOST = 16
"""Slices."""


def slice_name(name: str, number: int) -> str:
    """The name of an operator, or tensor, in slice `number`."""
    return f"{name}.slice{number}"


@dataclass(frozen=True)
class SliceCut:
    """A segment of operators that is cut into slices of channels.

    Attributes:
        ops: the names of its operators, which follow each other, each the only reader of the one before.
        slices: the channels of each slice, which every tensor that they write has.
    """

    ops: tuple[str, ...]
    slices: tuple[Channels, ...]

    @property
    def count(self) -> int:
        """The number of slices."""
        return len(self.slices)

    def rewritten(self, problem: MemoryProblem, tensors: dict[str, TensorSpec]) -> list[OpSpec]:
        """Its operators slice by slice, whose outputs are added to `tensors`, and what joins them."""
        known = {op.name: op for op in problem.ops}
        members = [known[name] for name in self.ops]
        found, inner = [], {op.output for op in members}
        for number, (first, stop) in enumerate(self.slices):
            for op in members:
                name = slice_name(op.output, number)
                tensors[name] = replace(problem.tensors[op.output], name=name, channels=stop - first)
                inputs = tuple(slice_name(each, number) if each in inner else each for each in op.inputs)
                found.append(replace(op, name=slice_name(op.name, number), inputs=inputs, output=name))
        names = tuple(slice_name(members[-1].output, number) for number in range(self.count))
        return [*found, OpSpec(members[-1].name, Concatenated(), names, members[-1].output, layer="Concat")]


def divisions(channels: int) -> list[tuple[Channels, ...]]:
    """The ways to cut so many channels, from few slices to many."""
    sizes = dict.fromkeys(-(-channels // (count * _STEP)) * _STEP for count in range(2, _MOST + 1))
    ways = [tuple((at, min(at + size, channels)) for at in range(0, channels, size)) for size in sizes]
    return [way for way in ways if len(way) > 1]


def sliced_from(ops: Sequence[OpSpec], tensors: dict[str, TensorSpec]) -> int | None:
    """The number of the convolution from which on operators, the last of which is a pool over its whole input, can be in slices; None
    where there is none."""
    if len(ops) < 2 or not ops[-1].accumulates(tensors):
        return None
    for number in reversed(range(len(ops) - 1)):
        op = ops[number]
        if op.output != ops[number + 1].inputs[0] or op.scratch_bytes or op.aliased is not None:
            return None
        if isinstance(op.access, Window) and not isinstance(op.access, PoolWindow):
            return number if op.access.groups == 1 else None
        if not isinstance(op.access, Pointwise) or len(op.inputs) > 1:
            return None
    return None
