"""N2D2 keys without effect here: an error if N2D2's results would differ, else one warning for each kind.

Every such key is reported, except with values that give the behaviour of this tool in N2D2 too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from n2d2py import log
from n2d2py.errors import Location, N2D2Error, join_names

_SHOWN = 6
"""Limit of names listed in a message."""


@dataclass(frozen=True)
class Ignored:
    """Keys that match `pattern` (with `*` and `?`) and have no effect here.

    Attributes:
        kind: first words of the warning; "" if a message about the whole section covers the key.
        does: effect of the key in N2D2, a clause without subject.
        remedy: action for the user.
        changes: N2D2's results differ with the key.
        same: values with which N2D2 behaves as this tool.
    """

    pattern: str
    kind: str
    does: str = ""
    remedy: str = "remove it"
    changes: bool = False
    same: tuple[str, ...] = ()

    def for_keys(self, *patterns: str) -> tuple[Ignored, ...]:
        """Return copies for other keys."""
        return tuple(replace(self, pattern=pattern) for pattern in patterns)

    def is_same_behaviour(self, text: str) -> bool:
        """True if N2D2 with the value `text` behaves as this tool."""
        return text.strip().lower() in (one.lower() for one in self.same)

    def error(self, name: str, where: Location) -> N2D2Error:
        """Return the error for a key that changes results."""
        what = f"'{name}' {self.does} in N2D2, which is not supported: the result would differ"
        return N2D2Error("E124", what, where=where, remedy=self.remedy)


_UNCHANGED = "remove them to avoid this warning; trained weights are exported unchanged"
TRAINING = Ignored("", "keys of training", "sets how N2D2 trains", _UNCHANGED)
SPIKING = Ignored("", "keys of spiking models", "is for spiking models", "remove them; spiking models are not supported")
CACHES = Ignored("", "keys of caches and memory", "saves time", "remove them: data are read when they are needed")
ON_LABELS = Ignored("", "keys of ApplyToLabels", "acts on pixel-wise labels with ApplyToLabels=1", "remove them")
COVERED = Ignored("*", "")
"""All keys of a section that is read elsewhere, or that a separate message reports as not computed."""


class IgnoredKeys:
    """Keys without effect found in a document, by kind, for one warning each."""

    def __init__(self) -> None:
        self._met: dict[str, list[tuple[Ignored, str, Location]]] = {}

    def add(self, entry: Ignored, name: str, where: Location) -> None:
        """Record that the key `name`, written at `where`, has no effect."""
        if entry.kind:
            self._met.setdefault(entry.kind, []).append((entry, name, where))

    def remove(self, kind: str, computed: Callable[[str], bool]) -> None:
        """Remove the keys of a kind that have an effect after all."""
        self._met[kind] = [each for each in self._met.get(kind, []) if not computed(each[1])]
        if not self._met[kind]:
            del self._met[kind]

    def warn(self) -> None:
        """Warn once for each kind of key."""
        for kind, met in self._met.items():
            names = list(dict.fromkeys(name for _, name, _ in met))
            sections = list(dict.fromkeys(f"[{where.section}]" if where.section else "" for *_, where in met))
            text = f"{kind} have no effect here: {join_names(names, _SHOWN)}"
            if sections != [""]:
                text += f" in {join_names([section or 'the global section' for section in sections], _SHOWN)}"
            log.warning("W108", text, where=Location(met[0][2].file), remedy=met[0][0].remedy)
        self._met.clear()
