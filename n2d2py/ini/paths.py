"""Environment variables and file names in an INI."""

from __future__ import annotations

import os
from pathlib import Path

from n2d2py import resources


def read_environment_variable(name: str) -> str | None:
    """Return the value of the environment variable `name`, or None.

    `N2D2_MODELS`, if unset or empty, is the folder `models` of the installation.
    """
    value = os.environ.get(name)
    if name == "N2D2_MODELS" and not value:
        return str(resources.folder("models"))
    return value


def path_below_models(text: str) -> str | None:
    """Return the part of a path below N2D2_MODELS; None for other paths.

    Files written as ${N2D2_MODELS}/x often are next to the INI.
    """
    models = read_environment_variable("N2D2_MODELS") if os.path.isabs(text) else None
    return text[len(models) + 1 :] if models and text.startswith(f"{models}/") else None


def resolve_path(text: str, folder: Path) -> Path | None:
    """Return the existing file or folder named `text`, or None.

    A relative name is searched in the working directory, then in `folder`, that of the INI file. Files missing from N2D2_MODELS
    are searched in `folder` too.
    """
    if not text or "\0" in text:
        return None
    relative = path_below_models(text) or text
    for candidate in (Path(text), folder / relative):
        try:
            if candidate.exists():
                return candidate
        except OSError:
            return None
    return None
