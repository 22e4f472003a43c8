"""Small text files: lists of stimuli, labels, synsets, and stimuli as tables of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.files import read_regular

TABLES = (".csv", ".dat", ".txt")
"""Extensions of text files that are stimuli."""
T = TypeVar("T")
_MOST_ERRORS = 10
_LARGEST = float(np.finfo(np.float32).max)
_DELIMITERS = re.compile(r"[,; \t]+")


def unreadable_error(name: Path | str, error: OSError) -> N2D2Error:
    """Return E401 for a file or folder that the system cannot read."""
    return N2D2Error("E401", f"{name} cannot be read: {error.strerror or error}", remedy="check the path and its permissions")


def read_bytes(path: Path, name: str | None = None) -> bytes:
    """Return the bytes of a regular file. Raises E401 missing or unreadable."""
    try:
        return read_regular(path)
    except OSError as error:
        raise unreadable_error(name or path, error) from None


def read_lines(path: Path, comment: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the stripped non-empty lines with their numbers from 1; text after `comment` is dropped.

    Raises: E401 unreadable, E402 not UTF-8 text.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise N2D2Error("E402", f"{path} is not UTF-8 text", remedy="save it as UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if comment:
            line = line.split(comment, 1)[0]
        if line.strip():
            yield number, line.strip()


def parse_lines(path: Path, parse: Callable[[str, Location], T], comment: str | None = None, skip: int = 0) -> list[T]:
    """Return the results of `parse` for each non-empty line after the first `skip` lines of a file, and its place.

    Raises: E401, E402 as `read_lines`; those of `parse`, up to ten of them as an ErrorList.
    """
    rows: list[T] = []
    errors: list[N2D2Error] = []
    for number, line in read_lines(path, comment):
        try:
            if number > skip:
                rows.append(parse(line, Location(str(path), number)))
        except N2D2Error as error:
            errors.append(error)
            if len(errors) == _MOST_ERRORS:
                break
    ErrorList.raise_if(errors)
    return rows


def split_name_and_label(line: str) -> tuple[str, str] | None:
    """Return the two parts of a line `name label`; the name may contain blanks. None without a label."""
    parts = line.rsplit(None, 1)
    return (parts[0].strip().strip('"'), parts[1]) if len(parts) == 2 else None


def number_labels(texts: list[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return label ids and their names: integers >= 0 are ids themselves, else ids by first appearance."""
    if texts and all(text.isascii() and text.isdigit() and len(text) < 7 for text in texts):
        ids = [int(text) for text in texts]
        return ids, tuple(str(label) for label in range(max(ids) + 1))
    known: dict[str, int] = {}
    return [known.setdefault(text, len(known)) for text in texts], tuple(known)


def read_table(path: Path, name: str, header: bool = False) -> np.ndarray:
    """Return the numbers of a file as (H, W, 1) float32, as with N2D2's CsvDataFile.

    Commas, semicolons, blanks and tabs separate numbers; # begins a comment. With `header`, a first line of words is left out.

    Raises: E401 unreadable, E402 no numbers, or rows of different lengths.
    """
    rows = []
    for number, line in read_lines(path, comment="#"):
        try:
            rows.append([float(word) for word in _DELIMITERS.split(line) if word])
        except ValueError:
            if header and not rows:
                header = False
                continue
            raise _damaged_error(name, f"line {number} does not hold numbers") from None
        if not all(abs(value) <= _LARGEST for value in rows[-1]):
            raise _damaged_error(name, f"line {number} holds values that are not finite")
        if len(rows[-1]) != len(rows[0]):
            raise _damaged_error(name, f"line {number} has {len(rows[-1])} numbers, the first one {len(rows[0])}")
    if not any(rows):
        raise _damaged_error(name, "it holds no numbers")
    return np.array(rows, np.float32)[:, :, None]


def _damaged_error(name: str, what: str) -> N2D2Error:
    return N2D2Error("E402", f"{name}: {what}", remedy="store a line of numbers for each row, all of the same length")
