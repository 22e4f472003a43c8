"""`python -m n2d2py.docs [FOLDER]` writes the documentation pages that are generated from tables, and without FOLDER
the headers of `kernels/` that are."""

from __future__ import annotations

import sys
from pathlib import Path

from n2d2py import resources
from n2d2py.data import database_schemas, provider_schemas, transformation_schemas
from n2d2py.error_codes import errors_page
from n2d2py.export.cpp.isa_headers import isa_page, write_isa_headers
from n2d2py.export.parameters import parameters_page
from n2d2py.frontend.ini.contract import layer_types
from n2d2py.frontend.ini.network import GLOBALS, INPUT_SECTION
from n2d2py.frontend.ini.onnx_section import ONNX_LAYER, ONNX_SECTION
from n2d2py.frontend.ini.targets import TARGET
from n2d2py.ini.docs import schema_page
from n2d2py.options import options_page

__all__ = ["main", "pages"]


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    layers = []
    for _, layer in sorted(layer_types().items()):
        layers.append(layer.schema)
        if layer.config.keys:
            layers.append(layer.config)
    return {
        "errors.md": errors_page(),
        "options.md": options_page(),
        "sections.md": schema_page(
            [
                GLOBALS,
                *provider_schemas(),
                *database_schemas(),
                *transformation_schemas(),
                ONNX_SECTION,
                ONNX_LAYER,
                INPUT_SECTION,
                TARGET,
                *layers,
            ],
            "INI sections and keys",
        ),
        "instruction_sets.md": isa_page(),
        "export_parameters.md": parameters_page(),
    }


def main(folder: Path) -> None:
    """Writes the pages into `folder`."""
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        main(Path(__file__).resolve().parent.parent / "docs")
        write_isa_headers(resources.folder("kernels"))
