"""Atomic writing of an export, and its manifest.

All files are written into a folder next to the final one, which is replaced by renaming at the end. Until then the previous
export stays unchanged. It must be of the same network, and no file of the user may be lost. Build results may be lost: whole
folders of `make` and CMake, and objects anywhere. Missing files are allowed too.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from n2d2py.errors import N2D2Error
from n2d2py.files import json_text, write_text
from n2d2py.version import __version__

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
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sha256.update(chunk)
    return sha256.hexdigest()


def refuse_replacement(path: Path, network: str, force: bool, shown: str | None = None) -> None:
    """Raise an error if a new export of `network` at `path` would lose user files; `shown` is its name in messages.

    `force` accepts exports of other networks and changed files, but not other folders.

    Raise E711 if `path` is a file, or another folder; E719 for an export of another network, or with files edited or added
    since it was written. Raise OSError if the folder cannot be read.
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
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if (path.is_dir() and not path.is_symlink()) or name == Path(MANIFEST):
            continue
        known = files.get(name.as_posix())
        if known is None:
            changed = not _is_built(name)
        else:
            changed = path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK) or digest(path) != known
        if changed:
            yield name.as_posix()


def _is_built(name: Path) -> bool:
    top = name.parts[0]
    inside = len(name.parts) > 1 and (top in _BUILT_FOLDERS or top.startswith(("build-", "cmake-build-")))
    return inside or name.as_posix() in _BUILT_FILES or name.suffix in _BUILT_ENDINGS


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Manifest:
    """Sources of an export; the digests of its files are added at the end.

    Attributes:
        options, parameters: options and export parameters of the run, plain JSON values.
        inputs: digest by name of each input.
        details: facts of the target for readers of the export, plain JSON values.
        command: command line that reproduces the export from the network's folder; "" if there is none.
    """

    export: str
    network: str
    options: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""

    def text(self, folder: Path) -> str:
        """Return the JSON text, with the SHA-256 of every file in `folder`."""
        files = {
            path.relative_to(folder).as_posix(): digest(path)
            for path in folder.rglob("*")
            if path.is_file() and path != folder / MANIFEST
        }
        data = {
            "tool": TOOL,
            "version": __version__,
            "export": self.export,
            "network": self.network,
            **({"command": self.command} if self.command else {}),
            **{name: dict(getattr(self, name)) for name in ("options", "parameters", "inputs", "details")},
            "files": dict(sorted(files.items())),
        }
        return json_text(data, ensure_ascii=False)


class ExportFolder:
    """``with ExportFolder(path, manifest) as folder:`` a new folder that replaces `path` on success.

    `folder` is empty and lies next to `path`. On any exception, Ctrl-C included, it is removed and `path` is
    left as it was. `force` replaces an export of another network, and one with files that were edited or added.

    Raises:
        N2D2Error: E711 when `path` is a file or a folder that is not an export of this tool; E712 when the place
            cannot be written; E713 when the disk or the quota is full; E719 when files of an export would be lost.
    """

    def __init__(self, path: Path | str, manifest: Manifest, force: bool = False):
        self._shown = str(path)
        self._path = Path(path).resolve()
        self._manifest, self._force = manifest, force
        self._partial = self._path.parent / f".{self._path.name}.partial-{os.getpid()}"
        self._old = self._path.parent / f".{self._path.name}.old-{os.getpid()}"

    def __enter__(self) -> Path:
        with self._explained_failures():
            self._remove_leftovers()
            refuse_replacement(self._path, self._manifest.network, self._force, self._shown)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._partial.mkdir()
        return self._partial

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                with self._explained_failures():
                    write_text(self._partial / MANIFEST, self._manifest.text(self._partial))
                    self._swap()
            elif isinstance(error, OSError):
                with self._explained_failures():
                    raise error
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)
            if self._path.exists():
                shutil.rmtree(self._old, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        """Remove the folders of killed runs; restore a previous export that one had moved aside."""
        for path in self._path.parent.glob(f".{self._path.name}.*-*"):
            stem, _, pid = path.name.rpartition("-")
            if not pid.isdigit() or (int(pid) != os.getpid() and _alive(int(pid))):
                continue
            if stem.endswith(".old") and not self._path.exists():
                os.rename(path, self._path)
            elif stem.endswith((".old", ".partial")):
                shutil.rmtree(path)

    def _swap(self) -> None:
        try:
            if self._path.exists():
                os.rename(self._path, self._old)
            os.rename(self._partial, self._path)
        except BaseException:  # Ctrl-C too
            if self._old.exists() and not self._path.exists():
                os.rename(self._old, self._path)
            raise

    @contextmanager
    def _explained_failures(self) -> Iterator[None]:
        """Turn write failures into E712 and E713; other exceptions pass."""
        try:
            yield
        except OSError as reason:
            if reason.errno in _FULL:
                what = f"{self._shown} cannot be written, as no space is left: {reason.strerror}"
                raise N2D2Error("E713", what, remedy="free some space, or choose another folder with -o") from reason
            if self._is_ours(reason):
                raise _unwritable(self._shown, reason) from reason
            raise

    def _is_ours(self, reason: OSError) -> bool:
        if reason.filename is None:
            return False
        path = Path(os.path.abspath(os.fsdecode(reason.filename)))
        inside = any(place == path or place in path.parents for place in (self._partial, self._old, self._path))
        return inside or path in self._path.parents


def refuse_unwritable(path: Path) -> None:
    """Raise E712 if the export folder cannot be created; no file is left."""
    place = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        os.rmdir(tempfile.mkdtemp(prefix=f".{path.name}.", dir=place))
    except OSError as reason:
        if reason.errno not in _FULL:
            raise _unwritable(str(path), reason) from reason


def _unwritable(shown: str, reason: OSError) -> N2D2Error:
    what = f"{shown} cannot be written: {reason.strerror}"
    return N2D2Error("E712", what, remedy="choose another folder with -o, or change the permissions")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
