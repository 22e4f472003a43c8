"""The C++ text of one layer: its configuration, its constant arrays, its call; and of one plane.

Kernels are templates over a configuration struct (`kernels/n2d2/*.hpp`). A module of `layers` chooses
the kernel of an operator, brings its parameters into the kernel's order and fills the struct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.export.cpp.identifiers import Identifiers
from n2d2py.export.cpp.isa import condition, tagged
from n2d2py.export.cpp.structs import PORTABLE, Config
from n2d2py.export.cpp.text import comment
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.graph.shapes import channels, height, width
from n2d2py.registry import Registry

if TYPE_CHECKING:
    from n2d2py.export.cpp.winograd import Winograd
    from n2d2py.memory.plan import MemoryPlan, Plane

__all__ = [
    "Array",
    "Form",
    "LayerCode",
    "float_literal",
    "layer_code",
    "layer_kinds",
    "override_kernel",
    "plane_struct",
    "register_layer",
]

_DTYPES = {
    "std::int8_t": "i1",
    "std::uint8_t": "u1",
    "std::int16_t": "i2",
    "std::uint16_t": "u2",
    "std::int32_t": "i4",
    "std::int64_t": "i8",
    "std::uint32_t": "u4",
    "std::uint64_t": "u8",
    "float": "f4",
    "double": "f8",
}


def float_literal(value: float, ctype: str) -> str:
    """A C++ expression of type `ctype` ("float" or "double") with exactly this value of that type."""
    value = np.dtype(_DTYPES[ctype]).type(value)
    if np.isnan(value):
        return f"std::numeric_limits<{ctype}>::quiet_NaN()"
    if np.isinf(value):
        return f"{'-' if value < 0 else ''}std::numeric_limits<{ctype}>::infinity()"
    text = f"{value:.9g}" if ctype == "float" else f"{value:.17g}"
    if not any(mark in text for mark in ".e"):
        text += ".0"
    return text + ("f" if ctype == "float" else "")


@dataclass(frozen=True, eq=False)
class Form:
    """What takes the place of an array's values where the code is compiled for one of some instruction sets."""

    sets: tuple[str, ...]
    values: np.ndarray

    @property
    def where(self) -> str:
        """The condition of the preprocessor."""
        return condition(self.sets)


@dataclass(frozen=True, eq=False)
class Array:
    """Constant data of a layer: a global array `name` of `ctype`, `values` flat and in final order.

    The first of `forms` that holds takes the place of `values`. `where` is the condition of the preprocessor under which the array is
    compiled, "" for always.
    """

    name: str
    ctype: str
    values: np.ndarray
    forms: tuple[Form, ...] = ()
    where: str = ""

    def __post_init__(self) -> None:
        if self.ctype not in _DTYPES:
            raise InternalError(f"array {self.name}: unknown element type {self.ctype}")
        object.__setattr__(self, "values", self._stored(self.values))
        forms = [replace(form, values=self._stored(form.values)) for form in self.forms if form.sets]
        while forms and np.array_equal(forms[-1].values, self.values):
            forms.pop()
        object.__setattr__(self, "forms", tuple(forms))

    def _stored(self, values: np.ndarray) -> np.ndarray:
        if values.ndim != 1 or not values.size:
            raise InternalError(f"array {self.name}: {values.shape} is not one dimension of elements")
        dtype = np.dtype(_DTYPES[self.ctype])
        stored = values.astype(dtype)
        if dtype.kind != "f" and not np.array_equal(stored, values):
            raise InternalError(f"array {self.name}: its values do not fit {self.ctype}")
        return stored

    @property
    def bytes(self) -> int:
        """Bytes of the array in the exported project."""
        return self.values.nbytes


@dataclass(frozen=True)
class LayerCode:
    """What the project generator writes for one layer.

    Attributes:
        layer, identifier: the layer's name and its C identifier.
        headers: kernel headers to include, such as "n2d2/convolution.hpp".
        structs: what the layer is made with, inside the network's namespace, after the planes and the
            declarations of `arrays`: the configs of its kernels, and other structs as text.
        call: a statement over the names in0, in1, ... (const unsigned char*) and out (unsigned char*).
        arrays: the constant data.
        serial: the output lies over an input, so lines are stored in order.
        streamed: `call` makes the lines [first, stop) of the output, or takes those of the input where it `accumulates`.
        kernel: the implementation beside the portable one, by name; "" without one.
        sets: the instruction sets that `kernel` is for, by their names at run time; the portable one runs elsewhere.
        reason: why this kernel: what the layer has, or what ruled the better ones out.
        winograd: its Winograd form, which some instruction sets may use in place of `call`.
        sum: the layer whose sum `call` does too; "" for none.
    """

    layer: str
    identifier: str
    headers: tuple[str, ...]
    structs: tuple[Config | str, ...]
    call: str
    arrays: tuple[Array, ...]
    serial: bool
    kernel: str = ""
    sets: tuple[str, ...] = ()
    reason: str = ""
    streamed: bool = False
    accumulates: bool = False
    winograd: Winograd | None = None
    sum: str = ""

    @property
    def config(self) -> str:
        """`structs` in C++."""
        return "\n".join(each.text if isinstance(each, Config) else each for each in self.structs)

    def configured(self, change: Callable[[Config], Config]) -> LayerCode:
        """The same layer with other configs."""
        return replace(self, structs=tuple(change(each) if isinstance(each, Config) else each for each in self.structs))

    @property
    def statement(self) -> str:
        """`call`, or that of the Winograd form where the instruction set uses it. With -DN2D2_TUNE both are timed."""
        if not (self.winograd and self.winograd.sets):
            return self.call
        where = self.winograd.where
        return (
            f"#if ({where}) && defined(N2D2_TUNE)\nif (n2d2::tuneTile == 0)\n    {self.winograd.call}\nelse\n    {self.call}\n"
            f"#elif {where}\n{self.winograd.call}\n#else\n{self.call}\n#endif"
        )

    @property
    def constants(self) -> tuple[Array, ...]:
        """`arrays`, and the weights of the Winograd form, each where it is used."""
        if not (self.winograd and self.winograd.sets):
            return self.arrays
        direct = f"!({self.winograd.where}) || defined(N2D2_TUNE)"
        return (
            *(replace(array, where=direct) if array.name.endswith("_weights") else array for array in self.arrays),
            self.winograd.array(),
        )

    @property
    def added_bytes(self) -> int:
        """Bytes of constants that the Winograd form adds where it is used."""
        if not (self.winograd and self.winograd.sets):
            return 0
        return self.winograd.bytes - next(array.bytes for array in self.arrays if array.name.endswith("_weights"))

    @property
    def added(self) -> str:
        """`added_bytes` as a C++ expression."""
        return f"({self.winograd.where} ? {self.added_bytes} : 0)" if self.winograd and self.winograd.sets else "0"

    @property
    def tiles(self) -> bool:
        """Whether it is made of products of panels, in tiles that the parameter `Tile` chooses."""
        return bool(self.kernel) and self.headers[0] in ("n2d2/convolution.hpp", "n2d2/phases.hpp")

    @property
    def winograd_sets(self) -> tuple[str, ...]:
        """The instruction sets that use its Winograd form."""
        return self.winograd.sets if self.winograd else ()

    @property
    def implementation(self) -> str:
        """The kernels beside the portable one, by name."""
        used = self.winograd_sets
        return f"Winograd ({', '.join(used)}), else {self.kernel}" if used else self.kernel

    def choosing(self, choices: Mapping[str, bool]) -> LayerCode:
        """The same layer with the Winograd form, where it has one, for exactly those of the given instruction sets that are True."""
        if self.winograd is None:
            return self
        sets = tuple(one for one in self.winograd.possible if choices.get(one, one in self.winograd.sets))
        return replace(self, winograd=replace(self.winograd, sets=sets))

    def tiled(self, constants: Mapping[str, str]) -> LayerCode:
        """The same layer with tiles that were measured (`tiles.tile_constants`); others than convolutions stay."""
        return self.configured(lambda config: config.tiled(constants))

    def portable(self) -> LayerCode:
        """The same layer with the portable kernel only."""
        code = self.configured(lambda config: replace(config, isa=PORTABLE))
        arrays = tuple(replace(array, forms=()) for array in self.arrays)
        return replace(code, kernel="", sets=(), reason="SIMD=none", winograd=None, arrays=arrays)


LayerFunction = Callable[[QuantNode, QuantGraph, "MemoryPlan", Identifiers], LayerCode]
LAYERS: Registry[LayerFunction] = Registry("the C++ layer of", "n2d2py.export.cpp.layers")
"""The C++ forms by operator kind."""


def register_layer(kind: str, function: LayerFunction) -> None:
    """Makes the C++ form of an operator kind known.

    Raises:
        InternalError: when the kind has one already.
    """
    LAYERS.add(kind, function)


def layer_kinds() -> tuple[str, ...]:
    """The operator kinds that have a C++ form."""
    return tuple(LAYERS)


_OVERRIDES: list[tuple[str, str, str, str, Callable[[QuantNode], bool | str]]] = []


def override_kernel(kind: str, isa: str, header: str, tag: str, fits: Callable[[QuantNode], bool | str]) -> None:
    """Lets layers of an operator kind that fit use the kernel for `tag`, of `header`, where the compiler's target is
    `isa` (its tag; "" for every one). Layers that run line by line or do a sum keep the kernels of the project. `fits` returns
    whether, or the reason why not, for the report.
    """
    _OVERRIDES.append((kind, isa, header, tag, fits))


def _overridden(code: LayerCode, node: QuantNode) -> LayerCode:
    for kind, isa, header, tag, fits in _OVERRIDES:
        if kind != node.op.kind:
            continue
        answer = "it runs line by line" if code.streamed else f"it does the sum of {code.sum}" if code.sum else fits(node)
        if answer is not True:
            reason = answer if isinstance(answer, str) and answer else "the plug-in says that it does not fit"
            code = replace(code, reason="; ".join(filter(None, (code.reason, f"no {tag}: {reason}"))))
            continue
        code = code.configured(lambda config, one=(isa, tag): replace(config, special=(*config.special, one)))
        others = f", elsewhere {code.kernel}" if isa and code.kernel else ""
        code = replace(
            code,
            headers=(*code.headers, header),
            kernel=f"{tag}{others}",
            sets=tuple(dict.fromkeys((tagged(isa).name, *code.sets))) if isa else ("all",),
            reason="a plug-in's kernel fits",
            winograd=None,
        )
    return code


def layer_code(node: QuantNode, graph: QuantGraph, plan: MemoryPlan, identifiers: Identifiers) -> LayerCode:
    """The C++ of one layer; `plan` says where every tensor of the layer lies and how it runs.

    Raises:
        N2D2Error: E701 when the C++ export has no kernel for the operator.
    """
    function = LAYERS.get(node.op.kind)
    if function is None:
        raise N2D2Error(
            "E701",
            f"layer '{node.name}': the C++ export has no kernel for {node.op.kind}",
            where=node.location,
            remedy="remove the layer, or fuse it with -fuse",
        )
    return _overridden(function(node, graph, plan, identifiers), node)


def plane_struct(tensor: str, quant: QuantTensor, plane: Plane, identifier: str) -> str:
    """The struct `<identifier>_plane` that tells the kernels where the tensor called `tensor` lies.

    Raises:
        InternalError: when plane and tensor disagree.
    """
    size = quant.type.bytes
    c, h, w = channels(quant.shape), height(quant.shape), width(quant.shape)
    wanted = (c * size, w, h)
    if (plane.size, plane.length, plane.count) != wanted or plane.stride % size:
        raise InternalError(
            f"{tensor}: a plane of {plane.count} x {plane.length} pixels of {plane.size} bytes every "
            f"{plane.stride} is not the tensor of {h} x {w} x {c} elements of {size} bytes"
        )
    lines, wrap = plane.lines_before_wrap, plane.wrap_offset
    if plane.ring_rows is not None and plane.ring_rows < h:
        lines, wrap = plane.ring_rows, plane.offset
    return (
        f"// {comment(tensor)}: {h} x {w} x {c}\n"
        f"struct {identifier}_plane {{\n"
        f"    typedef {quant.type.cpp} Type;\n"
        f"    enum : int {{ Height = {h}, Width = {w}, Channels = {c}, Stride = {plane.stride // size}, "
        f"Lines = {lines} }};\n"
        f"    enum : long {{ Offset = {plane.offset}, "
        f"WrapOffset = {wrap if lines < h else plane.offset} }};\n"
        f"}};\n"
    )
