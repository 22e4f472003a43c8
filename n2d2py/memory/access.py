"""Memory access of operators: the contract between them and the planners.

An operator announces its access by a function under `@memory_access("Kind")`. Kernel contract: output lines are stored in
order, any order inside a line (windows); pointwise operators read all operands of an element before they store it, forwards;
the others may read anything at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import ClassVar

from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import channels, elements
from n2d2py.registry import Registry


class Overlay(Enum):
    """Way in which the output of an operator may lie over an input that dies at it."""

    WINDOW = "lines of the input die one after the other"
    POINTWISE = "element i of the input dies when element i of the output is stored"
    WHOLE = "the input is needed until the last store"
    VIEW = "no code: the output is the input's bytes"


@dataclass(frozen=True)
class TensorSpec:
    """One activation tensor in HWC; a vector is 1 x 1 x C. `element_bytes` is 1, 2, 4 or 8."""

    name: str
    height: int
    width: int
    channels: int
    element_bytes: int = 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)."""
        return self.height, self.width, self.channels

    @property
    def pixel_bytes(self) -> int:
        """Useful bytes of one pixel."""
        return self.channels * self.element_bytes

    @property
    def bytes(self) -> int:
        """Useful bytes of the tensor."""
        return prod(self.shape) * self.element_bytes


@dataclass(frozen=True, kw_only=True)
class Access:
    """In which order an operator reads its inputs and stores its output.

    Attributes:
        by_lines: whether the kernel can make single lines of the output.
        prefers_caller: whether it is faster when its output stays in the buffer of the caller.
        dense: whether its kernel takes each tensor as one run of elements, in the order of memory.
        aliases: number of the input over whose place the output lies exactly, each element of which is read when that of the
            output is stored; None without one. What is said below of inputs is of the others.
    """

    by_lines: bool = True
    prefers_caller: bool = False
    dense: bool = False
    aliases: int | None = None
    overlay: ClassVar[Overlay] = Overlay.WHOLE
    single: ClassVar[str] = ""
    """Name of an operator that reads one tensor only; "" for the others."""

    def over(self, source: TensorSpec, output: TensorSpec) -> Overlay:
        """Way in which the output may lie over `source`."""
        return self.overlay

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        """For each of `lines` lines of the output the lines of `source` that it reads, in ascending order.

        `numbers`: which inputs are `source`.
        """
        raise InternalError(f"{type(self).__name__} does not run row by row")

    def dead(self, numbers: Sequence[int], source: TensorSpec) -> Callable[[int], int]:
        """For an operator of Overlay.WINDOW: y -> how many leading lines of `source` no output line >= y reads."""
        return lambda y: min(source.height, y)

    @property
    def lead(self) -> int:
        """Lines of the output that are stored before the first line of the input dies, as N2D2 counts them, less one."""
        return 0

    def accumulates(self, source: TensorSpec, output: TensorSpec) -> bool:
        """True if the operator can take its input row by row into partial results."""
        return False

    def computed(self, source: TensorSpec, output: TensorSpec) -> int:
        """Multiply-accumulates."""
        return 0

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        """Faults of the access for these inputs and this output; empty when nothing is."""
        return []


@dataclass(frozen=True)
class Window(Access):
    """Each output pixel reads a window of the input, in the channels of its group. Pairs are (vertical, horizontal).

    Attributes:
        pads: lines and columns of zeros at the top, left, bottom, right; negative ones leave out columns, of a window of one pixel lines too.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    overlay: ClassVar[Overlay] = Overlay.WINDOW
    single: ClassVar[str] = "convolution"

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        found, dilation = [], self.dilation[0]
        for y in range(lines):
            first = y * self.stride[0] - self.pads[0]
            skipped = max(0, -(first // dilation))  # taps above the first line
            found.append(range(first + skipped * dilation, min(first + self.kernel[0] * dilation, source.height), dilation))
        return found

    def dead(self, numbers: Sequence[int], source: TensorSpec) -> Callable[[int], int]:
        return lambda y: min(source.height, max(0, y * self.stride[0] - self.pads[0]))

    @property
    def lead(self) -> int:
        return self.pads[0] // self.stride[0]

    def computed(self, source: TensorSpec, output: TensorSpec) -> int:
        return prod(output.shape) * prod(self.kernel) * (source.channels // self.groups)

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        if min(*self.kernel, *self.stride) < 1 or min(self.pads[::2]) < 0 < max(self.kernel) - 1:
            return ["kernel and stride must be at least 1, pads at least 0 above and below but for a window of one pixel"]
        return []


@dataclass(frozen=True)
class PoolWindow(Window):
    """Each output element reads a separate window channel.

    Attributes:
        mode: what is done with the window, for readers of files.
        partial_bytes: bytes of what a channel is reduced to, before the output is computed from it; None for 4.
    """

    mode: str = ""
    partial_bytes: int | None = None
    single: ClassVar[str] = "pool"

    def accumulates(self, source: TensorSpec, output: TensorSpec) -> bool:
        """A pool over the whole input does."""
        return (
            self.kernel == (source.height, source.width)
            and not any(self.pads)
            and (output.height, output.width) == (1, 1)
            and source.height > 1
        )

    def computed(self, source: TensorSpec, output: TensorSpec) -> int:
        return prod(output.shape) * prod(self.kernel)

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        found = super().faults(sources, output)
        if not found and sources[0].channels != output.channels:
            return [f"a pool keeps the channels; {sources[0].channels} in, {output.channels} out"]
        return found


@dataclass(frozen=True)
class Upsample(Access):
    """Each pixel is repeated: `factors` (vertical, horizontal)."""

    factors: tuple[int, int]
    overlay: ClassVar[Overlay] = Overlay.WINDOW
    single: ClassVar[str] = "upsampling"

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        return [range(y // self.factors[0], y // self.factors[0] + 1) for y in range(lines)]

    def dead(self, numbers: Sequence[int], source: TensorSpec) -> Callable[[int], int]:
        return lambda y: min(source.height, y // self.factors[0])

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        source = sources[0]
        if output.shape != (source.height * self.factors[0], source.width * self.factors[1], source.channels):
            return [f"{source.shape} upsampled by {self.factors} is not {output.shape}"]
        return []


Ranges = tuple[tuple[int, int], ...]
"""For each position of an output's axis the range [first, stop) of an input's positions that it reads."""


@dataclass(frozen=True)
class LineTable(Access):
    """Any other operator that goes row by row: for each input the ranges of its lines and of its columns."""

    lines: tuple[Ranges, ...]
    columns: tuple[Ranges, ...]
    overlay: ClassVar[Overlay] = Overlay.WINDOW

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        """As one range of each line, where an operator reads a tensor twice."""
        tables = [self.lines[number] for number in numbers]
        return [
            range(min(first for first, _ in each), max(stop for _, stop in each)) if each else range(0)
            for each in ([pair for pair in pairs if pair[0] < pair[1]] for pairs in zip(*tables, strict=True))
        ]

    def dead(self, numbers: Sequence[int], source: TensorSpec) -> Callable[[int], int]:
        needed, firsts = source.height, []
        for lines in reversed(self.reads(numbers, source, len(self.lines[numbers[0]]))):
            needed = min(needed, lines.start if lines else needed)
            firsts.append(needed)
        firsts.reverse()
        return lambda y: firsts[y] if y < len(firsts) else source.height

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        found = []
        for axis, key in enumerate(("lines", "columns")):
            sizes, tables = [source.shape[axis] for source in sources], getattr(self, key)
            if [len(table) for table in tables] != [output.shape[axis]] * len(sources) or any(
                not 0 <= first <= stop <= size for table, size in zip(tables, sizes, strict=True) for first, stop in table
            ):
                found.append(f"the table of {key} is not one of ranges within each input")
        return found


@dataclass(frozen=True)
class Repacked(LineTable):
    """Each line of the output is that line of the input in other bytes; `unpacks`: in more of them, that hold less each."""

    unpacks: bool = False
    single: ClassVar[str] = "packing"

    @staticmethod
    def of(height: int, width: int, unpacks: bool) -> Repacked:
        """That of tensors of so many lines and columns."""
        lines, columns = (tuple((at, at + 1) for at in range(size)) for size in (height, width))
        return Repacked((lines,), (columns,), unpacks=unpacks)


@dataclass(frozen=True)
class Pointwise(Access):
    """Each output element reads one element of each operand; an operand of another shape is repeated."""

    overlay: ClassVar[Overlay] = Overlay.POINTWISE

    def over(self, source: TensorSpec, output: TensorSpec) -> Overlay:
        """An operand that is repeated is needed to the end."""
        return Overlay.POINTWISE if source.shape == output.shape else Overlay.WHOLE

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        return (
            [] if any(t.shape == output.shape for t in sources) else [f"no operand has the shape {output.shape} of the output"]
        )


@dataclass(frozen=True)
class Concatenated(Access):
    """The inputs one after the other, along channels; `rescales`: the values change and so must be copied."""

    rescales: bool = False
    overlay: ClassVar[Overlay] = Overlay.WINDOW

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        return [range(y, y + 1) for y in range(lines)]

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        if sum(t.channels for t in sources) != output.channels or any(t.shape[:2] != output.shape[:2] for t in sources):
            return [f"{[t.shape for t in sources]} do not concatenate to {output.shape} along channels"]
        return []


@dataclass(frozen=True)
class Whole(Access):
    """Any element of the output may read all of the inputs."""


@dataclass(frozen=True)
class View(Access):
    """The same elements in the same order, perhaps in another shape."""

    overlay: ClassVar[Overlay] = Overlay.VIEW
    single: ClassVar[str] = "view"

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        if prod(sources[0].shape) != prod(output.shape) or sources[0].element_bytes != output.element_bytes:
            return [f"{sources[0].shape} cannot be seen as {output.shape}"]
        return []


@dataclass(frozen=True)
class Joined(Access):
    """The inputs one next to the other, along the columns: each was written where it is."""

    overlay: ClassVar[Overlay] = Overlay.VIEW

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        form = {(t.height, t.channels, t.element_bytes) for t in (*sources, output)}
        if len(form) != 1 or sum(t.width for t in sources) != output.width:
            return [f"{[t.shape for t in sources]} are not the columns of {output.shape}"]
        return []


@dataclass(frozen=True)
class Arrival(Access):
    """Lines of a network input come from outside; a planner's own, no operator's."""


Accessing = Callable[[QuantNode, QuantGraph], Access]
MEMORY_ACCESSES: Registry[Accessing] = Registry("the memory access of", "n2d2py.operators.catalog")
"""Memory accesses of layers by operator kind."""


def memory_access(*kinds: str) -> Callable[[Accessing], Accessing]:
    """Say, as a decorator, how layers of these operator kinds go through memory; a second one for a kind is an InternalError."""

    def register(function: Accessing) -> Accessing:
        for kind in kinds:
            MEMORY_ACCESSES.add(kind, function)
        return function

    return register


def whole(node: QuantNode, graph: QuantGraph) -> Access:
    """The access of an operator any element of whose output may read all of the inputs."""
    return Whole()


def rows(node: QuantNode, graph: QuantGraph) -> Access:
    """The access of an operator on rows of elements in the order of memory, any of which may depend on all of the inputs."""
    return Whole(dense=True)


def pointwise(node: QuantNode, graph: QuantGraph) -> Access:
    """The access of an operator that works element by element."""
    return Pointwise()


def _is_input(graph: QuantGraph, tensor: str) -> bool:
    """True if a tensor is an input of the network, or one in another shape."""
    producer = next((node for node in graph.nodes if tensor in node.outputs), None)
    if producer is None:
        return tensor in graph.inputs
    return producer.op.kind in ("Reshape", "Identity", "Dropout") and _is_input(graph, producer.inputs[0])


def same_order(node: QuantNode, graph: QuantGraph) -> Access:
    """A view where the elements keep their order in HWC memory, as they do where the number of channels stays; else a copy. A copy from an
    input of the network to an output, which are of the caller."""
    if node.output in graph.outputs and _is_input(graph, node.inputs[0]):
        return Whole()
    shapes = [graph.shape(name) for name in (node.inputs[0], node.output)]
    first, second = map(channels, shapes)
    kept = first == second or all(channels(s) == 1 or elements(s) == channels(s) for s in shapes)
    return View() if kept else Whole()
