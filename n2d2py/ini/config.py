"""ConfigSection: layer parameters in sections of their own."""

from __future__ import annotations

from n2d2py.errors import Location, N2D2Error
from n2d2py.ini.document import Document, Section

_KEY = "ConfigSection"


def is_config_key(name: str) -> bool:
    """True if the property names config sections: `ConfigSection` or `ConfigSection(Model)`."""
    return name == _KEY or (name.startswith(_KEY + "(") and name.endswith(")"))


def merge_config(section: Section | MergedSection, document: Document, model: str = "") -> MergedSection:
    """Return the merged properties of the sections in `ConfigSection`; later sections override earlier ones.

    For `model`, `ConfigSection(model)` replaces `ConfigSection` if present; a model `X_CUDA` also accepts `ConfigSection(X)`.
    Without any, the result is empty.

    Raises:
        N2D2Error: E119 if a listed section does not exist.
    """
    merged = MergedSection(document, section.location)
    key = _config_key(section, model)
    if key is None:
        return merged
    where = section.where(key)
    for name in section.text(key).split(","):
        if name.strip():
            merged.add(document.require(name.strip(), where))
    return merged


def _config_key(section: Section | MergedSection, model: str) -> str | None:
    models = [model, model.removesuffix("_CUDA")] if model else []
    for key in [*(f"{_KEY}({name})" for name in models), _KEY]:
        if section.has(key):
            return key
    return None


class MergedSection:
    """Merged config sections with the interface of a Section; each property is read from the section that defines it."""

    def __init__(self, document: Document, location: Location):
        self.document = document
        self.name = location.section or ""
        self.location = location
        self._owners: dict[str, Section] = {}

    def add(self, section: Section) -> None:
        """Add the properties of a section, which override earlier ones."""
        section.mark_used()
        for key in section.keys():
            self._owners[key] = section

    def keys(self) -> list[str]:
        """Return the property names in order of first appearance."""
        return list(self._owners)

    def has(self, key: str) -> bool:
        """True if one of the sections has the property."""
        return key in self._owners

    def raw(self, key: str) -> str:
        """Return the unexpanded value."""
        return self._owner(key).raw(key)

    def text(self, key: str) -> str:
        """Return the value, expanded in the section that defines it."""
        return self._owner(key).text(key)

    def where(self, key: str) -> Location:
        """Return the place of the value; without a value, that of the layer's section."""
        return self._owners[key].where(key) if key in self._owners else self.location

    def mark_used(self) -> None:
        """Do nothing: `add` marks the sections as used."""

    def _owner(self, key: str) -> Section:
        if key not in self._owners:
            what = f"property '{key}' is missing in the ConfigSection"
            raise N2D2Error("E108", what, where=self.location, remedy=f"add {key}=<value>")
        return self._owners[key]
