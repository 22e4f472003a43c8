"""Lines of small text files: lists of stimuli, labels, synsets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from n2d2py.errors import N2D2Error
from n2d2py.files import read_regular


def read_lines(path: Path, comment: str | None = None) -> Iterator[tuple[int, str]]:
    """The non-empty lines, stripped, with their numbers from 1; what follows `comment` is dropped.

    Raises:
        N2D2Error: E401 unreadable, E402 not UTF-8 text.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise N2D2Error(
            "E401", f"{path} cannot be read: {error.strerror}", remedy="check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise N2D2Error("E402", f"{path} is not UTF-8 text", remedy="save it as UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if comment:
            line = line.split(comment, 1)[0]
        if line.strip():
            yield number, line.strip()


def name_and_label(line: str) -> tuple[str, str] | None:
    """The two parts of a line `name label`; the name may hold blanks. None without a label."""
    parts = line.rsplit(None, 1)
    return (parts[0].strip().strip('"'), parts[1]) if len(parts) == 2 else None


def label_ids(texts: list[str]) -> tuple[list[int], tuple[str, ...]]:
    """Label ids and their names: integers >= 0 are ids themselves, else ids by first appearance."""
    if texts and all(text.isascii() and text.isdigit() and len(text) < 7 for text in texts):
        ids = [int(text) for text in texts]
        return ids, tuple(str(label) for label in range(max(ids) + 1))
    known: dict[str, int] = {}
    return [known.setdefault(text, len(known)) for text in texts], tuple(known)
