"""Memory access of operators: the contract between operators and planners, declared under `@memory_access("Kind")`.

Window operators store output rows in order, with any order inside a row. Pointwise operators read all operands of an element
before they store it, forwards. Other operators, which need no declaration, may read anything at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import ClassVar

from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode, channels, elements
from n2d2py.registry import Registry


class Overlay(Enum):
    """Kind of overlap of an output with an input after its last use."""

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
    """Order in which an operator reads its inputs and stores its output.

    Attributes:
        by_lines: the kernel can compute single rows of the output.
        prefers_caller: it is faster if the output stays in the buffer of the caller.
        dense: the kernel takes each tensor as one contiguous run of elements.
        aliases: index of the input that the output replaces in place, element by element; None without one. Other statements
            about inputs exclude it.
    """

    by_lines: bool = True
    prefers_caller: bool = False
    dense: bool = False
    aliases: int | None = None
    overlay: ClassVar[Overlay] = Overlay.WHOLE
    single: ClassVar[str] = ""
    """Name of an operator that reads one tensor only; "" for the others."""

    def over(self, source: TensorSpec, output: TensorSpec) -> Overlay:
        """Return how the output may overlap `source`."""
        return self.overlay

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        """Return, for each of `lines` output rows, the rows of `source` that it reads, in ascending order. `numbers`: the
        inputs that are `source`."""
        raise InternalError(f"{type(self).__name__} does not run row by row")

    def accumulates(self, source: TensorSpec, output: TensorSpec) -> bool:
        """True if the operator can accumulate its input row by row in partial results."""
        return False

    def computed(self, source: TensorSpec, output: TensorSpec) -> int:
        """Return the number of multiply-accumulates."""
        return 0

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        """Return the errors of the access for these inputs and this output."""
        return []


@dataclass(frozen=True)
class Window(Access):
    """Each output pixel reads a window of the input, in the channels of its group. Pairs are (vertical, horizontal). `pads`:
    rows and columns of zeros at the top, left, bottom, right; negative ones crop columns and, with a kernel of one pixel,
    rows."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    overlay: ClassVar[Overlay] = Overlay.WINDOW
    single: ClassVar[str] = "convolution"

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        ranges, dilation = [], self.dilation[0]
        for y in range(lines):
            first = y * self.stride[0] - self.pads[0]
            skipped = max(0, -(first // dilation))  # taps above the first line
            ranges.append(range(first + skipped * dilation, min(first + self.kernel[0] * dilation, source.height), dilation))
        return ranges

    def computed(self, source: TensorSpec, output: TensorSpec) -> int:
        return prod(output.shape) * prod(self.kernel) * (source.channels // self.groups)

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        if min(*self.kernel, *self.stride) < 1 or min(self.pads[::2]) < 0 < max(self.kernel) - 1:
            return ["kernel and stride must be at least 1, pads at least 0 above and below but for a window of one pixel"]
        return []


@dataclass(frozen=True)
class PoolWindow(Window):
    """Each output element reads a window of one channel. `mode`: its reduction, for readers of the files. `partial_bytes`:
    bytes of a channel's partial result; None for 4."""

    mode: str = ""
    partial_bytes: int | None = None
    single: ClassVar[str] = "pool"

    def accumulates(self, source: TensorSpec, output: TensorSpec) -> bool:
        """True for a pool over the whole input."""
        is_whole = self.kernel == (source.height, source.width) and not any(self.pads)
        return is_whole and source.height > 1 and output.height == output.width == 1

    def computed(self, source: TensorSpec, output: TensorSpec) -> int:
        return prod(output.shape) * prod(self.kernel)

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        problems = super().faults(sources, output)
        if not problems and sources[0].channels != output.channels:
            return [f"a pool keeps the channels; {sources[0].channels} in, {output.channels} out"]
        return problems


@dataclass(frozen=True)
class Upsample(Access):
    """Each pixel is repeated: `factors` (vertical, horizontal)."""

    factors: tuple[int, int]
    overlay: ClassVar[Overlay] = Overlay.WINDOW
    single: ClassVar[str] = "upsampling"

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        return [range(y // self.factors[0], y // self.factors[0] + 1) for y in range(lines)]

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        source = sources[0]
        if output.shape != (source.height * self.factors[0], source.width * self.factors[1], source.channels):
            return [f"{source.shape} upsampled by {self.factors} is not {output.shape}"]
        return []


Ranges = tuple[tuple[int, int], ...]
"""For each position of an output axis, the range [first, stop) of input positions that it reads."""


@dataclass(frozen=True)
class LineTable(Access):
    """Any other operator that runs row by row: for each input, the ranges of rows and columns."""

    lines: tuple[Ranges, ...]
    columns: tuple[Ranges, ...]
    overlay: ClassVar[Overlay] = Overlay.WINDOW

    def reads(self, numbers: Sequence[int], source: TensorSpec, lines: int) -> list[range]:
        """Merge the ranges of an operator that reads a tensor twice."""
        tables = [self.lines[number] for number in numbers]
        return [
            range(min(first for first, _ in each), max(stop for _, stop in each)) if each else range(0)
            for each in ([pair for pair in pairs if pair[0] < pair[1]] for pairs in zip(*tables, strict=True))
        ]

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        problems = []
        for axis, key in enumerate(("lines", "columns")):
            sizes, tables = [source.shape[axis] for source in sources], getattr(self, key)
            if [len(table) for table in tables] != [output.shape[axis]] * len(sources) or any(
                not 0 <= first <= stop <= size for table, size in zip(tables, sizes, strict=True) for first, stop in table
            ):
                problems.append(f"the table of {key} is not one of ranges within each input")
        return problems


@dataclass(frozen=True)
class Repacked(LineTable):
    """Each output row holds the elements of the input row in other bytes; `unpacks`: in more bytes of fewer elements."""

    unpacks: bool = False
    single: ClassVar[str] = "packing"

    @staticmethod
    def of(height: int, width: int, unpacks: bool) -> Repacked:
        """Return the access for tensors of this height and width."""
        lines, columns = (tuple((index, index + 1) for index in range(size)) for size in (height, width))
        return Repacked((lines,), (columns,), unpacks=unpacks)


@dataclass(frozen=True)
class Pointwise(Access):
    """Each output element reads one element of each operand; operands of other shapes are broadcast."""

    overlay: ClassVar[Overlay] = Overlay.POINTWISE

    def over(self, source: TensorSpec, output: TensorSpec) -> Overlay:
        """Return WHOLE for a broadcast operand, which is needed until the end."""
        return Overlay.POINTWISE if source.shape == output.shape else Overlay.WHOLE

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        has_shape = any(t.shape == output.shape for t in sources)
        return [] if has_shape else [f"no operand has the shape {output.shape} of the output"]


@dataclass(frozen=True)
class Concatenated(Access):
    """Inputs are concatenated along channels; `rescales`: values change, so they must be copied."""

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
    """Any output element may read all inputs."""


@dataclass(frozen=True)
class View(Access):
    """The same elements in the same order, possibly in another shape."""

    overlay: ClassVar[Overlay] = Overlay.VIEW
    single: ClassVar[str] = "view"

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        if prod(sources[0].shape) != prod(output.shape) or sources[0].element_bytes != output.element_bytes:
            return [f"{sources[0].shape} cannot be seen as {output.shape}"]
        return []


@dataclass(frozen=True)
class Joined(Access):
    """Inputs are adjacent columns, each written in place."""

    overlay: ClassVar[Overlay] = Overlay.VIEW

    def faults(self, sources: list[TensorSpec], output: TensorSpec) -> list[str]:
        form = {(t.height, t.channels, t.element_bytes) for t in (*sources, output)}
        if len(form) != 1 or sum(t.width for t in sources) != output.width:
            return [f"{[t.shape for t in sources]} are not the columns of {output.shape}"]
        return []


@dataclass(frozen=True)
class Arrival(Access):
    """Rows of a network input arrive from outside; used by planners only."""


Accessing = Callable[[QuantNode, QuantGraph], Access]
MEMORY_ACCESSES: Registry[Accessing] = Registry("the memory access of", "n2d2py.operators.catalog")
"""Declared memory accesses of layers by operator kind."""
memory_access = MEMORY_ACCESSES.declare
"""Decorator that registers the memory access of operator kinds."""


def access_of(node: QuantNode, graph: QuantGraph) -> Access:
    """Return the memory access of a layer; without a declared one, each output element may depend on all inputs."""
    declared = MEMORY_ACCESSES.get(node.op.kind)
    return declared(node, graph) if declared else Whole()


def rows(node: QuantNode, graph: QuantGraph) -> Access:
    """Return the access of an operator on contiguous rows, each of which may depend on all inputs."""
    return Whole(dense=True)


def pointwise(node: QuantNode, graph: QuantGraph) -> Access:
    """Return the access of an element-wise operator."""
    return Pointwise()


def _is_input(graph: QuantGraph, tensor: str) -> bool:
    """True if a tensor is a network input or a reshaped one."""
    producer = next((node for node in graph.nodes if tensor in node.outputs), None)
    if producer is None:
        return tensor in graph.inputs
    return producer.op.kind in ("Reshape", "Identity", "Dropout") and _is_input(graph, producer.inputs[0])


def same_order(node: QuantNode, graph: QuantGraph) -> Access:
    """Return a view if elements keep their order in HWC memory, which they do if the number of channels stays; else a copy. A
    copy also connects a network input to a network output, because both belong to the caller."""
    if node.output in graph.outputs and _is_input(graph, node.inputs[0]):
        return Whole()
    shapes = [graph.shape(name) for name in (node.inputs[0], node.output)]
    first, second = map(channels, shapes)
    same = first == second or all(channels(s) == 1 or elements(s) == channels(s) for s in shapes)
    return View() if same else Whole()
