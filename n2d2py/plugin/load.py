"""Loading plug-ins, from folders with Python files and entry points of installed packages; the example for a new one."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from n2d2py import entry_points, log
from n2d2py.contracts.cpp import LAYERS, MORE_SETS, REPLACED_KERNELS
from n2d2py.contracts.functions import FUNCTIONS, ONNX_FUNCTIONS
from n2d2py.contracts.ini.layers import LAYER_TYPES
from n2d2py.contracts.onnx.nodes import CONVERTERS
from n2d2py.contracts.operator import OPERATORS, operator_kinds
from n2d2py.contracts.quant.quantizer import QUANTIZERS
from n2d2py.contracts.reference import EMITTERS
from n2d2py.errors import InternalError, Location, N2D2Error, suggest
from n2d2py.exports.cpp.headers import PLUGIN_FOLDERS
from n2d2py.graph.chains import CHAINS
from n2d2py.memory.access import MEMORY_ACCESSES
from n2d2py.plugin.operator import place_of
from n2d2py.registry import Duplicate, Registry
from n2d2py.resources import templates

_FACETS = OPERATORS, FUNCTIONS, ONNX_FUNCTIONS, LAYER_TYPES, CONVERTERS, EMITTERS, QUANTIZERS, MEMORY_ACCESSES, LAYERS
REGISTRIES: tuple[Registry[Any], ...] = (*_FACETS, CHAINS, REPLACED_KERNELS, MORE_SETS, PLUGIN_FOLDERS)
"""All that a plug-in may add to."""

_NO_PLUGINS = ("test_", "_", "conftest.py")
"""Beginnings of the names of other Python files in the folder of a plug-in."""
_loaded: set[Path] = set()


def load_plugins(folders: list[str]) -> None:
    """Load the plug-ins of installed packages, then those in the folders. Raises as `load_plugin`."""
    for entry in entry_points.declaring_modules():
        spec = importlib.util.find_spec(entry.module)
        if spec is not None and spec.origin:
            load_plugin(Path(spec.origin).parent, Path(spec.origin))
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
    files = [file] if file else [path for path in sorted(folder.glob("*.py")) if not path.name.startswith(_NO_PLUGINS)]
    with isolated(always=False):
        before = set(_entries())
        for path in files:
            _import(path)
        _refuse_unknown_kinds()
        entered = [name for name in _entries() if name not in before]
        if not entered:
            what = "the Python files in this folder declare nothing" if files else "the folder contains no Python file"
            remedy = "write @operator before a class; n2d2py -new-operator NAME DIR writes an example"
            raise N2D2Error("E020", what, where=str(folder), remedy=remedy)
    _loaded.add(folder.resolve())
    log.notice("plug-in %s: %s", folder.resolve().name, ", ".join(entered))


def _entries() -> list[str]:
    return [f"{registry.what} {name}" for registry in REGISTRIES for name in registry]


def _refuse_unknown_kinds() -> None:
    known = {*operator_kinds(), *FUNCTIONS}
    for one in CHAINS.values():
        for kind in (kind for kind in one.kinds if kind not in known):
            what = f"chain {one.name} names '{kind}', which is not a layer type"
            remedy = suggest(kind, known, "load the plug-in that adds it first")
            raise N2D2Error("E022", what, where=place_of(one.becomes), remedy=remedy)


@contextmanager
def isolated(always: bool = True) -> Iterator[None]:
    """``with isolated():`` plug-ins that are loaded inside are forgotten after it; without `always` only after an error."""
    entries, loaded = [(registry, registry.snapshot()) for registry in REGISTRIES], _loaded.copy()
    try:
        yield
    except BaseException:
        always = True
        raise
    finally:
        if always:
            for registry, before in entries:
                registry.restore(before)
            _loaded.clear()
            _loaded.update(loaded)


def _import(path: Path) -> None:
    name = f"n2d2py_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__plugin_path__"] = str(path)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever foreign code raises while it is imported
        sys.modules.pop(name, None)
        if isinstance(error, N2D2Error):
            raise
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == spec.origin]
        line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        code, what, remedy = "E021", f"the plug-in cannot be loaded: {type(error).__name__}: {text}", "correct the file"
        if isinstance(error, InternalError):
            is_taken = isinstance(error, Duplicate)
            code, what, remedy = "E023" if is_taken else "E022", text, "choose another name" if is_taken else "correct it"
        raise N2D2Error(code, what, where=Location(str(path), line), remedy=remedy) from error


_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


def write_skeleton(name: str, folder: Path) -> None:
    """Write `name` in lower case .py and .hpp, and test_<name>.py, into `folder`.

    Raises E025 for a name that is not a CamelCase word, or where a file would be replaced.
    """
    if not _NAME.fullmatch(name):
        what = f"-new-operator {name} is not a valid operator name"
        remedy = "give letters and digits starting with a capital letter, such as LpPool"
        raise N2D2Error("E025", what, where="-new-operator", remedy=remedy)
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    files = {f"{stem}.py": "operator.py", f"{stem}.hpp": "operator.hpp", f"test_{stem}.py": "test_operator.py"}
    existing = next((file for file in files if (folder / file).exists()), None)
    if existing or (folder.exists() and not folder.is_dir()):
        what = f"{existing} already exists" if existing else "the path is a file"
        raise N2D2Error("E025", what, where=str(folder), remedy="choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, template in files.items():
        values = {"name": name, "stem": stem, "call": name[0].lower() + name[1:], "domain": "my", "folder": folder.name}
        text = templates("plugin").get_template(f"{template}.j2").render(values)
        (folder / file).write_text(text, encoding="utf-8", newline="\n")
    log.notice("written: %s in %s; run its test with: python -m pytest %s", ", ".join(files), folder, folder)
