"""Functions that are imported already run the code of a changed syntax tree."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

__all__ = ["patch"]


def patch(path: str, before: CodeType, after: CodeType) -> bool:
    """Gives every function of the file at `path` that runs a part of `before` the same part of `after`; whether that is all of the change.

    What ran at import stays as it is: tables that the module made, default values, classes. It is not all where a function that exists
    has other variables of the functions around it than before: Python does not exchange the code of such a one.
    """
    changed: dict[tuple, CodeType | None] = {}
    for old, new in _pairs(before, after):
        if new is None or old.co_code != new.co_code or old.co_consts != new.co_consts:
            changed[_place(old)] = new
    functions = [
        each
        for each in gc.get_objects()
        if type(each) is FunctionType and each.__code__.co_filename == path and _place(each.__code__) in changed
    ]
    codes = [changed[_place(each.__code__)] for each in functions]
    if None in codes:
        return False
    for each, code in zip(functions, codes, strict=True):
        each.__code__ = code
    return bool(functions)


def _place(code: CodeType) -> tuple:
    """A function by its head; parts of one line are told apart by what they are."""
    return code.co_name, code.co_firstlineno, code.co_varnames, code.co_code, code.co_names


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType | None]]:
    """The functions of `before`, each with what takes its place where it can."""
    inner = [[part for part in code.co_consts if isinstance(part, CodeType)] for code in (before, after)]
    alike = [part.co_name for part in inner[0]] == [part.co_name for part in inner[1]]
    for at, old in enumerate(inner[0]):
        new = inner[1][at] if alike else None
        if new is not None and old.co_freevars == new.co_freevars:
            yield old, new
            yield from _pairs(old, new)
        else:
            yield old, None
