"""RAM and flash of an export: measured by the linker where it was built, else as far as it was planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from n2d2py.runtime import AT_MOST


@dataclass(frozen=True)
class Footprint:
    """Bytes of the memory of an inference and of what is stored; None for what is not known.

    Attributes:
        arena: of the activations, as planned.
        stack: deepest stack of an inference.
        constants: weights, biases, tables.
        code: of the network, its read-only and initialized data included.
        source: who says so, for people.
        stack_bound: whether `stack` is a bound only.
        unpacked: of packed weights that are unpacked once, into static memory; None for an export without.
    """

    arena: int | None = None
    stack: int | None = None
    constants: int | None = None
    code: int | None = None
    source: str = ""
    stack_bound: bool = False
    unpacked: int | None = None

    @staticmethod
    def of_build(sizes: Mapping[str, int], compiler: str) -> Footprint:
        """From the sections of a build, named as `make size` names them."""
        code = [size for name, size in sizes.items() if name.startswith("code")]
        return Footprint(
            sizes.get("arena"),
            sizes.get("stack", sizes.get(f"stack{AT_MOST}")),
            sizes.get("constants"),
            sum(code) if code else None,
            f"linker and compiler, {compiler}" if compiler else "linker and compiler",
            f"stack{AT_MOST}" in sizes,
            sizes.get("weights, unpacked"),
        )

    @property
    def ram(self) -> int | None:
        """arena + stack, and unpacked weights; None where one is not known."""
        return None if self.arena is None or self.stack is None else self.arena + self.stack + (self.unpacked or 0)

    def ram_parts(self, at_most: str = "stack <=") -> dict[str, int | None]:
        """Return the parts of `ram`, as reports name them; `at_most`: a stack that is a bound only."""
        weights = {} if self.unpacked is None else {"weights": self.unpacked}
        return {"arena": self.arena, **weights, at_most if self.stack_bound else "stack": self.stack}

    @property
    def flash(self) -> int | None:
        """code + constants; None where one is not known."""
        return None if self.code is None or self.constants is None else self.code + self.constants

    def line(self) -> str:
        """Both on a line of at most 80 columns: "ROM 79.0 KiB (code 16.8 + data 62.2), RAM 48.8 KiB (arena 4.8 + stack 44.0)"."""
        flash = _sum("ROM", self.flash, {"code": self.code, "data": self.constants})
        ram = _sum("RAM", self.ram, self.ram_parts())
        return ", ".join(text for text in (flash, ram) if text)


def _sum(name: str, total: int | None, parts: Mapping[str, int | None]) -> str:
    """Return a figure and what it is made of, in one unit; without a total its parts alone, "" for nothing."""
    known = {part: size for part, size in parts.items() if size is not None}
    largest = max((total or 0, *known.values()))
    unit, size = next((unit for unit in (("MiB", 2**20), ("KiB", 2**10)) if largest >= unit[1]), ("B", 1))

    def short(value: int) -> str:
        return f"{value / size:.2f}" if unit == "MiB" else f"{value / size:.1f}" if unit == "KiB" else str(value)

    terms = " + ".join(f"{part} {short(value)}" for part, value in known.items())
    if total is None:
        return f"{name} {terms} {unit}" if terms else ""
    return f"{name} {short(total)} {unit} ({terms})"
