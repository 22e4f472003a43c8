"""Documentation page of sections and keys, generated from schemas."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from n2d2py.ini.kinds import kind_text
from n2d2py.ini.schema import REQUIRED, Key, Schema


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


def schema_text(schemas: Iterable[Schema]) -> str:
    """Return the same content for a terminal, without the keys that have no effect."""
    lines = []
    for schema in schemas:
        lines += ["", f"{schema.name}:"]
        for key in schema.keys:
            lines.append(f"  {key.name} = {_kind_cell(key)} [{_default_cell(key).strip('`')}]")
            lines += textwrap.wrap(key.doc, 70, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines)


def layer_table(refused: Mapping[str, str], forms: Mapping[str, str]) -> str:
    """Return a Markdown page of the values of Type= and of other forms, each with the reason for refusal, "" for none."""
    rows = [f"| `{name}` | {f'refused: {why}' if why else 'works'} |" for name, why in sorted(refused.items())]
    rows += [f"| {name} | refused: {why} |" for name, why in forms.items()]
    head = "# Layer types of N2D2\n\n`-describe` knows the dimensions of all but `LSTM` and `Rbf`. Keys: [sections](sections/index.md).\n\n"
    return head + "\n".join(["| Type or key | Here |", "| --- | --- |", *rows]) + "\n"


def _kind_cell(key: Key) -> str:
    kind = kind_text(key.kind, key.choices)
    if key.minimum is not None:
        kind += f", at least {key.minimum}"
    if key.maximum is not None:
        kind += f", at most {key.maximum}"
    return kind


def _table_row(key: Key) -> str:
    cells = (f"`{key.name}`", _kind_cell(key), _default_cell(key), key.doc)
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _default_cell(key: Key) -> str:
    value: Any = key.default
    if value is REQUIRED:
        return "" if key.is_pattern else "required"
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return f"`{int(value)}`"
    if isinstance(value, tuple):
        return f"`{' '.join(str(item) for item in value)}`"
    return f"`{value}`"
