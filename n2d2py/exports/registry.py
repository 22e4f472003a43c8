"""Registry of the targets of this package and of installed plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

from n2d2py import entry_points
from n2d2py.errors import N2D2Error, suggest
from n2d2py.exports.base import Target
from n2d2py.registry import Registry

EXTRAS = {"NVDLA": "nvdla"}
"""Extra of this package that installs a target, by target."""

_targets: Registry[Target[Any]] = Registry(
    "the export",
    "n2d2py.exports.cpp.target",
    "n2d2py.exports.ethosu.target",
    "n2d2py.exports.mcu.target",
    "n2d2py.exports.ncnn.target",
    "n2d2py.exports.onnx.target",
    "n2d2py.exports.tflite.target",
    "n2d2py.exports.vulkan.target",
)
_found: Registry[Target[Any]] = Registry("the installed export")


def register(new: Target[Any]) -> None:
    """Register a target under its name; raise InternalError if the name is in use."""
    _targets.add(new.name, new)


def built_in_targets() -> list[Target[Any]]:
    """Return the registered targets of this package, sorted by name."""
    return [_targets[name] for name in sorted(_targets)]


def target_names() -> tuple[str, ...]:
    """Return the names of all targets: those of this package, then of installed plug-ins, each sorted."""
    return (*sorted(_targets), *_entries())


def find_target(name: str) -> Target[Any]:
    """Return the target of that name or N2D2 alias.

    Raises:
        N2D2Error: E700 for an unknown name, with the known ones; E714 if two packages claim the name or one cannot be loaded;
            E721 for a target whose extra is not installed.
    """
    known = _targets.get(name) or _found.get(name) or next((t for t in built_in_targets() if name in t.aliases), None)
    if known is not None:
        return known
    entries = _entries()
    if name not in entries and name in EXTRAS:
        what, remedy = f"the export '{name}' is not installed", f'pip install "n2d2py[{EXTRAS[name]}]"'
        raise N2D2Error("E721", what, where="-export", remedy=remedy)
    if name not in entries:
        stand_in = next((target.name for target in built_in_targets() if name in target.stands_in_for), None)
        remedy = f"use {stand_in}" if stand_in else suggest(name, (*target_names(), *EXTRAS))
        raise N2D2Error("E700", f"the export '{name}' is unknown", where="-export", remedy=remedy)
    if len(entries[name]) > 1:
        raise N2D2Error(
            "E714",
            f"the export '{name}' is provided by several packages: "
            f"{' and '.join(sorted(entry.value for entry in entries[name]))}",
            remedy="uninstall all but one of them",
        )
    return _found.add(name, _load(entries[name][0]))


def installed_targets() -> Iterator[Target[Any]]:
    """Yield the targets of installed plug-ins that can be loaded."""
    for name in _entries():
        try:
            yield find_target(name)
        except N2D2Error:
            continue


def _entries() -> dict[str, list[EntryPoint]]:
    """Return the entry points by name, without names of this package."""
    return {name: entries for name, entries in entry_points.targets().items() if name not in _targets}


def _load(entry: EntryPoint) -> Target[Any]:
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        what = f"plug-in {entry.value} of the export '{entry.name}' cannot be loaded: {type(error).__name__}: {error}"
        raise N2D2Error("E714", what, remedy="repair or uninstall its package") from error
    target = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(target, Target) or target.name != entry.name:
        what = f"plug-in {entry.value} is not a Target named '{entry.name}'"
        raise N2D2Error("E714", what, remedy="repair or uninstall its package")
    return target
