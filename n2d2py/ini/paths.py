"""Environment variables and files named by an INI."""
from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from n2d2py import resources

if TYPE_CHECKING:
    from n2d2py.ini.document import Document

__all__ = ["environment", "resolve_path"]


def environment(name: str) -> str | None:
    """The value of the environment variable `name`, or None.

    `N2D2_MODELS`, when unset or empty, is the folder `models` of the installation.
    """
    value = os.environ.get(name)
    if name == "N2D2_MODELS" and not value:
        return str(resources.folder("models"))
    return value


def resolve_path(text: str, document: Document) -> Path | None:
    """The existing file or folder that `text` names, or None.

    A relative name is looked for in the working directory, then beside the INI file.
    """
    if not text or "\0" in text:
        return None
    for candidate in (Path(text), document.path.parent / text):
        try:
            if candidate.exists():
                return candidate
        except OSError:
            return None
    return None
