"""An INI document: its sections in order, found by name or pattern; their raw properties with places, read through expansion."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from n2d2py import log
from n2d2py.errors import Location, N2D2Error, nearest, readable
from n2d2py.ini.expand import Expandable, expand_property
from n2d2py.ini.ignored import IgnoredKeys
from n2d2py.ini.kinds import shorten

MAX_SECTIONS = 5_000
"""Sections of a document: many times those of the largest networks."""


@dataclass(frozen=True)
class Property:
    """An unexpanded value and where it is written; `inherited` when it comes from a base."""

    value: str
    where: Location
    inherited: bool = False


class Section:
    """Named properties in order of declaration; names starting with `$` are macros.

    `includer` is the section whose template brought this one. Values are expanded at each read, so
    that automatic properties set in the meantime are seen.
    """

    def __init__(
        self,
        document: Document,
        name: str,
        location: Location,
        bases: tuple[Section, ...] = (),
        includer: Section | None = None,
    ):
        self.document = document
        self.name = name
        self.location = location
        self.bases = tuple(base.name for base in bases)
        self.includer = includer
        self.used = False
        self._properties: dict[str, Property] = {}
        self._automatic: dict[str, str] = {}
        for base in bases:
            base.mark_used()
            for key, value in base._properties.items():
                self._properties.setdefault(key, Property(value.value, value.where, True))

    def __repr__(self) -> str:
        return f"Section({self.name!r}, {self.location})"

    def assign(self, key: str, value: str, where: Location) -> None:
        """Give a property its value; warn W101 when this section itself gave it one before."""
        old = self._properties.get(key)
        again = old is not None and (old.value, old.where) == (value, where)
        if old is not None and not old.inherited and not again:
            log.warning(
                "W101",
                f"'{key}' is given twice (first at {_place(old.where)}: '{shorten(old.value)}'); the last value is used",
                where=where,
                remedy="remove one of them",
            )
        self._properties[key] = Property(value, where)

    def keys(self) -> list[str]:
        """The property names in order, inherited ones included, without macros."""
        return [key for key in self._properties if not key.startswith("$")]

    def macros(self) -> list[str]:
        """The names of the macros defined in this section, without `$`."""
        return [key[1:] for key in self._properties if key.startswith("$")]

    def has(self, key: str) -> bool:
        """True if the property is written, inherited or automatic."""
        return key in self._properties or key in self._automatic

    def raw(self, key: str) -> str:
        """The unexpanded value; an automatic value hides a written one.

        Raises:
            N2D2Error: E108 when there is no such property.
        """
        if key in self._automatic:
            return self._automatic[key]
        if key in self._properties:
            return self._properties[key].value
        raise self.missing(key, self.location)

    def text(self, key: str) -> str:
        """The value with references, macros and expressions expanded, read from this section.

        Raises:
            N2D2Error: E108 no such property; E110 to E115 for what expansion refuses.
        """
        self.used = True
        return expand_property(self, key)

    def where(self, key: str) -> Location:
        """Where the value is written (in a base when inherited); the header when it is not."""
        if key in self._properties:
            where = self._properties[key].where
            return where.within(self.name) if self.name else where
        return self.location

    def set_automatic(self, key: str, value: object) -> None:
        """Set a property known at build time only, such as `_OutputsWidth`, for references."""
        self._automatic[key] = str(value)

    def mark_used(self) -> None:
        """Keep the section out of the notice on unused sections."""
        self.used = True

    def missing(self, key: str, where: Location) -> N2D2Error:
        """The error for a property that this section does not have, seen from `where`."""
        known = [*self._properties, *self._automatic]
        like = nearest(key, known)
        if like:
            remedy = f"did you mean '{like}'?"
        elif key.startswith("_"):
            remedy = f"it is set when [{self.name}] is built: refer to it from a later layer"
        else:
            remedy = f"add {key}=<value> to [{self.name}]" if self.name else f"add {key}=<value>"
        owner = f"section [{self.name}]" if self.name else "the global section"
        return N2D2Error("E108", f"property '{key}' is missing in {owner}", where=where, remedy=remedy)


def _place(where: Location) -> str:
    return f"line {where.line}" if where.file is None else f"{where.file}:{where.line}"


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
        what = f"section [{name}] does not exist"
        remedy = f"did you mean [{like}]?" if like else f"add section [{name}]"
        raise N2D2Error("E119", what, where=where or Location(str(self.path)), remedy=remedy)

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
            what = f"the document has more than {MAX_SECTIONS:,} sections"
            raise N2D2Error("E123", what, where=section.location, remedy="reduce the loops of the templates")
        first = self._sections.setdefault(section.name, section)
        if first is not section:
            what = f"section [{section.name}] is declared twice (first at {first.location.file}:{first.location.line})"
            raise N2D2Error("E106", what, where=section.location, remedy="rename or remove one of them")

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
