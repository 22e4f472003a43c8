"""Numbers and names as the report writes them."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Generic, TypeVar

from n2d2py.files import plain_file_name
from n2d2py.naming import FreshNames
from n2d2py.targets import text_table

RowT = TypeVar("RowT")


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as comma-separated values, lines ended by LF."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


@dataclass(frozen=True)
class Figures(Generic[RowT]):
    """A figure of each row of a table that is written as text and as CSV; None is "-" in text and empty in CSV.

    `key`: name in CSV; "": not there. `title`: in text; "": not there. `exact`, `short`: format of numbers in CSV and in
    text.
    """

    value: Callable[[RowT], Any]
    key: str = ""
    title: str = ""
    exact: str = ".9g"
    short: str = ".4g"


def column_text(columns: Iterable[Figures[RowT]], rows: Sequence[RowT], left: int = 1, width: int | None = None) -> str:
    """Return the columns with a title as an aligned table; see `text_table`."""
    shown = [one for one in columns if one.title]
    cells = [[_cell(one.value(row), one.short, "-") for one in shown] for row in rows]
    return text_table([one.title for one in shown], cells, left, width)


def column_csv(columns: Iterable[Figures[RowT]], rows: Iterable[RowT], order: str = "") -> str:
    """Return the columns with a key as comma-separated values, in their order or that of the keys in `order`."""
    by_key = {one.key: one for one in columns if one.key}
    keys = order.split() or list(by_key)
    return csv_text(keys, ([_cell(by_key[key].value(row), by_key[key].exact, "") for key in keys] for row in rows))


def _cell(value: Any, form: str, missing: str) -> str:
    if value is None:
        return missing
    return format(value, form) if isinstance(value, Real) and not isinstance(value, Integral) else str(value)


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """Return a safe file name (without extension) for each name, unique even where case does not count."""
    fresh = FreshNames(key=str.lower)
    return {name: fresh(plain_file_name(re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")[:120] or "layer")) for name in names}


def grouped(value: int) -> str:
    """1234567 as 1,234,567."""
    return f"{value:,}"


def short_bytes(value: int) -> str:
    """Return the bytes in B, KiB or MiB with about three digits."""
    return _short(value, {"MiB": 2**20, "KiB": 2**10}) or f"{value} B"


def short_count(value: int) -> str:
    """Return a count with k, M or G and about three digits."""
    return _short(value, {"G": 10**9, "M": 10**6, "k": 10**3}) or str(value)


def _short(value: int, units: Mapping[str, int]) -> str:
    unit = next((unit for unit, size in units.items() if value >= size), "")
    return unit and f"{value / units[unit]:.{2 if value < 10 * units[unit] else 1}f} {unit}"


def decimal(value: float | None, digits: int = 6) -> str:
    """Return a real number with `digits` significant digits; "" for None."""
    return "" if value is None else f"{value:.{digits}g}"
