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
    rows = []
    for row in (*instruction_sets(), PORTABLE):
        flags = " ".join(row.flags) if row.present else "no"
        cells = (
            f"`{row.name}`",
            row.title,
            row.text,
            f"`{row.tag}`",
            f"`{row.macro}`" if row.macro else "",
            ", ".join(kernels[one] for one in KERNELS if one in row.has)
            + (f"; else those of {row.extends}" if row.extends else ""),
            f"`{flags}`" if row.present else flags,
        )
        rows.append(f"| {' | '.join(cells)} |")
    targets = [
        f"| `{one.name}` | `{one.compilers[1]}` | `{' '.join(one.flags)}` | {f'`{chr(32).join(one.emulator)}`' if one.emulator else ''} |"
        for one in TARGETS
    ]
    return "\n".join(
        [
            "# Instruction sets of the C++ export",
            "",
            "Written by `python -m n2d2py.docs` from the table in `n2d2py/exports/cpp/isa.py`;",
            "[several sets in one program](explanation/instruction_sets.md) explains it. The first set that the compiler may use is taken.",
            "*At start*: the flags with which a program with the export parameter `RuntimeDispatch=1` holds the set, which it chooses",
            "when it starts.",
            "",
            "| set | | processors | `n2d2::Native` | macro | kernels | at start |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            "Processors that the Makefile (`make TARGET=...`) and the toolchain files of CMake know:",
            "",
            "| target | compiler | flags | run by |",
            "|---|---|---|---|",
            *targets,
            "",
        ]
    )
