"""A whole export as one header: interface, kernels, constants and network, for any project.

A file is put in the place of the line that includes it, and once for each condition under which it is needed; its guard stays, and takes
the place of `#pragma once`.
What no compiler of a microcontroller reads, such as kernels on panels of weights, is left out.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from n2d2py.exports.cpp.headers import active
from n2d2py.resources import templates

_QUOTED = re.compile(r'\s*#\s*include\s+"([^"]+)"')
_SYSTEM = re.compile(r"\s*#\s*include\s+<([^>]+)>")
_DIRECTIVE = re.compile(r"\s*#\s*(ifdef|ifndef|if|else|elif|endif)\b\s*(.*)")
_GUARD = re.compile(r"#ifndef (\w+_HPP|\w+_H)\n#define \1\b")
_ONCE = "#pragma once"
_MARK = re.compile(r"#define N2D2_BIND_(\w+)$")
_MACRO = re.compile(r"^\s*#\s*define\s+(N2D2_\w+)", re.MULTILINE)
_VALUE = re.compile(r"^#define (N2D2_\w+) (\d+)$", re.MULTILINE)
_FOREIGN = tuple("min max abs round bit word sq constrain radians degrees F B0 B1 B10 _N PI".split())
"""Macros of Arduino's headers with names that C++ libraries, kernels or networks use."""


class _Inliner:
    """Puts the files of an export together; `text` grows.

    A condition is known where it asks for a macro that kernels/n2d2/isa.hpp defines as 0 for all cores.
    """

    def __init__(self, folder: Path, own: Sequence[str]):
        self._own = set(own)
        self._places = [folder / name for name in ("include", "dnn/include", "kernels")]
        values: dict[str, set[str]] = {}
        for name, value in _VALUE.findall((folder / "kernels/n2d2/isa.hpp").read_text(encoding="utf-8")):
            values.setdefault(name, set()).add(value)
        self._never = {name for name, bodies in values.items() if bodies == {"0"}}
        self._mark = ""
        self._under: list[str] = []
        self._seen: dict[Path, list[set[str]]] = {}
        self.text: list[str] = []

    def _found(self, name: str, folder: Path) -> Path:
        for place in (folder, *self._places):
            if (place / name).is_file():
                return (place / name).resolve()
        raise FileNotFoundError(f"{name}, included in {folder}")

    def add(self, path: Path) -> None:
        """Append a file, unless it is there under the same conditions."""
        path = path.resolve()
        if any(conditions <= {*self._under} for conditions in self._seen.get(path, ())):
            return
        text = path.read_text(encoding="utf-8")
        if _ONCE in text:
            macro = "N2D2_" + re.sub(r"\W", "_", "_".join(path.parts[-2:])).upper()
            text = text.replace(_ONCE, f"#ifndef {macro}\n#define {macro}") + "#endif\n"
        guard = _GUARD.search(text)
        if guard:
            self._seen.setdefault(path, []).append(set(self._under))
        else:  # bindings.hpp and what it includes: put in each time, with the parts for an operator
            text = active(text, frozenset([self._mark]))
        for line in self._needed_lines(path, text, text[: guard.start()].count("\n") if guard else -1):
            mark, quoted, system = _MARK.match(line), _QUOTED.match(line), _SYSTEM.match(line)
            if mark:
                self._mark = mark[1]
            if quoted:
                self.add(self._found(quoted[1], path.parent))
            elif not (system and system[1] in self._own):
                self.text.append(line)

    def _needed_lines(self, path: Path, text: str, guard: int) -> Iterator[str]:
        """Yield the lines of a file, without those under a condition that never holds; `guard`: number of the line of its guard."""
        outer, skipped = len(self._under), 0
        for number, line in enumerate(text.splitlines()):
            directive = _DIRECTIVE.match(line) if number != guard else None
            word = directive[1] if directive else ""
            if skipped:
                skipped += word.startswith("if") - (word == "endif")
                continue
            if directive and word == "if" and directive[2] in self._never:
                skipped = 1
                continue
            if word.startswith("if"):
                self._under.append(line)
            elif word and len(self._under) > outer:
                self._under.pop()
                if word != "endif":
                    self._under.append(f"{path}:{number}")
            yield line


def _inlined(folder: Path, names: Sequence[str], own: Sequence[str]) -> str:
    inliner = _Inliner(folder, own)
    for name in names:
        inliner.add(folder / name)
    return "\n".join(inliner.text).strip("\n")


def single_file(folder: Path, namespace: str, kernels: str, freestanding: Sequence[str]) -> str:
    """Return the C++11 text of the export in `folder`.

    Args:
        namespace: of the network; `kernels`: that of its kernels.
        freestanding: headers of the C++ library that it includes, which lie in `kernels/freestanding` too.
    """
    sources = [
        str(path.relative_to(folder))
        for part in ("dnn/parameters", "dnn/src")
        for path in sorted((folder / part).glob("*.cpp"))
    ]
    interface = _inlined(folder, [f"include/{namespace}.hpp"], freestanding)
    body = _inlined(folder, [f"include/{namespace}.hpp", *sources], freestanding).removeprefix(interface).strip("\n")
    headers = (folder / "kernels" / "freestanding" / name for name in freestanding)
    own = "\n".join(header.read_text(encoding="utf-8").strip("\n") for header in headers)
    own = re.sub(r"^\s*#\s*include\s+<(" + "|".join(freestanding) + r")>\n", "", own, flags=re.MULTILINE)
    texts = {"own": own, "interface": interface, "body": body, "macros": sorted(set(_MACRO.findall(body)))}
    template = templates("mcu").get_template("packages/single.hpp.j2")
    return template.render(namespace=namespace, kernels=kernels, foreign=_FOREIGN, freestanding=freestanding, **texts)
