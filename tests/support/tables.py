"""One test for all rows of a table: `@every` has the arguments of `pytest.mark.parametrize` and makes a single case."""

import functools
import inspect
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from n2d2py import log

Row = tuple[str, dict[str, Any]]


def every(
    names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[Any] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the test once for each row, and fail with the list of all rows that fail.

    For rows of milliseconds; rows of seconds stay cases of their own, which run side by side. Tables stack as parameters do.
    Each row has a folder of its own below `tmp_path` and below a temporary working directory, its own `monkeypatch`, and nothing
    in `capsys`, in `caplog` and in the warnings of the tool from the row before.
    """
    fields = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    given = list(rows)
    labels = [ids(row) for row in given] if callable(ids) else [None] * len(given) if ids is None else list(ids)
    table = [as_row(fields, row, label) for row, label in zip(given, labels, strict=True)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        inner, before = getattr(test, "table", (test, [("", {})]))
        joined = [("-".join(filter(None, (b, a))), {**first, **second}) for (a, first), (b, second) in product(table, before)]
        filled = set(fields).union(*(row for _, row in before))
        signature = inspect.signature(inner)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            run_rows(inner, joined, fixtures)

        left = [one for one in signature.parameters.values() if one.name not in filled]
        run.__dict__.update(table=(inner, joined), __signature__=signature.replace(parameters=left))
        return run

    return decorate


def as_row(fields: Sequence[str], row: Any, label: Any) -> Row:
    """A row with its label: the one that is given, or its plain values."""
    if hasattr(row, "marks"):  # pytest.param
        if row.marks:
            raise TypeError("rows with marks are cases of their own: use pytest.mark.parametrize")
        row, label = row.values if len(fields) > 1 else row.values[0], label if row.id is None else row.id
    values = (row,) if len(fields) == 1 else tuple(row)
    if len(values) != len(fields):
        raise TypeError(f"a row of {len(values)} values for {fields}")
    words = (str(v) if v is None or isinstance(v, str | int | float) else getattr(v, "__name__", "") for v in values)
    return ("-".join(filter(None, words)) if label is None else str(label)), dict(zip(fields, values, strict=True))


def run_rows(test: Callable[..., None], rows: Sequence[Row], fixtures: dict[str, Any]) -> None:
    """Run the test on all rows; AssertionError lists those that fail, a skip says how many were skipped."""
    if not rows:
        raise AssertionError("the table is empty")
    failed: list[tuple[str, BaseException]] = []
    skipped: list[str] = []
    here = Path.cwd()
    empty = here.is_relative_to(Path(tempfile.gettempdir()).resolve()) and not any(here.iterdir())
    for number, (label, row) in enumerate(rows):
        with ExitStack() as stack:
            if empty:
                stack.enter_context(own_folder(here / f"row{number}"))
            log._warnings.clear()
            given = {name: of_row(name, fixture, number, stack) for name, fixture in fixtures.items()}
            try:
                test(**given, **row)
            except pytest.skip.Exception as why:
                skipped.append(f"[{label or number}] {why}")
            except (Exception, pytest.fail.Exception) as error:
                failed.append((label or str(number), error))
    if failed:
        shown = "\n".join(f"[{label}] {type(error).__name__}: {error}" for label, error in failed)
        raise AssertionError(f"{len(failed)} of {len(rows)} rows fail:\n{shown}") from failed[0][1]
    if skipped:
        pytest.skip(f"{len(skipped)} of {len(rows)} rows: {skipped[0]}")


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """A working directory for a row."""
    folder.mkdir()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(folder.parent)


def of_row(name: str, fixture: Any, number: int, stack: ExitStack) -> Any:
    """The part of a fixture that a row has."""
    if name == "tmp_path":
        here = Path.cwd()
        if here.parent == fixture and here.name == f"row{number}":
            return here
        fixture = fixture / f"row{number}"
        fixture.mkdir(exist_ok=True)
    elif name == "monkeypatch":
        fixture = stack.enter_context(fixture.context())
    elif name == "capsys":
        fixture.readouterr()
    elif name == "caplog":
        fixture.clear()
    return fixture


def few_fast(rows: Iterable[Any], count: int = 1) -> list[Any]:
    """Rows for `pytest.mark.parametrize`: the first `count` of them in the fast run, the others slow."""
    every_row = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [pytest.param(*row, marks=[pytest.mark.slow] * (number >= count)) for number, row in enumerate(every_row)]
