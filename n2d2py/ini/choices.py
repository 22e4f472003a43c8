"""Values of options that name a kind and its settings: KIND:KEY=VALUE,KEY=VALUE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from n2d2py.errors import Location, N2D2Error, suggest
from n2d2py.ini.kinds import Kind, Unreadable
from n2d2py.ini.schema import REQUIRED, Key

Wrong = Callable[[str, str], N2D2Error]
"""The error for what is wrong with a text, and a remedy."""


def option_error(option: str, text: str, where: Location | None = None) -> Wrong:
    """Return the function from a problem of the value `text` of an option, or of an INI key at `where`, and a remedy to E003."""
    return lambda what, remedy: N2D2Error("E003", what if where else f"{option} {text}: {what}", where=where, remedy=remedy)


def require_known(what: str, name: str, known: Collection[str], wrong: Wrong) -> None:
    """Raise the error of `wrong` unless `name` is known; `what` says of which sort it is."""
    if name not in known:
        raise wrong(f"the {what} '{name}' is unknown", suggest(name, known, f"use {', '.join(known)}"))


_LISTS = (Kind.UINTS, Kind.INTS, Kind.FLOATS)
"""Kinds whose items are separated by / in a setting."""


def read_choice(text: str, kinds: Mapping[str, Sequence[Key]], wrong: Wrong) -> tuple[str, dict[str, Any]]:
    """Return the kind and the values of its keys; absent ones have their default. `kinds` has the keys of each kind.

    Raises:
        N2D2Error: that of `wrong`, for an unknown kind or key, a key that is given twice or missing, and a wrong value.
    """
    kind, colon, rest = text.partition(":")
    require_known("kind", kind, kinds, wrong)
    keys, values = {key.name: key for key in kinds[kind]}, {}
    for part in rest.split(",") if colon else ():
        name, _, value = part.partition("=")
        if not value.strip():
            raise wrong(f"'{part}' is not KEY=VALUE", f"write {kind}:KEY=VALUE,... or {kind} alone")
        if name in values:
            raise wrong(f"{name} is given twice", "give it once")
        if name not in keys and (others := [other for other in kinds if name in (key.name for key in kinds[other])]):
            raise wrong(f"{name} has no effect on {kind}", f"remove it, or use {others[0]}")
        require_known("key", name, keys, wrong)
        try:
            values[name] = keys[name].read(name, value.replace("/", " ") if keys[name].kind in _LISTS else value)[0]
        except Unreadable as error:
            raise wrong(error.what, error.remedy) from None
    if missing := [name for name, key in keys.items() if key.default is REQUIRED and name not in values]:
        raise wrong(f"{missing[0]} is missing", f"add {missing[0]}=...")
    return kind, {name: values.get(name, key.default) for name, key in keys.items()}


def without_defaults(text: str, read: Callable[[str], object]) -> str:
    """Return KIND:KEY=VALUE,... without the settings that `read` assumes where they are absent."""
    kind, _, rest = text.partition(":")
    settings, whole = rest.split(",") if rest else [], read(text)
    for setting in list(settings):
        fewer = [one for one in settings if one != setting]
        try:
            unchanged = read(":".join([kind, *[",".join(fewer)] * bool(fewer)])) == whole
        except N2D2Error:  # it is required
            continue
        settings = fewer if unchanged else settings
    return ":".join([kind, *[",".join(settings)] * bool(settings)])
