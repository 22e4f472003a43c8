"""Files, as opposed to pipes, sockets and devices, on which a reader would wait for ever or read without end; texts."""

import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def open_regular(path: Path) -> BinaryIO:
    """Return the file opened for reading bytes. Raise OSError as `open`, and for a name with NUL or no regular file."""
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError:
        raise OSError(errno.EINVAL, "no file name can hold NUL", str(path)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file. Raise OSError as `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 with LF, creating the folder; bytes of names that are not UTF-8 become escapes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def json_text(data: Any, ensure_ascii: bool = True) -> str:
    """Return the text of a JSON file of `finite` data."""
    return json.dumps(finite(data), indent=1, allow_nan=False, ensure_ascii=ensure_ascii) + "\n"


def finite(data: Any) -> Any:
    """JSON data with null for numbers that are not finite."""
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
