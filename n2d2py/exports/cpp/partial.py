"""Inference of some of the outputs: what each layer, pointer and step of the schedule is needed for.

The plan of the whole network stays valid. What runs is a part of its order, and with each layer all those that its inputs come
from. So a layer finds its inputs as the whole order leaves them: their writers have run, and of what could have been written
over them since then no more has run than in the whole order, in which nothing was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from n2d2py.exports.cpp.schedule import Part, Turn
from n2d2py.exports.cpp.view import LayerView, PortView
from n2d2py.graph import QuantGraph
from n2d2py.graph.quant import outputs_from

MOST = 64
"""Outputs, or inputs, that have a bit each."""


@dataclass(frozen=True)
class Partial:
    """Bits of outputs: bit i stands for output i.

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
        return "" if bits == self.all else f"wanted.has({literal(bits)})"

    def of_output(self, index: int) -> str:
        """C++ that is true where the output is wanted itself."""
        return f"wanted.has({literal(1 << index)})"

    def of_turn(self, turn: Turn) -> str:
        """`condition` of what a turn makes."""
        return self.condition(_made(turn))

    def of_part(self, part: Part) -> str:
        """`condition` of what a part of the schedule makes."""
        return self.condition(*map(_made, part.turns))


def literal(bits: int) -> str:
    """Bits in C."""
    return f"{bits:#x}u" if bits < 1 << 16 else f"{bits:#x}ull"


def _made(turn: Turn) -> str:
    return turn.view.node.output if isinstance(turn.view, LayerView) else turn.view.name
