"""Names of layers as names of files: without what a file system refuses, not too long, no two alike."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

_REFUSED = re.compile(r'[\\/:*?"<>|\s\x00-\x1f\x7f\ud800-\udfff]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows reserves for devices, whatever the ending."""
_LONGEST = 120  # bytes of a name; file systems take 255, and endings are still to come
_MARK = 8  # hexadecimal digits that tell names apart whose files would be called alike


def plain_file_name(name: str) -> str:
    """`name` with `_` for the characters that file names cannot hold (N2D2's rule, and control characters)."""
    text = _REFUSED.sub("_", name)
    if not text.strip("."):
        return "_" * max(1, len(text))
    return f"{text}_" if _DEVICES.fullmatch(text) else text


def marked_file_name(name: str) -> str:
    """Return the beginning of the plain file name, and a digest of `name`."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    room = _LONGEST - _MARK - 1
    return f"{plain_file_name(name).encode()[:room].decode(errors='ignore')}_{digest}"


def _folded(text: str) -> str:
    """Key by which file systems compare that ignore case and the spelling of accents."""
    return unicodedata.normalize("NFC", text).casefold()


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return the file name of each name: the plain one, marked if it is too long or a duplicate (case ignored)."""
    by_name: dict[str, str] = {}
    used_names: set[str] = set()
    for name in names:
        if name in by_name:
            continue
        text = plain_file_name(name)
        if _folded(text) in used_names or len(text.encode()) > _LONGEST:
            text = marked_file_name(name)
        used_names.add(_folded(text))
        by_name[name] = text
    return by_name
