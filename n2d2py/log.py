"""Messages and progress: notices, warnings (counted, repeated at the end), errors, progress bars.

Everything goes to stderr except results, which commands print on stdout. On a terminal messages are wrapped between words and
errors and warnings have a colour (unless NO_COLOR is set, https://no-color.org). Elsewhere each message is one line, and a
stage that takes long says every few seconds how far it is.
"""

import logging
import os
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

from n2d2py.errors import ErrorList, Location, N2D2Error, Words

NOTICE = 25
_logger = logging.getLogger("n2d2py")
_warnings: list[N2D2Error] = []
_strict = False
_bars = False

T = TypeVar("T")


class _Formatter(logging.Formatter):
    _PREFIX: ClassVar[dict[int, str]] = {logging.WARNING: "warning ", logging.ERROR: "error "}
    _COLOUR: ClassVar[dict[int, str]] = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[1;31m"}

    def format(self, record: logging.LogRecord) -> str:
        prefix = self._PREFIX.get(record.levelno, "")
        text = prefix + record.getMessage()
        if not sys.stderr.isatty():
            return text
        text = "\n".join(wrapped(text, terminal_width(), "    "))
        if not prefix or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return text
        return f"{self._COLOUR[record.levelno]}{prefix.rstrip()}\x1b[0m{text[len(prefix) - 1 :]}"


def terminal_width() -> int:
    """Return the number of columns of the terminal, 80 if it is unknown."""
    return max(shutil.get_terminal_size((80, 24)).columns, 20)


def wrapped(text: str, width: int, indent: str) -> list[str]:
    """Return the lines of a text, cut between words only; `indent` stands before all but the first."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    ) or [""]


class _Handler(logging.StreamHandler):
    """Writes to the stderr of the moment, above a running progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        tqdm.write(self.format(record), file=sys.stderr)


def setup(*, quiet: bool = False, verbose: bool = False, strict: bool = False, bars: bool = False, words: Words = None) -> None:
    """Start a run: set what is shown and forget the warnings of an earlier run. `bars`: progress bars are drawn wherever the
    run is, in notebooks as widgets where they are installed. `words`: what names options of the command line in messages
    otherwise."""
    global _strict, _bars
    _strict, _bars = strict, bars
    N2D2Error.words = words
    _warnings.clear()
    logging.addLevelName(NOTICE, "NOTICE")
    handler = _Handler()
    handler.setFormatter(_Formatter())
    _logger.handlers = [handler]
    _logger.propagate = False
    _logger.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else NOTICE)


def notice(text: str, *args: object) -> None:
    """Information about a normal run; hidden by -quiet."""
    _logger.log(NOTICE, text, *args)


def detail(text: str, *args: object) -> None:
    """Shown with -verbose only: why something was or was not done."""
    _logger.debug(text, *args)


def warning(
    code: str, what: str, *, where: Location | str | None = None, remedy: str | None = None, strict: str | None = None
) -> None:
    """Something that is probably not meant; an error under -strict, with the code `strict` if it has one. `code` is such as
    "W104"."""
    problem = N2D2Error(strict if _strict and strict else code, what, where=where, remedy=remedy)
    _warnings.append(problem)
    if not _strict:
        _logger.warning("%s", problem)


def warnings_seen() -> tuple[N2D2Error, ...]:
    """Return the warnings of this run, in order."""
    return tuple(_warnings)


def raise_on_strict() -> None:
    """Under -strict, raises the warnings collected so far as errors; called between the stages."""
    if _strict and _warnings:
        collected = list(_warnings)
        _warnings.clear()
        ErrorList.raise_if(collected)


def report_error(error: N2D2Error) -> None:
    """Print an error, or each error of a list, as one line on stderr."""
    for one in error.errors:
        _logger.error("%s", one)


_EVERY = 5.0  # seconds between two lines of progress where there is no terminal


@contextmanager
def muted() -> Iterator[None]:
    """While it lasts nothing is said, and no warning is kept: for work whose result may not be used."""
    level, warnings = _logger.level, list(_warnings)
    _logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        _logger.setLevel(level)
        _warnings[:] = warnings


def progress(items: Iterable[T], what: str, total: int | None = None, unit: str = "it") -> Iterator[T]:
    """Iterate over `items` and show progress: a bar on a terminal or if bars are enabled, else a line every few seconds. Silent
    if notices are hidden."""
    if _bars:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notebooks without widgets, where the bar is text
            from tqdm.auto import tqdm as bar
        yield from bar(items, desc=what, total=total, unit=unit)
    elif not _logger.isEnabledFor(NOTICE):
        yield from items
    elif sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, unit=unit, leave=False, file=sys.stderr, dynamic_ncols=True)
    else:
        yield from _with_lines(items, what, total, unit)


def _with_lines(items: Iterable[T], what: str, total: int | None, unit: str) -> Iterator[T]:
    start = printed = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and now - printed >= _EVERY:
            printed = now
            left = f" of {total}, about {(now - start) * (total - done) / done:.0f} s left" if total and done < total else ""
            notice("%s: %s %d%s", what, unit, done, left)
        yield item
