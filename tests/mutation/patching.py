"""Functions that are imported already run the code of a changed syntax tree."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

__all__ = ["patch"]


def patch(path: str, before: CodeType, after: CodeType) -> bool:
    """Gives every function of the file at `path` that runs a part of `before` the same part of `after`; whether there was one.

    What ran at import stays as it is: tables that the module made, default values, classes.
    """
    changed = {
        _place(old): new for old, new in _pairs(before, after) if old.co_code != new.co_code or old.co_consts != new.co_consts
    }
    found = False
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename == path and _place(each.__code__) in changed:
            each.__code__ = changed[_place(each.__code__)]
            found = True
    return found


def _place(code: CodeType) -> tuple:
    """A function by its head; parts of one line are told apart by what they are."""
    return code.co_name, code.co_firstlineno, code.co_varnames, code.co_code, code.co_names


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    inner = [[part for part in code.co_consts if isinstance(part, CodeType)] for code in (before, after)]
    if [part.co_name for part in inner[0]] != [part.co_name for part in inner[1]]:
        return
    for old, new in zip(*inner, strict=True):
        if old.co_name == new.co_name and old.co_freevars == new.co_freevars:
            yield old, new
            yield from _pairs(old, new)
