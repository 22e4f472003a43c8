"""View of a network for the templates of the C++ project: one view per tensor, array and layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType, round_up
from n2d2py.arithmetic.fixed_scale import FixedScale
from n2d2py.contracts.cpp import Array, LayerCode
from n2d2py.contracts.cpp.arrays import initializer, is_file, is_string
from n2d2py.contracts.cpp.identifiers import Identifiers, comment, literal
from n2d2py.contracts.cpp.isa import FAMILIES, dispatched
from n2d2py.graph import QuantGraph, QuantNode, Shape, channels, elements, height, layer_macs, width
from n2d2py.memory.plan import Plane
from n2d2py.postprocessing import Detector, PostProcessor


def _initializer(name: str, operation: str, shape: Shape, kind: NumType) -> str:
    low, high = (0, 0) if kind.is_float or kind.plain else (kind.qmin, kind.qmax)
    return (
        f"{{{literal(name)}, {literal(operation)}, {literal(kind.name)}, {kind.bytes}, {len(shape)}, "
        f"{height(shape)}, {width(shape)}, {channels(shape)}, {kind.scale!r}, {kind.zero_point}, {low}, {high}}}"
    )


def _describe(name: str, shape: Shape, kind: NumType) -> str:
    return f"{comment(name)}: {height(shape)} x {width(shape)} x {channels(shape)}, {kind.name}"


@dataclass(eq=False)
class PortView:
    """An input or an output of the network.

    Attributes:
        role, number: "input" or "output", and its number, "" for the only one.
        plane: name of its plane struct; `memory` is the plane itself.
        is_row: True if its values belong to one position.
        real: C++ type of the real numbers that it stands for.
        external: True if it stays in the caller's buffer.
        in_one_piece: True if it lies in the arena exactly as the caller's buffer would.
        base: the pointer in `execute` that its plane is relative to.
        initializer: its `tensor` struct of the C interface.
    """

    role: str
    number: str
    name: str
    shape: Shape
    type: NumType
    plane: str
    memory: Plane

    def __post_init__(self) -> None:
        shape, kind, memory = self.shape, self.type, self.memory
        self.variable, self.label = self.role + self.number, comment(self.name)
        self.struct, self.typedef = self.variable.capitalize(), f"{self.variable}_t"
        self.height, self.width, self.channels, self.elements = height(shape), width(shape), channels(shape), elements(shape)
        self.is_row = self.elements == self.channels
        self.c_type = kind.cpp.removeprefix("std::")
        self.real = "double" if kind.is_float and kind.bits == 64 else "float"
        self.scale_text = repr(float(kind.scale))
        self.external = memory.external
        whole = memory.contiguous and memory.stride == memory.size
        self.in_one_piece = whole and not memory.external and not memory.memory
        self.base = f"{self.variable}_base" if memory.external else arena_of(memory)
        self.initializer = _initializer(self.name, "", shape, kind)


def arena_of(plane: Plane) -> str:
    """Return the pointer in C++ that the offsets of a plane are relative to: the caller's arena, or another memory."""
    return f"memory_{plane.memory.lower()}" if plane.memory else "arena"


@dataclass(frozen=True, eq=False)
class WrittenValues:
    """Values in a source: `text` right of the equals sign, or the binary `file`; `length` counts the zero that ends a string.

    Attributes:
        where: the condition of the preprocessor under which they are compiled.
        families: for a form, the condition of the processors that choose one of its sets when a program starts; "" for none.
        place: for a form, the namespace of the constant in such a program.
        derivation: as in `Array`; forms are not derived.
    """

    values: np.ndarray
    length: int
    text: str = ""
    file: str = ""
    is_string: bool = False
    where: str = ""
    families: str = ""
    place: str = ""
    derivation: str = ""

    @staticmethod
    def of(values: np.ndarray, weights_format: str, stem: str, **more: Any) -> WrittenValues:
        """By the export parameter WeightsFormat, or "inline" for its choice without files; a file is named after `stem`."""
        if is_file(values, weights_format):
            return WrittenValues(values, values.size, file=f"{stem}.bin", **more)
        as_string = is_string(values, weights_format)
        return WrittenValues(values, values.size + as_string, initializer(values, as_string), "", as_string, **more)


@dataclass(frozen=True)
class ArrayView:
    """A constant array, `own`; `forms` are its values for instruction sets, where these are others; `apart` as in `Array`."""

    name: str
    ctype: str
    own: WrittenValues
    forms: tuple[WrittenValues, ...] = ()
    apart: bool = False

    @staticmethod
    def of(array: Array, weights_format: str) -> ArrayView:
        """`array` by the export parameter WeightsFormat."""
        name = array.name
        if array.apart:
            return ArrayView(name, array.ctype, WrittenValues(array.values, array.values.size), apart=True)
        own = WrittenValues.of(array.values, weights_format, name, where=array.where, derivation=array.derivation)
        forms = []
        for number, form in enumerate(array.forms, 1):
            families = {row.family for row in dispatched() if row.name in form.sets}
            where = " || ".join(f"({one.condition})" for one in FAMILIES if one.name in families)
            more = {"where": form.where, "families": where, "place": f"form_{number}"}
            forms.append(WrittenValues.of(form.values, weights_format, f"{name}_{number}", **more))
        return ArrayView(name, array.ctype, own, tuple(forms))

    @property
    def files(self) -> dict[str, np.ndarray]:
        """The values of its files by name, but for those that the build derives."""
        return {one.file: one.values for one in (self.own, *self.forms) if one.file and not one.derivation}

    @property
    def is_string(self) -> bool:
        return any(one.is_string for one in (self.own, *self.forms))

    @property
    def chosen(self) -> list[WrittenValues]:
        """The forms next to the portable one in a binary that chooses its instruction set when it starts."""
        return [form for form in self.forms if form.families]


@dataclass(frozen=True)
class CopyView:
    """A copy of the constant `name` in the arena, at `offset`, which a layer reads."""

    name: str
    ctype: str
    offset: int


@dataclass(eq=False)
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
        title: C++ literal of its name, and that of the layer whose residual sum it computes too.
        streamed: True if its function makes some lines at a time.
        accumulates: True if the lines are those of its input.
        lines: number of lines that it makes, or takes when it accumulates.
        initializer: the `tensor` struct of the C interface of its output.
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

    def __post_init__(self) -> None:
        node, graph, code = self.node, self.graph, self.code
        shape, kind = graph.shape(node.output), graph.type(node.output)
        merged = [one for one in node.source if one != node.name]
        self.name, self.operation, self.has_code = comment(node.name), node.op.kind, code is not None
        self.title = literal(node.name + (f"+{node.residual.layer}" if node.residual else ""))
        self.streamed = code is not None and code.streamed
        self.accumulates = code is not None and code.run.partial is not None
        self.lines = height(graph.shape(node.inputs[0]) if self.accumulates else shape)
        self.source_text = f", with {comment(', '.join(merged))}" if merged else ""
        self.input_text = "; ".join(_describe(name, graph.shape(name), graph.type(name)) for name in node.inputs)
        self.output_text = _describe(node.output, shape, kind)
        self.initializer = _initializer(node.name, node.op.kind, shape, kind)

    def _made(self, amount: int) -> int:
        """Return the part of an amount that the lines of the output that are made have; 0 without code."""
        lines = height(self.graph.shape(self.node.output))
        return amount * (lines - self.skipped) // lines if self.code else 0

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the lines that are made; 0 where the result is in place without code."""
        return self._made(int(layer_macs(self.graph, self.node)))

    @property
    def bytes(self) -> int:
        """Bytes that the layer has to read and write once: constants, inputs and output."""
        if self.code is None:
            return 0
        tensors = (self.graph.tensors[name] for name in (*self.node.inputs, self.node.output))
        *inputs, output = (elements(one.shape) * one.type.bytes for one in tensors)
        return sum(inputs) + sum(array.bytes for array in self.code.arrays) + self._made(output)

    @property
    def work(self) -> str:
        """Multiply-accumulates, bytes, and the multiplications that the kernel of the instruction set makes, as C++ expressions."""
        size, multiplied, shape = f"{self.bytes}.0", f"{self.macs}.0", self.graph.shape(self.node.output)
        if self.code is not None and (form := self.code.winograd) and form.sets:
            size = f"{size} + {self.code.added}"
            multiplied = f"{form.where} ? {form.products((height(shape) - self.skipped, width(shape)))}.0 : {multiplied}"
        return f"{self.macs}.0, {size}, {multiplied}"

    @property
    def arguments(self) -> str:
        copy = self.copy
        copies = [f"reinterpret_cast<const {copy.ctype}*>(arena + {copy.offset})"] if copy else []
        return ", ".join((*self.bases, self.base, *copies))

    @property
    def prototype(self) -> str:
        bases = [f"const unsigned char* in{i}" for i in range(len(self.bases))]
        copies = [f"const {one.ctype}* {one.name}_copy" for one in (self.copy,) if one]
        return ", ".join([*bases, "unsigned char* out", *copies, *(["int first, int stop"] if self.streamed else [])])


class PostView:
    """A post-processing as the templates see it.

    Attributes:
        ports: the outputs that it reads, in the order of the parameters of its functions.
        values: the output of each type of the configuration.
        scales: by function of the configuration, the C++ type of a conversion to fixed point, and its members.
        detects: True if its results are boxes, which a program can draw.
    """

    def __init__(self, post: PostProcessor, outputs: Sequence[PortView]):
        self.post, self.detects = post, isinstance(post, Detector)
        self.ports = [outputs[index] for index in sorted(set(post.config.reads.values()))]
        self.values = {name: outputs[index] for name, index in post.config.reads.items()}
        self.scales = {name: _scale_members(one) for name, one in post.config.scales.items()}

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
