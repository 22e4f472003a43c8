"""Values of options that name a kind and its settings: KIND:KEY=VALUE,KEY=VALUE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from n2d2py.errors import Location, N2D2Error, suggest

Wrong = Callable[[str, str], N2D2Error]
"""The error for what is wrong with a text, and a remedy."""


def option_error(option: str, text: str, where: Location | None = None) -> Wrong:
    """Return the function from a problem of the value `text` of an option, or of an INI key at `where`, and a remedy to E003."""
    return lambda what, remedy: N2D2Error("E003", what if where else f"{option} {text}: {what}", where=where, remedy=remedy)


def require_known(what: str, name: str, known: Collection[str], wrong: Wrong) -> None:
    """Raise the error of `wrong` unless `name` is known; `what` says of which sort it is."""
    if name not in known:
        raise wrong(f"the {what} '{name}' is unknown", suggest(name, known, f"use {', '.join(known)}"))


def read_settings(text: str, kinds: Mapping[str, Collection[str]], wrong: Wrong) -> tuple[str, dict[str, str]]:
    """Return the kind and the settings of `text`; `kinds` has the keys of each kind.

    Raises:
        N2D2Error: that of `wrong`, for an unknown kind or key, a key that is given twice, and a setting without a value.
    """
    kind, colon, rest = text.partition(":")
    require_known("kind", kind, kinds, wrong)
    settings: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, _, value = part.partition("=")
        if not value.strip():
            raise wrong(f"'{part}' is not KEY=VALUE", f"write {kind}:KEY=VALUE,... or {kind} alone")
        if key in settings:
            raise wrong(f"{key} is given twice", "give it once")
        require_known("key", key, kinds[kind], wrong)
        settings[key] = value
    return kind, settings


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
