"""Export parameters of all targets: reading for one target, and documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from n2d2py import resources
from n2d2py.error_codes import code_table
from n2d2py.errors import Location, N2D2Error, suggest
from n2d2py.exports.base import Target
from n2d2py.exports.registry import built_in_targets, find_target, installed_targets
from n2d2py.ini import GENERAL, LAYER_PARAMETERS, Params, Schema, read_params
from n2d2py.ini.docs import schema_page, schema_text


def known_parameters(*more: Target[Any]) -> Schema:
    """Return the parameters of the targets of this package and of `more`; of equal names, the last of `more`, else the first."""
    keys = {key.name: key for target in reversed(built_in_targets()) for key in target.parameters.keys}
    keys.update({key.name: key for target in more for key in target.parameters.keys})
    names = dict.fromkeys(key.name for target in (*built_in_targets(), *more) for key in target.parameters.keys)
    return GENERAL.extended(*(keys[name] for name in names))


def load_params(path: Path | str | None, target: str | None = None) -> Params:
    """Return the export parameters of a file or preset (`parameters_file`) for a target; defaults for None.

    Raises:
        N2D2Error: E101, E102 unreadable file, E103 to E106 and E121 malformed text, E109 or E122 a wrong value, E700 an unknown
            target; an ErrorList for several. Unknown keys are warnings (W102).
    """
    targets = [find_target(target)] if target is not None else []
    schema = known_parameters(*targets)
    layers = LAYER_PARAMETERS.extended(*(key for one in targets for key in one.layer_parameters.keys))
    file = None if path is None else parameters_file(path)
    return read_params(file, schema, layers, lambda: known_parameters(*installed_targets()))


def parameters_page() -> str:
    """Return the documentation page of the export parameters of this package, in Markdown."""
    return schema_page(_schemas(built_in_targets()), "Export parameters")


def target_page(target: Target[Any]) -> str:
    """Return the reference page of a target of another package, in Markdown: parameters, layer parameters, codes."""
    schemas = [schema for schema in (target.parameters, target.layer_parameters) if schema.keys]
    text = schema_page(schemas, f"{target.name}: parameters, errors and warnings")
    codes = "\n".join(["", "## Errors and warnings", "", *code_table(target.codes), ""]) if target.codes else ""
    return text + codes


def parameters_help(target: str) -> str:
    """Return the text of `-h` about the parameters of a target. Raise E700, E714 as `find_target`."""
    return schema_text(schema for schema in _schemas([find_target(target)]) if schema.keys)


def _schemas(targets: Sequence[Target[Any]]) -> list[Schema]:
    of_layers = [target.layer_parameters for target in targets if target.layer_parameters.keys]
    return [GENERAL, *(target.parameters for target in targets), LAYER_PARAMETERS, *of_layers]


def preset_names() -> list[str]:
    """Return the sorted names of the presets, the files of `params`. Raise E001 if the installation has no `params`."""
    return sorted(file.stem for file in resources.folder("params").glob("*.ini"))


def parameters_file(name_or_path: Path | str) -> Path:
    """Return the file for `-export-parameters`: an existing file, else the preset of this name, with or without ".ini".

    A path with folders is never a preset; it is returned unchanged.

    Raises:
        N2D2Error: E101 for a name without folder that is neither a file nor a preset.
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
