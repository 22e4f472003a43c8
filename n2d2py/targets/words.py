"""Evaluation of decisions in recordings against the words that were spoken: word accuracy, as in speech recognition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Words:
    """Decided and spoken words, class numbers in their order, for each recording."""

    detected: tuple[tuple[int, ...], ...]
    spoken: tuple[tuple[int, ...], ...]

    metric: ClassVar = "word accuracy"

    def of(self, positions: np.ndarray) -> Words:
        """Return the words of the recordings at these positions."""
        return Words(*(tuple(each[int(index)] for index in positions) for each in (self.detected, self.spoken)))

    @cached_property
    def errors(self) -> tuple[int, int, int]:
        """Wrong, missing and extra words of the alignments with the fewest errors."""
        wrong, missing, extra = np.sum(
            [_errors(*each) for each in zip(self.detected, self.spoken, strict=True)], axis=0
        ).tolist()
        return wrong, missing, extra

    @property
    def count(self) -> int:
        """Number of spoken words."""
        return sum(map(len, self.spoken))

    @property
    def percent(self) -> float | None:
        """Word accuracy in percent: 1 - errors / words, below 0 for many extra words; None without words."""
        return 100.0 * (1 - sum(self.errors) / self.count) if self.count else None

    @property
    def details(self) -> dict[str, str]:
        """Further columns of a table."""
        return dict(zip(("words", "wrong", "missing", "extra"), map(str, (self.count, *self.errors)), strict=True))


def _errors(detected: Sequence[int], spoken: Sequence[int]) -> tuple[int, int, int]:
    """Return wrong, missing and extra words with the least sum, by dynamic programming; of equal sums the fewest wrong ones."""
    row = [(at, 0, 0, at) for at in range(len(detected) + 1)]  # sum, wrong, missing, extra
    for word in spoken:
        above, row = row, [(row[0][0] + 1, row[0][1], row[0][2] + 1, row[0][3])]
        for at, heard in enumerate(detected):
            differs = int(heard != word)
            steps = ((above[at], differs, 0, 0), (above[at + 1], 0, 1, 0), (row[at], 0, 0, 1))
            row.append(min((c + a + b + d, w + a, m + b, e + d) for (c, w, m, e), a, b, d in steps))
    return row[-1][1:]
