"""Registry of the targets of this package and of installed plug-ins."""

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from n2d2py import entry_points, resources
from n2d2py.errors import Location, N2D2Error, suggest
from n2d2py.exports.base import Target
from n2d2py.ini import GENERAL, LAYER_PARAMETERS, Params, Schema, read_params
from n2d2py.ini.schema import schema_text
from n2d2py.registry import Registry

EXTRAS = {"EthosU": "ethosu", "NCNN": "ncnn", "NVDLA": "nvdla", "Vulkan": "vulkan"}
"""Extra of this package that installs a target, by target."""

_targets: Registry[Target[Any]] = Registry(
    "the export",
    "n2d2py.exports.cpp.target",
    "n2d2py.exports.mcu.target",
    "n2d2py.exports.onnx.target",
    "n2d2py.exports.tflite.target",
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
    """Return the target of that name or N2D2 alias. Raise E700 for an unknown name, with the known ones; E714 if two packages
    claim the name or one cannot be loaded; E721 for a target whose extra is not installed."""
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
        packages = " and ".join(sorted(entry.value for entry in entries[name]))
        what = f"the export '{name}' is provided by several packages: {packages}"
        raise N2D2Error("E714", what, remedy="uninstall all but one of them")
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


def known_parameters(*more: Target[Any]) -> Schema:
    """Return the parameters of the targets of this package and of `more`; of equal names, the last of `more`, else the first."""
    keys = {key.name: key for target in reversed(built_in_targets()) for key in target.parameters.keys}
    keys.update({key.name: key for target in more for key in target.parameters.keys})
    names = dict.fromkeys(key.name for target in (*built_in_targets(), *more) for key in target.parameters.keys)
    return GENERAL.extended(*(keys[name] for name in names))


def load_params(path: Path | str | None, target: str | None = None) -> Params:
    """Return the export parameters of a file or preset (`parameters_file`) for a target; defaults for None. Raise E101 or E102
    for an unreadable file, E103 to E106 and E121 for malformed text, E109 or E122 for a wrong value, E700 for an unknown
    target; an ErrorList for several. Unknown keys are warnings (W102)."""
    targets = [find_target(target)] if target is not None else []
    schema = known_parameters(*targets)
    layers = LAYER_PARAMETERS.extended(*(key for one in targets for key in one.layer_parameters.keys))
    file = None if path is None else parameters_file(path)
    return read_params(file, schema, layers, lambda: known_parameters(*installed_targets()))


def parameters_help(target: str) -> str:
    """Return the text of `-h` about the parameters of a target. Raise E700, E714 as `find_target`."""
    return schema_text(schema for schema in parameter_schemas([find_target(target)]) if schema.keys)


def parameter_schemas(targets: Sequence[Target[Any]]) -> list[Schema]:
    """Return the export parameters of some targets, and those that all have."""
    of_layers = [target.layer_parameters for target in targets if target.layer_parameters.keys]
    return [GENERAL, *(target.parameters for target in targets), LAYER_PARAMETERS, *of_layers]


def preset_names() -> list[str]:
    """Return the sorted names of the presets, the files of `params`. Raise E001 if the installation has no `params`."""
    return sorted(file.stem for file in resources.folder("params").glob("*.ini"))


def parameters_file(name_or_path: Path | str) -> Path:
    """Return the file for `-export-parameters`: an existing file, else the preset of this name, with or without ".ini".

    A path with folders is never a preset; it is returned unchanged.

    Raise E101 for a name without folder that is neither a file nor a preset.
    """
    path = Path(name_or_path)
    if path.name != str(name_or_path) or (path.exists() and not path.is_dir()):
        return path
    known = preset_names()
    name = path.name.removesuffix(".ini")
    if name in known:
        return resources.folder("params") / f"{name}.ini"
    what = "the file does not exist, and no preset has this name"
    raise N2D2Error("E101", what, where=Location(str(name_or_path)), remedy=suggest(name, known))
