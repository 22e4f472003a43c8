"""Schemas: the keys of a section, their kinds and defaults, and typed reading.

One mechanism for all sections. An unknown key is a warning (W102, an error under -strict) with the nearest known key. A key
without effect is an error or a warning (see `ignored`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from n2d2py import log
from n2d2py.errors import ErrorList, InternalError, Location, N2D2Error, nearest, suggest
from n2d2py.ini.config import MergedSection, is_config_key, merge_config
from n2d2py.ini.document import Section, wildcard_match
from n2d2py.ini.ignored import Ignored
from n2d2py.ini.kinds import Kind, Unreadable, convert, shorten


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True)
class Key:
    """A property; `name` may be a pattern of `*` and `?` (read with Values.matching).

    `default`: typed value of an absent property, REQUIRED for none. `minimum` and `maximum` (inclusive) bound numbers and list
    items. With `ignored`, values other than the default have no effect. `check` raises Unreadable for a typed value that is not
    allowed.
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    doc: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    ignored: Ignored | None = None
    check: Callable[[Any], None] | None = None

    @property
    def is_pattern(self) -> bool:
        return "*" in self.name or "?" in self.name

    def read(self, name: str, text: str) -> tuple[Any, list]:
        """Return the typed value and its remarks; raise Unreadable."""
        value, remarks = convert(self.kind, name, text, self.choices)
        for item in value if isinstance(value, tuple) else (value,):
            if self.minimum is not None and item < self.minimum:
                raise Unreadable(f"{name}={shorten(text)} is below {self.minimum}", f"give {self.minimum} or more", "E122")
            if self.maximum is not None and item > self.maximum:
                raise Unreadable(f"{name}={shorten(text)} is above {self.maximum}", f"give {self.maximum} or less", "E122")
        if self.check is not None:
            self.check(value)
        return value, remarks


_TEXT = re.compile(r"^(\S+): (.*)$", re.MULTILINE)


def keys(texts: str, *rows: Key) -> tuple[Key, ...]:
    """Return the keys with documentation: `texts` has lines `Name: sentences`, continued on indented lines, for keys without
    one.

    Raises:
        InternalError: if a text belongs to no key.
    """
    docs = dict(_TEXT.findall(texts.replace("\n    ", " ")))
    documented = tuple(replace(row, doc=row.doc or docs.pop(row.name)) for row in rows)
    if docs:
        raise InternalError(f"no key has the texts of {', '.join(docs)}")
    return documented


@dataclass(frozen=True)
class Schema:
    """The keys of one type of section; `accepted`: known keys without effect."""

    name: str
    keys: tuple[Key, ...]
    accepted: tuple[Ignored, ...] = ()
    doc: str = ""

    def __add__(self, other: Schema) -> Schema:
        """Return a schema with the keys of both; the right one overrides equal keys, name and doc."""
        merged = {key.name: key for key in (*self.keys, *other.keys)}
        accepted = dict.fromkeys((*self.accepted, *other.accepted))
        return Schema(other.name, tuple(merged.values()), tuple(accepted), other.doc or self.doc)

    def extended(self, *keys: Key, name: str | None = None, accepted: Iterable[Ignored] = (), doc: str | None = None) -> Schema:
        """Return a copy with more keys; a key of the same name is replaced."""
        more = self + Schema(name or self.name, keys, tuple(accepted))
        return replace(more, doc=self.doc if doc is None else doc)

    def key(self, name: str) -> Key | None:
        """Return the key of the property `name`: an exact name before a pattern."""
        patterns = None
        for key in self.keys:
            if key.name == name:
                return key
            if patterns is None and key.is_pattern and wildcard_match(key.name, name):
                patterns = key
        return patterns

    def accepts(self, name: str) -> Ignored | None:
        """Return the reason why a property has no effect, or None."""
        return next((entry for entry in self.accepted if wildcard_match(entry.pattern, name)), None)

    def read(self, section: Section | MergedSection, config: Schema | None = None, model: str = "") -> Values:
        """Return the typed values of a section, and those of its ConfigSection if `config` is given.

        Raises:
            N2D2Error: E108 a required property is missing, E109 or E122 a value is not readable or not allowed, E119 no such
                ConfigSection, E124 a key without effect changes results, and errors of expansion; an ErrorList for several.
        """
        errors: list[N2D2Error] = []
        entries = _read_keys(self, section, errors, config)
        if config is not None:
            try:
                merged = merge_config(section, section.document, model)
            except N2D2Error as error:
                errors.append(error)
            else:
                entries.update(_read_keys(config, merged, errors, None))
        ErrorList.raise_if(errors)
        return Values(section, entries)


@dataclass(frozen=True)
class _Entry:
    value: Any
    where: Location | None


class Values:
    """Typed values of one section: given ones and defaults."""

    def __init__(self, section: Section | MergedSection, entries: dict[str, _Entry]):
        self.section = section
        self._entries = entries

    def __getitem__(self, name: str) -> Any:
        """Return the typed value, or the default; raise KeyError for a name that the schema does not have."""
        return self._entries[name].value

    def __contains__(self, name: str) -> bool:
        """True if the schema has the key or the section has a property of one of its patterns."""
        return name in self._entries

    def is_given(self, name: str) -> bool:
        """True if the value is written, not a default."""
        return name in self._entries and self._entries[name].where is not None

    def where(self, name: str) -> Location:
        """Return the place of the value; for a default, the section."""
        entry = self._entries.get(name)
        return entry.where if entry and entry.where else self.section.location

    def fail(self, code: str, what: str, remedy: str, key: str | None = None) -> N2D2Error:
        """Return an error of this section, at the place of `key` if given."""
        return N2D2Error(code, what, where=self.where(key) if key else self.section.location, remedy=remedy)

    def matching(self, pattern: str) -> dict[str, Any]:
        """Return the given values whose names match a pattern of `*` and `?`, in order."""
        return {
            name: entry.value
            for name, entry in self._entries.items()
            if entry.where is not None and wildcard_match(pattern, name)
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name, with defaults."""
        return {name: entry.value for name, entry in self._entries.items()}


def _read_keys(
    schema: Schema, section: Section | MergedSection, errors: list[N2D2Error], config: Schema | None
) -> dict[str, _Entry]:
    section.mark_used()
    entries: dict[str, _Entry] = {}
    for key in schema.keys:
        if not key.is_pattern and not section.has(key.name):
            if key.default is REQUIRED:
                errors.append(_missing_error(schema, key, section))
            else:
                entries[key.name] = _Entry(key.default, None)
    for name in section.keys():
        key = schema.key(name)
        if key is None:
            _read_other(schema, name, section, errors, config)
            continue
        try:
            entries[name] = _read_value(key, name, section)
        except N2D2Error as error:
            errors.append(error)
        else:
            if key.ignored is not None and entries[name].value != key.default:
                _report_ignored(key.ignored, name, section, errors)
    return entries


def _read_other(
    schema: Schema, name: str, section: Section | MergedSection, errors: list[N2D2Error], config: Schema | None
) -> None:
    """Report a key that the schema does not have, unless it is one of a ConfigSection."""
    if config is not None and is_config_key(name):
        return
    entry = schema.accepts(name)
    if entry is None:
        _warn_unknown(schema, name, section, config)
    elif not entry.is_same_behaviour(section.text(name) if entry.same else ""):
        _report_ignored(entry, name, section, errors)


def _report_ignored(entry: Ignored, name: str, section: Section | MergedSection, errors: list[N2D2Error]) -> None:
    """Report a key without effect: an error if it changes results, else a part of the warning for its kind."""
    where, document = section.where(name), section.document
    if entry.changes and not document.described:
        errors.append(entry.error(name, where))
    elif document.is_first_time((where.file, where.line, name, entry.kind)):
        document.ignored.add(entry, name, where)


def _read_value(key: Key, name: str, section: Section | MergedSection) -> _Entry:
    where = section.where(name)
    text = section.text(name)
    try:
        value, remarks = key.read(name, text)
    except Unreadable as problem:
        raise _explain(problem, section, name, text).error(where) from None
    for remark in remarks:
        if section.document.is_first_time((where.file, where.line, name, remark.what)):
            remark.say(where)
    return _Entry(value, where)


def _explain(problem: Unreadable, section: Section | MergedSection, name: str, text: str) -> Unreadable:
    """Add the written text if expansion changed it, or a missing section of a reference, to the problem."""
    raw = section.raw(name)
    if raw.strip() != text.strip():
        return Unreadable(f"{problem.what} (written {shorten(raw)})", problem.remedy, problem.code)
    reference = re.search(r"\[([^\]]+)\]\w", text)
    if reference and section.document.section(reference[1]) is None:
        what = f"{problem.what}: section [{reference[1]}] does not exist"
        return Unreadable(
            what,
            suggest(reference[1], [other.name for other in section.document.sections], problem.remedy, form="[{}]"),
            problem.code,
        )
    return problem


def _missing_error(schema: Schema, key: Key, section: Section | MergedSection) -> N2D2Error:
    unknown = [name for name in section.keys() if schema.key(name) is None and not schema.accepts(name)]
    like = nearest(key.name, unknown)
    remedy = f"is '{like}' meant?" if like else f"add {key.name}=<{key.kind.value}>"
    if not like and key.choices:
        remedy = f"add {key.name}= one of {', '.join(key.choices)}"
    return N2D2Error("E108", f"required property '{key.name}' is missing", where=section.location, remedy=remedy)


def _warn_unknown(schema: Schema, name: str, section: Section | MergedSection, config: Schema | None) -> None:
    where = section.where(name)
    if not section.document.is_first_time((where.file, where.line, name, schema.name)):
        return
    if config is not None and config.key(name) is not None:
        remedy: str | None = f"put {name} in a section named by ConfigSection="
    else:
        remedy = suggest(name, [key.name for key in schema.keys], "remove it or check its spelling")
    log.warning("W102", f"key '{name}' is unknown for {schema.name}; it is ignored", where=where, remedy=remedy)
