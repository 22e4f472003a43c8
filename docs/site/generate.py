"""`python docs/site/generate.py [FOLDER]` writes the documentation pages that are generated from tables, and without FOLDER
the headers of `kernels/` that are."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from error_codes import CODES, FAMILIES

import n2d2py
from n2d2py import api, resources, runtime
from n2d2py.contracts.cpp import isa
from n2d2py.contracts.ini.layers import layer_types
from n2d2py.data import database_schemas, provider_schemas, transformation_schemas
from n2d2py.exports.base import Target
from n2d2py.exports.cpp.headers import ISA_HEADERS, isa_header
from n2d2py.exports.cpp.processors import TARGETS
from n2d2py.exports.registry import EXTRAS, built_in_targets, installed_targets, parameter_schemas
from n2d2py.frontend.ini import network
from n2d2py.frontend.ini.onnx_section import ONNX_LAYER, ONNX_SECTION
from n2d2py.frontend.ini.targets import TARGET, post_schema
from n2d2py.ini import Key, Schema
from n2d2py.ini.schema import default_cell, kind_cell
from n2d2py.options import COMMON, FUSED, GROUPS, IGNORED, OPTIONS, PURPOSE, REFUSED, USAGE

_DOCS = Path(__file__).resolve().parents[1]
_FORMS = {
    "`Kernel=` of Conv and Deconv": "filters are stored as weights (E124)",
    "`KernelDims`, `PoolDims` of three values": "layers have two axes (E211); `KernelDepth` and `PoolDepth` above 1 are E124",
    "`Model=Spike`, `RRAM`, `PCM`": "spiking models (E222)",
    "`*Sharing`": "layers do not share parameters (E124)",
}
"""Forms of layers that work otherwise, and why they are refused."""


def schema_page(schemas: Iterable[Schema], title: str = "Sections and keys") -> str:
    """Return a Markdown page: for each schema its description and a table of keys, kinds and defaults."""
    parts = [f"# {title}\n"]
    for schema in schemas:
        parts.append(f"## {schema.name}\n")
        if schema.doc:
            parts.append(schema.doc.strip() + "\n")
        if schema.keys:
            rows = ["| Key | Kind | Default | Meaning |", "| --- | --- | --- | --- |"]
            rows += [_table_row(key) for key in schema.keys]
            parts.append("\n".join(rows) + "\n")
        if schema.accepted:
            for changes, text in ((True, "Refused, because they change results in N2D2"), (False, "Known, without effect")):
                names = ", ".join(f"`{entry.pattern}`" for entry in schema.accepted if entry.kind and entry.changes == changes)
                if names:
                    parts.append(f"{text}: {names}.\n")
    return "\n".join(parts)


def _table_row(key: Key) -> str:
    cells = (f"`{key.name}`", kind_cell(key), default_cell(key), key.doc)
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def layer_table(refused: Mapping[str, str], forms: Mapping[str, str]) -> str:
    """Return a Markdown page of the values of Type= and of other forms, each with the reason for refusal, "" for none."""
    rows = [f"| `{name}` | {f'refused: {why}' if why else 'works'} |" for name, why in sorted(refused.items())]
    rows += [f"| {name} | refused: {why} |" for name, why in forms.items()]
    head = "# Layer types of N2D2\n\n`-describe` knows the dimensions of all but `LSTM` and `Rbf`. Keys: [sections](sections/index.md).\n\n"
    return head + "\n".join(["| Type or key | Here |", "| --- | --- |", *rows]) + "\n"


def parameters_page() -> str:
    """Return the documentation page of the export parameters of this package, in Markdown."""
    return schema_page(parameter_schemas(built_in_targets()), "Export parameters")


def code_table(codes: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the lines of a Markdown table of codes."""
    return ["| Code | Meaning | Remedy |", "|---|---|---|"] + [f"| {code} | {a} | {b} |" for code, (a, b) in codes.items()]


def target_page(target: Target[Any]) -> str:
    """Return the reference page of a target of another package, in Markdown: parameters, layer parameters, codes."""
    schemas = [schema for schema in (target.parameters, target.layer_parameters) if schema.keys]
    text = schema_page(schemas, f"{target.name}: parameters{', errors and warnings' * bool(target.codes)}")
    codes = "\n".join(["", "## Errors and warnings", "", *code_table(target.codes), ""]) if target.codes else ""
    return text + codes


def write_isa_headers(folder: Path) -> None:
    """Write the headers into a folder of kernels."""
    for header in ISA_HEADERS:
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text(isa_header(header), encoding="utf-8", newline="\n")


def isa_page() -> str:
    """Return the page that shows the table."""
    kernels = {name: name for name in isa.KERNELS} | {
        isa.FULLY_CONNECTED: "fully connected",
        isa.WINOGRAD: "Winograd",
        isa.FLOATS: "float32",
        isa.RUNS: "runs of sums",
        isa.ROWS: "rows of recurrent layers",
    }
    page = resources.templates("cpp").get_template("instruction_sets.md.j2")
    return page.render(sets=(*isa.instruction_sets(), isa.PORTABLE), kernels=kernels, targets=TARGETS)


def error_examples() -> dict[str, Any]:
    """Code -> example for docs/errors.md; none in an installed package."""
    path = _DOCS / "site" / "error_examples.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def errors_page(examples: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of all codes. An example has a `message`, and either a `command` with its `files` (name -> text) and
    `changes` (lines), or a `cause`."""
    return _rendered("errors.md", families=FAMILIES, codes=CODES, examples=examples)


def options_page(name: str = "options.md") -> str:
    """Return the page of all options, or the manual page n2d2py(1) in the macros of man(7)."""
    options = {"options": OPTIONS, "groups": GROUPS, "common": COMMON}
    others = {"refused": REFUSED, "fused": FUSED, "ignored": IGNORED}
    return _rendered(name, usage=USAGE, purpose=PURPOSE, version=n2d2py.__version__, **options, **others)


def _rendered(name: str, **values: Any) -> str:
    environment = resources.templates("docs")
    environment.filters["roff"] = _roff
    return environment.get_template(f"{name}.j2").render(values)


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def section_pages() -> dict[str, str]:
    """Return a page for each section of an INI, with its configuration, and the list of all sections."""
    layers = [(layer.schema, *([layer.config] if layer.config.keys else ())) for _, layer in sorted(layer_types().items())]
    groups = {
        "Data": [network.GLOBALS, *provider_schemas()],
        "Databases": database_schemas(),
        "Transformations": transformation_schemas(),
        "Layers": [network.INPUT_SECTION, TARGET, post_schema(), ONNX_SECTION, ONNX_LAYER, *layers],
    }
    sections = {}
    rows = ["# INI sections and keys", "One page for each section. That of a layer has the keys of its configuration, too."]
    for title, entries in groups.items():
        rows.append(f"## {title}")
        for entry in entries:
            first, *more = entry if isinstance(entry, tuple) else (entry,)
            name = re.sub(r"\W+", "-", first.name.lower()) + ".md"
            sections[f"sections/{name}"] = schema_page([first, *more], first.name).replace(f"## {first.name}\n\n", "", 1)
            rows.append(f"- [{first.name}]({name}): {first.doc.split('. ')[0].strip().removesuffix('.')}.")
    return {"sections/index.md": "\n\n".join(rows).replace(".\n\n- ", ".\n- ") + "\n", **sections}


_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$", re.MULTILINE)


def api_page() -> str:
    """Return the Python interface: signature and docstring of each function and class, and of the public members of results."""
    objects = {f"n2d2py.{name}": getattr(n2d2py, name) for name in n2d2py.__all__}
    results = {f"n2d2py.api.{name}": getattr(api, name) for name in api.__all__ if inspect.isclass(getattr(api, name))}
    results["n2d2py.runtime.Network"] = runtime.Network
    groups = {
        "Functions": {name: one for name, one in objects.items() if not inspect.isclass(one)},
        "Results": results,
        "Options and errors": {name: one for name, one in objects.items() if inspect.isclass(one)},
    }
    lines = ["# Python API", "Generated from the docstrings. [Work from Python](../how-to/python.md) is the guide."]
    for title, entries in groups.items():
        lines.append(f"## {title}")
        for name, one in sorted(entries.items()):
            lines += [f"### {name}", *_described(name, one)]
            own = [base for base in getattr(one, "__mro__", ()) if base is one or base.__name__.startswith("_")]
            members = [part for part in map(partial(_member, one), sorted({*chain(*map(vars, own))})) if part]
            lines += ["\n".join(members)] if members else []
    return "\n\n".join(lines) + "\n"


def _described(name: str, one: Any) -> list[str]:
    """Signature and docstring as Markdown; results have no signature, as functions make them."""
    text = _SECTION.sub(r"**\1**\n", "".join([inspect.getdoc(one) or "", *_inherited(one)]))
    text = re.sub(r"^ {4}(\*{0,2}[\w, ]+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"^ +", "  ", text, flags=re.MULTILINE)
    if inspect.isclass(one) and not name.endswith("Options"):
        return [text]
    lines = [f"{name.rpartition('.')[2]}("]
    for parameter in inspect.signature(one).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "    *," not in lines:
            lines.append("    *,")
        default = parameter.default
        shown = f"{type(default).__name__}()" if is_dataclass(default) else repr(default)
        kind = f": {parameter.annotation}" if parameter.annotation is not inspect.Parameter.empty else ""
        lines.append(f"    {parameter.name}{kind}{'' if default is inspect.Parameter.empty else f' = {shown}'},")
    return ["\n".join(["```python", *lines, ")", "```"]), text]


def _inherited(one: Any) -> list[str]:
    """Return the attributes that a class of options has from those that it extends."""
    bases = [base for base in (one.__mro__[1:] if inspect.isclass(one) else ()) if is_dataclass(base)]
    return [(inspect.getdoc(base) or "").partition("\n\nAttributes:")[2] for base in bases]


def _member(owner: type, name: str) -> str:
    member = inspect.getattr_static(owner, name)
    if name.startswith("_") or not (isinstance(member, property) or inspect.isfunction(member)):
        return ""
    summary = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
    return f"- `{name}{'' if isinstance(member, property) else '()'}`: {summary}"


def pages() -> dict[str, str]:
    """File name -> text of every generated page; one for each installed extra target too."""
    layers = {"ONNX": ""} | {name: each.refused for name, each in layer_types().items()}
    extras = [target for target in installed_targets() if target.name in EXTRAS]
    return {
        "errors.md": errors_page(error_examples()),
        "options.md": options_page(),
        "n2d2py.1": options_page("n2d2py.1"),
        **section_pages(),
        "layer_types.md": layer_table(layers | network.REFUSED, _FORMS),
        "instruction_sets.md": isa_page(),
        "export_parameters.md": parameters_page(),
        "reference/python_api.md": api_page(),
        **{f"{target.name.lower()}_reference.md": target_page(target) for target in extras},
    }


def write_pages(folder: Path) -> None:
    """Write the pages into `folder`."""
    for name in ("sections", "reference"):
        (folder / name).mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line `words`; a wrong one ends with a message and exit status 2."""
    parser = argparse.ArgumentParser(
        "python docs/site/generate.py", description="Writes the pages that are generated from tables."
    )
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
