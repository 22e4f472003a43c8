"""View of a network for the templates of the C++ project: one view per tensor, array and layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.exact import round_up
from n2d2py.arithmetic.fixed_scale import FixedScale
from n2d2py.contracts.cpp import FAMILIES, Array, LayerCode, LayerForm, comment, dispatched, literal
from n2d2py.contracts.cpp.arrays import file_bytes, initializer, is_file, is_string
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.graph import QuantGraph, QuantNode, Shape, channels, elements, height, layer_macs, width
from n2d2py.memory.plan import Plane
from n2d2py.postprocessing import Detector, PostProcessor


def _initializer(name: str, operation: str, shape: Shape, kind: NumType) -> str:
    """Return the `tensor` struct of the C interface."""
    low, high = (0, 0) if kind.is_float or kind.plain else (kind.qmin, kind.qmax)
    return (
        f"{{{literal(name)}, {literal(operation)}, {literal(kind.name)}, {kind.bytes}, {len(shape)}, "
        f"{height(shape)}, {width(shape)}, {channels(shape)}, {kind.scale!r}, {kind.zero_point}, {low}, {high}}}"
    )


def _describe(name: str, shape: Shape, kind: NumType) -> str:
    return f"{comment(name)}: {height(shape)} x {width(shape)} x {channels(shape)}, {kind.name}"


@dataclass(frozen=True)
class PortView:
    """An input or an output of the network.

    Attributes:
        role, number: "input" or "output", and its number, "" for the only one.
        plane: name of its plane struct; `memory` is the plane itself.
    """

    role: str
    number: str
    name: str
    shape: Shape
    type: NumType
    plane: str
    memory: Plane

    @property
    def variable(self) -> str:
        return self.role + self.number

    @property
    def struct(self) -> str:
        return self.variable.capitalize()

    @property
    def typedef(self) -> str:
        return f"{self.variable}_t"

    @property
    def label(self) -> str:
        return comment(self.name)

    @property
    def height(self) -> int:
        return height(self.shape)

    @property
    def width(self) -> int:
        return width(self.shape)

    @property
    def channels(self) -> int:
        return channels(self.shape)

    @property
    def elements(self) -> int:
        return elements(self.shape)

    @property
    def is_row(self) -> bool:
        """True if its values belong to one position."""
        return self.elements == self.channels

    @property
    def c_type(self) -> str:
        return self.type.cpp.removeprefix("std::")

    @property
    def real(self) -> str:
        """C++ type of the real numbers that it stands for."""
        return "double" if self.type.is_float and self.type.bits == 64 else "float"

    @property
    def scale_text(self) -> str:
        return repr(float(self.type.scale))

    @property
    def external(self) -> bool:
        """True if it stays in the caller's buffer."""
        return self.memory.external

    @property
    def in_one_piece(self) -> bool:
        """True if it lies in the arena exactly as the caller's buffer would."""
        whole = self.memory.contiguous and self.memory.stride == self.memory.size
        return whole and not self.external and not self.memory.memory

    @property
    def base(self) -> str:
        """The pointer in `execute` that its plane is relative to."""
        return f"{self.variable}_base" if self.external else arena_of(self.memory)

    @property
    def initializer(self) -> str:
        return _initializer(self.name, "", self.shape, self.type)


def arena_of(plane: Plane) -> str:
    """Return the pointer in C++ that the offsets of a plane are relative to: the caller's arena, or another memory."""
    return f"memory_{plane.memory.lower()}" if plane.memory else "arena"


@dataclass(frozen=True, eq=False)
class Written:
    """Form of written values: `text` right of the equals sign, or a file of `values`; `length` counts the zero that ends a string."""

    length: int
    text: str
    is_string: bool = False
    values: np.ndarray | None = None

    @staticmethod
    def of(values: np.ndarray, weights_format: str) -> Written:
        """By the export parameter WeightsFormat, or "inline" for its choice without files."""
        if is_file(values, weights_format):
            return Written(values.size, "", values=values)
        as_string = is_string(values, weights_format)
        return Written(values.size + as_string, initializer(values, as_string), as_string)

    @property
    def is_file(self) -> bool:
        return self.values is not None


@dataclass(frozen=True)
class FormView:
    """A form of a constant array. No form is derived.

    Attributes:
        families: the condition of the processors that choose one of its sets when a program starts; "" where none does.
        place: the namespace of the constant in such a program.
        file: its name; "" without files.
    """

    where: str
    written: Written
    families: str
    place: str
    file: str
    derivation: str = ""

    @staticmethod
    def of(form: LayerForm, weights_format: str, name: str, number: int) -> FormView:
        """Form `number` of the array `name` by the export parameter WeightsFormat."""
        written = Written.of(form.values, weights_format)
        families = {row.family for row in dispatched() if row.name in form.sets}
        where = " || ".join(f"({one.condition})" for one in FAMILIES if one.name in families)
        return FormView(form.where, written, where, f"form_{number}", f"{name}_{number}.bin" if written.is_file else "")


@dataclass(frozen=True)
class ArrayView:
    """A constant array; `forms` are those for instruction sets, where these are others; `where`, `derivation` and `apart` as in `Array`. `file`
    as in `FormView`."""

    name: str
    ctype: str
    written: Written
    forms: tuple[FormView, ...] = ()
    where: str = ""
    file: str = ""
    derivation: str = ""
    apart: bool = False

    @staticmethod
    def of(array: Array, weights_format: str) -> ArrayView:
        """`array` by the export parameter WeightsFormat."""
        if array.apart:
            return ArrayView(array.name, array.ctype, Written(array.values.size, ""), apart=True)
        written = Written.of(array.values, weights_format)
        forms = (FormView.of(form, weights_format, array.name, number) for number, form in enumerate(array.forms, 1))
        file = f"{array.name}.bin" if written.is_file else ""
        return ArrayView(array.name, array.ctype, written, tuple(forms), array.where, file, array.derivation)

    @property
    def files(self) -> dict[str, np.ndarray]:
        """The values of its files by name, but for those that the build derives."""
        own = () if self.derivation else (self,)
        return {one.file: one.written.values for one in (*own, *self.forms) if one.written.values is not None}

    def write_files(self, folder: Path) -> None:
        """Write its files."""
        for name, values in self.files.items():
            (folder / name).write_bytes(file_bytes(values))

    @property
    def is_string(self) -> bool:
        return self.written.is_string or any(form.written.is_string for form in self.forms)

    @property
    def chosen(self) -> list[FormView]:
        """The forms next to the portable one in a binary that chooses its instruction set when it starts."""
        return [form for form in self.forms if form.families]


@dataclass(frozen=True)
class CopyView:
    """A copy of the constant `name` in the arena, at `offset`, which a layer reads."""

    name: str
    ctype: str
    offset: int


@dataclass(frozen=True)
class LayerView:
    """A layer in its place in the schedule.

    Attributes:
        code: its C++, or None where its result is in place without code.
        stem: name of its files without ending.
        bases: for each input, the pointer in `execute` that its plane is relative to.
        base: that of the output.
        plane: the plane struct of the output.
        skipped: lines of the output that are not made, as no layer reads them.
        copy: the constant that it reads from a copy; None without one.
    """

    node: QuantNode
    graph: QuantGraph
    code: LayerCode | None
    identifier: str
    stem: str
    bases: tuple[str, ...]
    base: str
    plane: str
    skipped: int = 0
    copy: CopyView | None = None

    @property
    def name(self) -> str:
        return comment(self.node.name)

    @property
    def title(self) -> str:
        """C++ literal of its name, and that of the layer whose residual sum it computes too."""
        return literal(self.node.name + (f"+{self.node.residual.layer}" if self.node.residual else ""))

    @property
    def operation(self) -> str:
        return self.node.op.kind

    @property
    def has_code(self) -> bool:
        return self.code is not None

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the lines that are made; 0 where the result is in place without code."""
        return int(layer_macs(self.graph, self.node)) * self._made // self._height if self.code else 0

    @property
    def _height(self) -> int:
        return height(self.graph.shape(self.node.output))

    @property
    def _made(self) -> int:
        """Lines of the output that are made."""
        return self._height - self.skipped

    @property
    def bytes(self) -> int:
        """Bytes that the layer has to read and write once: constants, inputs and output."""
        if self.code is None:
            return 0
        read = sum(self._bytes(name) for name in self.node.inputs)
        written = self._bytes(self.node.output) * self._made // self._height
        return read + written + sum(array.bytes for array in self.code.arrays)

    def _bytes(self, tensor: str) -> int:
        return elements(self.graph.shape(tensor)) * self.graph.type(tensor).bytes

    @property
    def work(self) -> str:
        """Multiply-accumulates, bytes, and the multiplications that the kernel of the instruction set makes, as C++ expressions."""
        size, multiplied = f"{self.bytes}.0", f"{self.macs}.0"
        if self.code is not None and (form := self.code.winograd) and form.sets:
            size = f"{size} + {self.code.added}"
            columns = width(self.graph.shape(self.node.output))
            multiplied = f"{form.where} ? {form.products((self._made, columns))}.0 : {multiplied}"
        return f"{self.macs}.0, {size}, {multiplied}"

    @property
    def arguments(self) -> str:
        copies = [f"reinterpret_cast<const {one.ctype}*>(arena + {one.offset})" for one in (self.copy,) if one]
        return ", ".join((*self.bases, self.base, *copies))

    @property
    def streamed(self) -> bool:
        """True if its function makes some lines at a time."""
        return self.code is not None and self.code.streamed

    @property
    def accumulates(self) -> bool:
        """True if the lines are those of its input."""
        return self.code is not None and self.code.run.partial is not None

    @property
    def lines(self) -> int:
        """Number of lines that it makes, or takes when it accumulates."""
        return height(self.graph.shape(self.node.inputs[0] if self.accumulates else self.node.output))

    @property
    def prototype(self) -> str:
        bases = [f"const unsigned char* in{i}" for i in range(len(self.bases))]
        copies = [f"const {one.ctype}* {one.name}_copy" for one in (self.copy,) if one]
        return ", ".join([*bases, "unsigned char* out", *copies, *(["int first, int stop"] if self.streamed else [])])

    @property
    def source_text(self) -> str:
        merged = [name for name in self.node.source if name != self.node.name]
        return f", with {comment(', '.join(merged))}" if merged else ""

    @property
    def input_text(self) -> str:
        return "; ".join(_describe(name, self.graph.shape(name), self.graph.type(name)) for name in self.node.inputs)

    @property
    def output_text(self) -> str:
        name = self.node.output
        return _describe(name, self.graph.shape(name), self.graph.type(name))

    @property
    def initializer(self) -> str:
        name = self.node.output
        return _initializer(self.node.name, self.operation, self.graph.shape(name), self.graph.type(name))


@dataclass(frozen=True)
class PostView:
    """A post-processing as the templates see it.

    Attributes:
        post: its numbers.
        outputs: those of the network.
    """

    post: PostProcessor
    outputs: Sequence[PortView]

    @property
    def ports(self) -> list[PortView]:
        """The outputs that it reads, in the order of the parameters of its functions."""
        return [self.outputs[index] for index in sorted(set(self.post.config.reads.values()))]

    @property
    def values(self) -> dict[str, PortView]:
        """The output of each type of the configuration."""
        return {name: self.outputs[index] for name, index in self.post.config.reads.items()}

    @property
    def scales(self) -> dict[str, tuple[str, str]]:
        """By function of the configuration, the C++ type of a conversion to fixed point, and its members."""
        return {name: _scale_members(one) for name, one in self.post.config.scales.items()}

    @property
    def detects(self) -> bool:
        """True if its results are boxes, which a program can draw."""
        return isinstance(self.post, Detector)

    def file(self, name: str) -> str:
        """Return the template of a file."""
        return f"post/{self.post.folder}/{name}.j2"


def _scale_members(scale: FixedScale) -> tuple[str, str]:
    if scale.factor:
        return "RealScale", repr(scale.factor)
    return "FixedScale", f"{scale.multiplier}, {scale.shift}, {scale.zero_point}"


_ALIGNMENT = 8
"""Of each state, and of the first one after the tensors: that of the largest element."""


@dataclass(frozen=True)
class StateView:
    """A state, which stays in the arena after the tensors between inferences.

    `label` names its input and its output, `offset` and `size` its bytes in the arena, `reset` its elements after a reset.

    Attributes:
        base: the pointer in `execute` that the input's plane is relative to.
        becoming: the plane struct of the output.
    """

    label: str
    name: str
    output: str
    ctype: str
    count: int
    offset: int
    size: int
    reset: int
    base: str
    becoming: str


def state_views(graph: QuantGraph, arena_bytes: int, identifiers: Identifiers) -> list[StateView]:
    """Return the states after an arena of that many bytes of tensors."""
    views, offset = [], arena_bytes
    ends = zip(graph.state_inputs, graph.state_outputs, strict=True)
    for index, (name, output) in enumerate(ends):
        kind, count = graph.type(name), elements(graph.shape(name))
        label, size = f"{comment(name)}, then {comment(output)}", count * kind.bytes
        offset, memory = round_up(offset, _ALIGNMENT), (f"state{index}_base", identifiers.plane(output))
        views.append(StateView(label, name, output, kind.cpp, count, offset, size, kind.zero_point, *memory))
        offset += size
    return views
