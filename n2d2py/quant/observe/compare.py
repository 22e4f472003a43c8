"""Layer-by-layer comparison of the float network with the integers, and of the integers with a compiled export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.quant.observe.level_counts import LevelCounts


@dataclass(frozen=True)
class Difference:
    """First element at which two stored arrays differ: index (n, c, y, x), expected and found values.

    `sample`: description of a special input; the index is then (c, y, x).
    """

    index: tuple[int, ...]
    expected: float
    found: float
    sample: str = ""

    @property
    def place(self) -> str:
        """The index, and the sample."""
        return f"{list(self.index)}{' of ' if self.sample else ''}{self.sample}"


@dataclass(frozen=True)
class LayerComparison:
    """Comparison of one layer over all samples.

    Attributes:
        sqnr_db: 10 log10 of signal power over error power; inf without error.
        cosine: cosine of the angle between float and dequantized values.
        max_error: largest |float - dequantized|.
        saturated: share of stored values at an end of the range of their type, 0..1.
        identical: the compiled export equals the simulated integers; None if it was not run.
        difference: the first difference, if not identical.
        missing: elements that the compiled export does not compute, since no layer reads them.
        alone_db, alone_error: SQNR and largest error of the layer on quantized float inputs: its own loss. None if not
            computed.
        unused: share of the type's range that no stored value uses, 0..1.
        merged: later layers fused into it; their result is compared.
        exact: `identical` holds without tolerance.
        worst, worst_db: index of the sample with the lowest SQNR of this layer, and that SQNR.
        levels: float and stored values over the same steps; None for floating-point types.
    """

    layer: str
    tensor: str
    sqnr_db: float
    cosine: float
    max_error: float
    saturated: float
    identical: bool | None = None
    difference: Difference | None = None
    alone_db: float | None = None
    alone_error: float | None = None
    unused: float = 0.0
    worst: int | None = None
    worst_db: float | None = None
    levels: LevelCounts | None = None
    missing: int = 0
    merged: tuple[str, ...] = ()
    exact: bool | None = None


def decibels(signal: float, error: float) -> float:
    """Return 10 log10 of signal power over error power; inf without error."""
    return float("inf") if error == 0 else float(10 * np.log10(max(signal, 1e-300) / error))


@dataclass
class Accumulator:
    """Statistics of one layer over batches."""

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
    alone_power: float | None = None
    alone_error: float = 0.0
    worst: int | None = None
    worst_db: float = float("inf")
    levels: LevelCounts | None = None
    missing: int = 0
    merged: tuple[str, ...] = ()
    exact: bool | None = None

    @np.errstate(invalid="ignore", over="ignore")  # NaN and infinities of a network make NaN figures
    def add(
        self,
        real: np.ndarray,
        stored: np.ndarray,
        compiled: np.ndarray | None = None,
        slack: float = 0.0,
        alone: np.ndarray | None = None,
    ) -> None:
        """Add a batch (n, ...) of float values, stored values and, if run, compiled and isolated stored values."""
        exact = np.asarray(real, np.float64)
        restored = self.type.dequantize(stored).astype(np.float64)
        self.signal += float(np.sum(exact * exact))
        self.power += float(np.sum(restored * restored))
        self.cross += float(np.sum(exact * restored))
        self.error += float(np.sum((exact - restored) ** 2))
        self.max_error = float(np.maximum(self.max_error, np.max(np.abs(exact - restored), initial=0.0)))
        if not (self.type.is_float or self.type.plain):
            lowest = (stored <= self.type.qmin) if self.type.signed else False
            self.saturated += int(np.count_nonzero((stored >= self.type.qmax) | lowest))
            self.levels = self.levels or LevelCounts(self.type)
            self.levels.add(real, stored)
        self.count += stored.size
        self._rate(exact, restored)
        if alone is not None:
            lost = exact - self.type.dequantize(alone)
            self.alone_power = (self.alone_power or 0.0) + float(np.sum(lost * lost))
            self.alone_error = max(self.alone_error, float(np.max(np.abs(lost), initial=0.0)))
        if compiled is not None:
            self.missing = int(np.ma.count_masked(compiled[:1]))
            difference = self.check(stored, compiled, slack)
            if self.difference is None and difference is not None:
                self.difference = replace(difference, index=(difference.index[0] + self.stimuli, *difference.index[1:]))
        self.stimuli += len(stored)

    def check(self, stored: np.ndarray, compiled: np.ndarray, slack: float = 0.0) -> Difference | None:
        """Compare a batch of compiled values with stored ones; return the first difference."""
        difference = first_difference(stored, compiled, self.type, slack)
        self.identical = difference is None and self.identical is not False
        strict = first_difference(stored, compiled, self.type) if slack else difference
        self.exact = strict is None and self.exact is not False
        return difference

    def check_samples(self, stored: np.ndarray, compiled: np.ndarray, samples: Sequence[str]) -> None:
        """Compare a batch of named samples, which count in no other figure."""
        difference = self.check(stored, compiled)
        if self.difference is None and difference is not None:
            self.difference = replace(difference, index=difference.index[1:], sample=samples[difference.index[0]])

    def _rate(self, exact: np.ndarray, restored: np.ndarray) -> None:
        """Update the sample on which the layer's error is largest."""
        axes = tuple(range(1, exact.ndim))
        powers = np.sum(exact**2, axis=axes), np.sum((exact - restored) ** 2, axis=axes)
        for position, (signal, error) in enumerate(zip(*powers, strict=True)):
            if signal > 0 and (rated := decibels(signal, error)) < self.worst_db:
                self.worst, self.worst_db = self.stimuli + position, rated

    def result(self) -> LayerComparison:
        """Return the comparison over all batches."""
        with np.errstate(invalid="ignore"):
            norm = np.sqrt(self.signal * self.power)
            cosine = 1.0 if self.error == 0 else 0.0 if norm == 0 else self.cross / norm
        shared = ("layer", "tensor", "max_error", "identical", "difference", "worst", "levels", "missing", "merged", "exact")
        return LayerComparison(
            **{name: getattr(self, name) for name in shared},
            sqnr_db=decibels(self.signal, self.error),
            cosine=float(cosine),
            saturated=self.saturated / max(self.count, 1),
            alone_db=None if self.alone_power is None else decibels(self.signal, self.alone_power),
            alone_error=None if self.alone_power is None else self.alone_error,
            unused=self.levels.unused if self.levels else 0.0,
            worst_db=None if self.worst is None else self.worst_db,
        )


def first_difference(expected: np.ndarray, found: np.ndarray, kind: NumType, slack: float = 0.0) -> Difference | None:
    """Return the first element that differs, None without any; floats may differ by 1e-4 of the largest finite magnitude.

    Equal infinities are equal, and NaN equals only NaN. Masked elements of `found`, which the export does not compute, are
    ignored. `slack` is the tolerated share of the range, at least one step: after float layers, and on targets with their own
    arithmetic.
    """
    missing, found = np.ma.getmaskarray(found), np.ma.getdata(found)
    if kind.is_float:
        finite = np.isfinite(expected)
        tolerance = max(1e-4, slack) * max(float(np.max(np.abs(expected), initial=0.0, where=finite)), 1e-6)
        with np.errstate(invalid="ignore"):
            near = np.abs(expected.astype(np.float64) - found) <= tolerance
        wrong = ~(near & finite | (expected == found) | (np.isnan(expected) & np.isnan(found)))
    elif slack:
        wrong = np.abs(expected.astype(np.int64) - found) > max(1, slack * (kind.qmax - kind.qmin))
    else:
        wrong = expected != found
    wrong &= ~missing
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(index, float(expected[index]), float(found[index]))
