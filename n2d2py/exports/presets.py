"""Presets of export parameters, by name: the files of `params/`."""

from __future__ import annotations

from pathlib import Path

from n2d2py import resources
from n2d2py.errors import Location, N2D2Error, nearest


def preset_names() -> list[str]:
    """Return the sorted names of the presets.

    Raises:
        N2D2Error: E001 if the installation has no `params`.
    """
    return sorted(file.stem for file in resources.folder("params").glob("*.ini"))


def parameters_file(given: Path | str) -> Path:
    """Return the file for `-export-parameters`: an existing file, else the preset of this name, with or without ".ini".

    A path with folders is never a preset; it is returned unchanged.

    Raises:
        N2D2Error: E101 for a name without folder that is neither a file nor a preset.
    """
    path = Path(given)
    if path.name != str(given) or (path.exists() and not path.is_dir()):
        return path
    known = preset_names()
    name = path.name.removesuffix(".ini")
    if name in known:
        return resources.folder("params") / f"{name}.ini"
    like = nearest(name, known)
    raise N2D2Error(
        "E101",
        "the file does not exist, and no preset has this name",
        where=Location(str(given)),
        remedy=(f"did you mean {like}? " if like else "") + f"use one of {', '.join(known)}",
    )
