"""Template inclusion: which file `[name@file]` means, and with which parameters it is rendered.

Templates are looked for next to the including file, next to the main INI file, then in the folder
`models`. They must lie in the main file's folder, in `N2D2_MODELS` or in the installed `models`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from n2d2py import resources
from n2d2py.errors import Location, N2D2Error
from n2d2py.ini.document import Document, Section
from n2d2py.ini.expand import expand_text
from n2d2py.ini.lexer import Header, SourceLine
from n2d2py.ini.paths import below_models
from n2d2py.ini.template import Parameter, Renderer

MAX_INCLUSIONS = 1000
MAX_NESTING = 16
_RESERVED = ("SECTION_NAME", "SECTION_FILE_NAME")


class Inclusions:
    """Renders the templates of one document; bounds how many and how deep."""

    def __init__(self, document: Document):
        self._document = document
        self._renderer = Renderer(self._find)
        self._count = 0

    def render(self, section: Section, header: Header) -> list[SourceLine]:
        """The lines that replace the inclusion opened by `header`, placed in the template.

        Raises:
            N2D2Error: E116 no such file, E117 refused, E118 malformed, E120 parameters.
        """
        self._count += 1
        if self._count > MAX_INCLUSIONS or _nesting(section) > MAX_NESTING:
            limit = (
                f"more than {MAX_INCLUSIONS} inclusions"
                if self._count > MAX_INCLUSIONS
                else f"more than {MAX_NESTING} nested inclusions"
            )
            what = f"template '{header.template}' is refused: {limit}"
            raise N2D2Error("E117", what, where=header.where, remedy="remove the recursion")
        for name in _RESERVED:
            if name in section.keys():
                what = f"template parameter '{name}' is reserved"
                raise N2D2Error("E120", what, where=section.where(name), remedy="rename the property")
        section.mark_used()
        name = expand_text(section, header.template or "", header.where)
        path = self._find(name, header.where)
        parameters: dict[str, Parameter] = {key: _reader(section, key) for key in section.keys()}
        parameters["SECTION_NAME"] = section.name
        parameters["SECTION_FILE_NAME"] = str(path)
        return self._renderer.render(path, parameters, section.name)

    def _find(self, name: str, where: Location) -> Path:
        including = Path(where.file or "").parent
        folders = list(dict.fromkeys([including, self._document.folder, *_models_folders()]))
        candidates = [] if "\0" in name else [folder / name for folder in (folders[:1] if os.path.isabs(name) else folders)]
        if candidates and (rest := below_models(name)) is not None:
            candidates += [folder / rest for folder in folders]
        allowed = [candidate for candidate in candidates if self._allowed(candidate)]
        for candidate in allowed:
            if candidate.is_file():
                if candidate not in self._document.files:
                    self._document.files.append(candidate)
                return candidate
        if candidates and (not allowed or any(candidate.is_file() for candidate in candidates)):
            what = f"template '{name}' is outside the folder of the network"
            raise N2D2Error("E117", what, where=where, remedy="move it there, or set N2D2_MODELS to its folder")
        what = f"template '{name}' does not exist"
        raise N2D2Error("E116", what, where=where, remedy="put it next to the INI file or in N2D2_MODELS")

    def _allowed(self, candidate: Path) -> bool:
        real = candidate.resolve()
        roots = [self._document.folder, *_models_folders()]
        return any(real.is_relative_to(root.resolve()) for root in roots)


def _models_folders() -> Iterator[Path]:
    """`N2D2_MODELS`, and the installed `models` when this installation has its data folders."""
    if os.environ.get("N2D2_MODELS"):
        yield Path(os.environ["N2D2_MODELS"])
    try:
        yield resources.folder("models")
    except N2D2Error:
        return


def _nesting(section: Section) -> int:
    depth = 1
    while section.includer is not None:
        depth, section = depth + 1, section.includer
    return depth


def _reader(section: Section, key: str) -> Callable[[], str]:
    return lambda: section.text(key)
