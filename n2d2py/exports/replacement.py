"""Check before an export is replaced: it must be of the same network, and nothing of the user may be lost.

Build results may be lost: whole folders of `make` and CMake, and objects anywhere. Missing files are allowed too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from n2d2py.errors import N2D2Error

MANIFEST = "manifest.json"
TOOL = "n2d2py"

_BUILT_FOLDERS = ("build", "bin", "lib", "outputs", "CMakeFiles", "Testing")
"""Top folders of an export that `make` and CMake fill; also those that begin with build- or cmake-build-."""
_BUILT_FILES = ("CMakeCache.txt", "CTestTestfile.cmake", "cmake_install.cmake")
_BUILT_ENDINGS = (".o", ".d", ".su", ".ci", ".gcda", ".gcno", ".pyc")
_NAMED = 3


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of an export; None if `folder` holds no export of this tool."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("tool") == TOOL else None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


def refuse_replacement(path: Path, network: str, force: bool, shown: str | None = None) -> None:
    """Raise an error if a new export of `network` at `path` would lose user files; `shown` is its name in messages.

    `force` accepts exports of other networks and changed files, but not other folders.

    Raises:
        N2D2Error: E711 if `path` is a file, or another folder; E719 for an export of another network, or with files edited or
            added since it was written.
        OSError: the folder cannot be read.
    """
    shown = shown or str(path)
    remedy = "remove it, or choose another folder with -o"
    if not path.is_dir():
        if path.exists():
            raise N2D2Error("E711", f"{shown} is a file, not an export folder", remedy=remedy)
        return
    if not any(path.iterdir()):
        return
    manifest = read_manifest(path)
    if manifest is None:
        raise N2D2Error("E711", f"{shown} contains files that are not an export", remedy=remedy)
    if force:
        return
    remedy = "add -force to replace it, or choose another folder with -o"
    if manifest.get("network") != network:
        raise N2D2Error("E719", f"{shown} is the export of another model, '{manifest.get('network')}'", remedy=remedy)
    files = manifest.get("files")
    if not isinstance(files, dict):
        raise N2D2Error("E719", f"{shown}: the manifest has no digests, so edited files cannot be detected", remedy=remedy)
    changed = sorted(_changed_files(path, files))
    if changed:
        names = ", ".join(changed[:_NAMED]) + (", ..." if len(changed) > _NAMED else "")
        count = f"{len(changed)} files were" if len(changed) > 1 else "a file was"
        raise N2D2Error("E719", f"{shown}: {count} edited or added since the export: {names}", remedy=remedy)


def _changed_files(folder: Path, files: dict[str, Any]) -> Iterator[str]:
    """Yield the names of files that differ from the manifest or are not in it."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if (path.is_dir() and not path.is_symlink()) or name == Path(MANIFEST):
            continue
        if name.as_posix() in files:
            if path.is_symlink() or not path.is_file() or _digest_or_none(path) != files[name.as_posix()]:
                yield name.as_posix()
        elif not _is_built(name):
            yield name.as_posix()


def _digest_or_none(path: Path) -> str | None:
    try:
        return digest(path)
    except OSError:
        return None


def _is_built(name: Path) -> bool:
    """True if a file of that name, relative to the export, comes from a build."""
    top = name.parts[0]
    inside = len(name.parts) > 1 and (top in _BUILT_FOLDERS or top.startswith(("build-", "cmake-build-")))
    return inside or name.as_posix() in _BUILT_FILES or name.suffix in _BUILT_ENDINGS
