"""Records of many whole chains in a small file: for each stage one checksum of what the last bits of real numbers do not change.

Beside the checksum stand the places of the parts that they do change: of those whose integers keep their fingerprint alone, and of
those that are left out. Real numbers count with three digits.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from support.chain_networks import Case
from support.chain_record import NUMBER, UNSETTLED, Record, record, rough, shaken, short

SHAKES = 2
"""How often real numbers change in their last bits to see what that changes."""
Sums = dict[str, str]
"""Stage -> its checksum and the places of the parts that are not settled."""


def coarse(part: str) -> str:
    """A part whose real numbers have three digits."""
    return NUMBER.sub(_digits, part)


def _digits(number: re.Match) -> str:
    """Three digits; of what lies within -1 and 1, printed with four, two behind the point."""
    text, value = number[0], float(number[0])
    if re.fullmatch(r"-?[01]\.\d{4}", text):
        return f"{round(value, 2) + 0.0:.2f}"
    return f"{value:.2e}"


_FORMS: tuple[Callable[[str], str], ...] = (
    lambda part: coarse(short(part)),
    lambda part: coarse(rough(part)),
    lambda part: UNSETTLED,
)
"""From all that a part says to nothing."""


def _parts(lines: list[str]) -> list[str]:
    return [part for line in lines for part in line.split(" | ")]


def _sum_of(parts: list[str], levels: list[int]) -> str:
    text = "|".join(_FORMS[level](part) for part, level in zip(parts, levels, strict=True))
    return f"{zlib.crc32(text.encode()):08x}"


def settled_sum(lines: list[str], others: Sequence[list[str] | None]) -> str:
    """What is kept of the lines of a stage, which changed bits make into the others."""
    parts, shapes = _parts(lines), [line.count(" | ") for line in lines]
    if any(each is None or [line.count(" | ") for line in each] != shapes for each in others):
        return UNSETTLED
    split = [_parts(each) for each in others if each is not None]
    levels = [
        next(level for level, form in enumerate(_FORMS) if len({form(part), *(form(each[at]) for each in split)}) == 1)
        for at, part in enumerate(parts)
    ]
    places = ("".join(f" {at}" for at, level in enumerate(levels) if level == chosen) for chosen in (1, 2))
    return ";".join([_sum_of(parts, levels), *(each.strip() for each in places)]).rstrip(";")


def as_kept(text: str, lines: list[str]) -> bool:
    """Whether the lines of a stage are what was kept."""
    if text == UNSETTLED:
        return True
    checksum, *places = text.split(";")
    parts = _parts(lines)
    levels = [0] * len(parts)
    for level, line in enumerate(places, 1):
        for at in map(int, line.split()):
            if at >= len(parts):
                return False
            levels[at] = level
    return _sum_of(parts, levels) == checksum


@dataclass(frozen=True)
class KeptSums:
    """The file that keeps the checksums of cases, and what makes the case of a name."""

    path: Path
    case: Callable[[str], Case]

    @cached_property
    def _kept(self) -> dict[str, Sums]:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    @property
    def names(self) -> list[str]:
        """The cases."""
        return list(self._kept)

    def differences(self, name: str) -> list[str]:
        """The stages that are not as they were kept, in a working folder of the case's own."""
        kept, found = self._kept[name], self.found(name)
        return [
            stage
            for stage in sorted({*kept, *found})
            if stage not in kept or stage not in found or not as_kept(kept[stage], found[stage])
        ]

    def found(self, name: str, noise: int = 0) -> Record:
        """What the stages make of a case in the working folder."""
        case, data = self.case(name), Path("data.npz")
        file = case.make(Path.cwd())
        if noise and data.exists():
            np.savez(data, x=shaken(np.load(data)["x"], noise))
        return record(file, case.words, case.plans, noise)

    def write(self, names: Iterable[str]) -> None:
        """Keeps what is found now of the cases that are networks and differ from all before them."""
        kept: dict[str, Sums] = {}
        home = Path.cwd()
        seen: set[str] = set()
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    found = self.found(name)
                    others = [self.found(name, noise) for noise in range(1, SHAKES + 1)]
                finally:
                    os.chdir(home)
            sums = {stage: settled_sum(lines, [each.get(stage) for each in others]) for stage, lines in found.items()}
            text = json.dumps(sums)
            if text not in seen and all(stage in found for each in others for stage in each):
                seen.add(text)
                kept[name] = sums
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(sums)}" for name, sums in kept.items())
        self.path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
