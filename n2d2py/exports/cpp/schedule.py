"""The order of the calls in `forward`: layers one after the other, and segments whose layers take turns row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from n2d2py.contracts.cpp import initializer, literal
from n2d2py.errors import InternalError
from n2d2py.exports.cpp.view import LayerView, PortView
from n2d2py.graph import QuantGraph, outputs_from
from n2d2py.memory.plan import MemoryPlan, ScheduleStep
from n2d2py.memory.scratch import used_at

_TURNS, _LINES, _SKIP = 63, 4, 63
"""A turn is a byte: six bits say whose it is, two how many lines it makes, less one. `_SKIP` is nobody's: the next turn
leaves out so many lines first."""


@dataclass(frozen=True)
class Turn:
    """A layer, or an input whose lines arrive, with its index among the layers or inputs of the network."""

    view: LayerView | PortView
    index: int
    arrives: bool

    @property
    def lines(self) -> int:
        """Number of lines that it makes, or takes when it accumulates."""
        return self.view.lines if isinstance(self.view, LayerView) else self.view.height


@dataclass
class Part:
    """A part of the schedule: one turn that runs as a whole, or several in `order`."""

    number: int
    clock: int
    turns: list[Turn] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    """For each turn the line after the last one that it made."""
    skips: bool = False
    """True if a turn leaves out unused lines."""

    @property
    def by_lines(self) -> bool:
        """True if the turns alternate."""
        return bool(self.order)

    @property
    def guarded(self) -> bool:
        """True if it has code that touches the arena."""
        return self.by_lines or not isinstance(self.turns[0].view, LayerView) or self.turns[0].view.has_code

    @property
    def layers(self) -> str:
        """C++ literal of the names of its layers."""
        return literal(", ".join(turn.view.node.name for turn in self.turns if isinstance(turn.view, LayerView)) or "the input")

    @property
    def initializer(self) -> str:
        """The C++ initialiser of the order."""
        return initializer(np.array(self.order, np.uint8), False)

    def add(self, turn: Turn, lines: tuple[int, int]) -> None:
        """Append the lines [first, stop) of `turn`; lines between the last ones and these are left out."""
        number = next((index for index, known in enumerate(self.turns) if known.view is turn.view), len(self.turns))
        if number == len(self.turns):
            self.turns.append(turn)
            self.made.append(0)
        if number >= _TURNS:
            raise InternalError(f"a segment of more than {_TURNS} layers")
        skipped = lines[0] - self.made[number]
        self.skips |= skipped > 0
        self._append(_SKIP, skipped)
        self._append(number, lines[1] - lines[0])
        self.made[number] = lines[1]

    def _append(self, number: int, count: int) -> None:
        while count > 0:
            lines = min(count, _LINES)
            self.order.append(number | (lines - 1) << 6)
            count -= lines


def parts(plan: MemoryPlan, layers: list[LayerView], inputs: list[PortView]) -> list[Part]:
    """Return the parts in order; steps by lines that follow each other at one clock are one part."""
    views = {layer.node.name: Turn(layer, i, False) for i, layer in enumerate(layers)}
    arriving = {port.name: Turn(port, i, True) for i, port in enumerate(inputs)}
    schedule: list[Part] = []
    last: ScheduleStep | None = None
    for step in plan.schedule:
        turn = (arriving if step.arrives else views)[step.op]
        if step.lines is None:
            schedule.append(Part(len(schedule), step.clock, [turn]))
        else:
            if last is None or last.lines is None or last.clock != step.clock:
                schedule.append(Part(len(schedule), step.clock))
            schedule[-1].add(turn, step.lines)
        last = step
    return schedule


def used_ranges(plan: MemoryPlan, clock: int) -> list[tuple[int, int]]:
    """Return the bytes [begin, end) of the arena that are in use at a clock, or in no memory, in ascending order and apart."""
    between = zip(plan.memories, plan.memories[1:], plan.used, strict=False)
    parts = used_at(plan, [clock])[clock] + [(before.start + used, after.start) for before, after, used in between]
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(part for part in parts if part[0] < part[1]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


MOST = 64
"""Outputs, or inputs, that have a bit each."""


@dataclass(frozen=True)
class Partial:
    """Inference of some of the outputs: the outputs that need each layer, pointer and step of the schedule. Bit i is output i.

    The plan of the whole network stays valid. A part of its order runs, and with each layer all those that its inputs come from.
    A layer therefore finds its inputs as the whole order leaves them: their producers have run. Of the layers that could have
    overwritten them since then, no more have run than in the whole order, in which none does.

    Attributes:
        inputs: for each output the inputs that it needs, as bits of these.
        buffers: for each output the outputs whose memory is used on the way to it, itself among them.
        layers: for each layer, in the order of the plan, the outputs that need it.
    """

    tensors: dict[str, int]
    inputs: tuple[int, ...]
    buffers: tuple[int, ...]
    layers: tuple[int, ...]

    @staticmethod
    def of(
        graph: QuantGraph,
        layers: Sequence[LayerView],
        inputs: Sequence[PortView],
        outputs: Sequence[PortView],
        base: Callable[[str], str],
    ) -> Partial:
        """Of a network by its views; `base` gives the pointer that the plane of a tensor is relative to."""
        tensors = outputs_from(graph)
        bases: dict[str, int] = {}
        for name, bits in tensors.items():
            bases[base(name)] = bases.get(base(name), 0) | bits

        def bits_of(needed_for: Sequence[int], output: int) -> int:
            return sum(1 << index for index, bits in enumerate(needed_for) if bits >> output & 1)

        each = range(len(outputs))
        read = [tensors[port.name] for port in inputs]
        used = [1 << index | (bases.get(port.base, 0) if port.external else 0) for index, port in enumerate(outputs)]
        return Partial(
            tensors,
            tuple(bits_of(read, output) for output in each),
            tuple(bits_of(used, output) for output in each),
            tuple(tensors[layer.node.output] for layer in layers),
        )

    @property
    def all(self) -> int:
        """The bits of all outputs."""
        return (1 << len(self.inputs)) - 1

    def condition(self, *names: str) -> str:
        """C++ that is true where a wanted output needs one of the tensors; "" where every output does."""
        bits = 0
        for name in names:
            bits |= self.tensors[name]
        return "" if bits == self.all else f"wanted.has({bit_literal(bits)})"

    def of_output(self, index: int) -> str:
        """C++ that is true where the output is wanted itself."""
        return f"wanted.has({bit_literal(1 << index)})"

    def of_turn(self, turn: Turn) -> str:
        """`condition` of what a turn makes."""
        return self.condition(_made(turn))

    def of_part(self, part: Part) -> str:
        """`condition` of what a part of the schedule makes."""
        return self.condition(*map(_made, part.turns))


def bit_literal(bits: int) -> str:
    """Return the bits in C."""
    return f"{bits:#x}u" if bits < 1 << 16 else f"{bits:#x}ull"


def _made(turn: Turn) -> str:
    return turn.view.node.output if isinstance(turn.view, LayerView) else turn.view.name
