"""`python -m n2d2py.docs [FOLDER]` writes the documentation pages that are generated from tables, and without FOLDER
the headers of `kernels/` that are."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from n2d2py import resources
from n2d2py.data import database_schemas, provider_schemas, transformation_schemas
from n2d2py.error_codes import errors_page
from n2d2py.exports.cpp.isa_headers import isa_page, write_isa_headers
from n2d2py.exports.parameters import parameters_page, target_page
from n2d2py.exports.registry import EXTRAS, installed_targets
from n2d2py.frontend.ini.contract import layer_types
from n2d2py.frontend.ini.network import GLOBALS, INPUT_SECTION, REFUSED
from n2d2py.frontend.ini.onnx_section import ONNX_LAYER, ONNX_SECTION
from n2d2py.frontend.ini.targets import TARGET
from n2d2py.ini.docs import layer_table, schema_page
from n2d2py.options import man_page, options_page

_DOCS = Path(__file__).resolve().parent.parent / "docs"
_FORMS = {
    "`Kernel=` of Conv and Deconv": "filters are stored as weights (E124)",
    "`KernelDims`, `PoolDims` of three values": "layers have two axes (E211); `KernelDepth` and `PoolDepth` above 1 are E124",
    "`Model=Spike`, `RRAM`, `PCM`": "spiking models (E222)",
    "`*Sharing`": "layers do not share parameters (E124)",
}
"""Forms of layers that work otherwise, and why they are refused."""


def error_examples() -> dict[str, Any]:
    """Code -> example for docs/errors.md; none in an installed package."""
    path = _DOCS / "site" / "error_examples.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def section_pages() -> dict[str, str]:
    """A page for each section of an INI, with its configuration, and the list of all sections."""
    layers = [(layer.schema, *([layer.config] if layer.config.keys else ())) for _, layer in sorted(layer_types().items())]
    groups = {
        "Data": [GLOBALS, *provider_schemas()],
        "Databases": database_schemas(),
        "Transformations": transformation_schemas(),
        "ONNX files": [ONNX_SECTION, ONNX_LAYER],
        "Layers": [INPUT_SECTION, TARGET, *layers],
    }
    found, listed = (
        {},
        ["# INI sections and keys", "One page for each section. That of a layer has the keys of its configuration, too."],
    )
    for title, entries in groups.items():
        listed.append(f"## {title}")
        for entry in entries:
            first, *more = entry if isinstance(entry, tuple) else (entry,)
            name = re.sub(r"\W+", "-", first.name.lower()) + ".md"
            found[f"sections/{name}"] = schema_page([first, *more], first.name).replace(f"## {first.name}\n\n", "", 1)
            listed.append(f"- [{first.name}]({name}): {first.doc.split('. ')[0].strip().removesuffix('.')}.")
    return {"sections/index.md": "\n\n".join(listed).replace(".\n\n- ", ".\n- ") + "\n", **found}


def pages() -> dict[str, str]:
    """File name -> text of every generated page; one for each installed extra target too."""
    return {
        "errors.md": errors_page(error_examples()),
        "options.md": options_page(),
        "n2d2py.1": man_page(),
        **section_pages(),
        "layer_types.md": layer_table(
            {"ONNX": ""} | {name: each.refused for name, each in layer_types().items()} | REFUSED, _FORMS
        ),
        "instruction_sets.md": isa_page(),
        "export_parameters.md": parameters_page(),
        **{
            f"{target.name.lower()}_reference.md": target_page(target)
            for target in installed_targets()
            if target.name in EXTRAS
        },
    }


def write_pages(folder: Path) -> None:
    """Write the pages into `folder`."""
    (folder / "sections").mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line `words`; a wrong one ends with a message and exit status 2."""
    parser = argparse.ArgumentParser("python -m n2d2py.docs", description="Writes the pages that are generated from tables.")
    parser.add_argument("folder", nargs="?", type=Path, help="folder of the pages; default: docs, and the headers of kernels")
    folder = parser.parse_args(words).folder
    if folder is None:
        write_pages(_DOCS)
        write_isa_headers(resources.folder("kernels"))
    elif folder.is_dir():
        write_pages(folder)
    else:
        parser.error(f"{folder} is not a folder")


if __name__ == "__main__":
    main()
