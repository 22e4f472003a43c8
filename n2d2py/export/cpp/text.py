"""Names and values of a network as parts of C and C++ texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["comment", "file_stems", "literal"]


def literal(text: str) -> str:
    """A C string literal of the UTF-8 bytes of `text`."""
    out = []
    for byte in text.encode("utf-8"):
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        out.append(chr(byte) if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def comment(text: str) -> str:
    """`text` on one line, without what would end or continue a comment."""
    return re.sub(r"[^\x20-\x7e]|\\|\*/|\?\?", "_", text)


def file_stems(identifiers: Iterable[str], reserved: Iterable[str]) -> dict[str, str]:
    """A file stem for each identifier: itself, numbered where another file differs at most by case."""
    taken = {name.lower() for name in reserved}
    stems = {}
    for identifier in identifiers:
        stem, number = identifier, 2
        while stem.lower() in taken:
            stem, number = f"{identifier}_{number}", number + 1
        taken.add(stem.lower())
        stems[identifier] = stem
    return stems
