"""The templates of the C++ export."""

from __future__ import annotations

from functools import cache

import jinja2

from n2d2py import resources


@cache
def templates(*folders: str) -> jinja2.Environment:
    """The templates below folders of `export_templates`, in the first that has them, compiled once for all exports of a process."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([resources.folder("export_templates") / folder for folder in folders or ("cpp",)]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
