"""Sections named <name>.Post: output post-processing, as with `-post`."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.errors import N2D2Error
from n2d2py.ini.document import Document
from n2d2py.ini.schema import REQUIRED, Key, Kind, Schema
from n2d2py.postprocessing import KINDS, parse_post


def post_schema() -> Schema:
    """Return the schema of the section: the keys of all kinds of -post, capitalized."""
    own: dict[str, Key] = {}
    for key in (key for kind in KINDS.values() for key in kind.keys):
        name, default = key.name.capitalize(), None if key.default is REQUIRED else key.default
        own[name] = _either(own[name], key) if name in own else replace(key, name=name, default=default)
    kinds = Key("Type", Kind.ENUM, doc="Kind of the post-processing.", choices=tuple(KINDS))
    return Schema("Post", (kinds, *own.values()), doc="A section named <name>.Post: post-processing of the outputs, as -post.")


def read_post(document: Document) -> str | None:
    """Return the section in the syntax of -post; None without a section.

    Raises:
        N2D2Error: E003 for a key that the kind does not have, E106 for a second section, and the errors of `Schema.read`.
    """
    sections = [section for section in document.sections if section.name.endswith(".Post")]
    if not sections:
        return None
    if len(sections) > 1:
        raise N2D2Error("E106", "the model has two sections .Post", where=sections[1].location, remedy="remove one of them")
    (section,) = sections
    schema = post_schema()
    values = schema.read(section)
    names = [key.name for key in schema.keys[1:] if values.is_given(key.name)]
    text = f"{values['Type']}:{','.join(f'{name.lower()}={section.text(name)}' for name in names)}"
    parse_post(text, section.location)
    return text


def _either(key: Key, other: Key) -> Key:
    """Return a key that kinds of -post understand differently; `parse_post` knows the bounds of each."""
    doc = key.doc if other.doc in key.doc else f"{key.doc} {other.doc}"
    differing = {name: None for name in ("default", "minimum", "maximum") if getattr(key, name) != getattr(other, name)}
    return replace(key, doc=doc, **differing)
