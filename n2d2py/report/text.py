"""Numbers and names as the report writes them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from n2d2py.files import plain_file_name
from n2d2py.naming import numbered_name


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as comma-separated values, lines ended by LF."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """A safe file name (without extension) for each name, unique even where case does not count."""
    stems: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        base = plain_file_name(re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")[:120] or "layer")
        stem = numbered_name(base, lambda name: name.lower() in taken)
        taken.add(stem.lower())
        stems[name] = stem
    return stems


def grouped(value: int) -> str:
    """1234567 as 1,234,567."""
    return f"{value:,}"


def short_bytes(value: int) -> str:
    """Bytes in B, KiB or MiB with about three digits."""
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            amount = value / size
            return f"{amount:.2f} {unit}" if amount < 10 else f"{amount:.1f} {unit}"
    return f"{value} B"


def short_count(value: int) -> str:
    """A count with k, M or G and about three digits."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            amount = value / size
            return f"{amount:.2f} {unit}" if amount < 10 else f"{amount:.1f} {unit}"
    return str(value)


def shorten(text: str, length: int) -> str:
    """At most `length` characters: the beginning and the end, which tell layers apart, around an ellipsis."""
    if len(text) <= length:
        return text
    head = (length - 1) // 3
    return text[:head] + "…" + text[len(text) - (length - 1 - head) :]


def decimal(value: float | None, digits: int = 6) -> str:
    """A real number with `digits` significant digits; "" for None."""
    return "" if value is None else f"{value:.{digits}g}"
