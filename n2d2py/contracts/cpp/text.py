"""Names and values of a network as parts of C and C++ texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from n2d2py.naming import FreshNames


def literal(text: str) -> str:
    """Return a C string literal of the UTF-8 bytes of `text`."""
    out = []
    for byte in text.encode("utf-8"):
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        out.append(chr(byte) if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def comment(text: str) -> str:
    """`text` on one line, without what would end or continue a comment."""
    return re.sub(r"[^\x20-\x7e]|\\|\*/|\?\?", "_", text)


def file_stems(identifiers: Iterable[str], reserved: Iterable[str]) -> dict[str, str]:
    """Return a file stem for each identifier: itself, numbered where another file differs at most by case."""
    fresh = FreshNames(reserved, key=str.lower)
    return {identifier: fresh(identifier) for identifier in identifiers}


def float_literal(value: float, ctype: str) -> str:
    """Return a C++ expression of type `ctype` ("float" or "double") with exactly this value of that type."""
    value = float(np.float32(value)) if ctype == "float" else float(value)
    if np.isnan(value):
        return f"std::numeric_limits<{ctype}>::quiet_NaN()"
    if np.isinf(value):
        return f"{'-' if value < 0 else ''}std::numeric_limits<{ctype}>::infinity()"
    text = f"{value:.9g}" if ctype == "float" else f"{value:.17g}"
    if not any(mark in text for mark in ".e"):
        text += ".0"
    return text + ("f" if ctype == "float" else "")
