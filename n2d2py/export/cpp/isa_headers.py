"""The kernels' headers that come from the table of instruction sets."""

from __future__ import annotations

from pathlib import Path

from n2d2py.export.cpp.environment import templates
from n2d2py.export.cpp.isa import FLOATS, PORTABLE, InstructionSet, instruction_sets, reads_panels, tags

__all__ = ["ISA_HEADERS", "isa_header", "write_isa_headers"]

ISA_HEADERS = ("n2d2/isa.hpp", "n2d2/bindings.hpp")
"""Headers that are rendered from the table, below `kernels/`."""


def _extended(row: InstructionSet) -> list[InstructionSet]:
    """The sets that a set extends, directly or not."""
    named = {one.name: one for one in instruction_sets()}
    found = []
    while row.extends:
        row = named[row.extends]
        found.append(row)
    return found


def isa_header(header: str) -> str:
    """The text of a header of ISA_HEADERS."""
    sets = instruction_sets()
    return (
        templates()
        .get_template(f"kernels/{header}.j2")
        .render(
            sets=sets,
            portable=PORTABLE,
            extended=_extended,
            tagged=[row for row in tags().values() if row is not PORTABLE],
            panels=[row for row in sets if reads_panels(row)],
            floats=[row for row in sets if FLOATS in row.has],
        )
    )


def write_isa_headers(folder: Path) -> None:
    """Writes the headers into a folder of kernels."""
    for header in ISA_HEADERS:
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text(isa_header(header), encoding="utf-8", newline="\n")
