"""Layer by layer: the float network against the integers, and the integers against a compiled export."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.arithmetic import NumType

__all__ = ["LayerComparison", "Accumulator", "Difference", "first_difference"]


@dataclass(frozen=True)
class Difference:
    """The first element at which two stored arrays differ: index (n, c, y, x), expected and found values."""

    index: tuple[int, ...]
    expected: float
    found: float


@dataclass(frozen=True)
class LayerComparison:
    """One layer over all compared stimuli.

    Attributes:
        sqnr_db: 10 log10 of signal power over error power; inf without error.
        cosine: cosine of the angle between float and dequantized values.
        max_error: largest |float - dequantized|.
        saturated: share of stored values at an end of the range of their type, 0..1.
        identical: whether the compiled export gave the simulated integers; None when it was not run.
        difference: the first difference, when not identical.
    """

    layer: str
    tensor: str
    sqnr_db: float
    cosine: float
    max_error: float
    saturated: float
    identical: bool | None = None
    difference: Difference | None = None


@dataclass
class Accumulator:
    """Sums of one layer over batches."""

    layer: str
    tensor: str
    type: NumType
    signal: float = 0.0
    power: float = 0.0
    cross: float = 0.0
    error: float = 0.0
    max_error: float = 0.0
    saturated: int = 0
    count: int = 0
    identical: bool | None = None
    difference: Difference | None = field(default=None)
    stimuli: int = 0

    def add(self, real: np.ndarray, stored: np.ndarray, compiled: np.ndarray | None = None,
            slack: float = 0.0) -> None:
        """Adds a batch (n, ...) of float values, stored values and, if run, compiled stored values."""
        exact = np.asarray(real, np.float64)
        restored = self.type.dequantize(stored).astype(np.float64)
        self.signal += float(np.sum(exact * exact))
        self.power += float(np.sum(restored * restored))
        self.cross += float(np.sum(exact * restored))
        self.error += float(np.sum((exact - restored) ** 2))
        self.max_error = max(self.max_error, float(np.max(np.abs(exact - restored), initial=0.0)))
        if not self.type.is_float:
            self.saturated += int(np.count_nonzero((stored >= self.type.qmax)
                                                   | ((stored <= self.type.qmin) if self.type.signed else False)))
        self.count += stored.size
        if compiled is not None:
            found = first_difference(stored, compiled, self.type, slack)
            self.identical = found is None and self.identical is not False
            if self.difference is None and found is not None:
                self.difference = Difference((found.index[0] + self.stimuli, *found.index[1:]), found.expected,
                                             found.found)
        self.stimuli += len(stored)

    def result(self) -> LayerComparison:
        """The figures of all batches."""
        sqnr = np.inf if self.error == 0 else 10 * np.log10(max(self.signal, 1e-300) / self.error)
        norm = np.sqrt(self.signal * self.power)
        cosine = 1.0 if self.error == 0 else self.cross / norm if norm > 0 else 0.0
        return LayerComparison(self.layer, self.tensor, float(sqnr), float(cosine), self.max_error,
                               self.saturated / max(self.count, 1), self.identical, self.difference)


def first_difference(expected: np.ndarray, found: np.ndarray, kind: NumType, slack: float = 0.0) -> Difference | None:
    """The first element that differs, None when none does; floats may differ by 1e-4 of the largest magnitude.

    `slack` is the share of the range by which values may differ: behind layers in floating point, and on targets with
    arithmetic of their own.
    """
    if kind.is_float:
        tolerance = max(1e-4, slack) * max(float(np.max(np.abs(expected), initial=0.0)), 1e-6)
        wrong = ~(np.abs(expected.astype(np.float64) - found) <= tolerance)
    elif slack:
        wrong = np.abs(expected.astype(np.int64) - found) > slack * (kind.qmax - kind.qmin)
    else:
        wrong = expected != found
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(index, float(expected[index]), float(found[index]))
