"""Kernel headers of a project: those named by its layers, and the headers they include."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from n2d2py.contracts.cpp import InstructionSet, isa
from n2d2py.errors import InternalError
from n2d2py.registry import Registry
from n2d2py.resources import templates

ISA_HEADERS = ("n2d2/isa.hpp", "n2d2/bindings.hpp")
"""Headers below `kernels/` that are generated from the table."""


def _number_condition(true: Sequence[bool]) -> str:
    """Return the preprocessor condition on N2D2_ISA, the number of a set from 1 on, for the sets that are `true`; "0" for none."""
    edges = [number for number, (a, b) in enumerate(pairwise((False, *true, False)), 1) if a != b]
    ranges = zip(edges[::2], edges[1::2], strict=True)
    tests = [f"N2D2_ISA == {a}" if b == a + 1 else f"N2D2_ISA >= {a} && N2D2_ISA < {b}" for a, b in ranges]
    return f"({' || '.join(tests)})" if tests else "0"


def isa_header(header: str, chosen: Sequence[InstructionSet] | None = None) -> str:
    """Return the text of a header of ISA_HEADERS for the `chosen` sets, by default all."""
    sets = isa.instruction_sets() if chosen is None else chosen
    bases = {base.macro: {base.name, *isa.extending(base)} for base in isa.instruction_sets()}
    macros = {macro: [row.name in names for row in sets] for macro, names in bases.items()}
    macros = {name: true for name, true in macros.items() if any(true)} | {
        "N2D2_PANELS": [isa.reads_panels(row) for row in sets],
        "N2D2_FLOAT_VECTORS": [isa.FLOATS in row.has for row in sets],
    }
    macros = {name: _number_condition(true) for name, true in macros.items()}
    tagged = [row for row in isa.tags().values() if row in sets]
    template = templates("cpp").get_template(f"kernels/{header}.j2")
    return template.render(sets=sets, portable=isa.PORTABLE, macros=macros, tagged=tagged)


_INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:n2d2|plugins)/[^"]+)"', re.MULTILINE)

_BESIDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_MARK = re.compile(r"^#define N2D2_BIND_(\w+)$", re.MULTILINE)
_PART = re.compile(r"#(?:el)?if defined\(N2D2_BIND_(\w+)\)$|#else|#endif")
PLUGIN_FOLDERS: Registry[Path] = Registry("headers in")
"""Folders of plug-ins by their name in exports."""


def plugin_header(file: str | None, name: str) -> str:
    """Return the export path of the header `name` next to a plug-in's Python file: "plugins/<folder>/<name>". Raise
    InternalError if the header does not exist."""
    folder = Path(file or "").resolve().parent
    if not (folder / name).is_file():
        raise InternalError(f"the header '{name}' does not exist in {folder}")
    prefix, number = f"plugins/{folder.name}", 1
    while PLUGIN_FOLDERS.get(prefix) not in (None, folder):
        number += 1
        prefix = f"plugins/{folder.name}_{number}"
    if prefix not in PLUGIN_FOLDERS:
        PLUGIN_FOLDERS.add(prefix, folder)
    return f"{prefix}/{name}"


def _source(header: str, kernels: Path) -> Path:
    for prefix, folder in PLUGIN_FOLDERS.snapshot().items():
        if header.startswith(f"{prefix}/"):
            return folder / header[len(prefix) + 1 :]
    return kernels / header


def _text(header: str, kernels: Path, sets: Sequence[InstructionSet] | None = None) -> str:
    if header in ISA_HEADERS:
        return isa_header(header, sets)
    source = _source(header, kernels)
    if not source.is_file():
        raise InternalError(f"the kernel header {header} does not exist")
    return source.read_text(encoding="utf-8")


@cache
def active(text: str, marks: frozenset[str]) -> str:
    """Return the header of an instruction set with its parts for operators in `marks` only, and the `#else` for those without."""
    lines, bound, kept, depth = [], set(), True, 0
    for line in text.splitlines():
        part = None if depth else _PART.match(line)
        if part:
            bound = {*(() if line.startswith("#if") else bound), part[1]}
            kept = part[1] in marks if part[1] else line == "#endif" or not marks <= bound
        else:
            depth += line.startswith("#if") - line.startswith("#endif")
            lines += [line] if kept else []
    return "\n".join(lines)


def _included(header: str, text: str, kernels: Path, marks: frozenset[str]) -> list[str]:
    """Return the includes of a header: kernel headers, and neighbours of a plug-in's header.

    Of the header of an instruction set, only the parts for `marks` count (`kernels/n2d2/bindings.hpp`).
    """
    text = active(text, marks)
    includes = _INCLUDE.findall(text)
    if header.startswith("plugins/"):
        source = _source(header, kernels)
        siblings = [name for name in _BESIDE.findall(text) if (source.parent / name).is_file()]
        return includes + [f"{header.rpartition('/')[0]}/{name}" for name in siblings]
    return includes


def needed_headers(first: Iterable[str], kernels: Path, sets: Sequence[InstructionSet] | None = None) -> list[str]:
    """Return paths such as "n2d2/convolution.hpp" below `kernels`, transitively, sorted; of instruction sets (`sets`, else
    all), the parts for operators in use."""
    texts: dict[str, str] = {}
    marks: set[str] = set()
    waiting = set(first)
    while waiting:
        for header in waiting:
            texts[header] = _text(header, kernels, sets)
            marks.update(_MARK.findall(texts[header]))
        known = frozenset(marks)
        waiting = {name for header, text in texts.items() for name in _included(header, text, kernels, known)} - texts.keys()
    return sorted(texts)


def copy_headers(first: Iterable[str], kernels: Path, target: Path, sets: Sequence[InstructionSet] | None = None) -> None:
    """Copy the needed headers into the folder `target`."""
    for header in needed_headers(first, kernels, sets):
        (target / header).parent.mkdir(parents=True, exist_ok=True)
        (target / header).write_text(_text(header, kernels, sets), encoding="utf-8", newline="\n")
