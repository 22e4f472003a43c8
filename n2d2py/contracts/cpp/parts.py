"""Parts of the C++ of a layer, as data until it is printed: arrays, structs, calls.

An `Expression` is a type or a value that refers to arrays and structs. Configs and calls hold these objects, not their names:
`needs_of` finds them, `substituted` replaces them, and printing writes their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

import numpy as np

from n2d2py.contracts.cpp.identifiers import comment, float_literal
from n2d2py.contracts.cpp.isa import condition, instruction_sets
from n2d2py.errors import InternalError
from n2d2py.resources import templates

PORTABLE, NATIVE, REAL_NATIVE = "n2d2::Portable", "n2d2::Native", "n2d2::RealNative"
"""The instruction sets of a config: portable C++, or what the project is compiled for."""


def chosen(names: Iterable[str], otherwise: str) -> str:
    """Return the type of a config's Isa: the native set where the code is compiled for one of `names`, else `otherwise`."""
    wanted = set(names)
    for tag in dict.fromkeys(row.tag for row in instruction_sets() if row.name in wanted):
        otherwise = f"n2d2::Choose<n2d2::{tag}, {NATIVE}, {otherwise}>::Isa"
    return otherwise


_DTYPES = {"float": "f4", "double": "f8"}
_DTYPES |= {f"std::{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Types of NumPy by those of C++."""


@dataclass(eq=False)
class LayerForm:
    """Replacement of an array's values where the code is compiled for one of some instruction sets (`where` in C++)."""

    sets: tuple[str, ...]
    values: np.ndarray

    @property
    def where(self) -> str:
        return condition(self.sets)


@dataclass(frozen=True)
class PanelOrder:
    """Relation of panels of 16 outputs to the rows of the portable kernel, (rows, inputs).

    In each group of `outputs` rows, for each 16 of them: [ceil(inputs / each)][outputs of the panel][each]. Inputs are filled
    up with zeros, and where `filled` the outputs of the last panel too.
    """

    rows: int
    inputs: int
    outputs: int
    each: int
    filled: bool = False


@dataclass(frozen=True, eq=False)
class Stream:
    """All constants of a layer as one run of bytes, in the order of a kernel of microcontrollers.

    Attributes:
        kernel: its name, for the report.
        sets: the instruction sets that have it.
        values: int8, what takes the place of the weights; None where `problem` rules the kernel out.
        facts: the enumerators of a config that has the stream.
        stack: bytes of the kernel's buffers on the stack, and of the frames of its functions.
    """

    kernel: str
    sets: tuple[str, ...]
    values: np.ndarray | None = None
    problem: str = ""
    facts: Mapping[str, int] = field(default_factory=dict)
    stack: int = 0

    @property
    def form(self) -> LayerForm:
        """Replacement of the weights; no set has it where there is none."""
        return LayerForm(self.sets if self.values is not None else (), self.values if self.values is not None else _NOTHING)


_NOTHING = np.zeros(0, np.int8)


@dataclass(eq=False)
class Array:
    """Constant data of a layer: a global array `name` of `ctype`, `values` flat and in final order.

    Attributes:
        forms: the first one that holds takes the place of `values`.
        where: the condition of the preprocessor under which the array is compiled, "" for always.
        order: that of its only form, panels, where these hold all that `values` do.
        derivation: how the build makes `values` of a file of another array, as a line for `dnn/derive.cpp`; "" where the export
            has them.
        apart: whether it is in the weights file, and a pointer in the program.
        typed: whether a type names it, so that it has to be a constant.
        borrowed: whether another layer defines it.
        bytes: those of `values` in the exported project.
    """

    name: str
    ctype: str
    values: np.ndarray
    forms: tuple[LayerForm, ...] = ()
    where: str = ""
    order: PanelOrder | None = None
    derivation: str = ""
    apart: bool = False
    typed: bool = False
    borrowed: bool = False

    def __post_init__(self) -> None:
        self.values = self._stored(self.values)
        forms = [replace(form, values=self._stored(form.values)) for form in self.forms if form.sets]
        while forms and np.array_equal(forms[-1].values, self.values):
            forms.pop()
        self.forms, self.bytes = tuple(forms), self.values.nbytes

    def _stored(self, values: np.ndarray) -> np.ndarray:
        dtype = np.dtype(_DTYPES[self.ctype])
        stored = values.astype(dtype, copy=False)
        if stored is not values and dtype.kind != "f" and not np.array_equal(stored, values):
            raise InternalError(f"array {self.name}: its values do not fit {self.ctype}")
        return stored

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constants:
    """A struct of functions of `type`, constant expressions where `constexpr`, and of typedefs."""

    name: str
    type: str
    functions: Mapping[str, object]
    types: Mapping[str, str] = field(default_factory=dict)
    constexpr: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def text(self) -> str:
        """The struct in C++."""
        literal = (lambda value: float_literal(value, self.type)) if self.type in ("float", "double") else str
        functions = {key: literal(value) for key, value in self.functions.items()}
        template = templates("cpp").get_template("layers/constants.hpp.j2")
        result = f"constexpr {self.type}" if self.constexpr else self.type
        return template.render(name=self.name, type=result, types=self.types, functions=functions)


@dataclass(frozen=True)
class LayerConfig:
    """Argument of a kernel's template.

    Attributes:
        name: of the struct; `description` stands above it.
        types, constants: its typedefs and its enumerators, in order.
        special: (tag of an instruction set, kernel) of plug-ins, the last one first in effect; "" for every set.
    """

    name: str
    description: str
    types: Mapping[str, Reference]
    constants: Mapping[str, int | str]
    isa: str = PORTABLE
    special: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def text(self) -> str:
        """The struct in C++."""
        isa = self.isa
        for tag, kernel in self.special:
            isa = f"n2d2::Choose<n2d2::{tag}, {kernel}, {isa}>::Isa" if tag else kernel
        template, types = templates("cpp").get_template("layers/config.hpp.j2"), {**self.types, "Isa": isa}
        return template.render(name=self.name, description=comment(self.description), types=types, constants=self.constants)


@dataclass(frozen=True, eq=False)
class Expression:
    """A type or a value in C++.

    Attributes:
        text: a format string that names `parts`.
        headers: kernel headers that it needs.
    """

    text: str
    parts: tuple[Argument, ...] = ()
    headers: tuple[str, ...] = ()

    @staticmethod
    def type(template: str, *arguments: Argument, headers: tuple[str, ...] = ()) -> Expression:
        """Return the type `template` of some arguments."""
        end = " >" if arguments and str(arguments[-1]).endswith(">") else ">"
        return Expression(f"{template}<{', '.join(['{}'] * len(arguments))}{end}", arguments, headers)

    def __str__(self) -> str:
        return self.text.format(*map(_spelled, self.parts))


Reference: TypeAlias = "str | Expression | Constants"
Argument: TypeAlias = "str | bool | int | Array | Constants | LayerConfig | Expression"


def _spelled(argument: Argument) -> str:
    return str(argument).lower() if isinstance(argument, bool) else str(argument)


@dataclass(frozen=True)
class Call:
    """A call of a kernel: `declared` stands in front of it, `rows` asks for its last argument, the lines that it makes."""

    function: str
    template: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    declared: tuple[Argument, ...] = ()
    rows: bool = False

    def __str__(self) -> str:
        arguments = [*map(_spelled, self.arguments), *(["n2d2::Rows(first, stop)"] if self.rows else [])]
        call = f"{self.function}<{', '.join(map(_spelled, self.template))}>({', '.join(arguments)});"
        return "\n".join([*map(str, self.declared), call])

    @property
    def parts(self) -> tuple[Argument, ...]:
        """Its parts, in the order in which it is defined."""
        return (*self.arguments, *self.template, *self.declared)


PartT = TypeVar("PartT")


def substituted(part: PartT, arrays: Mapping[str, Argument]) -> PartT:
    """Return a part of a layer's C++ that refers to `arrays` in the place of its arrays with these names."""

    def every(parts: tuple[Argument, ...]) -> tuple[Argument, ...]:
        return tuple(substituted(one, arrays) for one in parts)

    if isinstance(part, Array):
        return arrays.get(part.name, part)  # type: ignore[return-value]
    if isinstance(part, Expression):
        return replace(part, parts=every(part.parts))
    if isinstance(part, LayerConfig):
        return replace(part, types={key: substituted(one, arrays) for key, one in part.types.items()})
    if isinstance(part, Call):
        return replace(part, template=every(part.template), arguments=every(part.arguments), declared=every(part.declared))
    return part


Definitions: TypeAlias = "tuple[tuple[LayerConfig | Constants, ...], tuple[Array, ...], tuple[str, ...]]"


def needs_of(parts: Iterable[Argument]) -> Definitions:
    """Return the structs, arrays and headers that parts of a text need, each once; a config comes after those of its types."""
    structs: dict[str, LayerConfig | Constants] = {}
    arrays: dict[str, Array] = {}
    headers: dict[str, None] = {}

    def visit(part: Argument, typed: bool = False) -> None:
        if isinstance(part, Array):
            arrays[part.name] = replace(part, typed=typed or (part.name in arrays and arrays[part.name].typed))
        elif isinstance(part, Constants):
            structs.setdefault(part.name, part)
        elif isinstance(part, LayerConfig):
            for each in part.types.values():
                visit(each, True)
            structs.setdefault(part.name, part)
        elif isinstance(part, Expression):
            for each in part.parts:
                visit(each, typed)
            headers.update(dict.fromkeys(part.headers))

    for part in parts:
        visit(part)
    return tuple(structs.values()), tuple(arrays.values()), tuple(headers)
