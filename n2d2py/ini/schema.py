"""Schemas: the keys of a section, or of an option KIND:KEY=VALUE,KEY=VALUE, their kinds and defaults, and typed reading.

One mechanism for all sections. An unknown key is a warning (W102, an error under -strict) with the nearest known key. A key
without effect is an error or a warning (see `ignored`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from n2d2py import log
from n2d2py.errors import ErrorList, InternalError, Location, N2D2Error, nearest, suggest
from n2d2py.ini.document import Document, Section, wildcard_match
from n2d2py.ini.ignored import Ignored
from n2d2py.ini.kinds import Kind, Say, Unreadable, convert, kind_text, say_at, say_nothing, shorten

_KEY = "ConfigSection"


def is_config_key(name: str) -> bool:
    """True if the property names config sections: `ConfigSection` or `ConfigSection(Model)`."""
    return name == _KEY or (name.startswith(_KEY + "(") and name.endswith(")"))


def merge_config(section: Section, document: Document, model: str = "") -> Section:
    """Return the merged properties of the sections in `ConfigSection`; later sections override earlier ones.

    For `model`, `ConfigSection(model)` replaces `ConfigSection` if present; a model `X_CUDA` also accepts `ConfigSection(X)`.
    Without any, the result is empty. Raises E119 if a listed section does not exist.
    """
    merged = _MergedSection(document, section.name, section.location)
    models = [model, model.removesuffix("_CUDA")] if model else []
    key = next((key for key in [*(f"{_KEY}({name})" for name in models), _KEY] if section.has(key)), None)
    for name in section.text(key).split(",") if key is not None else ():
        if name.strip():
            owner = document.require(name.strip(), section.where(key or ""))
            owner.mark_used()
            merged.owners.update(dict.fromkeys(owner.keys(), owner))
    return merged


@dataclass(eq=False, repr=False)
class _MergedSection(Section):
    """Merged config sections; each property is read from the section that defines it, of `owners`."""

    owners: dict[str, Section] = field(default_factory=dict, init=False)

    def keys(self) -> list[str]:
        return list(self.owners)

    def has(self, key: str) -> bool:
        return key in self.owners

    def raw(self, key: str) -> str:
        return self.owners[key].raw(key)

    def text(self, key: str) -> str:
        return self.owners[key].text(key)

    def where(self, key: str) -> Location:
        return self.owners[key].where(key) if key in self.owners else self.location


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

    def read(self, name: str, text: str, say: Say = say_nothing) -> Any:
        """Return the typed value; `say` receives what is accepted leniently. Raise Unreadable."""
        value = convert(self.kind, name, text, self.choices, say)
        for item in value if isinstance(value, tuple) else (value,):
            if self.minimum is not None and item < self.minimum:
                raise Unreadable(f"{name}={shorten(text)} is below {self.minimum}", f"give {self.minimum} or more", "E122")
            if self.maximum is not None and item > self.maximum:
                raise Unreadable(f"{name}={shorten(text)} is above {self.maximum}", f"give {self.maximum} or less", "E122")
        if self.check is not None:
            self.check(value)
        return value

    def read_from(self, section: Section, name: str, say: Say = say_nothing) -> Any:
        """Return the typed value of a property of a section. Raises E109 or E122, and errors of expansion."""
        where, text = section.where(name), section.text(name)
        try:
            return self.read(name, text, say)
        except Unreadable as problem:
            raise _explain(problem, section, name, text).error(where) from None


_TEXT = re.compile(r"^(\S+): (.*)$", re.MULTILINE)


def keys(texts: str, *rows: Key) -> tuple[Key, ...]:
    """Return the keys with documentation: `texts` has lines `Name: sentences`, continued on indented lines.

    Raises InternalError if a text belongs to no key.
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

    def read(self, section: Section, config: Schema | None = None, model: str = "") -> Values:
        """Return the typed values of a section, and those of its ConfigSection if `config` is given.

        Raises E108, E109, E119, E122, E124 and errors of expansion; an ErrorList for several.
        """
        values, errors = Values(section), list[N2D2Error]()
        _read_keys(self, section, values, errors, config)
        if config is not None:
            try:
                _read_keys(config, merge_config(section, section.document, model), values, errors, None)
            except N2D2Error as error:
                errors.append(error)
        ErrorList.raise_if(errors)
        return values


@dataclass(eq=False)
class Values:
    """Typed values of one section: given ones, which have places, and defaults."""

    section: Section
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Location] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return the typed value, or the default; raise KeyError for a name that the schema does not have."""
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        """True if the schema has the key or the section has a property of one of its patterns."""
        return name in self.values

    def is_given(self, name: str) -> bool:
        """True if the value is written, not a default."""
        return name in self.places

    def where(self, name: str) -> Location:
        """Return the place of the value; for a default, the section."""
        return self.places.get(name, self.section.location)

    def fail(self, code: str, what: str, remedy: str, key: str | None = None) -> N2D2Error:
        """Return an error of this section, at the place of `key` if given."""
        return N2D2Error(code, what, where=self.where(key) if key else self.section.location, remedy=remedy)

    def matching(self, pattern: str) -> dict[str, Any]:
        """Return the given values whose names match a pattern of `*` and `?`, in order."""
        return {name: self.values[name] for name in self.places if wildcard_match(pattern, name)}

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name, with defaults."""
        return dict(self.values)


def _read_keys(schema: Schema, section: Section, values: Values, errors: list[N2D2Error], config: Schema | None) -> None:
    section.mark_used()
    for key in schema.keys:
        if not key.is_pattern and not section.has(key.name):
            if key.default is REQUIRED:
                errors.append(_missing_error(schema, key, section))
            else:
                values.values[key.name] = key.default
    for name in section.keys():
        key = schema.key(name)
        if key is None:
            _read_other(schema, name, section, errors, config)
            continue
        where = section.where(name)
        try:
            value = key.read_from(section, name, _say_once(section, name))
        except N2D2Error as error:
            errors.append(error)
            continue
        values.values[name], values.places[name] = value, where
        if key.ignored is not None and value != key.default:
            _report_ignored(key.ignored, name, section, errors)


def _say_once(section: Section, name: str) -> Say:
    where = section.where(name)

    def say(what: str, remedy: str) -> None:
        if section.document.is_first_time((where.file, where.line, name, what)):
            say_at(where)(what, remedy)

    return say


def _read_other(schema: Schema, name: str, section: Section, errors: list[N2D2Error], config: Schema | None) -> None:
    if config is not None and is_config_key(name):
        return
    entry = schema.accepts(name)
    if entry is None:
        _warn_unknown(schema, name, section, config)
    elif not entry.is_same_behaviour(section.text(name) if entry.same else ""):
        _report_ignored(entry, name, section, errors)


def _report_ignored(entry: Ignored, name: str, section: Section, errors: list[N2D2Error]) -> None:
    where, document = section.where(name), section.document
    if entry.changes and not document.described:
        errors.append(entry.error(name, where))
    elif document.is_first_time((where.file, where.line, name, entry.kind)):
        document.ignored.add(entry, name, where)


def _explain(problem: Unreadable, section: Section, name: str, text: str) -> Unreadable:
    """Add the written text if expansion changed it, or a missing section of a reference, to the problem."""
    raw = section.raw(name)
    if raw.strip() != text.strip():
        return Unreadable(f"{problem.what} (written {shorten(raw)})", problem.remedy, problem.code)
    reference = re.search(r"\[([^\]]+)\]\w", text)
    if reference and section.document.section(reference[1]) is None:
        known = [other.name for other in section.document.sections]
        what = f"{problem.what}: section [{reference[1]}] does not exist"
        return Unreadable(what, suggest(reference[1], known, problem.remedy, form="[{}]"), problem.code)
    return problem


def _missing_error(schema: Schema, key: Key, section: Section) -> N2D2Error:
    unknown = [name for name in section.keys() if schema.key(name) is None and not schema.accepts(name)]
    like = nearest(key.name, unknown)
    remedy = f"is '{like}' meant?" if like else f"add {key.name}=<{key.kind.value}>"
    if not like and key.choices:
        remedy = f"add {key.name}= one of {', '.join(key.choices)}"
    return N2D2Error("E108", f"required property '{key.name}' is missing", where=section.location, remedy=remedy)


def _warn_unknown(schema: Schema, name: str, section: Section, config: Schema | None) -> None:
    where = section.where(name)
    if not section.document.is_first_time((where.file, where.line, name, schema.name)):
        return
    if config is not None and config.key(name) is not None:
        remedy: str | None = f"put {name} in a section named by ConfigSection="
    else:
        remedy = suggest(name, [key.name for key in schema.keys], "remove it or check its spelling")
    log.warning("W102", f"key '{name}' is unknown for {schema.name}; it is ignored", where=where, remedy=remedy)


Wrong = Callable[[str, str], N2D2Error]
"""The error for what is wrong with a text, and a remedy."""


def option_error(option: str, text: str, where: Location | None = None) -> Wrong:
    """Return the function from a problem of the value `text` of an option, or INI key at `where`, and a remedy to E003."""
    return lambda what, remedy: N2D2Error("E003", what if where else f"{option} {text}: {what}", where=where, remedy=remedy)


def require_known(what: str, name: str, known: Collection[str], wrong: Wrong) -> None:
    """Raise the error of `wrong` unless `name` is known; `what` says of which sort it is."""
    if name not in known:
        raise wrong(f"the {what} '{name}' is unknown", suggest(name, known, f"use {', '.join(known)}"))


_LISTS = (Kind.UINTS, Kind.INTS, Kind.FLOATS)
"""Kinds whose items are separated by / in a setting."""


def read_choice(text: str, kinds: Mapping[str, Sequence[Key]], wrong: Wrong) -> tuple[str, dict[str, Any]]:
    """Return the kind and the values of its keys; absent ones have their default. `kinds` has the keys of each kind.

    Raises that of `wrong`, for an unknown kind or key, a key that is given twice or missing, and a wrong value.
    """
    kind, colon, rest = text.partition(":")
    require_known("kind", kind, kinds, wrong)
    keys, values = {key.name: key for key in kinds[kind]}, {}
    for part in rest.split(",") if colon else ():
        name, _, value = part.partition("=")
        if not value.strip():
            raise wrong(f"'{part}' is not KEY=VALUE", f"write {kind}:KEY=VALUE,... or {kind} alone")
        if name in values:
            raise wrong(f"{name} is given twice", "give it once")
        if name not in keys and (others := [other for other in kinds if name in (key.name for key in kinds[other])]):
            raise wrong(f"{name} has no effect on {kind}", f"remove it, or use {others[0]}")
        require_known("key", name, keys, wrong)
        try:
            values[name] = keys[name].read(name, value.replace("/", " ") if keys[name].kind in _LISTS else value)
        except Unreadable as error:
            raise wrong(error.what, error.remedy) from None
    if missing := [name for name, key in keys.items() if key.default is REQUIRED and name not in values]:
        raise wrong(f"{missing[0]} is missing", f"add {missing[0]}=...")
    return kind, {name: values.get(name, key.default) for name, key in keys.items()}


def without_defaults(text: str, read: Callable[[str], object]) -> str:
    """Return KIND:KEY=VALUE,... without the settings that `read` assumes where they are absent."""
    kind, _, rest = text.partition(":")
    settings, whole = rest.split(",") if rest else [], read(text)
    for setting in list(settings):
        fewer = [one for one in settings if one != setting]
        try:
            unchanged = read(":".join([kind, *[",".join(fewer)] * bool(fewer)])) == whole
        except N2D2Error:  # it is required
            continue
        settings = fewer if unchanged else settings
    return ":".join([kind, *[",".join(settings)] * bool(settings)])


# ---- documentation ------------------------------------------------------------------------------
def schema_text(schemas: Iterable[Schema]) -> str:
    """Return the same content for a terminal, without the keys that have no effect."""
    lines = []
    for schema in schemas:
        lines += ["", f"{schema.name}:"]
        for key in schema.keys:
            lines.append(f"  {key.name} = {kind_cell(key)} [{default_cell(key).strip('`')}]")
            lines += textwrap.wrap(key.doc, 70, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines)


def kind_cell(key: Key) -> str:
    """Return the kind of a key with its limits, for a table."""
    kind = kind_text(key.kind, key.choices)
    if key.minimum is not None:
        kind += f", at least {key.minimum}"
    if key.maximum is not None:
        kind += f", at most {key.maximum}"
    return kind


def default_cell(key: Key) -> str:
    """Return the default of a key as Markdown."""
    value: Any = key.default
    if value is REQUIRED:
        return "" if key.is_pattern else "required"
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return f"`{int(value)}`"
    if isinstance(value, tuple):
        return f"`{' '.join(str(item) for item in value)}`"
    return f"`{value}`"
