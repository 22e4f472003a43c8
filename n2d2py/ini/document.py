"""An INI document: sections in order, found by name or pattern, with raw properties, their places, and expansion.

Expansion replaces `[section]Property`, `${MACRO}` and `$(expression)` in a value. The value is scanned once from left to right;
each replacement is fully expanded itself. Macros are looked up in the section being read (the reader), also inside the value of
another section (dynamic scoping). Lookup order of macros: SECTION_NAME, PREV_SECTION_NAME, the reader, the global section, the
environment (literal, without further expansion).
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from dataclasses import InitVar, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from n2d2py import log, resources
from n2d2py.errors import Location, N2D2Error, nearest, readable, suggest
from n2d2py.ini.expression import ExpressionError, evaluate
from n2d2py.ini.ignored import IgnoredKeys
from n2d2py.ini.kinds import shorten

MAX_SECTIONS = 5_000
"""Limit of the number of sections, far above the largest networks."""

MAX_STEPS = 10_000
MAX_CHARACTERS = 4 << 20
MAX_DEPTH = 200
MAX_NAME = 500

_MARK = re.compile(r"\$\{|\$\(|\[")
_PROPERTY = re.compile(r"[A-Za-z0-9_.$()\[\]-]{0,200}")
_PLAIN_NAME = re.compile(r"[\w.$]*")
_CONTINUES = re.compile(r"[A-Za-z0-9_]|\.[A-Za-z0-9_]")
_PAREN_OR_QUOTE = re.compile(r"[()'\"]")


@dataclass(frozen=True)
class Property:
    """An unexpanded value and its place; `inherited` if it comes from a base."""

    value: str
    where: Location
    inherited: bool = False


@dataclass(eq=False, repr=False)
class Section:
    """Named properties in order of declaration; names that begin with `$` are macros.

    `includer`: the section that included this one by template. Values are expanded at each read, which makes automatic
    properties visible when they are set.
    """

    document: Document
    name: str
    location: Location
    bases: InitVar[tuple[Section, ...]] = ()
    includer: Section | None = None
    used: bool = field(default=False, init=False)
    _properties: dict[str, Property] = field(default_factory=dict, init=False)
    _automatic: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self, bases: tuple[Section, ...]) -> None:
        for base in bases:
            base.mark_used()
            for key, value in base._properties.items():
                self._properties.setdefault(key, Property(value.value, value.where, True))

    def assign(self, key: str, value: str, where: Location) -> None:
        """Set a property; warn W101 if this section has set it before."""
        old = self._properties.get(key)
        is_equal = old is not None and (old.value, old.where) == (value, where)
        if old is not None and not old.inherited and not is_equal:
            place = f"line {old.where.line}" if old.where.file is None else f"{old.where.file}:{old.where.line}"
            what = f"'{key}' is given twice (first at {place}: '{shorten(old.value)}'); the last value is used"
            log.warning("W101", what, where=where, remedy="remove one of them")
        self._properties[key] = Property(value, where)

    def includers(self) -> list[Section]:
        """Return the sections that included this one by template, the innermost first."""
        return [] if self.includer is None else [self.includer, *self.includer.includers()]

    def keys(self) -> list[str]:
        """Return the property names in order, with inherited ones and without macros."""
        return [key for key in self._properties if not key.startswith("$")]

    def macros(self) -> list[str]:
        """Return the names of the macros defined in this section, without `$`."""
        return [key[1:] for key in self._properties if key.startswith("$")]

    def has(self, key: str) -> bool:
        """True if the property is written, inherited or automatic."""
        return key in self._properties or key in self._automatic

    def raw(self, key: str) -> str:
        """Return the unexpanded value; an automatic value hides a written one. Raises E108 for a missing property."""
        if key in self._automatic:
            return self._automatic[key]
        if key in self._properties:
            return self._properties[key].value
        raise self.missing(key, self.location)

    def text(self, key: str) -> str:
        """Return the value with references, macros and expressions expanded in this section.

        Raises E108 for an unknown property, E110 for an unknown macro, E111 to E115 for malformed or endless definitions.
        """
        self.used = True
        return _Expansion(self).property(self, key)

    def where(self, key: str) -> Location:
        """Return the place of the value (in a base if inherited); without a value, the header."""
        if key in self._properties:
            where = self._properties[key].where
            return where.within(self.name) if self.name else where
        return self.location

    def set_automatic(self, key: str, value: object) -> None:
        """Set a property known only when the graph is built, for example `_OutputsWidth`, for references."""
        self._automatic[key] = str(value)

    def mark_used(self) -> None:
        """Exclude the section from the notice on unused sections."""
        self.used = True

    def missing(self, key: str, where: Location) -> N2D2Error:
        """Return the error for a missing property that is referenced at `where`."""
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


class Document:
    """The sections of one INI file; `globals` has the properties before the first header.

    `name`: network name, the file name without suffix; `files`: all files read; `ignored`: the keys without effect. If only
    layer dimensions are needed (`described`), `ignored` includes keys that change values.
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
        """Folder of the INI file."""
        return self.path.parent

    @property
    def sections(self) -> list[Section]:
        """Named sections in order of declaration."""
        return list(self._sections.values())

    def section(self, name: str) -> Section | None:
        """Return the section of that name, or None."""
        return self._sections.get(name)

    def require(self, name: str, where: Location | None = None) -> Section:
        """Return the section of that name, which is referenced at `where`. Raises E119 if there is none."""
        if name in self._sections:
            return self._sections[name]
        what = f"section [{name}] does not exist"
        remedy = suggest(name, self._sections, f"add section [{name}]", form="[{}]")
        raise N2D2Error("E119", what, where=where or Location(str(self.path)), remedy=remedy)

    def matching(self, pattern: str) -> list[Section]:
        """Return the sections whose names match a pattern of `*` and `?`, in order of declaration."""
        return [section for section in self.sections if wildcard_match(pattern, section.name)]

    def __contains__(self, name: object) -> bool:
        return name in self._sections

    def add(self, section: Section) -> None:
        """Append a section. Raises E106 for a duplicate name, E123 for too many sections."""
        if len(self._sections) >= MAX_SECTIONS:
            what = f"the document has more than {MAX_SECTIONS:,} sections"
            raise N2D2Error("E123", what, where=section.location, remedy="reduce the loops of the templates")
        first = self._sections.setdefault(section.name, section)
        if first is not section:
            what = f"section [{section.name}] is declared twice (first at {first.location.file}:{first.location.line})"
            raise N2D2Error("E106", what, where=section.location, remedy="rename or remove one of them")

    def automatic_section(self, name: str) -> Section:
        """Return the section for automatic properties of `name`: the one of that name, else one visible to references only.

        Layers of an ONNX file have no section of their own.
        """
        if name in self._sections:
            return self._sections[name]
        where = Location(str(self.path), None, name)
        return self._hidden.setdefault(name, Section(self, name, where))

    def find_referenced(self, name: str) -> Section | None:
        """Return the section of a reference `[name]`, or None."""
        return self._sections.get(name) or self._hidden.get(name)

    def previous_section_name(self, section: Section) -> str:
        """Return the name of the section before `section`, skipping those that include it by template."""
        names, including = list(self._sections), {one.name for one in section.includers()}
        if section.name not in self._sections:
            return ""
        return next((name for name in reversed(names[: names.index(section.name)]) if name not in including), "")

    def is_first_time(self, token: Hashable) -> bool:
        """True at the first call with `token`: avoids repeated messages for an inherited value."""
        if token in self._said:
            return False
        self._said.add(token)
        return True

    def notice_unused(self) -> None:
        """Report sections that were never read. Call it after everything is built."""
        for section in self.sections:
            if not section.used:
                log.notice("%s: this section is unused", section.location)


def wildcard_match(pattern: str, name: str) -> bool:
    """True if `name` matches `pattern`, where `*` is any run of characters and `?` any single one."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def expand_text(reader: Section, text: str, where: Location) -> str:
    """Return the expansion of a text at `where`, read from the section `reader`."""
    return _Expansion(reader).text(text, where)


@dataclass
class _Expansion:
    """State of one read: the chain of definitions being expanded, and the work done."""

    _reader: Section
    _chain: list[str] = field(default_factory=list)
    _depth: int = 0
    _steps: int = 0
    _characters: int = 0

    def property(self, owner: Section, key: str) -> str:
        label = f"${{{key[1:]}}}" if key.startswith("$") else f"[{owner.name}]{key}"
        if key.startswith("$") and owner.name:
            label += f" of [{owner.name}]"
        where = owner.where(key)
        if label in self._chain:
            chain = " -> ".join(self._chain[self._chain.index(label) :] + [label])
            what = f"the definitions form a cycle: {chain}"
            raise N2D2Error("E111", what, where=where, remedy="give one of them a literal value")
        self._chain.append(label)
        value = self.text(owner.raw(key), where)
        self._chain.pop()
        return value

    def text(self, text: str, where: Location) -> str:
        if _MARK.search(text) is None:
            return text
        self._depth += 1
        self._limit(self._depth, MAX_DEPTH, "nested definitions", where)
        pieces, position = [], 0
        while match := _MARK.search(text, position):
            pieces.append(text[position : match.start()])
            self._steps += 1
            self._limit(self._steps, MAX_STEPS, "replacements", where)
            handle = {"${": self._macro, "$(": self._expression, "[": self._reference}
            piece, position = handle[match.group()](text, match.end(), where)
            self._characters += len(piece)
            self._limit(self._characters, MAX_CHARACTERS, "characters", where)
            pieces.append(piece)
        pieces.append(text[position:])
        self._depth -= 1
        return "".join(pieces)

    def _limit(self, count: int, most: int, what: str, where: Location) -> None:
        if count > most:
            start = f" of {self._chain[0]}" if self._chain else ""
            what = f"the expansion{start} is too large: more than {most} {what}"
            raise N2D2Error("E113", what, where=where, remedy="simplify the definitions")

    def _unclosed(self, mark: str, closing: str, where: Location) -> N2D2Error:
        return N2D2Error("E114", f"'{mark}' has no closing '{closing}'", where=where, remedy=f"add the missing {closing}")

    def _macro(self, text: str, start: int, where: Location) -> tuple[str, int]:
        end = text.find("}", start)
        if end < 0:
            raise self._unclosed("${", "}", where)
        name = text[start:end]
        key = "$" + name
        if name == "SECTION_NAME":
            value: str | None = self._reader.name
        elif name == "PREV_SECTION_NAME":
            value = self._reader.document.previous_section_name(self._reader)
        elif self._reader.has(key):
            value = self.property(self._reader, key)
        elif self._reader.document.globals.has(key):
            self._reader.document.globals.mark_used()
            value = self.property(self._reader.document.globals, key)
        else:
            value = read_environment_variable(name)
        if value is None:
            raise self._unknown_macro(name, where)
        return value, end + 1

    def _unknown_macro(self, name: str, where: Location) -> N2D2Error:
        known = sorted({*self._reader.macros(), *self._reader.document.globals.macros()})
        like = nearest(name, [*known, "SECTION_NAME", "PREV_SECTION_NAME"])
        names = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        remedy = f"did you mean ${{{like}}}? otherwise " if like else ""
        what = f"macro ${{{name}}} is not defined (known here: {names or 'none'})"
        remedy += f"define ${name}=<value> or set the environment variable {name}"
        return N2D2Error("E110", what, where=where, remedy=remedy)

    def _expression(self, text: str, start: int, where: Location) -> tuple[str, int]:
        end = _find_closing(text, start)
        if end is None:
            raise self._unclosed("$(", ")", where)
        written = text[start:end]
        expanded = self.text(written, where)
        try:
            return evaluate(expanded), end + 1
        except ExpressionError as error:
            quoted = f"$({shorten(written, 80)})"
            if expanded != written:
                quoted += f", that is $({shorten(expanded, 80)}),"
            what = f"expression {quoted} has no value: {error}"
            raise N2D2Error("E112", what, where=where, remedy="correct the expression") from None

    def _reference(self, text: str, start: int, where: Location) -> tuple[str, int]:
        end = text.find("]", start, start + MAX_NAME)
        if end < 0:
            return "[", start
        name = text[start:end]
        if "$" in name:
            name = self.text(name, where)
        section = self._reader.document.find_referenced(name)
        if section is None:
            return "[", start
        run = _PROPERTY.match(text, end + 1)[0]  # type: ignore[index]  # it matches nothing, too
        for length in range(len(run), 0, -1):
            stop = end + 1 + length
            if section.has(run[:length]) and not _CONTINUES.match(text, stop):
                section.mark_used()
                return self.property(section, run[:length]), stop
        key = _PLAIN_NAME.match(run)[0]  # type: ignore[index]
        if not key:
            raise N2D2Error("E115", f"reference [{name}] names no property", where=where, remedy=f"write [{name}]Property")
        raise section.missing(key, where)


def _find_closing(text: str, start: int) -> int | None:
    """Return the index of the `)` that closes the parenthesis opened before `start`, skipping quoted text."""
    depth = 1
    position = start
    while match := _PAREN_OR_QUOTE.search(text, position):
        position = match.end()
        mark = match.group()
        if mark in "()":
            depth += 1 if mark == "(" else -1
            if depth == 0:
                return match.start()
        else:
            closing = text.find(mark, position)
            position = closing + 1 if closing >= 0 else position
    return None


def read_environment_variable(name: str) -> str | None:
    """Return the value of an environment variable, or None; N2D2_MODELS is by default the folder of the installation."""
    value = os.environ.get(name)
    if name == "N2D2_MODELS" and not value:
        return str(resources.folder("models"))
    return value


def path_below_models(text: str) -> str | None:
    """Return the part of a path below N2D2_MODELS, which often is next to the INI; None for other paths."""
    models = read_environment_variable("N2D2_MODELS") if os.path.isabs(text) else None
    return text[len(models) + 1 :] if models and text.startswith(f"{models}/") else None


def resolve_path(text: str, folder: Path) -> Path | None:
    """Return the existing file or folder named `text`, or None.

    A relative name is searched in the working directory, then in `folder`, that of the INI file. Files missing from N2D2_MODELS
    are searched in `folder` too.
    """
    if not text or "\0" in text:
        return None
    relative = path_below_models(text) or text
    for candidate in (Path(text), folder / relative):
        try:
            if candidate.exists():
                return candidate
        except OSError:
            return None
    return None
