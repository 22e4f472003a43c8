"""An INI document: its sections in order, found by name or pattern, with their values kept lazy."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path

from n2d2py import log
from n2d2py.errors import Location, N2D2Error, nearest, readable
from n2d2py.ini.expand import Expandable
from n2d2py.ini.ignored import IgnoredKeys
from n2d2py.ini.section import Section

__all__ = ["MAX_SECTIONS", "Document", "Section", "wildcard_match"]

MAX_SECTIONS = 5_000
"""Sections of a document: many times those of the largest networks."""


class Document:
    """The sections of one INI file; `globals` holds what stands before the first header.

    `name` is the network's name, the file name without suffix; `files` are the files read. `ignored` holds the keys
    without effect; where only the dimensions of the layers are asked for (`described`), those that change values too.
    """

    def __init__(self, path: Path):
        self.path = path
        self.name = readable(path.stem)
        self.files: list[Path] = []
        self.globals = Section(self, "", Location(str(path), 1))
        self.globals.mark_used()
        self._sections: dict[str, Section] = {}
        self._hidden: dict[str, Section] = {}
        self._said: set[Hashable] = set()
        self.ignored = IgnoredKeys()
        self.described = False

    @property
    def folder(self) -> Path:
        """The folder of the INI file."""
        return self.path.parent

    @property
    def sections(self) -> list[Section]:
        """The named sections in order of declaration."""
        return list(self._sections.values())

    def section(self, name: str) -> Section | None:
        """The section of that name, or None."""
        return self._sections.get(name)

    def require(self, name: str, where: Location | None = None) -> Section:
        """The section of that name, named at `where`.

        Raises:
            N2D2Error: E119 when there is none.
        """
        if name in self._sections:
            return self._sections[name]
        like = nearest(name, self._sections)
        raise N2D2Error(
            "E119",
            f"section [{name}] does not exist",
            where=where or Location(str(self.path)),
            remedy=f"did you mean [{like}]?" if like else f"add section [{name}]",
        )

    def matching(self, pattern: str) -> list[Section]:
        """The sections whose names match a pattern of `*` and `?`, in order of declaration."""
        return [section for section in self.sections if wildcard_match(pattern, section.name)]

    def __contains__(self, name: object) -> bool:
        return name in self._sections

    def add(self, section: Section) -> None:
        """Append a section.

        Raises:
            N2D2Error: E106 when the name is taken, E123 when there are too many sections.
        """
        if len(self._sections) >= MAX_SECTIONS:
            raise N2D2Error(
                "E123",
                f"the document has more than {MAX_SECTIONS:,} sections",
                where=section.location,
                remedy="reduce the loops of the templates",
            )
        first = self._sections.setdefault(section.name, section)
        if first is not section:
            raise N2D2Error(
                "E106",
                f"section [{section.name}] is declared twice (first at {first.location.file}:{first.location.line})",
                where=section.location,
                remedy="rename or remove one of them",
            )

    def automatic_section(self, name: str) -> Section:
        """Where automatic properties of `name` go: its section, else one that only references see.

        Layers of an ONNX file have no section of their own.
        """
        if name in self._sections:
            return self._sections[name]
        where = Location(str(self.path), None, name)
        return self._hidden.setdefault(name, Section(self, name, where))

    def referable(self, name: str) -> Section | None:
        """The section that a reference `[name]` means, or None."""
        return self._sections.get(name) or self._hidden.get(name)

    def previous_name(self, section: Expandable) -> str:
        """The name of the section before `section`, those that include it by template left out."""
        names = list(self._sections)
        if section.name not in self._sections:
            return ""
        including = set()
        includer = section.includer
        while includer is not None:
            including.add(includer.name)
            includer = includer.includer
        for name in reversed(names[: names.index(section.name)]):
            if name not in including:
                return name
        return ""

    def first_time(self, token: Hashable) -> bool:
        """True the first time that `token` is given: says a message once for an inherited value."""
        if token in self._said:
            return False
        self._said.add(token)
        return True

    def notice_unused(self) -> None:
        """Say which sections were never read: to be called when everything has been built."""
        for section in self.sections:
            if not section.used:
                log.notice("%s: this section is unused", section.location)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(character, re.escape(character)) for character in pattern), re.DOTALL)


def wildcard_match(pattern: str, name: str) -> bool:
    """True if `name` matches `pattern`, where `*` is any run of characters and `?` any one."""
    return _compiled(pattern).fullmatch(name) is not None
