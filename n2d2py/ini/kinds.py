"""Kinds of property values: conversion of text to int, float, bool, str or tuple."""

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

from n2d2py import log
from n2d2py.errors import Location, N2D2Error, suggest


def shorten(text: str, length: int = 40) -> str:
    """Return the text on one line, cut to `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."


class Kind(Enum):
    """Kind of a value, with its name in messages and the documentation."""

    UINT = "unsigned integer"
    INT = "integer"
    FLOAT = "number"
    BOOL = "boolean (0 or 1)"
    STRING = "text"
    PATH = "path"
    ENUM = "name"
    UINTS = "list of unsigned integers"
    INTS = "list of integers"
    FLOATS = "list of numbers"
    BOOLS = "list of booleans (0 or 1)"
    STRINGS = "list of texts"
    NAMES = "comma-separated list of names"
    DATATYPE = "data type"


DATA_TYPES = ("Float16", "Float32", "Float64")
UINT_MAX = 2**32 - 1
INT_MAX = 2**31 - 1

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_ITEM = re.compile(r'"([^"]*)"|([^\s"]+)')
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


Say = Callable[[str, str], None]
"""Receiver of what was accepted leniently, and the remedy; "" without one."""


def say_at(where: Location) -> Say:
    """Return a receiver that warns W103 at a place, or logs a notice where there is no remedy."""

    def say(what: str, remedy: str) -> None:
        if remedy:
            log.warning("W103", what, where=where, remedy=remedy)
        else:
            log.notice("%s: %s", where, what)

    return say


def say_nothing(what: str, remedy: str) -> None:
    """Receive what was accepted leniently, and leave it unsaid."""


class Unreadable(ValueError):
    """Reason why a text is not a value of its kind, as a clause, and the remedy; `code` is E109, or E122 if not allowed."""

    def __init__(self, what: str, remedy: str, code: str = "E109"):
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.code = code

    def error(self, where: Location) -> N2D2Error:
        return N2D2Error(self.code, self.what, where=where, remedy=self.remedy)


def convert(kind: Kind, name: str, text: str, choices: tuple[str, ...] = (), say: Say = say_nothing) -> Any:
    """Return `text` as a value of `kind`, for the property `name`; lists become tuples. Raise Unreadable."""
    text = text if kind is Kind.STRING else text.strip()
    if kind in _ELEMENTS:
        return tuple(_read_item(_ELEMENTS[kind], name, item, text, say) for item in text.split())
    if kind in (Kind.UINT, Kind.INT):
        return _parse_integer(kind, name, text, say)
    if kind is Kind.FLOAT:
        if (value := _parse_float(text)) is None:
            raise _unreadable(kind, name, text)
        return value
    if kind is Kind.BOOL:
        return _parse_boolean(name, text, say)
    if kind in (Kind.ENUM, Kind.DATATYPE):
        names = DATA_TYPES if kind is Kind.DATATYPE else choices
        if text not in names:
            what = f"{name}={shorten(text)} is not one of {', '.join(names)}"
            raise Unreadable(what, suggest(text, names), "E122")
        return text
    if kind is Kind.STRINGS:
        return tuple(match[1] if match[1] is not None else match[2] for match in _ITEM.finditer(text))
    return _read_names(name, text) if kind is Kind.NAMES else text


def kind_text(kind: Kind, choices: tuple[str, ...] = ()) -> str:
    """Return the name of the kind for the documentation."""
    if choices:
        return ("one of " if kind is Kind.ENUM else f"{kind.value} of ") + ", ".join(choices)
    return "one of " + ", ".join(DATA_TYPES) if kind is Kind.DATATYPE else kind.value


def _unreadable(kind: Kind, name: str, text: str, remedy: str | None = None) -> Unreadable:
    return Unreadable(f"{name}={shorten(text)} is not {_with_article(kind)}", remedy or f"give {_with_article(kind)}")


def _with_article(kind: Kind) -> str:
    return f"{'an' if kind.value[0] in 'aeiou' else 'a'} {kind.value}"


def _parse_integer(kind: Kind, name: str, text: str, say: Say) -> int:
    if _INTEGER.fullmatch(text) and len(text) < 400:
        value = int(text)
    else:
        number = _parse_float(text)
        if number is None or number != math.floor(number):
            raise _unreadable(kind, name, text, "use // or int(...) for a whole number" if number is not None else None)
        value = int(number)
        remedy = "write it without a fraction (// or int(...) in an expression)"
        say(f"{name}={shorten(text)} is read as the integer {value}", remedy)
    low, high = (0, UINT_MAX) if kind is Kind.UINT else (-INT_MAX - 1, INT_MAX)
    if kind is Kind.UINT and text.startswith("-"):
        raise Unreadable(f"{name}={shorten(text)} is negative", "give an unsigned integer")
    if not low <= value <= high:
        raise Unreadable(f"{name}={shorten(text)} is outside {low} to {high}", "give a number in this range", "E122")
    return value


def _parse_float(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _parse_boolean(name: str, text: str, say: Say) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise _unreadable(Kind.BOOL, name, text, "give 0 or 1")
    is_true = text.lower() in _TRUE
    if text not in ("0", "1"):
        say(f"{name}={text} is read as {int(is_true)}", "")
    return is_true


_ELEMENTS = {Kind.UINTS: Kind.UINT, Kind.INTS: Kind.INT, Kind.FLOATS: Kind.FLOAT, Kind.BOOLS: Kind.BOOL}


def _read_item(kind: Kind, name: str, item: str, text: str, say: Say) -> Any:
    try:
        return convert(kind, name, item, say=say)
    except Unreadable as problem:
        if problem.code != "E109":
            raise
        what = f"{name}={shorten(text)}: '{shorten(item)}' is not {_with_article(kind)}"
        raise Unreadable(what, "separate the items by blanks") from None


def _read_names(name: str, text: str) -> tuple[str, ...]:
    names = tuple(item.strip() for item in text.split(",")) if text else ()
    if "" in names:
        raise Unreadable(f"{name}={shorten(text)} has an empty name", "remove the extra comma")
    return names
