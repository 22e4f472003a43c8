"""Real values and the integers that stand for them, counted over the same steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.arithmetic import NumType

_MOST_BINS = 128


@dataclass
class LevelCounts:
    """Counts over the range of an integer type, in bins of whole steps; what lies beyond is in the outermost ones.

    Attributes:
        type: the integer type.
        real, stored: counts (K) of the real values nearest to the integers of each bin, and of the integers.
        lowest, highest: the ends of the stored integers seen; `highest < lowest` while empty.
    """

    type: NumType
    real: np.ndarray = field(init=False)
    stored: np.ndarray = field(init=False)
    lowest: int = 2**62
    highest: int = -(2**62)

    def __post_init__(self) -> None:
        steps = self.type.qmax - self.type.qmin + 1
        self.group = -(-steps // _MOST_BINS)
        bins = -(-steps // self.group)
        self.real, self.stored = np.zeros(bins, np.int64), np.zeros(bins, np.int64)

    @property
    def edges(self) -> np.ndarray:
        """Real values (K + 1) between the bins, half a step from integers."""
        first = self.type.qmin - self.type.zero_point - 0.5
        return (first + self.group * np.arange(len(self.real) + 1)) * self.type.scale

    @property
    def unused(self) -> float:
        """Share of the type's steps outside of the range seen, 0..1."""
        if self.highest < self.lowest:
            return 1.0
        return 1 - (self.highest - self.lowest) / (self.type.qmax - self.type.qmin)

    def add(self, real: np.ndarray, stored: np.ndarray) -> None:
        """Count a batch of real values and of stored ones, of any shapes."""
        stored = np.clip(stored, self.type.qmin, self.type.qmax)
        self.real += self._counted(self.type.quantize(np.asarray(real)))
        self.stored += self._counted(stored)
        self.lowest, self.highest = min(self.lowest, int(stored.min())), max(self.highest, int(stored.max()))

    def _counted(self, stored: np.ndarray) -> np.ndarray:
        bins = (stored.reshape(-1).astype(np.int64) - self.type.qmin) // self.group
        return np.bincount(bins, minlength=len(self.real))
