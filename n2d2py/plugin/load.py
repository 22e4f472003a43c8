"""Loading plug-ins: folders with Python files, and entry points of installed packages."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from n2d2py import entry_points, log
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.plugin import declare
from n2d2py.plugin.registration import check, enter, lists, registries
from n2d2py.registry import Duplicate

_loaded: set[Path] = set()


def load_plugins(folders: list[str]) -> None:
    """The plug-ins of installed packages, then those of the folders.

    Raises:
        N2D2Error: as `load_plugin`.
    """
    for entry in entry_points.declaring_modules():
        found = importlib.util.find_spec(entry.module)
        if found is not None and found.origin:
            load_plugin(Path(found.origin).parent, Path(found.origin))
    for folder in folders:
        load_plugin(folder)


def load_plugin(folder: str | Path, file: Path | None = None) -> None:
    """Make everything known that the Python files of a folder declare; once, however often it is named.

    Files called test_*, conftest.py or _* are left out. Nothing is entered when anything is wrong.

    Raises:
        N2D2Error: E020 no such folder or nothing declared in it, E021 a file that cannot be imported, E022 incomplete
            declarations, E023 names that others have.
    """
    folder = Path(folder)
    if folder.resolve() in _loaded:
        return
    if not folder.is_dir():
        raise N2D2Error("E020", "the folder of the plug-in does not exist", where=str(folder), remedy="correct -plugin")
    files = (
        [file]
        if file
        else sorted(
            path for path in folder.glob("*.py") if not path.name.startswith(("test_", "_")) and path.name != "conftest.py"
        )
    )
    with _undone_on_error():
        before = _entries()
        declare.start()
        for path in files:
            _import(path)
        _enter(declare.finish(), folder, files, [name for name in _entries() if name not in before])


def _entries() -> list[str]:
    """Entries of the registries, by kind and name."""
    return [f"{registry.what} {name}" for registry in registries() for name in registry]


def _enter(declared: list[declare.Declared], folder: Path, files: list[Path], entered: list[str]) -> None:
    """Check and enters declarations; `entered` is what the files put into the registries themselves."""
    if not declared and not entered:
        raise N2D2Error(
            "E020",
            "the Python files in this folder declare no operator, function, recipe or kernel"
            if files
            else "the folder contains no Python file",
            where=str(folder),
            remedy="write @operator before a class; n2d2py -new-operator NAME DIR writes an example",
        )
    kinds = frozenset(one.made.kind for one in declared if hasattr(one.made, "kind"))
    ErrorList.raise_if([error for one in declared for error in check(one, folder, kinds)] + _twice(declared))
    for one in declared:
        enter(one, folder.resolve())
    _loaded.add(folder.resolve())
    log.notice(
        "plug-in %s: %s",
        folder.resolve().name,
        ", ".join([f"{one.what} {getattr(one.made, 'kind', '') or one.made.__name__}" for one in declared] + entered),
    )


@contextmanager
def isolated() -> Iterator[None]:
    """``with isolated():`` plug-ins that are loaded inside are forgotten after it."""
    restore = _snapshot()
    try:
        yield
    finally:
        restore()


@contextmanager
def _undone_on_error() -> Iterator[None]:
    restore = _snapshot()
    try:
        yield
    except BaseException:
        restore()
        raise


def _snapshot() -> Callable[[], None]:
    """A function that puts back what is known now."""
    entries = [(registry, registry.snapshot()) for registry in registries()]
    known = [(held, held.copy()) for held in lists()]
    loaded = _loaded.copy()

    def restore() -> None:
        for registry, before in entries:
            registry.restore(before)
        for held, before in known:
            held.clear()
            held.update(before) if hasattr(held, "update") else held.extend(before)
        _loaded.clear()
        _loaded.update(loaded)

    return restore


def _twice(declared: list[declare.Declared]) -> list[N2D2Error]:
    """E023 for two declarations of one kind in a plug-in."""
    seen, found = set(), []
    for one in declared:
        key = (one.what, getattr(one.made, "kind", one.made.__name__))
        if key in seen:
            found.append(
                N2D2Error(
                    "E023",
                    f"{one.made.__name__}: kind '{key[1]}' is declared twice",
                    where=declare.place_of(one.made),
                    remedy="choose another kind",
                )
            )
        seen.add(key)
    return found


def _import(path: Path) -> None:
    """Run a file as a separate module.

    Raises:
        N2D2Error: E021 with its line.
    """
    name = f"n2d2py_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__plugin_path__"] = str(path)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except N2D2Error:
        sys.modules.pop(name, None)
        raise
    except Duplicate as error:
        sys.modules.pop(name, None)
        raise N2D2Error("E023", str(error), where=Location(str(path)), remedy="choose another name") from error
    except Exception as error:  # whatever foreign code raises while it is imported
        sys.modules.pop(name, None)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == spec.origin]
        line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
        raise N2D2Error(
            "E021",
            f"the plug-in cannot be loaded: {type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}",
            where=Location(str(path), line),
            remedy="correct the file",
        ) from error
