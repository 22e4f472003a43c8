"""Lines of an INI text: continuation, comments, quotes; each line is a header or an assignment.

Rules: a UTF-8 BOM at the start of a line and the CR of a CRLF ending are dropped. A line that ends in a backslash continues on
the next line, before comments are removed. `;` and `#` start a comment outside of a `"..."` pair. `[name] base ...` is a
section header; any other text is `name=value`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from n2d2py import log
from n2d2py.errors import Location, N2D2Error
from n2d2py.files import open_regular
from n2d2py.ini.kinds import shorten

MAX_BYTES = 64 << 20
_COMMENT_OR_QUOTE = re.compile(r'[;#"]')
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class SourceLine:
    """A line of text with its origin: the file as given by the user, and the line number from 1."""

    text: str
    file: str
    line: int


@dataclass(frozen=True)
class Header:
    """`[name@template] base ...`; `template` is the unexpanded file name or None."""

    name: str
    template: str | None
    bases: tuple[str, ...]
    where: Location


@dataclass(frozen=True)
class Assignment:
    """`name=value`, the value unexpanded and without its outer quotes."""

    name: str
    value: str
    where: Location


def read_lines(path: Path) -> list[SourceLine]:
    """Return the lines of a UTF-8 text without line ends and BOM. Raises E101 for an unreadable file, E102 for no text."""
    file = str(path)
    data = _read_bytes(path)
    control = _CONTROL.search(data)
    if control:
        what = f"the file is not text (it contains byte 0x{control.group()[0]:02x})"
        remedy = "give an INI file in UTF-8"
        raise N2D2Error("E102", what, where=Location(file, _line_at(data, control.start())), remedy=remedy)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"the file is not UTF-8 (byte 0x{data[error.start]:02x})"
        remedy = "save the file as UTF-8"
        raise N2D2Error("E102", what, where=Location(file, _line_at(data, error.start)), remedy=remedy) from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [SourceLine(line.removesuffix("\r").removeprefix("\ufeff"), file, number) for number, line in enumerate(lines, 1)]


def _line_at(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _read_bytes(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                what = f"the file is too large for an INI file ({size} bytes)"
                raise N2D2Error("E102", what, where=str(path), remedy="give an INI file in UTF-8")
            return file.read()
    except FileNotFoundError:
        raise N2D2Error("E101", "the file does not exist", where=str(path), remedy="correct the path") from None
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}"
        raise N2D2Error("E101", what, where=str(path), remedy="check the path and its permissions") from None


def join_lines(lines: Iterable[SourceLine]) -> Iterator[SourceLine]:
    """Yield logical lines: continuation lines joined, each at the place of its first line. Warns W104, W105 and W106."""
    parts: list[str] = []
    first = None
    for line in lines:
        first = first or line
        text = line.text
        if text.endswith("\\"):
            parts.append(text[:-1])
            continue
        if text.endswith((" ", "\t")) and _strip_comment_leniently(text).endswith("\\"):
            what = "a backslash with trailing blanks does not continue the line"
            log.warning("W104", what, where=Location(line.file, line.line), remedy="remove the blanks")
        yield from _join_parts(first, parts + [text])
        first, parts = None, []
    if first:
        what = "the last line ends with a continuation backslash"
        log.warning("W105", what, where=Location(first.file, first.line), remedy="remove the backslash")
        yield from _join_parts(first, parts)


def _join_parts(first: SourceLine, parts: list[str]) -> Iterator[SourceLine]:
    start = "".join(parts[:-1])
    if parts[-1].strip() and _strip_comment_leniently(start) != start.strip():
        what = "a comment ending in a backslash continues on the next line"
        log.warning("W106", what, where=Location(first.file, first.line), remedy="remove the backslash")
    yield SourceLine("".join(parts), first.file, first.line)


def _strip_comment_leniently(text: str) -> str:
    try:
        return strip_comment(text)
    except ValueError:
        return text.strip()


def strip_comment(text: str) -> str:
    """Return the line without comment and outer blanks. Raises ValueError for an unpaired `"`."""
    position = 0
    while match := _COMMENT_OR_QUOTE.search(text, position):
        if match.group() != '"':
            return text[: match.start()].strip()
        closing = text.find('"', match.end())
        if closing < 0:
            raise ValueError("unpaired quote")
        position = closing + 1
    return text.strip()


def parse_line(line: SourceLine, section: str | None) -> Header | Assignment | None:
    """Return the header or assignment on a logical line of `section`; None for an empty line.

    Raises E103 for an unpaired quote, E104 without `name=value`, E105 for a malformed header.
    """
    where = Location(line.file, line.line, section)
    try:
        text = strip_comment(line.text)
    except ValueError:
        what = 'a " has no closing quote on this line'
        raise N2D2Error("E103", what, where=where, remedy='close the quotes or remove the "') from None
    if not text:
        return None
    if text.startswith("["):
        return _parse_header(text, Location(line.file, line.line))
    name, equals, value = text.partition("=")
    name = name.rstrip()
    if not equals:
        remedy = f"write {shorten(text, 60)}=<value>, or comment the line out with ;"
        raise N2D2Error("E104", f"property '{shorten(text, 60)}' has no value", where=where, remedy=remedy)
    if name in ("", "$"):
        raise N2D2Error("E104", "a property has no name", where=where, remedy="write name=value")
    return Assignment(name, unquote(value.lstrip()), where)


def _parse_header(text: str, where: Location) -> Header:
    name, bracket, bases = text[1:].partition("]")
    if not bracket:
        raise N2D2Error("E105", f"section header '{shorten(text, 60)}' has no closing ]", where=where, remedy="write [name]")
    name, at, template = (part.strip() for part in name.partition("@"))
    if not name or (at and not template):
        what = f"section header '{shorten(text, 60)}' has no " + ("name" if not name else "template file")
        raise N2D2Error("E105", what, where=where, remedy="write [name] or [name@file.ini.tpl]")
    return Header(name, template or None, tuple(bases.split()), where.within(name))


def unquote(value: str) -> str:
    """Return the value without its outer quotes, if it has no other quotes."""
    if len(value) >= 2 and value[0] == value[-1] == '"' and '"' not in value[1:-1]:
        return value[1:-1]
    return value
