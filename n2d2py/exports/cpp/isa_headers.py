"""Files generated from the table of instruction sets: kernel headers, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from n2d2py.exports.cpp.isa import (
    FLOATS,
    FOURS,
    FULLY_CONNECTED,
    KERNELS,
    PORTABLE,
    ROWS,
    RUNS,
    WINOGRAD,
    InstructionSet,
    extended,
    instruction_sets,
    reads_panels,
    tags,
)
from n2d2py.exports.cpp.processors import TARGETS
from n2d2py.resources import templates

ISA_HEADERS = ("n2d2/isa.hpp", "n2d2/bindings.hpp")
"""Headers below `kernels/` that are generated from the table."""


def isa_header(header: str, chosen: Sequence[InstructionSet] | None = None) -> str:
    """Return the text of a header of ISA_HEADERS for the `chosen` sets, by default all."""
    sets = instruction_sets() if chosen is None else chosen
    return (
        templates("cpp")
        .get_template(f"kernels/{header}.j2")
        .render(
            sets=sets,
            portable=PORTABLE,
            extended=extended,
            tagged=[row for row in tags().values() if row in sets],
            panels=[row for row in sets if reads_panels(row)],
            floats=[row for row in sets if FLOATS in row.has],
        )
    )


def write_isa_headers(folder: Path) -> None:
    """Write the headers into a folder of kernels."""
    for header in ISA_HEADERS:
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text(isa_header(header), encoding="utf-8", newline="\n")


def isa_page() -> str:
    """Return the page that shows the table."""
    kernels = {name: name for name in KERNELS} | {
        FULLY_CONNECTED: "fully connected",
        WINOGRAD: "Winograd",
        FOURS: "Winograd in tiles of four by four",
        FLOATS: "float32",
        RUNS: "runs of sums",
        ROWS: "rows of recurrent layers",
    }
    page = templates("cpp").get_template("instruction_sets.md.j2")
    return page.render(sets=(*instruction_sets(), PORTABLE), kernels=kernels, targets=TARGETS)
