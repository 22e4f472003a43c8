"""Expansion of property values: `[section]Property`, `${MACRO}` and `$(expression)`.

A value is scanned once from left to right; each replacement is fully expanded itself. Macros are looked up in the section being
read (the reader), also inside the value of another section (dynamic scoping). Lookup order of macros: SECTION_NAME,
PREV_SECTION_NAME, the reader, the global section, the environment (literal, without further expansion).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from n2d2py.errors import Location, N2D2Error, nearest
from n2d2py.ini.expression import ExpressionError, evaluate
from n2d2py.ini.kinds import shorten
from n2d2py.ini.paths import read_environment_variable

if TYPE_CHECKING:
    from n2d2py.ini.document import Section

MAX_STEPS = 10_000
MAX_CHARACTERS = 4 << 20
MAX_DEPTH = 200
MAX_NAME = 500

_MARK = re.compile(r"\$\{|\$\(|\[")
_PROPERTY = re.compile(r"[A-Za-z0-9_.$()\[\]-]{0,200}")
_PLAIN_NAME = re.compile(r"[\w.$]*")
_CONTINUES = re.compile(r"[A-Za-z0-9_]|\.[A-Za-z0-9_]")
_PAREN_OR_QUOTE = re.compile(r"[()'\"]")


def expand_property(section: Section, key: str) -> str:
    """Return the expanded value of a property, read from `section`.

    Raises:
        N2D2Error: E108 unknown property, E110 unknown macro, E111 circular definition, E112 expression without value,
            E113 expansion too deep or too long, E114 unclosed construct, E115 reference without property name.
    """
    return _Expansion(section).property(section, key)


def expand_text(reader: Section, text: str, where: Location) -> str:
    """Return the expansion of a text at `where`, read from the section `reader`."""
    return _Expansion(reader).text(text, where)


def _match_at(pattern: re.Pattern[str], text: str, place: int = 0) -> str:
    """Return the match of `pattern` at a position of the text; "" without a match."""
    found = pattern.match(text, place)
    return found.group() if found else ""


class _Expansion:
    """State of one read: the chain of definitions being expanded, and the work done."""

    def __init__(self, reader: Section):
        self._reader = reader
        self._document = reader.document
        self._chain: list[str] = []
        self._depth = 0
        self._steps = 0
        self._characters = 0

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
        if self._depth > MAX_DEPTH:
            raise self._too_large(f"more than {MAX_DEPTH} nested definitions", where)
        pieces = []
        position = 0
        while match := _MARK.search(text, position):
            pieces.append(text[position : match.start()])
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise self._too_large(f"more than {MAX_STEPS} replacements", where)
            handle = {"${": self._macro, "$(": self._expression, "[": self._reference}
            piece, position = handle[match.group()](text, match.end(), where)
            self._characters += len(piece)
            if self._characters > MAX_CHARACTERS:
                raise self._too_large(f"more than {MAX_CHARACTERS} characters", where)
            pieces.append(piece)
        pieces.append(text[position:])
        self._depth -= 1
        return "".join(pieces)

    def _too_large(self, what: str, where: Location) -> N2D2Error:
        start = f" of {self._chain[0]}" if self._chain else ""
        return N2D2Error("E113", f"the expansion{start} is too large: {what}", where=where, remedy="simplify the definitions")

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
            value = self._document.previous_section_name(self._reader)
        elif self._reader.has(key):
            value = self.property(self._reader, key)
        elif self._document.globals.has(key):
            self._document.globals.mark_used()
            value = self.property(self._document.globals, key)
        else:
            value = read_environment_variable(name)
        if value is None:
            raise self._unknown_macro(name, where)
        return value, end + 1

    def _unknown_macro(self, name: str, where: Location) -> N2D2Error:
        known = sorted({*self._reader.macros(), *self._document.globals.macros()})
        like = nearest(name, [*known, "SECTION_NAME", "PREV_SECTION_NAME"])
        listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        remedy = f"did you mean ${{{like}}}? otherwise " if like else ""
        what = f"macro ${{{name}}} is not defined (known here: {listed or 'none'})"
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
        section = self._document.find_referenced(name)
        if section is None:
            return "[", start
        run = _match_at(_PROPERTY, text, end + 1)
        for length in range(len(run), 0, -1):
            stop = end + 1 + length
            if section.has(run[:length]) and not _CONTINUES.match(text, stop):
                section.mark_used()
                return self.property(section, run[:length]), stop
        key = _match_at(_PLAIN_NAME, run)
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
