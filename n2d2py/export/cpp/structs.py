"""The config struct of a kernel, as data until it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from n2d2py.export.cpp.environment import templates
from n2d2py.export.cpp.text import comment

__all__ = ["NATIVE", "PORTABLE", "REAL_NATIVE", "Config"]

PORTABLE, NATIVE, REAL_NATIVE = "n2d2::Portable", "n2d2::Native", "n2d2::RealNative"
"""The instruction sets of a config: portable C++, or what the project is compiled for."""


@dataclass(frozen=True)
class Config:
    """What a kernel's template takes.

    Attributes:
        name: of the struct; `description` stands above it.
        types, constants: its typedefs and its enumerators, in order.
        isa: the instruction set of its kernel.
        special: (tag of an instruction set, kernel) of plug-ins, the last one first in effect; "" for every set.
    """

    name: str
    description: str
    types: Mapping[str, str]
    constants: Mapping[str, int | str]
    isa: str = PORTABLE
    special: tuple[tuple[str, str], ...] = ()

    def tiled(self, constants: Mapping[str, str]) -> Config:
        """The same with the constants of a tile in front, where it is that of a convolution."""
        is_convolution = next(iter(self.constants), "") == "KernelHeight"
        return replace(self, constants={**constants, **self.constants}) if is_convolution else self

    @property
    def text(self) -> str:
        """The struct in C++."""
        isa = self.isa
        for tag, kernel in self.special:
            isa = f"n2d2::Choose<n2d2::{tag}, {kernel}, {isa}>::Isa" if tag else kernel
        return (
            templates()
            .get_template("layers/config.hpp.j2")
            .render(
                name=self.name,
                description=comment(self.description),
                types={**self.types, "Isa": isa},
                constants=self.constants,
            )
        )
