"""Errors and places: every message of the tool names a code, a place, what is wrong and what to do.

Printed form, one line::

    error N2D2-E204: MobileNet.ini:57 [conv3]: NbOutputs=30 is not a multiple of NbGroups=4; set NbOutputs to 28 or 32

Code families: E0xx command line and environment, E1xx INI, E2xx graph, E3xx ONNX import, E4xx data,
E5xx quantization, E6xx memory, E7xx export, E8xx compiled test, E9xx targets of other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Any, ClassVar, TypeVar

R = TypeVar("R")
Words = Callable[[str], str] | None


def readable(text: str) -> str:
    """`text` with an escape for each character that cannot be shown: controls, bytes of names that are not UTF-8."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


@dataclass(frozen=True)
class Location:
    """A place in an input: a file, a line (1-based) and a section or layer, each optional."""

    file: str | None = None
    line: int | None = None
    section: str | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}"
        if self.section is not None:
            place += f" [{self.section}]" if place else f"[{self.section}]"
        return place

    def within(self, section: str) -> Location:
        """Return the same place, seen as part of `section`."""
        return Location(self.file, self.line, section)


class N2D2Error(Exception):
    """Error in the input that stops a run: code such as "E204", what is wrong, where, and the remedy. `what` and `remedy` are
    clauses without a final full stop. `words` names options of the command line otherwise, where it is not the command that
    runs; None: unchanged."""

    words: ClassVar[Words] = None

    def __init__(self, code: str, what: str, *, where: Location | str | None = None, remedy: str | None = None):
        self.code, self.what, self.where, self.remedy = code, what, where, remedy
        super().__init__(self.line())

    def __str__(self) -> str:
        return (N2D2Error.words or str)(self.line())

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes: made again from its parts, not from its message."""
        return partial(type(self), where=self.where, remedy=self.remedy), (self.code, self.what)

    @property
    def errors(self) -> tuple[N2D2Error, ...]:
        """The errors found in one pass: this one alone."""
        return (self,)

    def line(self) -> str:
        """Return the message as the one line that the user sees, without the leading "error"."""
        where = str(self.where) if self.where is not None else ""
        text = f"N2D2-{self.code}: " + (f"{where}: " if where else "") + self.what
        if self.remedy:
            text += f"; {self.remedy}"
        return readable(" ".join(text.split()))


class InternalError(Exception):
    """A broken invariant of the tool itself: a bug, never the user's fault."""


class ErrorList(N2D2Error):
    """Several errors found in one pass; each is printed on its own line."""

    def __init__(self, errors: Iterable[N2D2Error]):
        self._errors = tuple(errors)
        if not self._errors:
            raise InternalError("ErrorList without errors")
        first = self._errors[0]
        super().__init__(first.code, first.what, where=first.where, remedy=first.remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes: all of them."""
        return type(self), (self._errors,)

    @property
    def errors(self) -> tuple[N2D2Error, ...]:
        """All of them."""
        return self._errors

    @staticmethod
    def raise_if(errors: list[N2D2Error]) -> None:
        """Raise nothing for no error, the error itself for one, an ErrorList for more."""
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ErrorList(errors)


def result_unless(code: str, function: Callable[..., R], *arguments: Any) -> R | None:
    """Return function(*arguments); None if it raises an N2D2Error of this code."""
    try:
        return function(*arguments)
    except N2D2Error as error:
        if error.code != code:
            raise
        return None


def join_names(names: Iterable[str], most: int = 12) -> str:
    """Return the first `most` names as a text, and how many more there are."""
    words = list(names)
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word (of the first 2000) most like `word`, ignoring case; None if none is close."""
    by_lower = {name.lower(): name for name in islice(known, 2000)}
    matches = get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def require(package: str, what: str, extra: str, where: Location | None = None) -> None:
    """Raise E320 if a package that `what` requires, part of an extra of this one, is not installed."""
    if find_spec(package) is None:
        remedy = f"pip install 'n2d2py[{extra}]'"
        raise N2D2Error("E320", f"{what} requires the package {package}", where=where, remedy=remedy)


def suggest(word: str, known: Iterable[str], otherwise: str = "", form: str = "'{}'") -> str:
    """Return a remedy for an unknown word: the known one most like it, in `form`, else `otherwise`, by default all known
    ones."""
    known = list(dict.fromkeys(known))
    if close := nearest(word, known):
        return f"did you mean {form.format(close)}?"
    return otherwise or f"use one of {', '.join(known)}"
