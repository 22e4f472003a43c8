"""Environment variables and files named by an INI."""

from __future__ import annotations

import os
from pathlib import Path

from n2d2py import resources


def environment(name: str) -> str | None:
    """The value of the environment variable `name`, or None.

    `N2D2_MODELS`, when unset or empty, is the folder `models` of the installation.
    """
    value = os.environ.get(name)
    if name == "N2D2_MODELS" and not value:
        return str(resources.folder("models"))
    return value


def below_models(text: str) -> str | None:
    """The rest of a path below N2D2_MODELS; None for other paths.

    Files written as ${N2D2_MODELS}/x often stand next to the INI.
    """
    models = environment("N2D2_MODELS") if os.path.isabs(text) else None
    return text[len(models) + 1 :] if models and text.startswith(f"{models}/") else None


def resolve_path(text: str, folder: Path) -> Path | None:
    """The existing file or folder that `text` names, or None.

    A relative name is looked for in the working directory, then in `folder`, that of the INI file; the latter also what
    is not in the folder N2D2_MODELS.
    """
    if not text or "\0" in text:
        return None
    beside = below_models(text) or text
    for candidate in (Path(text), folder / beside):
        try:
            if candidate.exists():
                return candidate
        except OSError:
            return None
    return None
