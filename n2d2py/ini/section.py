"""A section of an INI document: raw properties with their places, read through expansion."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from n2d2py import log
from n2d2py.errors import Location, N2D2Error, nearest
from n2d2py.ini.expand import References, expand_property
from n2d2py.ini.ignored import IgnoredKeys


@dataclass(frozen=True)
class Property:
    """An unexpanded value and where it is written; `inherited` when it comes from a base."""

    value: str
    where: Location
    inherited: bool = False


class Siblings(References, Protocol):
    """Interface of a document for its sections and their readers."""

    ignored: IgnoredKeys
    described: bool

    def __contains__(self, name: object) -> bool: ...

    @property
    def folder(self) -> Path:
        """The folder of the INI file."""
        ...

    @property
    def sections(self) -> list[Section]:
        """The named sections in order of declaration."""
        ...

    def section(self, name: str) -> Section | None:
        """The section of that name, or None."""
        ...

    def require(self, name: str, where: Location | None = None) -> Section:
        """The section of that name, named at `where`; E119 when there is none."""
        ...

    def first_time(self, token: Hashable) -> bool:
        """True the first time that `token` is given."""
        ...


class Section:
    """Named properties in order of declaration; names starting with `$` are macros.

    `includer` is the section whose template brought this one. Values are expanded at each read, so
    that automatic properties set in the meantime are seen.
    """

    def __init__(
        self,
        document: Siblings,
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


def shorten(text: str, length: int = 40) -> str:
    """The text on one line, cut to `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."
